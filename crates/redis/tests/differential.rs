//! The same traces on memory and on Redis: the same verdicts, remainders and waits.

mod common;

use tollgate_core::{Denial, Status};
use tollgate_redis::RedisStore;
use tollgate_store::conformance;
use tollgate_store::{Applied, Call, Clock, Memory, Place, Reach, Reply, Step, Store, StoreError};

/// Two stores that must agree about everything.
struct Twins {
    memory: Memory,
    redis: RedisStore,
}

impl Twins {
    fn new(clock: Clock, open: impl Fn(Clock) -> RedisStore) -> Twins {
        Twins { memory: Memory::builder().clock(clock.clone()).build(), redis: open(clock) }
    }

    fn both<T: PartialEq + std::fmt::Debug>(
        what: &str,
        one: Reply<'_, Result<T, StoreError>>,
        two: Reply<'_, Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let (one, two) = (one.wait(), two.wait());
        match (one, two) {
            (Ok(one), Ok(two)) => {
                assert_eq!(two, one, "{what}: Redis differs from memory");
                Ok(one)
            }
            // What is refused is refused by both; in which words is theirs.
            (Err(one), Err(_)) => Err(one),
            (one, two) => panic!("{what}: memory says {one:?}, Redis {two:?}"),
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
        Reply::ready(Twins::both("apply", self.memory.apply(call), self.redis.apply(call)))
    }

    fn ask<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        Reply::ready(Twins::both("ask", self.memory.ask(steps), self.redis.ask(steps)))
    }

    fn peek<'a>(&'a self, place: &Place<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        Reply::ready(Twins::both("peek", self.memory.peek(place), self.redis.peek(place)))
    }

    fn hand_over(&self, call: &Call<'_>) {
        self.memory.hand_over(call);
        self.redis.hand_over(call);
    }

    fn new_holder(&self) -> u128 {
        self.memory.new_holder()
    }
}

#[test]
fn memory_and_redis_agree_about_every_trace() {
    conformance::run(24, |clock| Twins::new(clock, common::on_redis));
}

#[test]
fn memory_and_valkey_agree_about_every_trace() {
    conformance::run(12, |clock| Twins::new(clock, common::on_valkey));
}
