//! Slow start: at the beginning and after each cooldown, concurrency grows from one call to all
//! workers.

use tollgate::{Span, Tick};

use super::driver::Driver;

impl<P, S: Default, O: 'static> Driver<P, S, O> {
    /// Returns when slow start allows one more call in an account, if it does not allow it now.
    pub(super) fn slow_start(&self, now: Tick, account: usize) -> Option<Tick> {
        let span = self.policy.slow_start?;
        let account = &self.accounts.all[account];
        let resumed = account.resumed.unwrap_or(self.began);
        let at = resumed + time_of(account.scope.pace().in_flight(), self.sizes.workers as u64, span);
        (at > now).then_some(at)
    }
}

/// Returns how long after the start one more call than `in_flight` may be in flight, if all
/// `workers` may be after `span`.
fn time_of(in_flight: u64, workers: u64, span: Span) -> Span {
    let share = u128::from(span.as_micros()) * u128::from(in_flight);
    let micros = share.div_ceil(u128::from(workers.saturating_sub(1).max(1)));
    Span::from_micros(u64::try_from(micros).unwrap_or(u64::MAX)).min(span)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn concurrency_grows_in_a_straight_line_from_one_to_all() {
        let ten = Span::from_secs(10);
        assert_eq!(time_of(0, 11, ten), Span::ZERO, "the first call starts at once");
        assert_eq!(time_of(1, 11, ten), Span::from_secs(1));
        assert_eq!(time_of(10, 11, ten), ten);
        assert_eq!(time_of(500, 11, ten), ten);
        assert_eq!(time_of(1, 1, ten), ten);
    }
}
