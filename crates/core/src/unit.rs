//! Units: how an integer amount is shown to users.

use std::fmt;

use crate::AMOUNT_MAX;

/// The unit of a limit whose amounts are shown as decimal fractions, such as money.
///
/// Amounts stay integers: a unit with 6 decimals counts in millionths.
///
/// ```
/// use tollgate_core::Unit;
///
/// let usd = Unit::new("USD", 6)?;
/// assert_eq!(usd.parse("12.5")?, 12_500_000);
/// assert_eq!(usd.show(12_500_000), "12.5 USD");
/// assert!(usd.parse("0.0000001").is_err());
/// # Ok::<(), tollgate_core::UnitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Unit {
    symbol: String,
    decimals: u8,
}

/// A unit, or an amount in it, that is not valid.
///
/// ```
/// use tollgate_core::{Unit, UnitError};
///
/// assert_eq!(Unit::new("USD", 13), Err(UnitError::TooManyDecimals(13)));
/// let error = Unit::new("USD", 2)?.parse("1.234").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "\"1.234\" is not an amount; write it like 12.5, with at most 2 decimals"
/// );
/// # Ok::<(), UnitError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum UnitError {
    /// The unit has more than 12 decimals.
    TooManyDecimals(u8),
    /// The text is not a decimal number that fits the unit.
    NotAnAmount {
        /// The text.
        text: String,
        /// The number of decimals of the unit.
        decimals: u8,
    },
}

impl Unit {
    /// Creates a unit with this symbol that counts in `10^-decimals`. It has at most 12 decimals.
    ///
    /// # Errors
    ///
    /// Returns [`UnitError::TooManyDecimals`] above 12.
    pub fn new(symbol: &str, decimals: u8) -> Result<Unit, UnitError> {
        if decimals > 12 {
            return Err(UnitError::TooManyDecimals(decimals));
        }
        Ok(Unit { symbol: symbol.into(), decimals })
    }

    /// Returns the symbol, which follows an amount.
    pub fn symbol(&self) -> &str {
        &self.symbol
    }

    /// Returns the number of decimals: amounts count in `10^-decimals`.
    pub fn decimals(&self) -> u8 {
        self.decimals
    }

    /// Parses `text`, such as `12.50`, as an amount.
    ///
    /// # Errors
    ///
    /// Returns [`UnitError::NotAnAmount`] for signs, exponents, `NaN`, more decimals than the unit
    /// has, or amounts above [`AMOUNT_MAX`].
    pub fn parse(&self, text: &str) -> Result<u64, UnitError> {
        self.parse_digits(text)
            .filter(|amount| *amount <= AMOUNT_MAX)
            .ok_or_else(|| UnitError::NotAnAmount { text: text.into(), decimals: self.decimals })
    }

    fn parse_digits(&self, text: &str) -> Option<u64> {
        let (whole, fraction) = text.split_once('.').unwrap_or((text, "0"));
        let digits = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit());
        if !digits(whole) || !digits(fraction) || fraction.len() > usize::from(self.decimals).max(1) {
            return None;
        }
        let fraction: u64 =
            format!("{fraction:0<width$}", width = usize::from(self.decimals)).parse().ok()?;
        let whole: u64 = whole.parse().ok()?;
        let scaled = whole.checked_mul(10u64.pow(self.decimals.into()))?;
        if self.decimals == 0 && fraction != 0 { None } else { scaled.checked_add(fraction) }
    }

    /// Formats the amount with its symbol.
    pub fn show(&self, amount: u64) -> String {
        let scale = 10u64.pow(self.decimals.into());
        let (whole, fraction) = (amount / scale, amount % scale);
        if fraction == 0 {
            return format!("{whole} {}", self.symbol);
        }
        let fraction = format!("{fraction:0width$}", width = usize::from(self.decimals));
        format!("{whole}.{} {}", fraction.trim_end_matches('0'), self.symbol)
    }
}

impl fmt::Display for UnitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnitError::TooManyDecimals(decimals) => write!(f, "decimals is {decimals}, but must be 0 to 12"),
            UnitError::NotAnAmount { text, decimals } => {
                write!(f, "{text:?} is not an amount; write it like 12.5, with at most {decimals} decimals")
            }
        }
    }
}

impl std::error::Error for UnitError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_inverts_show() {
        let usd = Unit::new("USD", 6).unwrap();
        for (text, amount) in [("0", 0), ("1", 1_000_000), ("0.000001", 1), ("12.5", 12_500_000)] {
            assert_eq!(usd.parse(text), Ok(amount));
            assert_eq!(usd.show(amount), format!("{text} USD"));
        }
        let whole = Unit::new("req", 0).unwrap();
        assert_eq!(whole.parse("7"), Ok(7));
        assert_eq!(whole.parse("7.0"), Ok(7));
        assert!(whole.parse("7.5").is_err());
    }

    #[test]
    fn an_invalid_amount_is_refused() {
        let usd = Unit::new("USD", 2).unwrap();
        for text in
            ["", ".", "1.", ".5", "-1", "+1", "1e3", "NaN", "inf", "1.234", "1_000", "99999999999999999999"]
        {
            assert!(usd.parse(text).is_err(), "{text:?}");
        }
        assert_eq!(Unit::new("x", 13), Err(UnitError::TooManyDecimals(13)));
    }
}
