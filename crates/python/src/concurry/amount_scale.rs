//! Amounts with fractions, counted in a power of ten for each limit.
//!
//! A float means the shortest decimal number that reads as it, as `repr` shows it. All arithmetic on it is exact: capacities are rounded
//! down to a whole count and amounts up, so that what is admitted is never more than the decimals add up to.

use pyo3::prelude::*;
use tollgate::AMOUNT_MAX;

/// A finite number that is not negative: `digits` * 10^`exponent`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct ShortestDecimal {
    digits: u64,
    exponent: i32,
}

/// Which way a count is rounded.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Round {
    Down,
    Up,
}

impl ShortestDecimal {
    /// Returns the decimal number of a float; `None` for a negative one, infinity and NaN.
    pub(super) fn of(value: f64) -> Option<ShortestDecimal> {
        if !value.is_finite() || value < 0.0 {
            return None;
        }
        let text = format!("{:e}", value.abs());
        let (mantissa, exponent) = text.split_once('e')?;
        let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        // At most 17 digits.
        let digits = format!("{whole}{fraction}").parse().ok()?;
        let exponent = exponent.parse::<i32>().ok()? - i32::try_from(fraction.len()).ok()?;
        Some(ShortestDecimal { digits, exponent })
    }

    /// Returns how many digits it has after the point.
    fn decimals(self) -> i32 {
        if self.digits == 0 { 0 } else { -self.exponent }
    }

    /// Returns the number times 10^`places`, as a whole count; `None` if it is too large for one.
    pub(super) fn count(self, places: i32, round: Round) -> Option<u64> {
        let shift = self.exponent + places;
        if self.digits == 0 {
            return Some(0);
        }
        let power = 10_u64.checked_pow(shift.unsigned_abs());
        if shift >= 0 {
            return self.digits.checked_mul(power?);
        }
        let Some(power) = power else { return Some(u64::from(round == Round::Up)) };
        Some(if round == Round::Up { self.digits.div_ceil(power) } else { self.digits / power })
    }

    /// Returns so much per second as an amount, counted in 10^-`places` and rounded down, in a number of microseconds.
    pub(super) fn per_second(self, places: i32) -> (u64, u64) {
        // The longest period whose amount is not too large keeps the most digits.
        for power in (-6..=8).rev() {
            if let Some(amount) =
                self.count(places + power, Round::Down).filter(|amount| *amount <= AMOUNT_MAX)
                && let Some(micros) = 10_u64.checked_pow((power + 6).unsigned_abs())
            {
                return (amount, micros);
            }
        }
        (AMOUNT_MAX, 1)
    }
}

/// How the amounts of one limit are counted: in 10^-`places`.
#[derive(Clone, Copy, Debug)]
pub(super) struct AmountScale {
    places: i32,
    /// 10^`places`; 0 if that is no whole number that fits.
    factor: u64,
}

/// Counts below this take the library's fast path.
const FAST_MAX: u64 = u32::MAX as u64;

impl AmountScale {
    /// Counts in whole numbers.
    pub(super) const WHOLE: AmountScale = AmountScale { places: 0, factor: 1 };

    /// Returns the scale for a capacity: its own digits and as many more as cost nothing; whole numbers at least, unless it has more
    /// digits than a count.
    pub(super) fn for_capacity(capacity: ShortestDecimal) -> AmountScale {
        let fits = |places, most| capacity.count(places, Round::Up).is_some_and(|count| count <= most);
        // From far more digits than any float has down to those that fit.
        let largest = |most| (-310..=345).rev().find(|places| fits(*places, most)).unwrap_or(-310);
        let wanted = largest(FAST_MAX).max(capacity.decimals()).max(0);
        let places = wanted.min(largest(AMOUNT_MAX));
        let power = u32::try_from(places).ok().and_then(|places| 10_u64.checked_pow(places));
        AmountScale { places, factor: power.unwrap_or(0) }
    }

    pub(super) fn places(self) -> i32 {
        self.places
    }

    /// Returns the count of a whole number, if that needs no rounding.
    #[inline]
    pub(super) fn whole(self, value: u64) -> Option<u64> {
        if self.factor == 0 && value != 0 { None } else { value.checked_mul(self.factor) }
    }

    /// Returns the count of a number; `None` for one that is negative, not a number or too large.
    pub(super) fn count(self, value: f64, round: Round) -> Option<u64> {
        ShortestDecimal::of(value)?.count(self.places, round)
    }

    /// Returns the number that a count means.
    pub(super) fn number(self, count: i64) -> f64 {
        format!("{count}e{}", -self.places).parse().unwrap_or(f64::NAN)
    }
}

/// Returns a number of Python as a float.
pub(super) fn float(value: &Bound<'_, PyAny>) -> PyResult<f64> {
    match value.extract::<f64>() {
        // A whole number that no float can hold.
        Err(error) if error.is_instance_of::<pyo3::exceptions::PyOverflowError>(value.py()) => {
            Ok(if value.lt(0)? { f64::NEG_INFINITY } else { f64::MAX })
        }
        found => found,
    }
}
