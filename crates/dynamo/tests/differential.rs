//! The same traces on memory and on DynamoDB: the same verdicts, remainders and waits.

mod common;

use tollgate_core::{Denial, Status};
use tollgate_dynamo::DynamoStore;
use tollgate_store::conformance;
use tollgate_store::{Applied, Call, Clock, Memory, Place, Reach, Reply, Step, Store, StoreError};

/// Two stores that must agree about everything.
struct Twins {
    memory: Memory,
    dynamo: DynamoStore,
}

impl Twins {
    fn both<T: PartialEq + std::fmt::Debug>(
        what: &str,
        one: Reply<'_, Result<T, StoreError>>,
        two: Reply<'_, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let (one, two) = (one.wait(), two.wait());
        match (one, two) {
            (Ok(one), Ok(two)) => {
                assert_eq!(two, one, "{what}: DynamoDB differs from memory");
                Ok(one)
            }
            // What is refused is refused by both; in which words is theirs.
            (Err(one), Err(_)) => Err(one),
            (one, two) => panic!("{what}: memory says {one:?}, DynamoDB {two:?}"),
        }
    }
}

impl Store for Twins {
    fn reach(&self) -> Reach {
        self.memory.reach()
    }

    fn clock(&self) -> &Clock {
        self.memory.clock()
    }

    fn apply<'a>(&'a self, call: &Call<'a>) -> Reply<'a, Result<Applied, StoreError>> {
        Reply::ready(Twins::both("apply", self.memory.apply(call), self.dynamo.apply(call)))
    }

    fn ask<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        Reply::ready(Twins::both("ask", self.memory.ask(steps), self.dynamo.ask(steps)))
    }

    fn peek<'a>(&'a self, place: &Place<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        Reply::ready(Twins::both("peek", self.memory.peek(place), self.dynamo.peek(place)))
    }

    fn hand_over(&self, call: &Call<'_>) {
        self.memory.hand_over(call);
        self.dynamo.hand_over(call);
    }

    fn new_holder(&self) -> u128 {
        self.memory.new_holder()
    }
}

#[test]
fn memory_and_dynamodb_agree_about_every_trace() {
    let open = |clock: Clock| Twins {
        memory: Memory::builder().clock(clock.clone()).build(),
        dynamo: common::open(clock),
    };
    conformance::run(12, open);
}
