//! The suite for [`Backend`]: buckets and records together, and usage.

mod atomicity;
mod buckets;
mod forgetting;
mod month;
mod retention;
mod usage;

use std::cell::Cell;

use tollgate_core::{Costs, Demand, Limit, Limits, Status, Tick, Usage};
use tollgate_store::records::{Item, ItemKey, RecordsError, Write};
use tollgate_store::usage::{UsageRetention, Window, iso, usage_key};
use tollgate_store::{
    Backend, BucketRef, Clock, Key, ManualClock, Op, OpId, Scope, Step, StepOutcome, StoreError, Transaction,
    TxnOutcome,
};

use crate::fixture::open_at;
use crate::random::each_seed;

/// Midnight at the beginning of a month: 2026-03-01T00:00:00Z.
const START: Tick = Tick::from_secs(1_772_323_200);

/// Runs every law and `traces` random months on stores made by `open`, which must go by the clock it is given: buckets and records
/// change together, what is forgotten is gone, and usage is counted exactly. `TOLLGATE_SEED` replays a month that failed.
///
/// # Panics
///
/// On the first difference, with the seed of the month.
pub fn run<B: Backend>(traces: u64, open: impl Fn(Clock) -> B) {
    atomicity::run(&open);
    forgetting::run(&open);
    buckets::run(&open);
    usage::run(&open);
    each_seed(traces, |seed| month::run(seed, &open));
}

/// Checks that a store keeps records of usage for as long as it is configured to: `open` makes one with the retention that is its
/// second argument.
///
/// # Panics
///
/// On the first record that is gone too early, there too long, or has another expiry.
pub fn usage_retention<B: Backend>(open: impl Fn(Clock, UsageRetention) -> B) {
    retention::run(&open);
}

/// A store, its manual clock, and the limits of all its buckets.
struct BackendFixture<B> {
    clock: ManualClock,
    store: B,
    limits: Limits,
    ids: Cell<u128>,
}

/// The name of a bucket: its namespace, entity and resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct BucketName<'a>(&'a str, &'a str, &'a str);

impl<B: Backend> BackendFixture<B> {
    fn open(open: &impl Fn(Clock) -> B) -> BackendFixture<B> {
        let (clock, store) = open_at(START, open);
        let limits = [Limit::per_day("tpm", 1_000), Limit::resource("slots", 4)];
        let limits = Limits::new(limits).expect("these limits are valid");
        BackendFixture { store, clock, limits, ids: Cell::new(0) }
    }

    fn costs(&self, tpm: u64) -> Costs {
        costs(&self.limits, tpm)
    }

    /// Applies one step as a metered call with a new id, together with these writes.
    fn apply_with(
        &self,
        name: BucketName<'_>,
        op: Op<'_>,
        writes: &[Write],
    ) -> Result<TxnOutcome, RecordsError> {
        self.apply_under(&self.limits, name, op, writes)
    }

    fn apply_under(
        &self,
        limits: &Limits,
        BucketName(namespace, entity, resource): BucketName<'_>,
        op: Op<'_>,
        writes: &[Write],
    ) -> Result<TxnOutcome, RecordsError> {
        self.ids.set(self.ids.get() + 1);
        let key = Key::new(&[entity, resource]);
        let steps = [Step { place: BucketRef { namespace, key: &key, limits }, op }];
        let call = Transaction { id: Some(OpId(self.ids.get())), steps: &steps, metered: true };
        if writes.is_empty() {
            return self.store.apply(&call).wait().map_err(RecordsError::from);
        }
        self.store.apply_with(&call, writes).wait()
    }

    fn apply(&self, name: BucketName<'_>, op: Op<'_>) -> TxnOutcome {
        self.apply_with(name, op, &[]).expect("the store answers")
    }

    /// Takes so much and 1 slot, which must fit, and returns the instant.
    fn take(&self, name: BucketName<'_>, tpm: u64) -> Tick {
        match self.apply(name, Op::Take { costs: &self.costs(tpm), term: None }) {
            TxnOutcome::Done(done) => match done[..] {
                [StepOutcome::Taken(taken)] => taken.at,
                _ => panic!("{name:?}: a take returned {done:?}"),
            },
            outcome => panic!("{name:?}: a take of {tpm} returned {outcome:?}"),
        }
    }

    /// Settles a lease that was taken at `at`, if the bucket still exists.
    fn settle(&self, name: BucketName<'_>, at: Tick, reserved: u64, used: u64) {
        let costs = self.costs(reserved);
        let usage = Usage { at, reserved: &costs, used: &[used, 0], holder: None };
        assert_eq!(self.apply(name, Op::SettleExisting(usage)), TxnOutcome::Done(vec![StepOutcome::Settled]));
    }

    /// Returns what is left of tpm and of slots.
    fn left(&self, BucketName(namespace, entity, resource): BucketName<'_>) -> [i64; 2] {
        let key = Key::new(&[entity, resource]);
        let place = BucketRef { namespace, key: &key, limits: &self.limits };
        let statuses = self.store.peek(&place).wait().expect("the store answers");
        let [tpm, slots] = &statuses[..] else { panic!("{statuses:?} are not two") };
        [tpm, slots].map(Status::available)
    }

    /// Writes usage, and reads the amount of tpm and the events of the window that `at` falls into.
    fn used(&self, name: BucketName<'_>, window: Window, at: Tick) -> Option<(i64, i64)> {
        let BucketName(namespace, entity, resource) = name;
        let scope = Scope::Bucket(entity, resource);
        self.store.write_usage(namespace, scope).wait().expect("the store answers");
        let key = usage_key(namespace, entity, resource, window, &iso(window.start(at)));
        let item = get(&self.store, &key)?;
        Some((item.int("tpm")?, item.int("total_events")?))
    }

    fn forget_all(&self, namespace: &str, scope: Scope<'_>) -> usize {
        let forget = || self.store.forget(namespace, scope).wait().expect("the store answers");
        let rounds = std::iter::repeat_with(forget);
        rounds.take_while(|forgotten| *forgotten > 0).sum()
    }
}

fn costs(limits: &Limits, tpm: u64) -> Costs {
    limits.costs(&Demand::new().with("tpm", tpm)).expect("it fits")
}

fn get<B: Backend>(store: &B, key: &ItemKey) -> Option<Item> {
    let found = store.get_many(std::slice::from_ref(key)).wait().expect("the store answers");
    found.into_iter().next().flatten()
}

fn is_done(applied: &Result<TxnOutcome, RecordsError>) -> bool {
    matches!(applied, Ok(TxnOutcome::Done(_)))
}

fn is_gone(applied: &Result<TxnOutcome, RecordsError>) -> bool {
    matches!(applied, Err(RecordsError::Store(StoreError::NamespaceGone(_))))
}
