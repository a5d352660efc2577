//! Parsing of limits.

use std::time::Duration;

use tollgate::{AMOUNT_MAX, Algorithm, Limit, LimitBuilder, LimitError, UNBOUNDED, Unit};

use super::{ALGORITHMS, AT_ONCE, NO_BOUND, PERIODS, VALID};
use crate::{demand_text, duration_text};

/// Parses a limit.
///
/// # Errors
///
/// What is wrong with the text, and what would be valid.
pub(crate) fn parse(text: &str) -> Result<Limit, String> {
    let with_example = |why: String| format!("{why}; valid is {VALID}");
    parts(text).and_then(|parts| parts.limit()).map_err(with_example)
}

/// The parts of the text of a limit.
struct LimitTextParts<'a> {
    name: &'a str,
    amount: &'a str,
    period: Option<&'a str>,
    burst: Option<&'a str>,
    options: LimitTextOptions<'a>,
}

#[derive(Default)]
struct LimitTextOptions<'a> {
    algorithm: Option<(&'a str, Algorithm)>,
    resolution: Option<Duration>,
    unit: Option<Unit>,
    soft: Option<&'a str>,
    calls: bool,
    shadow: bool,
}

fn parts(text: &str) -> Result<LimitTextParts<'_>, String> {
    let (name, rest) = text.split_once(':').ok_or("there is no ':' between the name and the amount")?;
    if rest.contains('(') && !rest.contains(')') {
        return Err("there is no ')' for the '('".into());
    }
    let (rate, options) = cut(rest, ',');
    let (rate, burst) = cut(rate, ':');
    let (amount, period) = match rate.split_once('/') {
        Some((amount, period)) => (amount, Some(period)),
        None => (rate, None),
    };
    Ok(LimitTextParts { name, amount, period, burst, options: LimitTextOptions::parse(options)? })
}

/// Splits a text at the first `mark` that is not in parentheses.
fn cut(text: &str, mark: char) -> (&str, Option<&str>) {
    let mut depth = 0_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            c if c == mark && depth == 0 => return (&text[..at], Some(&text[at + c.len_utf8()..])),
            _ => {}
        }
    }
    (text, None)
}

impl LimitTextParts<'_> {
    fn limit(&self) -> Result<Limit, String> {
        let LimitTextOptions { algorithm, resolution, unit, soft, calls, shadow } = &self.options;
        let mut builder = self.kind()?;
        if let Some(burst) = self.burst {
            builder = builder.burst(self.amount_of(burst)?);
        }
        if let Some((_, algorithm)) = algorithm {
            let kind = builder.clone().build().map_err(without_name)?.kind();
            if !matches!(kind, tollgate::Kind::Rate(_) | tollgate::Kind::Calls(_)) {
                return Err("only rates and call limits can use another algorithm".into());
            }
            builder = builder.algorithm(*algorithm);
        }
        if let Some(step) = resolution {
            builder = builder.resolution(*step);
        }
        if let Some(level) = soft {
            builder = builder.soft(self.amount_of(level)?);
        }
        if let Some(unit) = unit {
            builder = builder.unit(unit.clone());
        }
        if *calls && self.length()?.is_none() {
            return Err("only an amount per time can count calls".into());
        }
        let builder = if *shadow { builder.shadow() } else { builder };
        builder.build().map_err(without_name)
    }

    fn kind(&self) -> Result<LimitBuilder, String> {
        let amount = self.amount_of(self.amount)?;
        if let Some(length) = self.length()? {
            let calls = self.options.calls;
            return Ok(if calls {
                Limit::calls(amount, length).named(self.name)
            } else {
                Limit::rate(self.name, amount, length)
            });
        }
        let inside =
            |word: &str| self.period?.strip_prefix(word)?.strip_prefix('(')?.strip_suffix(')').map(str::trim);
        if let Some(calendar) = inside("cron") {
            let calendar = tollgate::calendar::parse(calendar).map_err(|why| why.to_string())?;
            return Ok(Limit::quota(self.name, amount, calendar));
        }
        if let Some(length) = inside("session") {
            return Ok(Limit::quota(self.name, amount, duration_text::parse(length)?));
        }
        Ok(Limit::resource(self.name, amount))
    }

    /// Returns the period of a rate; `None` for any other kind of limit.
    fn length(&self) -> Result<Option<Duration>, String> {
        let text = self.period.unwrap_or("minute");
        if text == AT_ONCE || ["cron(", "session("].iter().any(|word| text.starts_with(word)) {
            return Ok(None);
        }
        if let Some((_, seconds)) = PERIODS.iter().find(|(word, _)| *word == text) {
            return Ok(Some(Duration::from_secs(*seconds)));
        }
        let valid = "second, minute, hour, day, 90s, 5m, at-once, cron(...) and session(...)";
        let length =
            duration_text::parse(text).map_err(|_| format!("{text:?} is not a period; valid are {valid}"))?;
        Ok(Some(length))
    }

    fn amount_of(&self, text: &str) -> Result<u64, String> {
        if text == NO_BOUND {
            return Ok(UNBOUNDED);
        }
        let amount = match &self.options.unit {
            Some(unit) => unit.parse(text).ok(),
            None => demand_text::whole_number(text),
        };
        match amount {
            None => Err(format!("{text:?} is not an amount")),
            // This number is the constant for no bound, which users must write as a word.
            Some(UNBOUNDED) => Err(format!("{text:?} is too large; at most {AMOUNT_MAX}, or {NO_BOUND}")),
            Some(amount) => Ok(amount),
        }
    }
}

impl<'a> LimitTextOptions<'a> {
    fn parse(text: Option<&'a str>) -> Result<LimitTextOptions<'a>, String> {
        let mut options = LimitTextOptions::default();
        let Some(text) = text else { return Ok(options) };
        let mut seen: Vec<&str> = Vec::new();
        for word in text.split(',') {
            let (key, value) = word.split_once('=').map_or((word, None), |(key, value)| (key, Some(value)));
            if seen.contains(&key) {
                return Err(format!("{key:?} is given twice"));
            }
            seen.push(key);
            options.set(key, value)?;
        }
        Ok(options)
    }

    fn set(&mut self, key: &'a str, value: Option<&'a str>) -> Result<(), String> {
        match (key, value) {
            ("shadow", None) => self.shadow = true,
            ("calls", None) => self.calls = true,
            ("soft", Some(level)) => self.soft = Some(level),
            ("resolution", Some(step)) => self.resolution = Some(duration_text::parse(step)?),
            ("unit", Some(unit)) => self.unit = Some(unit_of(unit)?),
            _ => self.set_algorithm(key, value)?,
        }
        Ok(())
    }

    fn set_algorithm(&mut self, key: &'a str, value: Option<&'a str>) -> Result<(), String> {
        let known = ALGORITHMS.iter().find(|(word, _)| *word == key && value.is_none());
        let (word, algorithm) = known.ok_or_else(|| {
            let valid = "fixed, sliding, leaky, gcra, calls, shadow, soft=N, resolution=TIME and unit=SYMBOL:DECIMALS";
            format!("{key:?} is not an option; valid are {valid}")
        })?;
        match self.algorithm {
            Some((other, _)) => Err(format!("{word:?} comes after {other:?}; give only one of them")),
            None => {
                self.algorithm = Some((word, *algorithm));
                Ok(())
            }
        }
    }
}

fn unit_of(text: &str) -> Result<Unit, String> {
    let parts = text.rsplit_once(':').filter(|(symbol, _)| !symbol.is_empty());
    let decimals = |decimals: &str| decimals.parse::<u8>().ok();
    let unit = parts.and_then(|(symbol, count)| Some(Unit::new(symbol, decimals(count)?)));
    match unit {
        Some(unit) => unit.map_err(|why| why.to_string()),
        None => Err(format!("{text:?} is not a unit; write it like USD:6")),
    }
}

/// Formats an error without the name of the limit, which the command line shows already.
fn without_name(error: LimitError) -> String {
    format!("{} is {}, but must be {}", error.field(), error.value(), error.valid())
}
