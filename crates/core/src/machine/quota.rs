//! Quotas: an amount until the next reset.
//!
//! A period opens with the first use and ends at the next edge of the calendar, or after a fixed
//! time. Like the end of a window, the end of a period forgives at most one amount: what was used
//! beyond it is charged to the following periods, which then open without a use.

use super::fixed_window::keep_debt;
use crate::{Ready, Resets, Span, Tick};

/// The maximum number of edges that are walked to repay a debt or to compute its end.
const EDGES_MAX: usize = 10_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Quota {
    amount: u64,
    resets: Resets,
}

/// One period of a quota. The default has not opened, and nothing is used of it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Period {
    used: i64,
    start: Tick,
    end: Tick,
}

impl Period {
    /// Returns the period with these numbers; `None` if no period can have them.
    pub(crate) fn of(used: i64, start: Tick, end: Tick) -> Option<Period> {
        let period = Period { used, start, end };
        let has_opened = end > Tick::ZERO && start <= end && used >= 0;
        (has_opened || period == Period::default()).then_some(period)
    }

    /// Returns the use, the start and the end.
    pub(crate) fn parts(&self) -> (i64, Tick, Tick) {
        (self.used, self.start, self.end)
    }

    /// Subtracts `amount` from the use. The period does not end earlier.
    pub(crate) fn top_up(&mut self, amount: u64) {
        self.used = self.used.saturating_sub_unsigned(amount).max(0);
    }
}

impl Quota {
    pub(crate) fn new(amount: u64, resets: Resets) -> Quota {
        Quota { amount, resets }
    }

    fn end_after(&self, start: Tick) -> Tick {
        match &self.resets {
            Resets::AfterFirstUse(span) => start + *span,
            Resets::Calendar(calendar) => calendar.next_edge(start),
        }
    }

    /// Returns the period at `now` that `period` has become.
    pub(crate) fn roll(&self, period: Period, now: Tick) -> Period {
        // A period that ends at the last tick never ends.
        if period.end == Tick::ZERO || now < period.end || period.end == Tick::MAX {
            return period;
        }
        if let Resets::AfterFirstUse(span) = self.resets {
            return self.roll_sessions(period, span, now);
        }
        let Period { mut used, mut end, .. } = period;
        for _ in 0..EDGES_MAX {
            used = used.saturating_sub_unsigned(self.amount);
            if used <= 0 {
                return Period::default();
            }
            let start = end;
            end = self.end_after(start);
            if now < end {
                return Period { used, start, end };
            }
        }
        // There are too many edges to walk. The rest of the debt stays owed from here on.
        Period { used, start: now, end: self.end_after(now) }
    }

    fn roll_sessions(&self, period: Period, span: Span, now: Tick) -> Period {
        let ended = now.since(period.end).as_micros() / span.as_micros() + 1;
        let forgiven = i128::from(ended) * i128::from(self.amount);
        let owed = i128::from(period.used) - forgiven;
        if owed <= 0 {
            return Period::default();
        }
        let shift = Span::from_micros(ended.saturating_mul(span.as_micros()));
        // The value lies between 0 and `used`, so it fits into 64 bits.
        Period { used: owed as i64, start: period.start + shift, end: period.end + shift }
    }

    pub(crate) fn left(&self, period: &Period) -> i128 {
        i128::from(self.amount) - i128::from(period.used)
    }

    pub(crate) fn charge(&self, period: Period, now: Tick, cost: u64) -> Period {
        if cost == 0 {
            return period;
        }
        let used = period.used.saturating_add_unsigned(cost);
        if period.end == Tick::ZERO {
            return Period { used, start: now, end: self.end_after(now) };
        }
        Period { used, ..period }
    }

    /// Refunds `amount` if the period in which it was taken has not ended.
    pub(crate) fn refund(&self, period: Period, at: Tick, amount: u64) -> Period {
        if at < period.start {
            return period;
        }
        Period { used: period.used.saturating_sub_unsigned(amount).max(0), ..period }
    }

    pub(crate) fn ready(&self, period: &Period, now: Tick, cost: u64) -> Ready {
        let over = i128::from(cost) - self.left(period);
        if over <= 0 {
            return Ready::Now;
        }
        let edges = (over - 1) / i128::from(self.amount) + 1;
        let first = if period.end == Tick::ZERO { self.end_after(now) } else { period.end };
        if let Resets::AfterFirstUse(span) = self.resets {
            let more = u64::try_from(edges - 1).unwrap_or(u64::MAX).saturating_mul(span.as_micros());
            return Ready::at(first + Span::from_micros(more));
        }
        let steps = usize::try_from(edges - 1).unwrap_or(EDGES_MAX).min(EDGES_MAX);
        Ready::at((0..steps).fold(first, |edge, _| self.end_after(edge)))
    }

    /// Returns true if the period equals a fresh one.
    pub(crate) fn is_fresh(&self, period: &Period) -> bool {
        match self.resets {
            // An open session lasts to its end, used or not.
            Resets::AfterFirstUse(_) => period.end == Tick::ZERO,
            Resets::Calendar(_) => period.used == 0,
        }
    }

    /// Converts the use of `old` to a period of this quota.
    pub(crate) fn adopt(&self, old: &Quota, period: Period, now: Tick) -> Period {
        let used = keep_debt(period.used, old.amount, self.amount);
        if self.resets == old.resets || period.end == Tick::ZERO {
            return Period { used, ..period };
        }
        Period { used, start: period.start, end: self.end_after(now) }
    }
}
