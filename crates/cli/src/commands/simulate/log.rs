//! Logs of calls: one JSON object a line.

use std::borrow::Cow;
use std::fmt;
use std::io::{BufRead, Read};

use anyhow::Result;
use jiff::Timestamp;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tollgate::Tick;

use super::names::LimitNames;
use crate::demand_text::Written;

/// The byte order mark that some editors write at the start of a file.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// The longest line of a log, in bytes.
const LINE_MAX: u64 = 1 << 20;

/// The last valid time: the end of the year 9999.
const MICROS_MAX: f64 = 253_402_300_799e6;

/// The number of digits that every JSON parser preserves.
const DIGITS_MAX: usize = 15;

/// A call in a line of the log.
#[derive(Debug, Deserialize)]
#[serde(expecting = "a call: an object with time, entity, resource and demand")]
pub(super) struct LoggedCall<'a> {
    pub(super) time: LoggedTime,
    #[serde(borrow)]
    pub(super) entity: Text<'a>,
    #[serde(borrow)]
    pub(super) resource: Text<'a>,
    #[serde(borrow)]
    pub(super) demand: LoggedAmounts<'a>,
    #[serde(borrow, default)]
    pub(super) used: Option<LoggedAmounts<'a>>,
    #[serde(default)]
    pub(super) duration_ms: Option<Millis>,
}

/// A duration in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Millis(pub(super) f64);

/// A time: RFC 3339, or a number since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LoggedTime(pub(super) Tick);

/// A string that is borrowed from the line if possible.
#[derive(Debug)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

/// Amounts by the names of limits.
#[derive(Debug)]
pub(super) struct LoggedAmounts<'a>(pub(super) Vec<(Cow<'a, str>, LoggedAmount)>);

/// An amount, which is converted as soon as the unit of its limit is known.
#[derive(Debug, PartialEq)]
pub(super) enum LoggedAmount {
    /// A whole number, converted to the unit of its limit if that is known.
    Whole(u64),
    /// A number with decimals.
    Written(Written),
}

impl LoggedCall<'_> {
    /// Converts every amount to the unit of its limit. Amounts of unknown limits are skipped later.
    ///
    /// # Errors
    ///
    /// If an amount has decimals that the limit does not have.
    pub(super) fn count(&mut self, limits: &LimitNames) -> std::result::Result<(), String> {
        let amounts = self.demand.0.iter_mut().chain(self.used.iter_mut().flat_map(|used| used.0.iter_mut()));
        for (limit, amount) in amounts {
            amount.count(limit, limits).map_err(|why| format!("{limit}: {why}"))?;
        }
        Ok(())
    }
}

impl LoggedAmount {
    /// Returns the amount in the unit of the limit.
    pub(super) fn counted(&self) -> u64 {
        match self {
            LoggedAmount::Whole(amount) => *amount,
            LoggedAmount::Written(_) => 0,
        }
    }

    fn count(&mut self, limit: &str, limits: &LimitNames) -> std::result::Result<(), String> {
        let Some(unit) = limits.unit(limit) else {
            return Ok(());
        };
        let counted = match (&*self, unit) {
            (LoggedAmount::Whole(_), None) => return Ok(()),
            (LoggedAmount::Whole(whole), Some(_)) => Written::of_whole(*whole).in_unit(unit)?,
            (LoggedAmount::Written(written), unit) => written.in_unit(unit)?,
        };
        *self = LoggedAmount::Whole(counted);
        Ok(())
    }
}

/// Calls `seen` with every line of a log and its number. A line that is too long is `None`.
pub(super) fn each_line(
    mut log: impl BufRead,
    mut seen: impl FnMut(u64, Option<&[u8]>) -> Result<()>,
) -> Result<()> {
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        let read = log.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        number += 1;
        if number == 1 && line.starts_with(BYTE_ORDER_MARK) {
            line.drain(..BYTE_ORDER_MARK.len());
        }
        let is_cut = read as u64 == LINE_MAX && line.last() != Some(&b'\n');
        if is_cut {
            log.skip_until(b'\n')?;
            seen(number, None)?;
        } else if !line.trim_ascii().is_empty() {
            seen(number, Some(line.trim_ascii_end()))?;
        }
    }
}

impl LoggedTime {
    /// Converts a number of seconds, milliseconds or microseconds, told apart by its size.
    fn of_number(number: f64) -> Option<LoggedTime> {
        let micros = match number {
            number if !number.is_finite() || number < 0.0 => return None,
            seconds if seconds < 1e11 => seconds * 1e6,
            millis if millis < 1e14 => millis * 1e3,
            micros => micros,
        };
        (micros <= MICROS_MAX).then(|| LoggedTime(Tick::from_micros(micros.round() as u64)))
    }

    fn of_text(text: &str) -> Option<LoggedTime> {
        let micros = text.parse::<Timestamp>().ok()?.as_microsecond();
        Some(LoggedTime(Tick::from_micros(u64::try_from(micros).ok()?)))
    }
}

impl<'de> Deserialize<'de> for LoggedTime {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<LoggedTime, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = LoggedTime;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time, such as \"2026-11-15T14:00:00Z\" or 1794751200")
    }

    fn visit_u64<E: Error>(self, number: u64) -> std::result::Result<LoggedTime, E> {
        self.visit_f64(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> std::result::Result<LoggedTime, E> {
        LoggedTime::of_number(number)
            .ok_or_else(|| E::invalid_value(serde::de::Unexpected::Float(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> std::result::Result<LoggedTime, E> {
        LoggedTime::of_text(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Text<'a>, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> std::result::Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> std::result::Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for LoggedAmounts<'a> {
    fn deserialize<D: Deserializer<'de>>(
        deserializer: D,
    ) -> std::result::Result<LoggedAmounts<'a>, D::Error> {
        deserializer.deserialize_map(AmountsVisitor)
    }
}

struct AmountsVisitor;

impl<'de> Visitor<'de> for AmountsVisitor {
    type Value = LoggedAmounts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("amounts by the names of limits, such as {\"rpm\": 1}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<LoggedAmounts<'de>, A::Error> {
        let mut amounts = Vec::with_capacity(4);
        while let Some((Text(name), amount)) = map.next_entry::<Text<'de>, LoggedAmount>()? {
            amounts.push((name, amount));
        }
        Ok(LoggedAmounts(amounts))
    }
}

impl<'de> Deserialize<'de> for LoggedAmount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<LoggedAmount, D::Error> {
        deserializer.deserialize_any(AmountVisitor)
    }
}

struct AmountVisitor;

impl Visitor<'_> for AmountVisitor {
    type Value = LoggedAmount;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an amount, such as 1500, or 1.5 of a limit that has a unit")
    }

    fn visit_u64<E: Error>(self, number: u64) -> std::result::Result<LoggedAmount, E> {
        Ok(LoggedAmount::Whole(number))
    }

    /// Refuses a number with so many digits that the parser may have changed it; a string is exact.
    fn visit_f64<E: Error>(self, number: f64) -> std::result::Result<LoggedAmount, E> {
        let text = number.to_string();
        let digits = text.trim_start_matches(['0', '.']).bytes().filter(u8::is_ascii_digit).count();
        if digits > DIGITS_MAX {
            return Err(E::custom(format_args!(
                "{text} has too many digits for a number; write it as a string"
            )));
        }
        self.visit_str(&text)
    }

    fn visit_str<E: Error>(self, text: &str) -> std::result::Result<LoggedAmount, E> {
        let written = Written::parse(text).map(LoggedAmount::Written);
        written.ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

impl<'de> Deserialize<'de> for Millis {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Millis, D::Error> {
        deserializer.deserialize_any(MillisVisitor)
    }
}

struct MillisVisitor;

impl Visitor<'_> for MillisVisitor {
    type Value = Millis;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number of milliseconds, such as 900")
    }

    fn visit_u64<E: Error>(self, number: u64) -> std::result::Result<Millis, E> {
        Ok(Millis(number as f64))
    }

    fn visit_f64<E: Error>(self, number: f64) -> std::result::Result<Millis, E> {
        if number >= 0.0 {
            return Ok(Millis(number));
        }
        Err(E::invalid_value(serde::de::Unexpected::Float(number), &self))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_about_a_line_does_not_mention_rust_types() {
        let whole = r#"{"time": 1, "entity": "e", "resource": "r", "demand": {"rpm": 1}, "duration_ms": 5}"#;
        assert!(serde_json::from_str::<LoggedCall<'_>>(whole).is_ok());
        for (from, to) in [
            (whole, "[1]"),
            (whole, "7"),
            ("\"e\"", "7"),
            ("{\"rpm\": 1}", "3"),
            (": 1}", ": -1}"),
            (": 1}", ": []}"),
            (": 5", ": -5"),
            (": 5", ": \"soon\""),
            ("\"time\": 1,", "\"time\": 1e300,"),
        ] {
            let why = serde_json::from_str::<LoggedCall<'_>>(&whole.replacen(from, to, 1)).unwrap_err();
            let why = why.to_string();
            for word in ["struct", "u64", "f64", "LoggedCall"] {
                assert!(!why.contains(word), "{to}: {why}");
            }
        }
    }

    #[test]
    fn amounts_are_counted_in_the_units_of_their_limits() {
        let limit = |text| crate::limit_text::parse(text).unwrap();
        let limits = [limit("sp:5,unit=USD:6"), limit("rpm:5")];
        let names = LimitNames::new([tollgate::Limits::new(limits).unwrap()].iter()).unwrap();
        let counted = |amount: &str| {
            let call = format!(r#"{{"time": 1, "entity": "e", "resource": "r", "demand": {{{amount}}}}}"#);
            let mut call: LoggedCall<'_> = serde_json::from_str(&call).map_err(|why| why.to_string())?;
            call.count(&names).map(|()| call.demand.0[0].1.counted())
        };
        assert_eq!(counted("\"sp\": 2"), Ok(2_000_000));
        assert_eq!(counted("\"sp\": 1.5"), Ok(1_500_000));
        assert_eq!(counted("\"sp\": \"0.000001\""), Ok(1));
        assert_eq!(counted("\"rpm\": 2"), Ok(2));
        assert!(counted("\"rpm\": 2.5").unwrap_err().contains("not a whole number"));
        assert!(counted("\"sp\": 0.0000001").unwrap_err().contains("at most 6"));
        assert!(counted("\"sp\": 1234567890.123456").unwrap_err().contains("write it as a string"));
        assert_eq!(counted("\"sp\": \"123456789.123456\""), Ok(123_456_789_123_456));
        assert_eq!(counted("\"unknown\": 2.5"), Ok(0), "it is skipped");
    }

    fn time(json: &str) -> Option<u64> {
        serde_json::from_str::<LoggedTime>(json).ok().map(|LoggedTime(tick)| tick.as_micros())
    }

    #[test]
    fn a_time_may_be_text_or_a_number() {
        let noon = Some(1_794_744_000_000_000);
        for json in [
            "\"2026-11-15T12:00:00Z\"",
            "\"2026-11-15T13:00:00+01:00\"",
            "1794744000",
            "1794744000.0",
            "1794744000000",
            "1794744000000000",
        ] {
            assert_eq!(time(json), noon, "{json}");
        }
        assert_eq!(time("1794744000.25"), Some(1_794_744_000_250_000));
        for json in ["-1", "\"noon\"", "null", "{}", "1e30", "\"1969-12-31T00:00:00Z\""] {
            assert_eq!(time(json), None, "{json}");
        }
    }

    #[test]
    fn lines_are_counted_from_one_and_empty_ones_are_skipped() {
        let long = "x".repeat(usize::try_from(LINE_MAX).unwrap() + 5);
        let log = format!("\u{feff}a\r\n\n{long}\nb");
        let mut seen = Vec::new();
        each_line(log.as_bytes(), |number, line| {
            seen.push((number, line.map(|line| String::from_utf8_lossy(line).into_owned())));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [(1, Some("a".into())), (3, None), (4, Some("b".into()))]);
    }
}
