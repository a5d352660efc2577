//! Random months of takes and settlements, whose usage is recounted.

use std::collections::BTreeMap;

use tollgate_core::{Costs, Limit, Limits, Span, Tick, Usage};
use tollgate_store::records::{GETS_MAX, Item, ItemKey, Query};
use tollgate_store::usage::{Window, iso, limit_of_field, usage_key, usage_partition};
use tollgate_store::{Backend, Clock, Op, Scope, SplitMix64, StepOutcome, TxnOutcome};

use super::{BackendFixture, BucketName};
use crate::random::seeded;
use crate::records::query_all;

const STEPS: u64 = 250;
const NAMESPACES: [&str; 2] = ["month", "other"];
const ENTITIES: [&str; 2] = ["user", "user#2"];
const RESOURCES: [&str; 2] = ["api", "chat"];
const WINDOWS: [Window; 3] = [Window::Hour, Window::Day, Window::Month];

/// The content of a usage record: the events, and the amount of each limit.
type Recount = (i64, BTreeMap<String, i64>);

struct MonthReceipt {
    name: BucketName<'static>,
    limits: usize,
    at: Tick,
    costs: Costs,
}

struct Month<B> {
    seed: u64,
    random: SplitMix64,
    fixture: BackendFixture<B>,
    sets: [Limits; 3],
    receipts: Vec<MonthReceipt>,
    /// By the key of the record.
    counted: BTreeMap<(String, String), Recount>,
}

pub(super) fn run<B: Backend>(seed: u64, open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let mut month = Month {
        seed,
        random: seeded(seed),
        fixture,
        sets: sets(),
        receipts: Vec::new(),
        counted: BTreeMap::new(),
    };
    for _ in 0..STEPS {
        month.step();
    }
    month.compare();
}

/// Limits that deny nothing, and whose buckets are never full again once they were used.
fn sets() -> [Limits; 3] {
    let year = std::time::Duration::from_secs(366 * 86_400);
    let quota = |name: &str| Limit::quota(name, 1_000_000_000, year);
    let sets = [
        vec![quota("tpm"), Limit::resource("slots", 1_000_000)],
        vec![quota("rpm"), quota("tpm"), quota("spend")],
        vec![quota("window")],
    ];
    sets.map(|limits| Limits::new(limits).expect("these limits are valid"))
}

impl<B: Backend> Month<B> {
    fn step(&mut self) {
        let seconds = match self.random.below(4) {
            0 => 0,
            1 => self.random.below(600),
            2 => self.random.below(5 * 3_600),
            _ => self.random.below(20 * 3_600),
        };
        self.fixture.clock.advance(Span::from_secs(seconds));
        match self.random.below(8) {
            0 => self.write_some(),
            1..=3 if !self.receipts.is_empty() => self.settle(),
            _ => self.take(),
        }
    }

    fn take(&mut self) {
        let name = BucketName(
            self.random.pick(&NAMESPACES),
            self.random.pick(&ENTITIES),
            self.random.pick(&RESOURCES),
        );
        let set = self.random.below(3) as usize;
        let amounts: Vec<u64> = self.sets[set].iter().map(|_| self.random.below(100)).collect();
        let costs = self.costs(set, &amounts);
        let take = Op::Take { costs: &costs, term: None };
        let at = match self.fixture.apply_under(&self.sets[set], name, take, &[]) {
            Ok(TxnOutcome::Done(done)) => match done[..] {
                [StepOutcome::Taken(taken)] => taken.at,
                _ => panic!("TOLLGATE_SEED={}: {done:?}", self.seed),
            },
            other => panic!("TOLLGATE_SEED={}: {other:?}", self.seed),
        };
        self.count(name, set, at, 1, |index| amounts[index] as i64);
        self.receipts.push(MonthReceipt { name, limits: set, at, costs });
    }

    fn costs(&self, set: usize, amounts: &[u64]) -> Costs {
        let named = self.sets[set].iter().zip(amounts);
        let demand = named.fold(tollgate_core::Demand::new(), |demand, (limit, amount)| {
            demand.with(limit.name().as_str(), *amount)
        });
        self.sets[set].costs(&demand).expect("it fits")
    }

    fn settle(&mut self) {
        let index = self.random.below(self.receipts.len() as u64) as usize;
        let MonthReceipt { name, limits: set, at, costs } = self.receipts.swap_remove(index);
        let used: Vec<u64> = costs.amounts().iter().map(|amount| self.random.below(2 * amount + 1)).collect();
        let usage = Usage { at, reserved: &costs, used: &used, holder: None };
        // The bucket is under the limits of the last call, and usage of a limit that they do not have counts all the same.
        let settled = self.fixture.apply_under(&self.sets[set], name, Op::Settle(usage), &[]);
        assert_eq!(settled, Ok(TxnOutcome::Done(vec![StepOutcome::Settled])), "TOLLGATE_SEED={}", self.seed);
        let now = self.fixture.clock.now();
        self.count(name, set, now, 0, |index| used[index] as i64 - costs.amount(index) as i64);
    }

    fn count(
        &mut self,
        BucketName(namespace, entity, resource): BucketName<'_>,
        set: usize,
        at: Tick,
        events: i64,
        amount: impl Fn(usize) -> i64,
    ) {
        let used_up = self.sets[set].iter().enumerate().filter(|(_, limit)| !limit.is_resource());
        let amounts: Vec<(String, i64)> =
            used_up.map(|(index, limit)| (limit.name().to_string(), amount(index))).collect();
        if events == 0 && amounts.iter().all(|(_, amount)| *amount == 0) {
            return;
        }
        for window in WINDOWS {
            let key = usage_key(namespace, entity, resource, window, &iso(window.start(at)));
            let counted = self.counted.entry((key.partition, key.sort)).or_default();
            counted.0 += events;
            for (name, amount) in &amounts {
                *counted.1.entry(name.clone()).or_default() += amount;
            }
        }
    }

    fn write_some(&mut self) {
        let (entity, resource) = (self.random.pick(&ENTITIES), self.random.pick(&RESOURCES));
        let scopes =
            [Scope::All, Scope::Entity(entity), Scope::Resource(resource), Scope::Bucket(entity, resource)];
        let (namespace, scope) = (self.random.pick(&NAMESPACES), self.random.pick(&scopes));
        self.fixture.store.write_usage(namespace, scope).wait().expect("the store answers");
    }

    /// Returns the usage that the store reports before it is written.
    fn reported(&self) -> BTreeMap<(String, String), Recount> {
        for namespace in NAMESPACES {
            let asked = self.fixture.store.activity(namespace, Scope::All, None).wait();
            asked.expect("the store answers");
        }
        let keys = self.counted.keys().map(|(partition, sort)| ItemKey::new(partition, sort));
        let keys: Vec<ItemKey> = keys.collect();
        let asked = keys.chunks(GETS_MAX).map(|keys| self.fixture.store.usage_at(keys).wait());
        let items = asked.flat_map(|items| items.expect("the store answers"));
        items.flatten().map(|item| recount(&item)).collect()
    }

    /// Compares reported and written usage with the recount. A record without usage may be missing, and so may a limit
    /// without usage.
    fn compare(&mut self) {
        let reported = self.reported();
        let mut found = BTreeMap::new();
        for namespace in NAMESPACES {
            let written = self.fixture.store.write_usage(namespace, Scope::All).wait();
            written.expect("the store answers");
            for entity in ENTITIES {
                let query = Query::prefix(usage_partition(namespace, entity), "#USAGE#");
                found.extend(query_all(&self.fixture.store, &query).iter().map(recount));
            }
        }
        let expected = std::mem::take(&mut self.counted);
        let without_zeros = |all: BTreeMap<_, _>| -> BTreeMap<(String, String), Recount> {
            let nonzero = all.into_iter().map(|(key, (events, amounts)): (_, Recount)| {
                (key, (events, amounts.into_iter().filter(|(_, amount)| *amount != 0).collect()))
            });
            nonzero
                .filter(|(_, (events, amounts)): &(_, Recount)| *events != 0 || !amounts.is_empty())
                .collect()
        };
        let expected = without_zeros(expected);
        assert_eq!(without_zeros(found), expected, "TOLLGATE_SEED={}", self.seed);
        assert_eq!(
            without_zeros(reported),
            expected,
            "reported before it was written, TOLLGATE_SEED={}",
            self.seed
        );
    }
}

fn recount(item: &Item) -> ((String, String), Recount) {
    let amounts =
        item.fields.keys().filter_map(|field| Some((limit_of_field(field)?.into(), item.int(field)?)));
    let counted = (item.int("total_events").unwrap_or(0), amounts.collect());
    ((item.key.partition.clone(), item.key.sort.clone()), counted)
}
