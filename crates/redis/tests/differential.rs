//! The same traces on memory and on Redis: the same verdicts, remainders and waits.

mod common;

use tollgate_conformance::store::{self, DifferentialStore};
use tollgate_core::{AMOUNT_MAX, Limit, Limits, PERIOD_MAX, Span, Tick, Usage, demand};
use tollgate_store::{BucketRef, Key, ManualClock, Op, Step, StepOutcome, Store, Transaction, TxnOutcome};

#[test]
fn memory_and_redis_agree_about_every_trace() {
    store::run(24, |clock| DifferentialStore::new(clock, common::on_redis));
}

#[test]
fn memory_and_valkey_agree_about_every_trace() {
    store::run(12, |clock| DifferentialStore::new(clock, common::on_valkey));
}

/// What no script can count is worked out by the core, whose numbers have no end, and comes out the same.
#[test]
fn numbers_that_no_double_holds_are_exact() {
    let hands = ManualClock::at(Tick::from_secs(1_800_000_000));
    let both = DifferentialStore::new(hands.clock(), common::on_redis);
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
        let took = both.apply(&Transaction { id: None, steps: &[Step { place, op }], metered: true }).wait();
        if let Ok(TxnOutcome::Done(done)) = took {
            let [StepOutcome::Taken(taken)] = done[..] else { panic!("a take came to {done:?}") };
            let used = [AMOUNT_MAX / 3 + round, amount + round, amount - round, amount * 2, 1];
            let usage = Usage { at: taken.at, reserved: &costs, used: &used, holder: None };
            let steps = [Step { place, op: Op::Settle(usage) }];
            both.apply(&Transaction { id: None, steps: &steps, metered: true }).wait().expect("both answer");
        }
        both.peek(&place).wait().expect("both answer");
        hands.advance(Span::from_secs(86_400 * 97 + round));
    }
}
