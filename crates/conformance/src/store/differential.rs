//! Memory and another store side by side.

use std::fmt::Debug;

use tollgate_core::{Denial, Status};
use tollgate_store::{
    BucketRef, Clock, Memory, Reach, Reply, Step, Store, StoreError, Transaction, TxnOutcome,
};

/// Memory and another store as one, for [`run`](super::run): they must agree about every call, to the verdict, the remainder and
/// the wait.
pub struct DifferentialStore<S> {
    memory: Memory,
    other: S,
}

impl<S> DifferentialStore<S> {
    /// Opens memory and the other store with one clock.
    pub fn new(clock: Clock, open: impl FnOnce(Clock) -> S) -> DifferentialStore<S> {
        DifferentialStore { memory: Memory::builder().clock(clock.clone()).build(), other: open(clock) }
    }
}

fn both<T: PartialEq + Debug>(
    what: &str,
    one: Reply<'_, Result<T, StoreError>>,
    two: Reply<'_, Result<T, StoreError>>,
) -> Result<T, StoreError> {
    match (one.wait(), two.wait()) {
        (Ok(one), Ok(two)) => {
            assert_eq!(two, one, "{what}: the other store differs from memory");
            Ok(one)
        }
        // Both must refuse; each in its own words.
        (Err(one), Err(_)) => Err(one),
        (one, two) => panic!("{what}: memory returned {one:?}, the other store {two:?}"),
    }
}

impl<S: Store> Store for DifferentialStore<S> {
    fn reach(&self) -> Reach {
        self.memory.reach()
    }

    fn clock(&self) -> &Clock {
        self.memory.clock()
    }

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        Reply::ready(both("apply", self.memory.apply(call), self.other.apply(call)))
    }

    fn evaluate<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        Reply::ready(both("ask", self.memory.evaluate(steps), self.other.evaluate(steps)))
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        Reply::ready(both("peek", self.memory.peek(place), self.other.peek(place)))
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        self.memory.apply_detached(call);
        self.other.apply_detached(call);
    }

    fn new_holder_id(&self) -> u128 {
        self.memory.new_holder_id()
    }
}
