use std::fmt::Debug;

use tollgate_core::{Denial, Status};

use crate::{BucketRef, Clock, Memory, Reach, Reply, Step, Store, StoreError, Transaction, TxnOutcome};

/// Memory and another store as one, which must agree about everything: the same verdicts, remainders and waits.
pub struct Twins<S> {
    /// The one.
    pub memory: Memory,
    /// The other.
    pub other: S,
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
        // What is refused is refused by both; in which words is theirs.
        (Err(one), Err(_)) => Err(one),
        (one, two) => panic!("{what}: memory says {one:?}, the other store {two:?}"),
    }
}

impl<S: Store> Store for Twins<S> {
    fn reach(&self) -> Reach {
        self.memory.reach()
    }

    fn clock(&self) -> &Clock {
        self.memory.clock()
    }

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        Reply::ready(both("apply", self.memory.apply(call), self.other.apply(call)))
    }

    fn ask<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        Reply::ready(both("ask", self.memory.ask(steps), self.other.ask(steps)))
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
