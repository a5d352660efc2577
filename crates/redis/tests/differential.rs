//! The same traces on memory and on Redis: the same verdicts, remainders and waits.

mod common;

use tollgate_core::{AMOUNT_MAX, Denial, Limit, Limits, PERIOD_MAX, Span, Status, Tick, Usage, demand};
use tollgate_redis::RedisStore;
use tollgate_store::conformance;
use tollgate_store::{
    BucketRef, Clock, Key, ManualClock, Memory, Op, Reach, Reply, Step, StepOutcome, Store, StoreError,
    Transaction, TxnOutcome,
};

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

    fn apply<'a>(&'a self, call: &Transaction<'a>) -> Reply<'a, Result<TxnOutcome, StoreError>> {
        Reply::ready(Twins::both("apply", self.memory.apply(call), self.redis.apply(call)))
    }

    fn ask<'a>(&'a self, steps: &[Step<'a>]) -> Reply<'a, Result<Vec<Denial>, StoreError>> {
        Reply::ready(Twins::both("ask", self.memory.ask(steps), self.redis.ask(steps)))
    }

    fn peek<'a>(&'a self, place: &BucketRef<'a>) -> Reply<'a, Result<Vec<Status>, StoreError>> {
        Reply::ready(Twins::both("peek", self.memory.peek(place), self.redis.peek(place)))
    }

    fn apply_detached(&self, call: &Transaction<'_>) {
        self.memory.apply_detached(call);
        self.redis.apply_detached(call);
    }

    fn new_holder_id(&self) -> u128 {
        self.memory.new_holder_id()
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

/// What no script can count is worked out by the core, whose numbers have no end, and comes out the same.
#[test]
fn numbers_that_no_double_holds_are_exact() {
    let hands = ManualClock::at(Tick::from_secs(1_800_000_000));
    let twins = Twins::new(hands.clock(), common::on_redis);
    let long = PERIOD_MAX.to_duration();
    let limits = Limits::new([
        Limit::rate("odd", 999_999_999_999_999u64, long).burst(AMOUNT_MAX),
        Limit::fixed_window("window", AMOUNT_MAX, long),
        Limit::sliding_window("log", AMOUNT_MAX - 1, long),
        Limit::quota("spend", AMOUNT_MAX, long),
        Limit::per_minute("rpm", 100),
    ]);
    let (limits, key) = (limits.expect("they are valid"), Key::new(&["huge", "numbers"]));
    let place = BucketRef { namespace: "huge", key: &key, limits: &limits };
    let amount = 123_456_789_012_345u64;
    let demand = demand! { odd: amount, window: amount, log: amount, spend: amount, rpm: 1 };
    let costs = limits.costs(&demand).expect("it fits");
    for round in 0..12 {
        let op = Op::Take { costs: &costs, term: None };
        let took = twins.apply(&Transaction { id: None, steps: &[Step { place, op }], metered: true }).wait();
        if let Ok(TxnOutcome::Done(done)) = took {
            let [StepOutcome::Taken(taken)] = done[..] else { panic!("a take came to {done:?}") };
            let used = [AMOUNT_MAX / 3 + round, amount + round, amount - round, amount * 2, 1];
            let usage = Usage { at: taken.at, reserved: &costs, used: &used, holder: None };
            let steps = [Step { place, op: Op::Settle(usage) }];
            twins.apply(&Transaction { id: None, steps: &steps, metered: true }).wait().expect("both answer");
        }
        twins.peek(&place).wait().expect("both answer");
        hands.advance(Span::from_secs(86_400 * 97 + round));
    }
}
