//! A memory store under a manual clock, and calls of one step.

use tollgate_core::{Costs, Demand, Limit, LimitBuilder, Limits, Tick, Usage};
use tollgate_store::{
    BucketRef, Key, LeaseTerm, ManualClock, Memory, Op, OpId, Step, StepOutcome, Store, StoreError,
    Transaction, TxnOutcome,
};

pub(crate) const START: Tick = Tick::from_secs(1_000_000);

pub(crate) fn memory() -> (ManualClock, Memory) {
    with_keys_max(1_000_000)
}

pub(crate) fn with_keys_max(keys_max: usize) -> (ManualClock, Memory) {
    let hands = ManualClock::at(START);
    let memory = Memory::builder().clock(hands.clock()).keys_max(keys_max).build();
    (hands, memory)
}

pub(crate) fn limits(limits: impl IntoIterator<Item = LimitBuilder>) -> Limits {
    Limits::new(limits).unwrap()
}

/// `amount` of every limit.
pub(crate) fn each(limits: &Limits, amount: u64) -> Costs {
    let demand = limits.iter().map(Limit::name).fold(Demand::new(), |demand, name| demand.with(name, amount));
    limits.costs(&demand).unwrap()
}

pub(crate) fn place<'a>(key: &'a Key, limits: &'a Limits) -> BucketRef<'a> {
    BucketRef { namespace: "test", key, limits }
}

pub(crate) type Outcome = Result<TxnOutcome, StoreError>;

pub(crate) fn apply(store: &impl Store, id: Option<u128>, place: BucketRef<'_>, op: Op<'_>) -> Outcome {
    store.apply(&Transaction { id: id.map(OpId), steps: &[Step { place, op }], metered: false }).wait()
}

pub(crate) fn take(store: &impl Store, id: Option<u128>, place: BucketRef<'_>, costs: &Costs) -> Outcome {
    apply(store, id, place, Op::Take { costs, term: None })
}

pub(crate) fn hold(store: &impl Store, place: BucketRef<'_>, costs: &Costs, term: LeaseTerm) -> Outcome {
    apply(store, None, place, Op::Take { costs, term: Some(term) })
}

/// Settles with nothing used.
pub(crate) fn give_back(
    store: &impl Store,
    id: Option<u128>,
    place: BucketRef<'_>,
    costs: &Costs,
) -> Outcome {
    let used = vec![0; costs.len()];
    let at = store.clock().now();
    apply(store, id, place, Op::Settle(Usage { at, reserved: costs, used: &used, holder: None }))
}

pub(crate) fn is_taken(outcome: &Outcome) -> bool {
    matches!(outcome, Ok(TxnOutcome::Done(done)) if matches!(done[..], [StepOutcome::Taken(_)]))
}

pub(crate) fn is_denied(outcome: &Outcome) -> bool {
    matches!(outcome, Ok(TxnOutcome::Denied(_)))
}

/// What is left of the first limit.
pub(crate) fn left(store: &impl Store, place: BucketRef<'_>) -> i64 {
    store.peek(&place).wait().unwrap()[0].available()
}

/// Runs `run` in `threads` threads that start together, and answers what each of them says.
pub(crate) fn together<R: Send>(threads: usize, run: impl Fn(usize) -> R + Sync) -> Vec<R> {
    let start = std::sync::Barrier::new(threads);
    std::thread::scope(|scope| {
        let spawn = |number| {
            let (start, run) = (&start, &run);
            scope.spawn(move || {
                start.wait();
                run(number)
            })
        };
        let threads: Vec<_> = (0..threads).map(spawn).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
