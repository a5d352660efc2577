//! Specs of limits to test: each can be built for the core and for the oracle.

use std::mem::discriminant;
use std::time::Duration;

use tollgate_core::{Algorithm, Limit, LimitBuilder, Resets, SLIDING_STEPS, Span};

use super::Machine;
use super::buckets::{Gcra, LeakyBucket, TokenBucket};
use super::cooldown::Cooldown;
use super::edges::Listed;
use super::gauge::Gauge;
use super::quotas::{Ends, Quota};
use super::seed::TestRng;
use super::windows::{FixedWindow, SlidingWindow};

#[derive(Clone, Debug)]
pub enum Spec {
    Bucket { algorithm: Algorithm, amount: u64, capacity: u64, period: u64 },
    Fixed { amount: u64, period: u64 },
    Sliding { amount: u64, period: u64, step: Option<u64> },
    Session { amount: u64, span: u64 },
    Calendar { amount: u64, edges: Listed },
    Gauge { capacity: u64 },
    Cooldown,
}

fn micros(micros: u64) -> Duration {
    Duration::from_micros(micros)
}

impl Spec {
    /// Returns the limit, for the core.
    pub fn limit(&self, name: &str) -> Limit {
        match self {
            Spec::Cooldown => Limit::cooldown(),
            _ => self.builder(name).build().expect("a spec is a valid limit"),
        }
    }

    pub fn builder(&self, name: &str) -> LimitBuilder {
        match self {
            Spec::Bucket { algorithm, amount, capacity, period } => {
                Limit::rate(name, *amount, micros(*period)).algorithm(*algorithm).burst(*capacity)
            }
            Spec::Fixed { amount, period } => Limit::fixed_window(name, *amount, micros(*period)),
            Spec::Sliding { amount, period, step } => {
                let limit = Limit::sliding_window(name, *amount, micros(*period));
                step.iter().fold(limit, |limit, step| limit.resolution(micros(*step)))
            }
            Spec::Session { amount, span } => {
                Limit::quota(name, *amount, Resets::AfterFirstUse(Span::from_micros(*span)))
            }
            Spec::Calendar { amount, edges } => Limit::quota(name, *amount, edges.calendar()),
            Spec::Gauge { capacity } => Limit::resource(name, *capacity),
            Spec::Cooldown => panic!("a cooldown is made, not built"),
        }
    }

    /// Returns the textbook machine, for the oracle.
    pub fn machine(&self) -> Box<dyn Machine> {
        match self.clone() {
            Spec::Bucket { algorithm, amount, capacity, period } => match algorithm {
                Algorithm::LeakyBucket => Box::new(LeakyBucket::new(amount, capacity, period)),
                Algorithm::Gcra => Box::new(Gcra::new(amount, capacity, period)),
                _ => Box::new(TokenBucket::new(amount, capacity, period)),
            },
            Spec::Fixed { amount, period } => Box::new(FixedWindow::new(amount, period)),
            Spec::Sliding { amount, period, step } => {
                let step = step.unwrap_or(period.div_ceil(SLIDING_STEPS));
                Box::new(SlidingWindow::new(amount, period, step))
            }
            Spec::Session { amount, span } => Box::new(Quota::new(amount, Ends::After(span))),
            Spec::Calendar { amount, edges } => Box::new(Quota::new(amount, Ends::At(edges))),
            Spec::Gauge { capacity } => Box::new(Gauge::new(capacity)),
            Spec::Cooldown => Box::new(Cooldown::default()),
        }
    }

    /// Returns true if both use the same machine, with different numbers.
    pub fn is_same_machine(&self, other: &Spec) -> bool {
        let is_quota = |spec: &Spec| matches!(spec, Spec::Session { .. } | Spec::Calendar { .. });
        discriminant(self) == discriminant(other) || is_quota(self) && is_quota(other)
    }

    pub fn capacity(&self) -> u64 {
        match self {
            Spec::Bucket { capacity, .. } | Spec::Gauge { capacity } => *capacity,
            Spec::Fixed { amount, .. }
            | Spec::Sliding { amount, .. }
            | Spec::Session { amount, .. }
            | Spec::Calendar { amount, .. } => *amount,
            Spec::Cooldown => 1,
        }
    }

    /// Returns a length of time in which the state of the limit changes.
    pub fn time_scale(&self) -> u64 {
        match self {
            Spec::Bucket { period, .. } | Spec::Fixed { period, .. } | Spec::Sliding { period, .. } => {
                *period
            }
            Spec::Session { span, .. } => *span,
            Spec::Calendar { edges, .. } => (edges.0[1] - edges.0[0]).max(1),
            Spec::Gauge { .. } => 20,
            Spec::Cooldown => 12,
        }
    }
}

/// Random specs of each kind. Numbers are small, so that boundaries are met often, and periods are
/// odd as well as even.
pub mod any {
    use super::*;

    fn period(rng: &mut TestRng) -> u64 {
        match rng.from(0, 3) {
            0 => rng.from(1, 12),
            1 => rng.from(1, 100),
            2 => *rng.pick(&[1_000, 1_001, 1_500, 3_000_000, 60_000_000]),
            _ => *rng.pick(&[999_983, 1_000_003, 86_400_000_000]),
        }
    }

    pub fn bucket(rng: &mut TestRng) -> Spec {
        let algorithm = *rng.pick(&[Algorithm::TokenBucket, Algorithm::LeakyBucket, Algorithm::Gcra]);
        bucket_as(rng, algorithm)
    }

    pub fn bucket_as(rng: &mut TestRng, algorithm: Algorithm) -> Spec {
        let amount = if rng.one_in(8) { rng.from(1, 1_000_000) } else { rng.from(1, 12) };
        let capacity = if rng.one_in(2) { amount.min(20) } else { rng.from(1, 12) };
        Spec::Bucket { algorithm, amount, capacity, period: period(rng) }
    }

    pub fn fixed(rng: &mut TestRng) -> Spec {
        Spec::Fixed { amount: rng.from(1, 12), period: period(rng) }
    }

    pub fn sliding(rng: &mut TestRng) -> Spec {
        let (amount, period) = (rng.from(1, 12), period(rng));
        let step = match rng.from(0, 3) {
            0 => None,
            1 => Some(period.div_ceil(100_000)),
            _ => Some(rng.from(period.div_ceil(20), period)),
        };
        Spec::Sliding { amount, period, step }
    }

    pub fn session(rng: &mut TestRng) -> Spec {
        Spec::Session { amount: rng.from(1, 12), span: period(rng) }
    }

    pub fn calendar(rng: &mut TestRng) -> Spec {
        let scale = period(rng);
        let mut edge = rng.from(0, 100);
        let mut edges = Vec::new();
        for _ in 0..rng.from(2, 60) {
            edge += if rng.one_in(3) { rng.from(1, scale * 3) } else { scale };
            edges.push(edge);
        }
        Spec::Calendar { amount: rng.from(1, 12), edges: Listed(edges) }
    }

    pub fn gauge(rng: &mut TestRng) -> Spec {
        Spec::Gauge { capacity: rng.from(1, 8) }
    }

    /// Returns the cooldown, which no demand can name: for traces that support that.
    pub fn cooldown(_: &mut TestRng) -> Spec {
        Spec::Cooldown
    }

    pub const KINDS: [fn(&mut TestRng) -> Spec; 6] = [bucket, fixed, sliding, session, calendar, gauge];

    pub fn kind(rng: &mut TestRng) -> Spec {
        KINDS[rng.from(0, KINDS.len() as u64 - 1) as usize](rng)
    }
}
