//! Amounts by the names of limits, as people write them: `rpm=1`, `tpm=1500`.

/// An amount of one limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Amount {
    /// The limit.
    pub(crate) limit: String,
    /// How much of it.
    pub(crate) amount: u64,
}

/// The amount that a text says; `:` is as good as `=`. Digits may be grouped by `_`.
///
/// # Errors
///
/// A text that is none is answered with what is wrong with it and what would be valid.
pub(crate) fn parse(text: &str) -> Result<Amount, String> {
    let bad = |why: &str| Err(format!("{why}; valid is LIMIT=AMOUNT, such as tpm=1500"));
    let Some((limit, amount)) = text.split_once(['=', ':']) else {
        return bad("there is no '=' between the limit and the amount");
    };
    if limit.is_empty() {
        return bad("the limit has no name");
    }
    match whole_number(amount) {
        Some(amount) => Ok(Amount { limit: limit.into(), amount }),
        None => bad(&format!("{amount:?} is no whole number")),
    }
}

/// A number that is written with digits, which may be grouped by `_`.
pub(crate) fn whole_number(text: &str) -> Option<u64> {
    let starts = text.starts_with(|c: char| c.is_ascii_digit());
    let plain = starts && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_');
    plain.then(|| text.replace('_', "").parse().ok()).flatten()
}

/// The demand for these amounts.
pub(crate) fn demand(amounts: &[Amount]) -> tollgate::Demand<'_> {
    amounts.iter().map(|it| (it.limit.as_str(), it.amount)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_amount_is_a_limit_and_a_number() {
        let amount = |limit: &str, amount| Ok(Amount { limit: limit.into(), amount });
        assert_eq!(parse("rpm=1"), amount("rpm", 1));
        assert_eq!(parse("tokens.in:1_500"), amount("tokens.in", 1_500));
        for text in ["", "rpm", "=1", "rpm=", "rpm=-1", "rpm=1.5", "rpm=_1", "rpm=99999999999999999999"] {
            let why = parse(text).unwrap_err();
            assert!(why.ends_with("such as tpm=1500"), "{text:?}: {why}");
        }
    }
}
