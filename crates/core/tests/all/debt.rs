//! Debt is bounded by what was used, repaid at the rate, and never forgiven at an edge.

use crate::oracle;
use crate::oracle::Settled;
use crate::oracle::edges::Listed;
use crate::oracle::seed::{TestRng, first_failure, for_seeds};
use crate::oracle::spec::{Spec, any};
use crate::oracle::subject::{Answer, Core, Subject};

/// Returns the most that the limit gives from `start` to `now`: its capacity, and what it gains.
fn given(spec: &Spec, start: u64, now: u64) -> i128 {
    let (capacity, elapsed) = (i128::from(spec.capacity()), i128::from(now - start));
    let whole = |period: u64| i128::from(now / period - start / period);
    let more = match spec {
        Spec::Bucket { amount, period, .. } => i128::from(*amount) * elapsed / i128::from(*period),
        Spec::Fixed { period, .. } => capacity * whole(*period),
        Spec::Sliding { period, .. } => capacity * (elapsed / i128::from(*period)),
        Spec::Session { span, .. } => capacity * (elapsed / i128::from(*span)),
        Spec::Calendar { edges, .. } => {
            capacity * edges.0.iter().filter(|edge| start < **edge && **edge <= now).count() as i128
        }
        Spec::Gauge { .. } | Spec::Cooldown => 0,
    };
    capacity + more
}

/// Takes whenever it can and overuses nearly always. In the long run no more is used than the limit
/// gave, except for the last overshoot, because a demand is admitted only after all debt was
/// repaid.
fn long_run(rng: &mut TestRng, spec: &Spec, subject: &mut dyn Subject) -> Result<(), String> {
    let (start, mut now, mut used) = (0, 0, 0);
    for _ in 0..60 {
        let cost = rng.from(1, spec.capacity());
        match subject.take(now, cost, None) {
            Answer::Admitted(at) => {
                if used + i128::from(cost) > given(spec, start, now) {
                    return Err(format!("{spec:?}: {used} and {cost} used by {now}"));
                }
                let actual = rng.from(0, 10 * cost).max(cost);
                subject.settle(now, &Settled { at, reserved: cost, used: actual, holder: None });
                used += i128::from(actual);
            }
            Answer::Denied { ready: tollgate_core::Ready::At(ready), .. } => {
                now = if rng.one_in(2) { ready.as_micros() } else { now + rng.from(0, spec.time_scale()) };
            }
            Answer::Denied { .. } => return Ok(()),
        }
    }
    Ok(())
}

const IN_DEBT: [fn(&mut TestRng) -> Spec; 5] =
    [any::bucket, any::fixed, any::sliding, any::session, any::calendar];

#[test]
fn in_the_long_run_use_exceeds_what_was_given_by_the_last_overshoot_only() {
    for spec in IN_DEBT {
        for_seeds(400, |rng| {
            let spec = spec(rng);
            long_run(rng, &spec, &mut Core::new(spec.limit("x"), 0))
        });
    }
}

/// Returns one limit of each kind that can be in debt, with 10 for each 60 ticks.
fn tens() -> [Spec; 5] {
    let (amount, period) = (10, 60);
    let algorithm = tollgate_core::Algorithm::TokenBucket;
    [
        Spec::Bucket { algorithm, amount, capacity: amount, period },
        Spec::Fixed { amount, period },
        Spec::Sliding { amount, period, step: Some(1) },
        Spec::Session { amount, span: period },
        Spec::Calendar { amount, edges: Listed((1..1_000).map(|n| n * 60).collect()) },
    ]
}

#[test]
fn debt_is_exactly_the_use_beyond_the_amount() {
    for spec in tens() {
        for used in [10, 11, 25, 100] {
            let mut core = Core::new(spec.limit("x"), 0);
            let at = core.try_take(0, 10).unwrap();
            core.settle(0, &Settled { at, reserved: 10, used, holder: None });
            assert_eq!(core.peek(0).available, 10 - used as i64, "{spec:?}");
        }
    }
}

#[test]
fn an_edge_repays_one_amount_of_debt_and_forgives_nothing() {
    for spec in tens() {
        let mut core = Core::new(spec.limit("x"), 0);
        let at = core.try_take(0, 10).unwrap();
        core.settle(0, &Settled { at, reserved: 10, used: 45, holder: None });
        for (edge, left) in [(0, -35), (1, -25), (2, -15), (3, -5), (4, 5), (5, 10), (6, 10)] {
            assert_eq!(core.peek(edge * 60).available, left, "{spec:?} at edge {edge}");
        }
        assert!(core.try_take(4 * 60 - 1, 5).is_err());
        assert!(core.try_take(4 * 60, 6).is_err());
        assert_eq!(core.try_take(4 * 60, 5).unwrap(), 4 * 60);
    }
}

#[test]
fn no_demand_is_admitted_while_there_is_debt() {
    for spec in tens() {
        let mut core = Core::new(spec.limit("x"), 0);
        let at = core.try_take(0, 1).unwrap();
        core.settle(0, &Settled { at, reserved: 1, used: 30, holder: None });
        for now in 0..240 {
            let in_debt = core.peek(now).available < 1;
            assert_eq!(core.clone().try_take(now, 1).is_err(), in_debt, "{spec:?} at {now}");
        }
    }
}

#[test]
fn a_refund_within_the_period_repays_debt() {
    for spec in tens() {
        let mut core = Core::new(spec.limit("x"), 0);
        let (one, two) = (core.try_take(0, 5).unwrap(), core.try_take(0, 5).unwrap());
        core.settle(0, &Settled { at: one, reserved: 5, used: 8, holder: None });
        assert_eq!(core.peek(0).available, -3, "{spec:?}");
        core.settle(0, &Settled { at: two, reserved: 5, used: 0, holder: None });
        assert_eq!(core.peek(0).available, 2, "{spec:?}");
    }
}

#[test]
fn a_refund_after_the_period_only_counts_for_a_bucket() {
    for spec in tens() {
        let mut core = Core::new(spec.limit("x"), 0);
        let at = core.try_take(0, 10).unwrap();
        core.try_take(60, 10).unwrap();
        core.settle(60, &Settled { at, reserved: 10, used: 0, holder: None });
        let back = if matches!(spec, Spec::Bucket { .. }) { 10 } else { 0 };
        assert_eq!(core.peek(60).available, back, "{spec:?}");
    }
}

/// A planted fault: it drops what was used beyond the reservation.
struct Forgiving(Core);

impl Subject for Forgiving {
    fn take(&mut self, now: u64, cost: u64, holder: Option<tollgate_core::Holder>) -> Answer {
        self.0.take(now, cost, holder)
    }

    fn settle(&mut self, now: u64, settled: &Settled) {
        self.0.settle(now, &Settled { used: settled.used.min(settled.reserved), ..*settled });
    }

    fn peek(&self, now: u64) -> oracle::subject::Observation {
        self.0.peek(now)
    }
}

#[test]
fn the_check_finds_debt_that_is_forgiven() {
    for spec in IN_DEBT {
        let found = first_failure(50, |rng| {
            let spec = spec(rng);
            long_run(rng, &spec, &mut Forgiving(Core::new(spec.limit("x"), 0)))
        });
        assert!(found.is_some());
    }
}
