//! Amounts: how much a limit allows and how much a call asks for.

use std::fmt;

/// The maximum amount and the maximum capacity: 10^15.
pub const AMOUNT_MAX: u64 = 1_000_000_000_000_000;

/// The capacity of a limit that never denies.
pub const UNBOUNDED: u64 = u64::MAX;

/// A number that is not a valid amount.
///
/// ```
/// use tollgate_core::{BadAmount, IntoAmount};
///
/// assert_eq!((-1).into_amount(), Err(BadAmount::Negative(-1)));
/// assert_eq!(0.5.into_amount(), Err(BadAmount::NotWhole(0.5)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum BadAmount {
    /// The number is below zero.
    Negative(i128),
    /// The number is above [`AMOUNT_MAX`].
    TooLarge(u128),
    /// The number has a fraction, is infinite, or is NaN.
    NotWhole(f64),
}

/// Converts a number to an amount: implemented for every integer type, and for floats that are
/// whole numbers.
///
/// Amounts come from token counters, JSON and command lines, in different types. A checked
/// conversion in one place reports a negative or broken amount with its value, instead of wrapping
/// it to a huge one.
///
/// ```
/// use tollgate_core::IntoAmount;
///
/// assert_eq!(1_500u32.into_amount(), Ok(1_500));
/// assert_eq!(2.0.into_amount(), Ok(2));
/// ```
pub trait IntoAmount {
    /// Returns the amount, or the reason why the value is not an amount.
    ///
    /// # Errors
    ///
    /// Returns [`BadAmount`] for negative, oversized or fractional values. [`UNBOUNDED`] is
    /// accepted: only a capacity may be unbounded, and the function that takes the amount decides
    /// that.
    fn into_amount(self) -> Result<u64, BadAmount>;
}

fn checked(value: u128) -> Result<u64, BadAmount> {
    match u64::try_from(value) {
        Ok(amount) if amount <= AMOUNT_MAX || amount == UNBOUNDED => Ok(amount),
        _ => Err(BadAmount::TooLarge(value)),
    }
}

macro_rules! unsigned {
    ($($int:ty),*) => {$(
        impl IntoAmount for $int {
            #[inline]
            fn into_amount(self) -> Result<u64, BadAmount> {
                checked(self as u128)
            }
        }
    )*};
}

macro_rules! signed {
    ($($int:ty),*) => {$(
        impl IntoAmount for $int {
            #[inline]
            fn into_amount(self) -> Result<u64, BadAmount> {
                match u128::try_from(self) {
                    Ok(value) => checked(value),
                    Err(_) => Err(BadAmount::Negative(self as i128)),
                }
            }
        }
    )*};
}

unsigned!(u8, u16, u32, u64, u128, usize);
signed!(i8, i16, i32, i64, i128, isize);

impl IntoAmount for f64 {
    fn into_amount(self) -> Result<u64, BadAmount> {
        if !self.is_finite() || self.fract() != 0.0 {
            return Err(BadAmount::NotWhole(self));
        }
        (self as i128).into_amount()
    }
}

impl fmt::Display for BadAmount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BadAmount::Negative(value) => write!(f, "{value} is negative; an amount is 0 to {AMOUNT_MAX}"),
            BadAmount::TooLarge(value) => write!(f, "{value} is too large; an amount is 0 to {AMOUNT_MAX}"),
            BadAmount::NotWhole(value) => {
                write!(f, "{value} is not a whole number; scale fractions to a smaller unit, such as cents")
            }
        }
    }
}

impl std::error::Error for BadAmount {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_integer_type_converts_to_an_amount() {
        assert_eq!(5u8.into_amount(), Ok(5));
        assert_eq!(5usize.into_amount(), Ok(5));
        assert_eq!(5i64.into_amount(), Ok(5));
        assert_eq!(5.0f64.into_amount(), Ok(5));
        assert_eq!(AMOUNT_MAX.into_amount(), Ok(AMOUNT_MAX));
    }

    #[test]
    fn an_invalid_amount_is_refused_with_the_reason() {
        assert_eq!((-1i32).into_amount(), Err(BadAmount::Negative(-1)));
        assert_eq!((AMOUNT_MAX + 1).into_amount(), Err(BadAmount::TooLarge(u128::from(AMOUNT_MAX) + 1)));
        assert_eq!(u128::MAX.into_amount(), Err(BadAmount::TooLarge(u128::MAX)));
        assert_eq!(1.5f64.into_amount(), Err(BadAmount::NotWhole(1.5)));
        assert!(matches!(f64::NAN.into_amount(), Err(BadAmount::NotWhole(_))));
        assert!(matches!(f64::INFINITY.into_amount(), Err(BadAmount::NotWhole(_))));
        assert_eq!((-0.0f64).into_amount(), Ok(0));
        assert!(matches!(1e300f64.into_amount(), Err(BadAmount::TooLarge(_))));
        assert!(matches!((-1e300f64).into_amount(), Err(BadAmount::Negative(_))));
    }
}
