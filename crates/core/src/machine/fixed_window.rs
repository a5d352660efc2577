//! Fixed windows: windows start at multiples of the period since the epoch.
//!
//! The state is a count as of an instant, and that instant determines the window. The end of a
//! window forgives at most one amount: what was used beyond it is charged to the next window.

use crate::{Ready, Span, Tick};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FixedWindow {
    amount: u64,
    period: u64,
}

impl FixedWindow {
    pub(crate) fn new(amount: u64, period: Span) -> FixedWindow {
        FixedWindow { amount, period: period.as_micros() }
    }

    fn window(&self, now: Tick) -> u64 {
        now.as_micros() / self.period
    }

    /// Returns the count at `now`, given the count at `then`.
    #[inline]
    pub(crate) fn roll(&self, count: i64, then: Tick, now: Tick) -> i64 {
        // The common case needs no division: nothing was used, or no time has passed.
        if count == 0 || then == now {
            return count;
        }
        let ended = i128::from(self.window(now) - self.window(then));
        let left = i128::from(count) - ended.saturating_mul(i128::from(self.amount));
        // The value lies between 0 and `count`, so it fits into 64 bits.
        if ended > 0 { left.max(0) as i64 } else { count }
    }

    pub(crate) fn left(&self, count: i64) -> i128 {
        i128::from(self.amount) - i128::from(count)
    }

    pub(crate) fn ready(&self, count: i64, now: Tick, cost: u64) -> Ready {
        let over = i128::from(cost) - self.left(count);
        if over <= 0 {
            return Ready::Now;
        }
        let windows = (over - 1) / i128::from(self.amount) + 1;
        let start = i128::from(self.window(now)).saturating_add(windows).saturating_mul(self.period.into());
        Ready::at(Tick::from_micros(u64::try_from(start).unwrap_or(u64::MAX)))
    }

    /// Refunds `amount` if the window in which it was taken has not ended.
    pub(crate) fn refund(&self, count: i64, at: Tick, now: Tick, amount: u64) -> i64 {
        if self.window(at) != self.window(now) {
            return count;
        }
        count.saturating_sub_unsigned(amount).max(0)
    }

    /// Converts the count from the amount of `old` to this amount.
    pub(crate) fn adopt(&self, old: &FixedWindow, count: i64) -> i64 {
        keep_debt(count, old.amount, self.amount)
    }
}

/// Converts the use `used` of an amount `old` to the amount `new`. Use within the old amount is
/// clamped to the new one, so that a lowered amount makes no debt of use that was allowed; existing
/// debt stays debt.
pub(crate) fn keep_debt(used: i64, old: u64, new: u64) -> i64 {
    let debt = used.saturating_sub_unsigned(old).max(0);
    (used - debt).min(i64::try_from(new).unwrap_or(i64::MAX)).saturating_add(debt)
}
