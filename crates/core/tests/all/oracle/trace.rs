//! Random traces of take, settle and peek, aimed at boundaries, and the checker that compares them
//! with the oracle.

use tollgate_core::{Holder, Ready};

use super::seed::TestRng;
use super::spec::Spec;
use super::subject::{Answer, Observation, Subject, tick};
use super::{Reference, Settled};

/// Checks everything that happens in a trace.
pub trait Checker {
    fn taken(&mut self, now: u64, cost: u64, holder: Option<Holder>, answer: &Answer) -> Result<(), String>;
    fn settled(&mut self, now: u64, settled: &Settled) -> Result<(), String>;
    fn peeked(&mut self, now: u64, observed: &Observation) -> Result<(), String>;
}

/// What a trace does beyond taking and peeking.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub steps: u64,
    /// Settles with up to this many times the reservation; 0 for no settling at all.
    pub overuse_max: u64,
    /// Whether the clock may step back.
    pub clock_back: bool,
}

pub const PLAN: Plan = Plan { steps: 40, overuse_max: 10, clock_back: false };

/// A trace and its progress.
pub struct Trace<'a> {
    spec: &'a Spec,
    plan: Plan,
    pub rng: &'a mut TestRng,
    pub now: u64,
    reservations: Vec<Settled>,
    retry: Option<(u64, u64)>,
    holders: u128,
}

impl<'a> Trace<'a> {
    pub fn new(spec: &'a Spec, plan: Plan, rng: &'a mut TestRng) -> Trace<'a> {
        let now = match spec {
            Spec::Calendar { edges, .. } => rng.from(0, edges.0[1]),
            _ => *rng.pick(&[0, 1, 17, 1_000_000, 1_700_000_000_000_000]),
        };
        Trace::at(spec, plan, rng, now)
    }

    /// Creates a trace that starts at `now`.
    pub fn at(spec: &'a Spec, plan: Plan, rng: &'a mut TestRng, now: u64) -> Trace<'a> {
        Trace { spec, plan, rng, now, reservations: Vec::new(), retry: None, holders: u128::from(now) << 64 }
    }

    /// Runs `subject` with `checker`, and returns the instant at the end.
    pub fn run(mut self, subject: &mut dyn Subject, checker: &mut dyn Checker) -> Result<u64, String> {
        for step in 0..self.plan.steps {
            let done = self.step(subject, checker);
            done.map_err(|why| format!("{:?}: step {step}, now {}: {why}", self.spec, self.now))?;
        }
        Ok(self.now)
    }

    fn step(&mut self, subject: &mut dyn Subject, checker: &mut dyn Checker) -> Result<(), String> {
        // Half of the steps after a denial repeat the demand at the tick that the denial reported,
        // or one before.
        if let Some((ready, cost)) = self.retry.take().filter(|_| self.rng.one_in(2)) {
            self.now = ready - self.rng.from(0, 1);
            return self.take(subject, checker, cost);
        }
        self.pass_time();
        match self.rng.from(0, 9) {
            0..=5 => {
                let cost = self.cost(subject);
                self.take(subject, checker, cost)
            }
            6..=8 if self.plan.overuse_max > 0 && !self.reservations.is_empty() => {
                self.settle(subject, checker)
            }
            _ => checker.peeked(self.now, &subject.peek(self.now)),
        }
    }

    fn pass_time(&mut self) {
        let time_scale = self.spec.time_scale();
        let passed = match self.rng.from(0, 7) {
            0..=2 => 0,
            3 => 1,
            4 | 5 => self.rng.from(0, time_scale),
            6 => time_scale - self.now % time_scale,
            _ => self.rng.from(0, time_scale * 5),
        };
        self.now += passed;
        if self.plan.clock_back && self.rng.one_in(10) {
            self.now = self.now.saturating_sub(self.rng.from(0, time_scale * 2));
        }
    }

    fn cost(&mut self, subject: &dyn Subject) -> u64 {
        let capacity = self.spec.capacity();
        let left = u64::try_from(subject.peek(self.now).available).unwrap_or(0);
        match self.rng.from(0, 3) {
            0 => left.min(capacity),
            1 => (left + 1).min(capacity),
            _ => self.rng.from(0, capacity),
        }
    }

    fn take(
        &mut self,
        subject: &mut dyn Subject,
        checker: &mut dyn Checker,
        cost: u64,
    ) -> Result<(), String> {
        let holder = self.holder();
        let answer = subject.take(self.now, cost, holder);
        checker.taken(self.now, cost, holder, &answer)?;
        match answer {
            Answer::Admitted(at) => {
                let id = holder.map(|holder| holder.id);
                self.reservations.push(Settled { at, reserved: cost, used: cost, holder: id });
            }
            Answer::Denied { ready: Ready::At(ready), .. } => self.retry = Some((ready.as_micros(), cost)),
            Answer::Denied { .. } => {}
        }
        Ok(())
    }

    fn holder(&mut self) -> Option<Holder> {
        let held = matches!(self.spec, Spec::Gauge { .. }) && self.rng.one_in(2);
        held.then(|| {
            self.holders += 1;
            Holder { id: self.holders, expires: tick(self.now + self.rng.from(1, 40)) }
        })
    }

    fn settle(&mut self, subject: &mut dyn Subject, checker: &mut dyn Checker) -> Result<(), String> {
        let index = self.rng.from(0, self.reservations.len() as u64 - 1) as usize;
        let reservation = self.reservations.swap_remove(index);
        let used = match (self.spec, self.rng.from(0, 3)) {
            (Spec::Gauge { .. }, _) => 0,
            (_, 0) => self.rng.from(0, reservation.reserved * self.plan.overuse_max),
            (_, 1) => reservation.reserved + self.rng.from(0, self.plan.overuse_max - 1),
            _ => self.rng.from(0, reservation.reserved),
        };
        let settled = Settled { used, ..reservation };
        subject.settle(self.now, &settled);
        checker.settled(self.now, &settled)
    }
}

/// Compares every answer with the oracle: the verdict, what is available, and the wait, tight to
/// the tick.
#[derive(Clone)]
pub struct Compare {
    pub oracle: Reference,
    capacity: u64,
}

impl Compare {
    pub fn new(spec: &Spec, now: u64) -> Compare {
        Compare { oracle: Reference::new(spec.machine(), now), capacity: spec.capacity() }
    }

    /// Checks that `cost` fits from `ready` on and at no tick before.
    fn tight(&self, now: u64, cost: u64, ready: Ready) -> Result<(), String> {
        let from = now.max(self.oracle.stamp());
        let right = match ready {
            Ready::Now => self.oracle.fits(now, cost),
            Ready::At(at) => {
                let at = at.as_micros();
                at > from && self.oracle.fits(at, cost) && !self.oracle.fits(at - 1, cost)
            }
            Ready::Unknown => !self.oracle.fits(u64::MAX / 2, cost),
        };
        if right { Ok(()) } else { Err(format!("reported that {cost} fits {ready:?}, which is not tight")) }
    }
}

impl Checker for Compare {
    fn taken(&mut self, now: u64, cost: u64, holder: Option<Holder>, answer: &Answer) -> Result<(), String> {
        let left = self.oracle.left(now);
        let fits = cost == 0 || left >= i128::from(cost);
        match answer {
            Answer::Admitted(at) if fits => {
                self.oracle.take(now, cost, holder.map(|holder| (holder.id, holder.expires.as_micros())));
                let stamp = self.oracle.stamp();
                if *at == stamp { Ok(()) } else { Err(format!("taken at {at}, but it was {stamp}")) }
            }
            Answer::Denied { available, ready } if !fits => {
                same_left(left, *available)?;
                self.tight(now, cost, *ready)
            }
            _ => Err(format!("{cost} was answered {answer:?}, with {left} left")),
        }
    }

    fn settled(&mut self, now: u64, settled: &Settled) -> Result<(), String> {
        self.oracle.settle(now, settled);
        Ok(())
    }

    fn peeked(&mut self, now: u64, observed: &Observation) -> Result<(), String> {
        same_left(self.oracle.left(now), observed.available)?;
        self.tight(now, self.capacity, observed.full)
    }
}

fn same_left(left: i128, reported: i64) -> Result<(), String> {
    if i128::from(reported) == left {
        Ok(())
    } else {
        Err(format!("reported {reported} available, but it is {left}"))
    }
}

/// Runs one random trace of `spec` on the subject that `subject` creates, compared with the oracle.
pub fn compare<S: Subject>(
    spec: &Spec,
    plan: Plan,
    rng: &mut TestRng,
    subject: impl FnOnce(&Spec, u64) -> S,
) -> Result<(), String> {
    let trace = Trace::new(spec, plan, rng);
    let mut subject = subject(spec, trace.now);
    let mut checker = Compare::new(spec, trace.now);
    trace.run(&mut subject, &mut checker).map(drop)
}
