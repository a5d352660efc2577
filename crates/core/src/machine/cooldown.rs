//! Cooldowns: every demand is denied until the cooldown ends.
//!
//! A call takes 1, which is admitted if no cooldown lasts, and changes nothing. Each unit charged
//! beyond that extends the cooldown to last one tick from now; a shorter cooldown never shortens a
//! longer one. Refunds have no effect.

use crate::{Ready, Span, Tick};

/// Returns how long a cooldown still lasts after `elapsed`.
pub(crate) fn left(left: u64, elapsed: Span) -> u64 {
    left.saturating_sub(elapsed.as_micros())
}

/// Returns how long the cooldown lasts after a charge of `cost`.
pub(crate) fn charge(left: u64, cost: u64) -> u64 {
    left.max(cost.saturating_sub(1))
}

/// Returns when the cooldown ends.
pub(crate) fn ready(left: u64, now: Tick) -> Ready {
    match left {
        0 => Ready::Now,
        left => Ready::at(now + Span::from_micros(left)),
    }
}
