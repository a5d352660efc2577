//! Every checker finds planted faults: it is run on the core with one thing wrong.

use crate::oracle::Settled;
use crate::oracle::history::History;
use crate::oracle::seed::{PANICKED, TestRng, first_failure};
use crate::oracle::spec::{Spec, any};
use crate::oracle::subject::{Answer, Core, Observation, Subject};
use crate::oracle::trace::{PLAN, Plan, Trace, compare};
use tollgate_core::{Holder, Ready, Span, Tick};

/// The fault of a subject.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    RoundsEachRefill,
    ForgetsRefunds,
    RefundsTwice,
    ForgetsOveruse,
    ForgivesDebtAtTheEdge,
    AdmitsOneTickEarly,
    AdmitsOneTickLate,
    ReportsOneTickTooMuch,
    ReportsOneTickTooLittle,
    MintsOnStepBack,
    LeaksWhenItDenies,
    CountsOneTooMany,
    AdmitsOneMore,
    NeverExpiresHolders,
}

/// The core with a fault.
struct Faulty {
    core: Core,
    fault: Fault,
    last: u64,
    stamp: u64,
}

impl Faulty {
    fn new(spec: &Spec, now: u64, fault: Fault) -> Faulty {
        let spec = if fault == Fault::AdmitsOneMore { one_more(spec) } else { spec.clone() };
        Faulty { core: Core::new(spec.limit("x"), now), fault, last: now, stamp: now }
    }

    /// Returns the instant that the faulty subject uses.
    fn now(&self, now: u64) -> u64 {
        match self.fault {
            Fault::AdmitsOneTickEarly => now + 1,
            Fault::AdmitsOneTickLate => now.saturating_sub(1),
            // Whole milliseconds only: what was gained in between is lost at every use.
            Fault::RoundsEachRefill => now - now % 1_000,
            _ => now,
        }
    }

    fn before_use(&mut self, now: u64) {
        let stepped_back = now < self.last;
        let edge = self.core.limits[0].period().map_or(1, |period| period.as_micros());
        let passed_edge = now / edge != self.last / edge;
        match self.fault {
            Fault::MintsOnStepBack if stepped_back => self.core.reset(now),
            Fault::ForgivesDebtAtTheEdge if passed_edge => self.core.reset(now),
            _ => {}
        }
        self.last = now;
    }
}

fn one_more(spec: &Spec) -> Spec {
    let mut spec = spec.clone();
    match &mut spec {
        Spec::Bucket { capacity: amount, .. }
        | Spec::Gauge { capacity: amount }
        | Spec::Fixed { amount, .. }
        | Spec::Sliding { amount, .. }
        | Spec::Session { amount, .. }
        | Spec::Calendar { amount, .. } => *amount += 1,
        Spec::Cooldown => {}
    }
    spec
}

fn shifted(ready: Ready, fault: Fault) -> Ready {
    let tick = Span::from_micros(1);
    match (ready, fault) {
        (Ready::At(at), Fault::ReportsOneTickTooMuch) => Ready::At(at + tick),
        (Ready::At(at), Fault::ReportsOneTickTooLittle) => Ready::At(at - tick),
        _ => ready,
    }
}

impl Subject for Faulty {
    fn take(&mut self, now: u64, cost: u64, holder: Option<Holder>) -> Answer {
        self.before_use(now);
        let holder = match self.fault {
            Fault::NeverExpiresHolders => holder.map(|holder| Holder { expires: Tick::MAX, ..holder }),
            _ => holder,
        };
        match self.core.take(self.now(now), cost, holder) {
            Answer::Admitted(_) => {
                self.stamp = self.stamp.max(now);
                Answer::Admitted(self.stamp)
            }
            Answer::Denied { available, ready } => {
                if self.fault == Fault::LeaksWhenItDenies && available > 0 {
                    self.core.take(now, 1, None);
                }
                Answer::Denied { available, ready: shifted(ready, self.fault) }
            }
        }
    }

    fn settle(&mut self, now: u64, settled: &Settled) {
        self.before_use(now);
        self.stamp = self.stamp.max(now);
        let used = match self.fault {
            Fault::ForgetsRefunds => settled.used.max(settled.reserved),
            Fault::ForgetsOveruse => settled.used.min(settled.reserved),
            _ => settled.used,
        };
        self.core.settle(self.now(now), &Settled { used, ..*settled });
        if self.fault == Fault::RefundsTwice && used < settled.reserved {
            self.core.settle(self.now(now), &Settled { used, ..*settled });
        }
    }

    fn peek(&self, now: u64) -> Observation {
        let observed = self.core.peek(self.now(now));
        let more = i64::from(self.fault == Fault::CountsOneTooMany);
        Observation { available: observed.available + more, ..observed }
    }
}

const BACK: Plan = Plan { clock_back: true, ..PLAN };

type Kind = fn(&mut TestRng) -> Spec;

/// Returns true if a fault was found. A checker must report the fault, not panic on it.
fn is_found(found: Option<(u64, String)>) -> bool {
    let why = found.map(|(_, why)| why);
    assert_ne!(why.as_deref(), Some(PANICKED));
    why.is_some()
}

/// Returns true if the oracle finds the fault in traces of `kind`.
fn oracle_finds(fault: Fault, kind: Kind) -> bool {
    let plan = if fault == Fault::MintsOnStepBack { BACK } else { PLAN };
    let found = first_failure(300, |rng| {
        let spec = kind(rng);
        compare(&spec, plan, rng, |spec, now| Faulty::new(spec, now, fault))
    });
    is_found(found)
}

/// Returns true if the bound over histories finds the fault in traces of `kind`.
fn bound_finds(fault: Fault, kind: Kind) -> bool {
    let found = first_failure(300, |rng| {
        let spec = kind(rng);
        let trace = Trace::new(&spec, Plan { steps: 120, ..BACK }, rng);
        let mut subject = Faulty::new(&spec, trace.now, fault);
        trace.run(&mut subject, &mut History::new(&spec)).map(drop)
    });
    is_found(found)
}

const TIMED: [Kind; 5] = [any::bucket, any::fixed, any::sliding, any::session, any::calendar];

#[test]
fn the_wrapper_without_a_fault_passes() {
    for kind in any::KINDS {
        assert!(!oracle_finds(Fault::None, kind));
        assert!(!bound_finds(Fault::None, kind));
    }
}

#[test]
fn the_oracle_finds_a_refill_that_is_rounded() {
    assert!(oracle_finds(Fault::RoundsEachRefill, any::bucket));
}

#[test]
fn the_oracle_finds_refunds_and_overuse_that_are_forgotten_or_doubled() {
    for kind in TIMED {
        for fault in [Fault::ForgetsRefunds, Fault::ForgetsOveruse, Fault::RefundsTwice] {
            assert!(oracle_finds(fault, kind), "{fault:?}");
        }
    }
}

#[test]
fn the_oracle_finds_debt_that_is_forgiven_at_the_edge() {
    assert!(oracle_finds(Fault::ForgivesDebtAtTheEdge, any::fixed));
    assert!(oracle_finds(Fault::ForgivesDebtAtTheEdge, any::session));
}

#[test]
fn the_oracle_finds_a_single_tick() {
    let faults = [
        Fault::AdmitsOneTickEarly,
        Fault::AdmitsOneTickLate,
        Fault::ReportsOneTickTooMuch,
        Fault::ReportsOneTickTooLittle,
    ];
    for kind in TIMED {
        for fault in faults {
            assert!(oracle_finds(fault, kind), "{fault:?}");
        }
    }
}

#[test]
fn the_oracle_finds_credit_minted_by_a_clock_that_steps_back() {
    for kind in TIMED {
        assert!(oracle_finds(Fault::MintsOnStepBack, kind));
    }
}

#[test]
fn the_oracle_finds_a_partial_debit_of_a_denied_demand() {
    for kind in any::KINDS {
        assert!(oracle_finds(Fault::LeaksWhenItDenies, kind));
    }
}

#[test]
fn the_oracle_finds_a_count_that_is_one_off() {
    for kind in any::KINDS {
        assert!(oracle_finds(Fault::CountsOneTooMany, kind));
        assert!(oracle_finds(Fault::AdmitsOneMore, kind));
    }
}

#[test]
fn the_oracle_finds_holders_that_never_expire() {
    assert!(oracle_finds(Fault::NeverExpiresHolders, any::gauge));
}

#[test]
fn the_bound_finds_one_admission_too_many() {
    for kind in [any::bucket, any::fixed, any::sliding, any::calendar, any::gauge] {
        assert!(bound_finds(Fault::AdmitsOneMore, kind));
    }
}

#[test]
fn the_bound_finds_minted_credit() {
    for fault in [Fault::MintsOnStepBack, Fault::ForgetsOveruse, Fault::RefundsTwice] {
        for kind in [any::bucket, any::fixed, any::sliding, any::calendar] {
            assert!(bound_finds(fault, kind), "{fault:?}");
        }
    }
    assert!(bound_finds(Fault::ForgivesDebtAtTheEdge, any::bucket));
    assert!(bound_finds(Fault::ForgivesDebtAtTheEdge, any::sliding));
}

#[test]
fn the_bound_finds_a_fixed_window_in_place_of_a_sliding_one() {
    let found = first_failure(100, |rng| {
        let (amount, period) = (rng.from(1, 12), rng.from(2, 1_000));
        let sliding = Spec::Sliding { amount, period, step: None };
        let trace = Trace::new(&sliding, PLAN, rng);
        let mut fixed = Core::new(Spec::Fixed { amount, period }.limit("x"), trace.now);
        trace.run(&mut fixed, &mut History::new(&sliding)).map(drop)
    });
    assert!(is_found(found));
}
