//! The cooldown: no demand passes until it is over.
//!
//! A call takes 1 of it, which passes if no cooldown lasts and changes nothing. What is charged beyond that closes it:
//! each further one for a tick, and never for less than it is closed already. There is nothing to give back.

use crate::{Ready, Span, Tick};

/// How long a cooldown still lasts after some time.
pub(crate) fn left(left: u64, elapsed: Span) -> u64 {
    left.saturating_sub(elapsed.as_micros())
}

/// How long it lasts once `cost` was charged.
pub(crate) fn charge(left: u64, cost: u64) -> u64 {
    left.max(cost.saturating_sub(1))
}

/// When it is over.
pub(crate) fn ready(left: u64, now: Tick) -> Ready {
    match left {
        0 => Ready::Now,
        left => Ready::at(now + Span::from_micros(left)),
    }
}
