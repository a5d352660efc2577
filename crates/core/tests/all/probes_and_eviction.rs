//! Peeking at a bucket, advancing it, or dropping a fresh one never changes a later answer.

use crate::oracle::Settled;
use crate::oracle::seed::{TestRng, first_failure, for_seeds};
use crate::oracle::spec::any;
use crate::oracle::subject::{Answer, Core, Observation, Subject, tick};
use crate::oracle::trace::{Checker, PLAN, Trace};
use tollgate_core::Holder;

/// An operation between two others that must not affect them.
type Perturbation = fn(&mut Core, u64);

/// Runs the same operations on a bucket that is perturbed at random instants, and checks that the
/// answers are the same.
struct Perturbed {
    core: Core,
    perturb: Perturbation,
    rng: TestRng,
}

impl Perturbed {
    fn perturb(&mut self, now: u64) {
        if self.rng.one_in(2) {
            (self.perturb)(&mut self.core, now);
        }
    }
}

fn same<T: PartialEq + std::fmt::Debug>(plain: &T, perturbed: &T) -> Result<(), String> {
    if plain == perturbed { Ok(()) } else { Err(format!("{plain:?} became {perturbed:?}")) }
}

impl Checker for Perturbed {
    fn taken(&mut self, now: u64, cost: u64, holder: Option<Holder>, answer: &Answer) -> Result<(), String> {
        self.perturb(now);
        same(answer, &self.core.take(now, cost, holder))
    }

    fn settled(&mut self, now: u64, settled: &Settled) -> Result<(), String> {
        self.perturb(now);
        self.core.settle(now, settled);
        Ok(())
    }

    fn peeked(&mut self, now: u64, observed: &Observation) -> Result<(), String> {
        self.perturb(now);
        same(observed, &self.core.peek(now))
    }
}

fn check(rng: &mut TestRng, perturb: Perturbation) -> Result<(), String> {
    let spec = any::kind(rng);
    let own = TestRng::new(rng.from(0, u64::MAX));
    let trace = Trace::new(&spec, PLAN, rng);
    let mut core = Core::new(spec.limit("x"), trace.now);
    let mut perturbed = Perturbed { core: core.clone(), perturb, rng: own };
    trace.run(&mut core, &mut perturbed).map(drop)
}

#[test]
fn a_probe_changes_no_later_answer() {
    for_seeds(3_000, |rng| {
        check(rng, |core, now| {
            let before = core.bucket.clone();
            core.peek(now);
            core.peek(now + 1_000);
            core.is_fresh(now + 1_000);
            assert_eq!(core.bucket, before);
        })
    });
}

#[test]
fn advancing_a_bucket_changes_no_later_answer() {
    for_seeds(3_000, |rng| {
        check(rng, |core, now| {
            core.try_take(now, 0).expect("nothing is asked");
        })
    });
}

#[test]
fn a_sweep_of_expired_holders_changes_no_later_answer() {
    for_seeds(1_000, |rng| {
        check(rng, |core, now| {
            core.bucket.expire(&core.limits, tick(now));
        })
    });
}

#[test]
fn dropping_a_fresh_bucket_changes_no_later_answer() {
    for_seeds(5_000, |rng| {
        check(rng, |core, now| {
            if core.is_fresh(now) {
                core.reset(now);
            }
        })
    });
}

#[test]
fn a_bucket_is_fresh_again_when_it_is_full() {
    for_seeds(1_000, |rng| {
        let spec = any::bucket(rng);
        let mut core = Core::new(spec.limit("x"), 0);
        core.try_take(0, spec.capacity()).map_err(|denial| denial.to_string())?;
        let full = core.peek(0).full;
        let tollgate_core::Ready::At(full) = full else { return Err(format!("full {full:?}")) };
        let full = full.as_micros();
        same(&(false, true), &(core.is_fresh(full - 1), core.is_fresh(full)))
    });
}

#[test]
fn the_check_finds_a_bucket_that_was_dropped_too_early() {
    let found = first_failure(200, |rng| {
        check(rng, |core, now| {
            if core.is_fresh(now + 1) {
                core.reset(now);
            }
        })
    });
    assert!(found.is_some());
}

#[test]
fn the_check_finds_a_probe_that_takes() {
    let found = first_failure(50, |rng| {
        check(rng, |core, now| {
            drop(core.try_take(now, 1));
        })
    });
    assert!(found.is_some());
}
