//! Amounts by the names of limits, as people write them: `rpm=1`, `tpm=1500`, `spend=1.5`.

use std::fmt;

use tollgate::Unit;

/// An amount of one limit, as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    /// The limit.
    pub(crate) limit: String,
    /// How much of it.
    pub(crate) amount: Written,
}

/// A number as it was written: digits, and perhaps decimals. How much that is depends on the unit of the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Written(String);

/// An amount of one limit, as the limit counts it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exact {
    /// The limit.
    pub(crate) limit: String,
    /// How much of it.
    pub(crate) amount: u64,
}

/// Parses an amount; `:` means the same as `=`. Digits may be grouped by `_`.
///
/// # Errors
///
/// What is wrong with the text, and what would be valid.
pub(crate) fn parse(text: &str) -> Result<Amount, String> {
    let bad = |why: &str| Err(format!("{why}; valid is LIMIT=AMOUNT, such as tpm=1500"));
    let Some((limit, amount)) = text.split_once(['=', ':']) else {
        return bad("there is no '=' between the limit and the amount");
    };
    if limit.is_empty() {
        return bad("the limit has no name");
    }
    match Written::parse(amount) {
        Some(amount) => Ok(Amount { limit: limit.into(), amount }),
        None => bad(&format!("{amount:?} is not an amount")),
    }
}

/// Parses a whole number, whose digits may be grouped by `_`.
pub(crate) fn whole_number(text: &str) -> Option<u64> {
    let starts = text.starts_with(|c: char| c.is_ascii_digit());
    let plain = starts && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    plain.then(|| text.replace('_', "").parse().ok()).flatten()
}

/// Converts amounts to a demand.
pub(crate) fn demand(amounts: &[Exact]) -> tollgate::Demand {
    amounts.iter().map(|exact| (exact.limit.as_str(), exact.amount)).collect()
}

impl Written {
    /// Returns a whole number as it would be written.
    pub(crate) fn of_whole(number: u64) -> Written {
        Written(number.to_string())
    }

    /// Returns the number 1.
    pub(crate) fn one() -> Written {
        Written("1".into())
    }

    /// Parses a number: digits, which may be grouped by `_`, and decimals after a `.`.
    pub(crate) fn parse(text: &str) -> Option<Written> {
        let (whole, decimals) =
            text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
        let whole = whole_number(whole)?;
        match decimals {
            None => Some(Written(whole.to_string())),
            Some(decimals) if decimals.is_empty() || !decimals.bytes().all(|byte| byte.is_ascii_digit()) => {
                None
            }
            Some(decimals) => Some(Written(format!("{whole}.{decimals}"))),
        }
    }

    /// Converts the number to the unit of a limit. A limit without a unit counts in whole numbers.
    ///
    /// # Errors
    ///
    /// If the number has more decimals than the unit, or is too large.
    pub(crate) fn in_unit(&self, unit: Option<&Unit>) -> Result<u64, String> {
        let (whole, decimals) = self.0.split_once('.').unwrap_or((&self.0, ""));
        let decimals = decimals.trim_end_matches('0');
        let Some(unit) = unit else {
            let whole = whole.parse().ok().filter(|_| !self.0.contains('.'));
            return whole.ok_or_else(|| format!("{self} is not a whole number, and the limit has no unit"));
        };
        let count = decimals.len();
        let most = usize::from(unit.decimals());
        if count > most {
            return Err(format!("{self} has {count} decimals, and {} has at most {most}", unit.symbol()));
        }
        let text = if decimals.is_empty() { whole.into() } else { format!("{whole}.{decimals}") };
        unit.parse(&text).map_err(|_| format!("{self} {} is too large", unit.symbol()))
    }
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_limit_and_a_number() {
        let amount =
            |limit: &str, text: &str| Ok(Amount { limit: limit.into(), amount: Written(text.into()) });
        assert_eq!(parse("rpm=1"), amount("rpm", "1"));
        assert_eq!(parse("tokens.in:1_500"), amount("tokens.in", "1500"));
        assert_eq!(parse("spend=1_000.50"), amount("spend", "1000.50"));
        for text in [
            "",
            "rpm",
            "=1",
            "rpm=",
            "rpm=-1",
            "rpm=.5",
            "rpm=1.",
            "rpm=1.5.5",
            "rpm=1e3",
            "rpm=_1",
            "rpm=1._5",
        ] {
            let why = parse(text).unwrap_err();
            assert!(why.ends_with("such as tpm=1500"), "{text:?}: {why}");
        }
        assert!(parse("rpm=99999999999999999999").is_err());
    }

    #[test]
    fn an_amount_counts_in_the_unit_of_its_limit() {
        let usd = Unit::new("USD", 6).unwrap();
        let in_unit = |text: &str, unit| Written::parse(text).unwrap().in_unit(unit);
        assert_eq!(in_unit("1", None), Ok(1));
        assert_eq!(in_unit("1", Some(&usd)), Ok(1_000_000));
        assert_eq!(in_unit("1.5", Some(&usd)), Ok(1_500_000));
        assert_eq!(in_unit("0.000001", Some(&usd)), Ok(1));
        assert_eq!(in_unit("1.50000000000", Some(&usd)), Ok(1_500_000));
        let why = in_unit("1.2345678", Some(&usd)).unwrap_err();
        assert_eq!(why, "1.2345678 has 7 decimals, and USD has at most 6");
        assert!(in_unit("1.5", None).unwrap_err().contains("not a whole number"));
        assert!(in_unit("1.0", None).unwrap_err().contains("not a whole number"));
        assert!(in_unit("18446744073709551615", Some(&usd)).unwrap_err().contains("too large"));
        assert_eq!(in_unit("7.0", Some(&Unit::new("req", 0).unwrap())), Ok(7));
    }
}
