//! Looking at a bucket, bringing it up to date, or forgetting one that is fresh never changes a later answer.

mod oracle;

use oracle::Settled;
use oracle::seed::{Dice, first_failure, for_seeds};
use oracle::spec::any;
use oracle::subject::{Answer, Core, Standing, Subject, tick};
use oracle::trace::{PLAN, Trace, Witness};
use tollgate_core::Holder;

/// Something done to a bucket between two operations that must not matter.
type Meddle = fn(&mut Core, u64);

/// Runs the same operations on a bucket that is meddled with at random instants, and wants the same answers.
struct Twin {
    core: Core,
    meddle: Meddle,
    dice: Dice,
}

impl Twin {
    fn meddle(&mut self, now: u64) {
        if self.dice.one_in(2) {
            (self.meddle)(&mut self.core, now);
        }
    }
}

fn same<T: PartialEq + std::fmt::Debug>(plain: &T, meddled: &T) -> Result<(), String> {
    if plain == meddled { Ok(()) } else { Err(format!("{plain:?} became {meddled:?}")) }
}

impl Witness for Twin {
    fn taken(&mut self, now: u64, cost: u64, holder: Option<Holder>, answer: &Answer) -> Result<(), String> {
        self.meddle(now);
        same(answer, &self.core.take(now, cost, holder))
    }

    fn settled(&mut self, now: u64, settled: &Settled) -> Result<(), String> {
        self.meddle(now);
        self.core.settle(now, settled);
        Ok(())
    }

    fn peeked(&mut self, now: u64, standing: &Standing) -> Result<(), String> {
        self.meddle(now);
        same(standing, &self.core.peek(now))
    }
}

fn check(dice: &mut Dice, meddle: Meddle) -> Result<(), String> {
    let spec = any::kind(dice);
    let own = Dice::new(dice.from(0, u64::MAX));
    let trace = Trace::new(&spec, PLAN, dice);
    let mut core = Core::new(spec.limit("x"), trace.now);
    let mut twin = Twin { core: core.clone(), meddle, dice: own };
    trace.run(&mut core, &mut twin).map(drop)
}

#[test]
fn a_probe_changes_no_later_answer() {
    for_seeds(3_000, |dice| {
        check(dice, |core, now| {
            let before = core.bucket.clone();
            core.peek(now);
            core.peek(now + 1_000);
            core.is_fresh(now + 1_000);
            assert_eq!(core.bucket, before);
        })
    });
}

#[test]
fn bringing_a_bucket_up_to_date_changes_no_later_answer() {
    for_seeds(3_000, |dice| {
        check(dice, |core, now| {
            core.try_take(now, 0).expect("nothing is asked");
        })
    });
}

#[test]
fn a_sweep_of_expired_holders_changes_no_later_answer() {
    for_seeds(1_000, |dice| {
        check(dice, |core, now| {
            core.bucket.expire(&core.limits, tick(now));
        })
    });
}

#[test]
fn forgetting_a_fresh_bucket_changes_no_later_answer() {
    for_seeds(5_000, |dice| {
        check(dice, |core, now| {
            if core.is_fresh(now) {
                core.forget(now);
            }
        })
    });
}

#[test]
fn a_bucket_is_fresh_again_in_the_end() {
    for_seeds(1_000, |dice| {
        let spec = any::bucket(dice);
        let mut core = Core::new(spec.limit("x"), 0);
        core.try_take(0, spec.capacity()).map_err(|denial| denial.to_string())?;
        let full = core.peek(0).full;
        let tollgate_core::Ready::At(full) = full else { return Err(format!("full {full:?}")) };
        let full = full.as_micros();
        same(&(false, true), &(core.is_fresh(full - 1), core.is_fresh(full)))
    });
}

#[test]
fn the_check_finds_a_bucket_that_was_forgotten_too_early() {
    let found = first_failure(200, |dice| {
        check(dice, |core, now| {
            if core.is_fresh(now + 1) {
                core.forget(now);
            }
        })
    });
    assert!(found.is_some());
}

#[test]
fn the_check_finds_a_probe_that_takes() {
    let found = first_failure(50, |dice| {
        check(dice, |core, now| {
            drop(core.try_take(now, 1));
        })
    });
    assert!(found.is_some());
}
