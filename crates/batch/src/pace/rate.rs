//! Rates, in integers.

use tollgate::Span;

/// Microseconds in a second.
pub(crate) const SECOND: u128 = 1_000_000;

/// An amount per second, in millionths. Ten calls a second are 10,000,000.
///
/// A pace is an estimate, so it is rounded down to a millionth; limits that are enforced are
/// computed exactly by the core.
///
/// ```
/// use tollgate::Span;
/// use tollgate_batch::pace::PaceRate;
///
/// assert_eq!(PaceRate::of(30, Span::from_secs(60)), PaceRate::of(1, Span::from_secs(2)));
/// assert_eq!(PaceRate::per_second(10).millionths(), 10_000_000);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaceRate(u64);

impl PaceRate {
    /// The slowest rate: one unit in eleven days.
    pub const MIN: PaceRate = PaceRate(1);

    /// Returns the rate of `amount` per second.
    pub const fn per_second(amount: u64) -> PaceRate {
        PaceRate::of(amount, Span::from_secs(1))
    }

    /// Returns the rate of `amount` in `span`, at least [`MIN`](PaceRate::MIN).
    pub const fn of(amount: u64, span: Span) -> PaceRate {
        let micros = if span.as_micros() == 0 { 1 } else { span.as_micros() as u128 };
        let millionths = amount as u128 * SECOND * SECOND / micros;
        let most = if millionths > u64::MAX as u128 { u64::MAX } else { millionths as u64 };
        PaceRate(if most == 0 { 1 } else { most })
    }

    /// Returns the rate of this many millionths per second, at least [`MIN`](PaceRate::MIN).
    pub(crate) fn from_millionths(millionths: u128) -> PaceRate {
        PaceRate(u64::try_from(millionths).unwrap_or(u64::MAX).max(1))
    }

    /// Returns the rate in millionths per second.
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// Returns `parts` of `whole` of the rate.
    pub(crate) fn scaled(self, parts: u64, whole: u64) -> PaceRate {
        let scaled = u128::from(self.0) * u128::from(parts) / u128::from(whole.max(1));
        PaceRate(u64::try_from(scaled).unwrap_or(u64::MAX).max(1))
    }

    /// Returns how long it takes until `amount` has accrued.
    pub(crate) fn time_of(self, amount: u64) -> Span {
        let micros = u128::from(amount) * SECOND * SECOND / u128::from(self.0);
        Span::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Returns the amount that accrues in a span.
    pub(crate) fn amount_in(self, span: Span) -> u64 {
        let amount = u128::from(self.0) * u128::from(span.as_micros()) / (SECOND * SECOND);
        u64::try_from(amount).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_and_amount_are_each_other_s_inverse() {
        let rate = PaceRate::per_second(10);
        assert_eq!(rate.time_of(1), Span::from_millis(100));
        assert_eq!(rate.amount_in(Span::from_secs(7)), 70);
        assert_eq!(PaceRate::of(7, Span::from_secs(3)).amount_in(Span::from_secs(3_000)), 6_999);
        assert_eq!(rate.scaled(1, 2), PaceRate::per_second(5));
    }

    #[test]
    fn extremes_saturate() {
        assert_eq!(PaceRate::of(0, Span::from_secs(1)), PaceRate::MIN);
        assert_eq!(PaceRate::of(u64::MAX, Span::ZERO).millionths(), u64::MAX);
        assert_eq!(PaceRate::MIN.scaled(0, 0), PaceRate::MIN);
        assert_eq!(PaceRate::MIN.time_of(u64::MAX).as_micros(), u64::MAX);
        assert_eq!(PaceRate::of(u64::MAX, Span::ZERO).amount_in(Span::from_micros(u64::MAX)), u64::MAX);
    }
}
