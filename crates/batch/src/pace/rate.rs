//! Rates in integers.

use tollgate::Span;

/// Microseconds in a second.
pub(crate) const SECOND: u128 = 1_000_000;

/// How much a second, in millionths. Ten calls a second are 10,000,000.
///
/// A pace is an estimate, so it is rounded, down and to a millionth; what is promised to people is counted by the core.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaceRate(u64);

impl PaceRate {
    /// The slowest there is: something still happens, every eleven days.
    pub const MIN: PaceRate = PaceRate(1);

    /// This much a second.
    pub const fn per_second(amount: u64) -> PaceRate {
        PaceRate::of(amount, Span::from_secs(1))
    }

    /// This much in that time, at least [`MIN`](PaceRate::MIN).
    pub const fn of(amount: u64, span: Span) -> PaceRate {
        let micros = if span.as_micros() == 0 { 1 } else { span.as_micros() as u128 };
        let millionths = amount as u128 * SECOND * SECOND / micros;
        let most = if millionths > u64::MAX as u128 { u64::MAX } else { millionths as u64 };
        PaceRate(if most == 0 { 1 } else { most })
    }

    /// So many millionths a second, at least [`MIN`](PaceRate::MIN).
    pub(crate) fn from_millionths(millionths: u128) -> PaceRate {
        PaceRate(u64::try_from(millionths).unwrap_or(u64::MAX).max(1))
    }

    /// Millionths a second.
    pub const fn millionths(self) -> u64 {
        self.0
    }

    /// This part of it: `parts` of `whole`.
    pub(crate) fn scaled(self, parts: u64, whole: u64) -> PaceRate {
        let scaled = u128::from(self.0) * u128::from(parts) / u128::from(whole.max(1));
        PaceRate(u64::try_from(scaled).unwrap_or(u64::MAX).max(1))
    }

    /// How long it takes for `amount` to come.
    pub(crate) fn time_of(self, amount: u64) -> Span {
        let micros = u128::from(amount) * SECOND * SECOND / u128::from(self.0);
        Span::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// How much comes in a time.
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
