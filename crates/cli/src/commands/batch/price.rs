//! Prices of tokens.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Deserialize, Serialize};
use tollgate_provider::Tokens;

use crate::reading::read_text;
use crate::settings::SettingsError;

/// The maximum size of a file of prices.
const FILE_MAX: u64 = 1 << 20;

/// Millionths in a dollar.
const MICROS: u64 = 1_000_000;

/// The maximum price of a million tokens, and the maximum budget.
const DOLLARS_MAX: u64 = 1_000_000;

/// Prices by the name of the model. A name that ends in `*` is a prefix.
#[derive(Clone, Debug, Default)]
pub(crate) struct Prices {
    by_model: BTreeMap<String, Price>,
    source: PriceSource,
    /// Whether a price was asked for and found here.
    is_used: Arc<AtomicBool>,
    /// Whether a price was asked for that neither this nor a fallback has.
    has_missed: Arc<AtomicBool>,
    /// Prices of models that are not here.
    fallback: Option<Box<Prices>>,
}

/// The source of prices.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct PriceSource {
    /// A file, or `built in`.
    pub(crate) source: String,
    /// The day or month of the prices, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) date: Option<String>,
}

/// A file of prices.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PricesFile {
    date: Option<String>,
    #[serde(default)]
    price: BTreeMap<String, PriceText>,
}

/// The price of a token in picodollars: a dollar for a million tokens is a million picodollars each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Price {
    pub(crate) input: u64,
    pub(crate) output: u64,
}

/// A price in a file: dollars for a million tokens.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriceText {
    input: String,
    output: String,
}

impl Prices {
    /// Parses the price sections of a file.
    pub(super) fn read(texts: &BTreeMap<String, PriceText>, source: PriceSource) -> Result<Prices, String> {
        let entries = texts.iter().map(|(model, text)| (model.clone(), &*text.input, &*text.output));
        Prices::parse(entries, source)
    }

    /// Reads a file of prices.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] with the file and what is wrong in it.
    pub(super) fn open(path: &Path) -> Result<Prices, SettingsError> {
        let wrong = |why: String| SettingsError(format!("file {}: {why}", path.display()));
        let text = read_text(path, FILE_MAX).map_err(|why| wrong(format!("it cannot be read: {why}")))?;
        let file: PricesFile =
            toml::from_str(&text).map_err(|why| wrong(why.message().trim_end().to_owned()))?;
        if let Some(date) = &file.date {
            date.parse::<jiff::civil::Date>()
                .map_err(|_| wrong(format!("date is {date:?}, but must be a day, such as 2026-10-01")))?;
        }
        let source = PriceSource { source: path.display().to_string(), date: file.date };
        Prices::read(&file.price, source).map_err(wrong)
    }

    /// Returns the built-in prices.
    pub(super) fn built_in(
        entries: impl Iterator<Item = (String, &'static str, &'static str)>,
        date: &str,
    ) -> Prices {
        let source = PriceSource { source: "built in".into(), date: Some(date.into()) };
        Prices::parse(entries, source).expect("a test reads every price of the table")
    }

    fn parse<'a>(
        entries: impl Iterator<Item = (String, &'a str, &'a str)>,
        source: PriceSource,
    ) -> Result<Prices, String> {
        let price = |(model, input, output): (String, &str, &str)| {
            let named = |which: &str, why: String| format!("price of {model}: {which}: {why}");
            // A millionth of a dollar for a million tokens is a picodollar for each.
            let input = dollars(input).map_err(|why| named("input", why))?;
            let output = dollars(output).map_err(|why| named("output", why))?;
            Ok((model, Price { input, output }))
        };
        let by_model = entries.map(price).collect::<Result<_, String>>()?;
        Ok(Prices { by_model, source, ..Prices::default() })
    }

    /// Sets the prices of models that have none here.
    #[must_use]
    pub(super) fn or(self, fallback: Prices) -> Prices {
        let fallback = match self.fallback {
            Some(first) => first.or(fallback),
            None => fallback,
        };
        Prices { fallback: Some(Box::new(fallback)), ..self }
    }

    /// Returns the price of a model: that of its name, or of the longest prefix.
    pub(crate) fn of(&self, model: &str) -> Option<Price> {
        let begins = |(name, _): &(&String, &Price)| {
            name.strip_suffix('*').is_some_and(|beginning| model.starts_with(beginning))
        };
        let longest =
            || self.by_model.iter().filter(begins).max_by_key(|(name, _)| name.len()).map(|(_, price)| price);
        match self.by_model.get(model).or_else(longest) {
            Some(price) => {
                self.is_used.store(true, Ordering::Relaxed);
                Some(*price)
            }
            None => {
                let price = self.fallback.as_ref().and_then(|fallback| fallback.of(model));
                if price.is_none() {
                    self.has_missed.store(true, Ordering::Relaxed);
                }
                price
            }
        }
    }

    /// Returns whether an unknown price was asked for, so that the cost is too low.
    pub(super) fn has_missed(&self) -> bool {
        self.has_missed.load(Ordering::Relaxed)
    }

    /// Returns the sources of the prices that were used.
    pub(super) fn used(&self) -> Vec<PriceSource> {
        let own = self.is_used.load(Ordering::Relaxed).then(|| self.source.clone());
        let others = self.fallback.as_ref().map(|fallback| fallback.used()).unwrap_or_default();
        own.into_iter().chain(others).collect()
    }
}

impl fmt::Display for PriceSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.date {
            Some(date) => write!(f, "{}, of {date}", self.source),
            None => f.write_str(&self.source),
        }
    }
}

impl Price {
    /// Returns the cost of a call in millionths of a dollar, rounded up.
    pub(crate) fn micros(self, tokens: Tokens) -> u64 {
        self.cost(tokens).div_ceil(1_000_000)
    }

    /// Returns the cost of a call in picodollars.
    fn cost(self, tokens: Tokens) -> u64 {
        let of = |tokens: u64, price: u64| tokens.saturating_mul(price);
        of(tokens.input, self.input).saturating_add(of(tokens.output, self.output))
    }
}

/// Parses an amount of dollars, such as `0.15`, to millionths.
pub(crate) fn dollars(text: &str) -> Result<u64, String> {
    let bad = || {
        format!("{text:?} is not an amount of dollars; valid is one such as 2.50, with at most 6 decimals")
    };
    let digits = text.strip_prefix('$').unwrap_or(text);
    let (whole, decimals) = digits.split_once('.').unwrap_or((digits, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 6 {
        return Err(bad());
    }
    let whole: u64 = whole.parse().map_err(|_| bad())?;
    if whole > DOLLARS_MAX {
        return Err(format!("{text:?} is too large; at most {DOLLARS_MAX} dollars are valid"));
    }
    let micros: u64 = format!("{decimals:0<6}").parse().map_err(|_| bad())?;
    Ok(whole * MICROS + micros)
}

/// Formats millionths of a dollar: `$1.23`, with six decimals below a dollar.
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
        let prices = Prices::read(&[("gpt-4o*".to_owned(), text)].into(), PriceSource::default()).unwrap();
        assert_eq!(prices.of("gpt-5"), None);
        let price = prices.of("gpt-4o-mini").unwrap();
        assert_eq!(price.micros(Tokens::new(1_000_000, 500_000)), 450_000);
        assert_eq!(price.micros(Tokens::new(1, 0)), 1, "less than a millionth counts as one");
        assert_eq!(shown(450_000), "$0.450000");
        assert_eq!(shown(price.micros(Tokens::new(10_000_000, 0))), "$1.50");
        assert_eq!(price.cost(Tokens::new(u64::MAX, u64::MAX)), u64::MAX);
    }

    #[test]
    fn the_exact_name_wins_over_the_longest_prefix() {
        let text = |input: &str| PriceText { input: input.into(), output: "0".into() };
        let names = [("gpt*", "1"), ("gpt-4*", "2"), ("gpt-4o", "3")];
        let texts = names.map(|(name, input)| (name.to_owned(), text(input))).into();
        let prices = Prices::read(&texts, PriceSource::default()).unwrap();
        let input = |model: &str| prices.of(model).map(|price| price.input / MICROS);
        assert_eq!(
            (input("gpt-3"), input("gpt-4"), input("gpt-4o"), input("x")),
            (Some(1), Some(2), Some(3), None)
        );
    }

    #[test]
    fn a_price_comes_from_the_first_that_has_one_and_only_those_are_named() {
        let layer = |name: &str, model: &str, input: &str| {
            let text = PriceText { input: input.into(), output: "0".into() };
            let source = PriceSource { source: name.into(), date: Some("2026-01-02".into()) };
            Prices::read(&[(model.to_owned(), text)].into(), source).unwrap()
        };
        let prices = layer("accounts", "a*", "1").or(layer("file", "*", "2").or(layer("table", "a", "3")));
        let input = |model: &str| prices.of(model).map(|price| price.input / MICROS);
        assert!(prices.used().is_empty());
        assert_eq!((input("a"), input("b"), prices.has_missed()), (Some(1), Some(2), false));
        assert_eq!(layer("file", "a", "1").or(layer("table", "b", "1")).of("c"), None);
        let used: Vec<String> = prices.used().iter().map(ToString::to_string).collect();
        assert_eq!(used, ["accounts, of 2026-01-02", "file, of 2026-01-02"]);
    }
}
