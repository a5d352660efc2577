//! What tokens cost.

use std::collections::BTreeMap;

use serde::Deserialize;
use tollgate_provider::Tokens;

/// Millionths in a dollar.
const MICROS: u64 = 1_000_000;

/// A million dollars, which is more than anybody means to spend on tokens by the million, or on a batch.
const DOLLARS_MAX: u64 = 1_000_000;

/// Prices by the name of the model. A name that ends in `*` is for all that begin with it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prices(BTreeMap<String, Price>);

/// What a token costs, in picodollars: a dollar for a million tokens is a million of them each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Price {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// A price as it stands in a file: dollars for a million tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceText {
    input: String,
    output: String,
}

impl Prices {
    pub(super) fn read(texts: &BTreeMap<String, PriceText>) -> Result<Prices, String> {
        let price = |(model, text): (&String, &PriceText)| {
            let token = |amount: &str| {
                // A millionth of a dollar for a million tokens is a picodollar for each.
                dollars(amount)
            };
            let named = |which: &str, why: String| format!("price of {model}: {which}: {why}");
            let input = token(&text.input).map_err(|why| named("input", why))?;
            let output = token(&text.output).map_err(|why| named("output", why))?;
            Ok((model.clone(), Price { input, output }))
        };
        texts.iter().map(price).collect::<Result<_, String>>().map(Prices)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The price of a model: its own, or that of the longest beginning.
    pub(crate) fn of(&self, model: &str) -> Option<Price> {
        let begins = |(name, _): &(&String, &Price)| {
            name.strip_suffix('*').is_some_and(|beginning| model.starts_with(beginning))
        };
        let longest =
            || self.0.iter().filter(begins).max_by_key(|(name, _)| name.len()).map(|(_, price)| price);
        self.0.get(model).or_else(longest).copied()
    }
}

impl Price {
    /// What a call costs, in millionths of a dollar, rounded up.
    pub(crate) fn micros(self, tokens: Tokens) -> u64 {
        self.cost(tokens).div_ceil(1_000_000)
    }

    /// What a call costs, in picodollars.
    fn cost(self, tokens: Tokens) -> u64 {
        let of = |tokens: u64, price: u64| tokens.saturating_mul(price);
        of(tokens.input, self.input).saturating_add(of(tokens.output, self.output))
    }
}

/// An amount of dollars, such as `0.15`, in millionths.
pub(crate) fn dollars(text: &str) -> Result<u64, String> {
    let bad =
        || format!("{text:?} is no amount of dollars; valid is one such as 2.50, with at most 6 decimals");
    let digits = text.strip_prefix('$').unwrap_or(text);
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 6 {
        return Err(bad());
    }
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    if whole > DOLLARS_MAX {
        return Err(format!("{text:?} is too much; at most {DOLLARS_MAX} dollars are valid"));
    }
    let micros: u64 = format!("{decimals:0<6}").parse().map_err(|_| bad())?;
    Ok(whole * MICROS + micros)
}

/// Millionths of a dollar as people read them: `$1.23`, or with more places where it is less than a dollar.
pub(crate) fn shown(micros: u64) -> String {
    match (micros / MICROS, micros % MICROS) {
        (0, rest) => format!("$0.{rest:06}"),
        (whole, rest) => format!("${whole}.{:02}", rest / 10_000),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_exactly() {
        assert_eq!(dollars("0.15"), Ok(150_000));
        assert_eq!(dollars("$2"), Ok(2_000_000));
        assert_eq!(dollars("0.000001"), Ok(1));
        for bad in ["", "-1", ".5", "1.", "1e3", "0.0000001", "NaN", "1000001", "99999999999999999999999"] {
            assert!(dollars(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_call_costs_its_tokens() {
        let text = PriceText { input: "0.15".into(), output: "0.60".into() };
        let prices = Prices::read(&[("gpt-4o*".to_owned(), text)].into()).unwrap();
        assert_eq!(prices.of("gpt-5"), None);
        let price = prices.of("gpt-4o-mini").unwrap();
        assert_eq!(price.micros(Tokens::new(1_000_000, 500_000)), 450_000);
        assert_eq!(price.micros(Tokens::new(1, 0)), 1, "less than a millionth counts as one");
        assert_eq!(shown(450_000), "$0.450000");
        assert_eq!(shown(price.micros(Tokens::new(10_000_000, 0))), "$1.50");
        assert_eq!(price.cost(Tokens::new(u64::MAX, u64::MAX)), u64::MAX);
    }

    #[test]
    fn the_longest_beginning_wins_and_the_name_itself_before_it() {
        let text = |input: &str| PriceText { input: input.into(), output: "0".into() };
        let names = [("gpt*", "1"), ("gpt-4*", "2"), ("gpt-4o", "3")];
        let texts = names.map(|(name, input)| (name.to_owned(), text(input))).into();
        let prices = Prices::read(&texts).unwrap();
        let input = |model: &str| prices.of(model).map(|price| price.input / MICROS);
        assert_eq!(
            (input("gpt-3"), input("gpt-4"), input("gpt-4o"), input("x")),
            (Some(1), Some(2), Some(3), None)
        );
    }
}
