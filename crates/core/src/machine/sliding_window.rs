//! Sliding windows: at most the amount in every window of that length, wherever it starts.
//!
//! The log has one entry for each step in which something was taken. Entries of one step are merged
//! and count as of the last of them: that is never too early, so no window holds more than the
//! amount, and the number of steps in a window bounds the log, not the number of calls or tokens.
//! With a step of one tick only simultaneous entries are merged, and the log is exact to the tick.
//! Steps divide each period since the epoch, so that an entry that is shifted by a period keeps its
//! index among the steps.
//!
//! What is used beyond the amount is debt. While there is debt the window is full, and the debt
//! takes whatever expires or is refunded at once. So a debt is repaid at the full rate, one amount
//! for each window; an entry that expires forgives nothing; and late usage never counts as of an
//! earlier entry.

use std::collections::VecDeque;

use crate::{Ready, Span, Tick};

/// The default number of steps in a sliding window.
pub const SLIDING_STEPS: u64 = 1_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SlidingWindow {
    amount: u64,
    period: Span,
    step: u64,
}

/// The log of a sliding window. Invariants: entries are ordered by time, none is empty, `count` is
/// their sum, and `debt > 0` only while `count` is at least the amount. (It is larger only after
/// the limit was lowered.)
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct WindowLog {
    entries: VecDeque<WindowEntry>,
    count: u64,
    debt: u64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct WindowEntry {
    at: Tick,
    amount: u64,
}

impl SlidingWindow {
    /// The maximum number of entries that a resolution may lead to.
    pub(crate) const ENTRIES_MAX: u64 = 100_000;

    pub(crate) fn new(amount: u64, period: Span, step: Option<Span>) -> SlidingWindow {
        let default = period.as_micros().div_ceil(SLIDING_STEPS);
        SlidingWindow { amount, period, step: step.map_or(default, Span::as_micros) }
    }

    /// Returns the length of a step.
    pub(crate) fn step(&self) -> Span {
        Span::from_micros(self.step)
    }

    /// Creates the log of a bucket that is as of `stamp`; `None` if no log can have these entries
    /// and this debt.
    pub(crate) fn log_of(&self, entries: Vec<(Tick, u64)>, debt: u64, stamp: Tick) -> Option<WindowLog> {
        let in_order = entries.windows(2).all(|pair| self.step_of(pair[0].0) < self.step_of(pair[1].0));
        let is_valid = |(at, amount): &(Tick, u64)| *amount > 0 && *at <= stamp;
        let count = entries.iter().try_fold(0u64, |sum, (_, amount)| sum.checked_add(*amount))?;
        let is_log = in_order && entries.iter().all(is_valid) && (debt == 0 || count >= self.amount);
        let entries = entries.into_iter().map(|(at, amount)| WindowEntry { at, amount }).collect();
        is_log.then_some(WindowLog { entries, count, debt })
    }

    fn expires(&self, entry: &WindowEntry) -> Tick {
        entry.at + self.period
    }

    /// Returns true if `entry` has expired at `now`. An entry that would expire at the last tick
    /// never does.
    fn has_expired(&self, entry: &WindowEntry, now: Tick) -> bool {
        let expires = self.expires(entry);
        expires <= now && expires < Tick::MAX
    }

    fn step_of(&self, at: Tick) -> (u64, u64) {
        let (at, period) = (at.as_micros(), self.period.as_micros());
        (at / period, at % period / self.step)
    }

    /// Brings the log to `now`: drops expired entries, and lets debt take the room.
    pub(crate) fn advance(&self, log: &mut WindowLog, now: Tick) {
        self.skip_cycles(log, now);
        while let Some(entry) = log.entries.front().copied().filter(|entry| self.has_expired(entry, now)) {
            log.entries.pop_front();
            log.count -= entry.amount;
            self.pay(log, self.expires(&entry));
            self.skip_cycles(log, now);
        }
    }

    /// Returns true if repaying debt for one window only shifts every entry by one window: the
    /// window is full, and no entry shares its step with another after the shift.
    fn repeats(&self, log: &WindowLog) -> bool {
        let (Some(first), Some(last)) = (log.entries.front(), log.entries.back()) else { return true };
        log.count == self.amount && self.step_of(self.expires(first)) != self.step_of(last.at)
    }

    /// Repays whole windows of debt at once. While the debt is at least one amount, a window only
    /// shifts every entry, so that a huge debt after a long pause takes no longer than a small one.
    fn skip_cycles(&self, log: &mut WindowLog, now: Tick) {
        let Some(last) = log.entries.back().filter(|_| log.debt >= self.amount && self.repeats(log)) else {
            return;
        };
        let cycles = (now.since(last.at).as_micros() / self.period.as_micros()).min(log.debt / self.amount);
        if cycles == 0 {
            return;
        }
        log.debt -= cycles * self.amount;
        let shift = Span::from_micros(cycles.saturating_mul(self.period.as_micros()));
        for entry in &mut log.entries {
            entry.at = entry.at + shift;
        }
    }

    /// Lets debt take the free room, as of `at`.
    fn pay(&self, log: &mut WindowLog, at: Tick) {
        let paid = log.debt.min(self.amount.saturating_sub(log.count));
        log.debt -= paid;
        self.push(log, at, paid);
    }

    fn push(&self, log: &mut WindowLog, at: Tick, amount: u64) {
        if amount == 0 {
            return;
        }
        log.count += amount;
        match log.entries.back_mut() {
            Some(last) if self.step_of(last.at) == self.step_of(at) => {
                *last = WindowEntry { at, amount: last.amount + amount };
            }
            _ => log.entries.push_back(WindowEntry { at, amount }),
        }
    }

    /// Returns how many entries at the front have expired by `now`, and their sum.
    fn expired(&self, log: &WindowLog, now: Tick) -> (usize, u64) {
        let expired = log.entries.iter().take_while(|entry| self.has_expired(entry, now));
        expired.fold((0, 0), |(n, sum), entry| (n + 1, sum + entry.amount))
    }

    /// Returns how much of the amount is left at `now`; a negative number is debt.
    pub(crate) fn left(&self, log: &WindowLog, now: Tick) -> i128 {
        let (expired, freed) = self.expired(log, now);
        if expired > 0 && log.debt > 0 {
            let mut later = log.clone();
            self.advance(&mut later, now);
            return self.left(&later, now);
        }
        i128::from(self.amount) - i128::from(log.count - freed) - i128::from(log.debt)
    }

    /// Takes `cost` at `now`; the log must be as of `now`. What does not fit becomes debt.
    pub(crate) fn charge(&self, log: &mut WindowLog, now: Tick, cost: u64) {
        let fits = cost.min(self.amount.saturating_sub(log.count));
        self.push(log, now, fits);
        log.debt = log.debt.saturating_add(cost - fits);
    }

    /// Refunds `amount` if the entry of `at` has not expired. Debt takes the room as of `now`.
    pub(crate) fn refund(&self, log: &mut WindowLog, at: Tick, now: Tick, amount: u64) {
        let step = self.step_of(at);
        let index = log.entries.partition_point(|entry| self.step_of(entry.at) < step);
        let Some(entry) = log.entries.get_mut(index).filter(|entry| self.step_of(entry.at) == step) else {
            return;
        };
        let freed = amount.min(entry.amount);
        log.count -= freed;
        entry.amount -= freed;
        if entry.amount == 0 {
            log.entries.remove(index);
        }
        self.pay(log, now);
    }

    /// Subtracts `amount` from what counts at `now`: debt first, then the entries that expire last.
    /// The log must be as of `now`.
    pub(crate) fn top_up(&self, log: &mut WindowLog, now: Tick, amount: u64) {
        let repaid = amount.min(log.debt);
        log.debt -= repaid;
        let mut left = amount - repaid;
        while let Some(last) = log.entries.back_mut().filter(|_| left > 0) {
            let freed = left.min(last.amount);
            left -= freed;
            log.count -= freed;
            last.amount -= freed;
            if last.amount == 0 {
                log.entries.pop_back();
            }
        }
        self.pay(log, now);
    }

    pub(crate) fn ready(&self, log: &WindowLog, now: Tick, cost: u64) -> Ready {
        let (expired, _) = self.expired(log, now);
        if log.debt > 0 && (expired > 0 || !self.repeats(log)) {
            return self.ready_with_debt(log.clone(), now, cost);
        }
        let over = i128::from(cost) - self.left(log, now);
        if over <= 0 {
            return Ready::Now;
        }
        self.freed_at(log, now, over)
    }

    /// Computes [`ready`](Self::ready) for a log with debt: advances it until it repeats.
    fn ready_with_debt(&self, mut log: WindowLog, now: Tick, cost: u64) -> Ready {
        let mut then = now;
        self.advance(&mut log, then);
        while let Some(entry) = log.entries.front().filter(|_| log.debt > 0 && !self.repeats(&log)) {
            then = self.expires(entry);
            if then == Tick::MAX {
                return Ready::Unknown;
            }
            self.advance(&mut log, then);
        }
        match self.ready(&log, then, cost) {
            Ready::Now if then > now => Ready::at(then),
            ready => ready,
        }
    }

    /// Returns when `need` will have expired. Debt or a queue takes whatever expires at once, and
    /// the room there is now: the log is full and repeats every window, so whole windows are
    /// divided out, and one pass over the entries remains.
    fn freed_at(&self, log: &WindowLog, now: Tick, need: i128) -> Ready {
        let (expired, freed) = self.expired(log, now);
        let (amount, count) = (i128::from(self.amount), i128::from(log.count - freed));
        // What exceeds a lowered amount expires once, and is not taken again.
        let windows = (need - (count - amount).max(0) - 1) / amount;
        let mut left = need - windows * amount;
        let live = log.entries.iter().skip(expired);
        let last_needed = live.map(|entry| (self.expires(entry), entry.amount)).find(|(_, freed)| {
            left -= i128::from(*freed);
            left <= 0
        });
        let expires = last_needed.map_or(now + self.period, |(expires, _)| expires);
        let shift = u64::try_from(windows).unwrap_or(u64::MAX).saturating_mul(self.period.as_micros());
        Ready::at(expires + Span::from_micros(shift))
    }

    /// Converts the log to changed numbers. Use stays used, and a raised amount takes debt in at
    /// once. Debt is repaid by the new numbers from `now` on: entries that a shorter window drops
    /// repay nothing.
    pub(crate) fn adopt(&self, log: &mut WindowLog, now: Tick) {
        let old = std::mem::take(log);
        log.debt = old.debt;
        for entry in old.entries.iter().filter(|entry| !self.has_expired(entry, now)) {
            self.push(log, entry.at, entry.amount);
        }
        self.pay(log, now);
    }
}

impl WindowLog {
    /// Returns the entries in order, with their amounts, and the debt.
    pub(crate) fn parts(&self) -> (impl ExactSizeIterator<Item = (Tick, u64)>, u64) {
        (self.entries.iter().map(|entry| (entry.at, entry.amount)), self.debt)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);

    #[test]
    fn a_million_calls_fit_into_a_log_of_a_thousand_entries() {
        let window = SlidingWindow::new(10_000_000, Span::from_secs(60), None);
        let mut log = WindowLog::default();
        for call in 0..1_000_000 {
            let now = Tick::from_micros(call * 60);
            window.advance(&mut log, now);
            window.charge(&mut log, now, 1);
        }
        assert_eq!(log.count, 1_000_000);
        assert!(log.entries.len() as u64 <= SLIDING_STEPS + 1, "{} entries", log.entries.len());
    }

    #[test]
    fn debt_is_paid_one_amount_for_each_window() {
        let window = SlidingWindow::new(10, SECOND, None);
        let mut log = WindowLog::default();
        window.charge(&mut log, Tick::ZERO, 35);
        assert_eq!(window.left(&log, Tick::ZERO), -25);
        assert_eq!(window.ready(&log, Tick::ZERO, 5), Ready::at(Tick::from_secs(3)));
        assert_eq!(window.ready(&log, Tick::ZERO, 6), Ready::at(Tick::from_secs(4)));
        for (second, left) in [(1, -15), (2, -5), (3, 5), (4, 10)] {
            assert_eq!(window.left(&log, Tick::from_secs(second)), left);
        }
    }

    #[test]
    fn skipping_windows_is_the_same_as_walking_them() {
        let window = SlidingWindow::new(10, SECOND, Some(Span::from_micros(1)));
        let mut walked = WindowLog::default();
        for (at, amount) in [(0, 3), (200_000, 3), (700_000, 4 + 57)] {
            window.charge(&mut walked, Tick::from_micros(at), amount);
        }
        let skipped = walked.clone();
        for micros in (700_000..8_000_000).step_by(50_000) {
            let now = Tick::from_micros(micros);
            window.advance(&mut walked, now);
            let mut jumped = skipped.clone();
            window.advance(&mut jumped, now);
            assert_eq!(jumped, walked, "at {micros}");
        }
        assert!(walked.debt == 0 && walked.is_empty());
    }
}
