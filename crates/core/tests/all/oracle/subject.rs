//! Subjects under test: the core, or a faulty version of it.

use tollgate_core::{Bucket, Costs, Demand, Denial, Holder, Limit, Limits, Ready, Take, Tick, Usage};

use super::Settled;

/// The answer of a subject to a demand.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Admitted, with the instant it was taken.
    Admitted(u64),
    /// Denied, with what is left and when the demand would fit.
    Denied { available: i64, ready: Ready },
}

/// What a peek at a subject returns.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    pub available: i64,
    pub full: Ready,
}

/// One limit that can be taken from, settled and peeked at.
pub trait Subject {
    fn take(&mut self, now: u64, cost: u64, holder: Option<Holder>) -> Answer;
    fn settle(&mut self, now: u64, settled: &Settled);
    fn peek(&self, now: u64) -> Observation;
}

/// The core as a subject: a bucket with one limit.
#[derive(Clone)]
pub struct Core {
    pub limits: Limits,
    pub bucket: Bucket,
}

pub fn tick(micros: u64) -> Tick {
    Tick::from_micros(micros)
}

/// Returns the costs of a demand of `cost` for the limit named `x`.
pub fn costs(limits: &Limits, cost: u64) -> Costs {
    if limits[0].is_cooldown() {
        return Costs::none(1).of_cooldown(limits, cost);
    }
    limits.costs(&Demand::new().with("x", cost)).expect("the demand fits the limit")
}

impl Core {
    pub fn new(limit: Limit, now: u64) -> Core {
        let limits = Limits::new([limit]).expect("one limit is a set");
        Core { bucket: Bucket::fresh(&limits, tick(now)), limits }
    }

    pub fn try_take(&mut self, now: u64, cost: u64) -> Result<u64, Box<Denial>> {
        let costs = costs(&self.limits, cost);
        let taken = self.bucket.take(&self.limits, tick(now), &Take::of(&costs));
        taken.map(Tick::as_micros).map_err(Box::new)
    }

    pub fn is_fresh(&self, now: u64) -> bool {
        self.bucket.is_fresh(&self.limits, tick(now))
    }

    pub fn reset(&mut self, now: u64) {
        self.bucket = Bucket::fresh(&self.limits, tick(now));
    }

    pub fn adopt(&mut self, limit: Limit, now: u64) {
        let new = Limits::new([limit]).expect("one limit is a set");
        self.bucket.adopt(&self.limits, &new, tick(now));
        self.limits = new;
    }
}

impl Subject for Core {
    fn take(&mut self, now: u64, cost: u64, holder: Option<Holder>) -> Answer {
        let costs = costs(&self.limits, cost);
        match self.bucket.take(&self.limits, tick(now), &Take { costs: &costs, holder }) {
            Ok(at) => Answer::Admitted(at.as_micros()),
            Err(denial) => {
                // A cooldown is not shown; while it lasts, nothing is available.
                let available = denial.statuses().next().map_or(0, |status| status.available());
                Answer::Denied { available, ready: denial.ready() }
            }
        }
    }

    fn settle(&mut self, now: u64, settled: &Settled) {
        // The limit may have been lowered since, so an unbounded one resolves the costs.
        let wide = Limits::new([Limit::resource("x", tollgate_core::UNBOUNDED)]).expect("one limit is a set");
        let (reserved, used) = (costs(&wide, settled.reserved), [settled.used]);
        let usage = Usage { at: tick(settled.at), reserved: &reserved, used: &used, holder: settled.holder };
        self.bucket.settle(&self.limits, tick(now), &usage);
    }

    fn peek(&self, now: u64) -> Observation {
        let status = self.bucket.peek(&self.limits, tick(now)).remove(0);
        Observation { available: status.available(), full: status.full() }
    }
}
