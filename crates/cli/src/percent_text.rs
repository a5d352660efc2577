//! Shares as text: `1%`, `0.5`.

/// A share of a whole, in millionths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Percent(u64);

/// The millionths of one percent.
const ONE: u64 = 10_000;

impl Percent {
    /// Parses a share, with or without its sign.
    ///
    /// # Errors
    ///
    /// What would be valid.
    pub(crate) fn parse(text: &str) -> Result<Percent, String> {
        let bad = || format!("{text:?} is not a share; valid is 0% to 100%, such as 1% or 0.5%");
        let (whole, decimals) =
            text.trim_end_matches('%').split_once('.').unwrap_or((text.trim_end_matches('%'), ""));
        let is_number = |digits: &str| digits.bytes().all(|digit| digit.is_ascii_digit());
        if whole.is_empty()
            || whole.len() > 3
            || decimals.len() > 4
            || !is_number(whole)
            || !is_number(decimals)
        {
            return Err(bad());
        }
        let whole: u64 = whole.parse().map_err(|_| bad())?;
        let decimals: u64 = format!("{decimals:0<4}").parse().map_err(|_| bad())?;
        let parts = whole * ONE + decimals;
        if parts > 100 * ONE { Err(bad()) } else { Ok(Percent(parts)) }
    }

    /// Returns whether a part of a whole is more than this share.
    pub(crate) fn is_exceeded(self, part: u64, whole: u64) -> bool {
        u128::from(part) * u128::from(100 * ONE) > u128::from(self.0) * u128::from(whole)
    }

    /// Formats the share: `0.5%`.
    pub(crate) fn shown(self) -> String {
        let text = format!("{}.{:04}", self.0 / ONE, self.0 % ONE);
        format!("{}%", text.trim_end_matches('0').trim_end_matches('.'))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_exact() {
        let one = Percent::parse("1%").unwrap();
        assert!(!one.is_exceeded(10, 1_000) && one.is_exceeded(11, 1_000) && !one.is_exceeded(0, 0));
        assert!(Percent::parse("0").unwrap().is_exceeded(1, u64::MAX));
        assert!(!Percent::parse("100%").unwrap().is_exceeded(7, 7));
        for (text, shown) in [("1%", "1%"), ("0.5", "0.5%"), ("12.0625%", "12.0625%"), ("100", "100%")] {
            assert_eq!(Percent::parse(text).map(Percent::shown).as_deref(), Ok(shown));
        }
    }

    #[test]
    fn what_is_not_a_share_is_refused() {
        for text in
            ["", "%", ".5", "-1%", "101%", "100.1", "1.00001", "1e2", "+1", "one", "9999999999999999999999"]
        {
            assert!(Percent::parse(text).is_err_and(|why| why.contains("such as 1%")), "{text}");
        }
    }
}
