//! Logs of calls: one JSON object a line.

use std::borrow::Cow;
use std::fmt;
use std::io::{BufRead, Read};

use anyhow::Result;
use jiff::Timestamp;
use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use tollgate::Tick;

/// The longest line of a log, in bytes.
const LINE_MAX: u64 = 1 << 20;

/// A call as a line of the log says it.
#[derive(Debug, Deserialize)]
pub(super) struct LoggedCall<'a> {
    pub(super) time: Time,
    #[serde(borrow)]
    pub(super) entity: Text<'a>,
    #[serde(borrow)]
    pub(super) resource: Text<'a>,
    #[serde(borrow)]
    pub(super) demand: Amounts<'a>,
    #[serde(borrow, default)]
    pub(super) used: Option<Amounts<'a>>,
    #[serde(default)]
    pub(super) duration_ms: Option<f64>,
}

/// A time: RFC 3339, or a number since 1970.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Time(pub(super) Tick);

/// A text that is borrowed from the line where it can be.
#[derive(Debug)]
pub(super) struct Text<'a>(pub(super) Cow<'a, str>);

/// Amounts by the names of limits.
#[derive(Debug)]
pub(super) struct Amounts<'a>(pub(super) Vec<(Cow<'a, str>, u64)>);

/// Shows every line of a log with its number, without its end. One that is too long is shown as `None`.
pub(super) fn each_line(
    mut log: impl BufRead,
    mut seen: impl FnMut(u64, Option<&[u8]>) -> Result<()>,
) -> Result<()> {
    let (mut line, mut number) = (Vec::new(), 0);
    loop {
        line.clear();
        let read = log.by_ref().take(LINE_MAX).read_until(b'\n', &mut line)?;
        if read == 0 {
            return Ok(());
        }
        number += 1;
        let is_cut = read as u64 == LINE_MAX && line.last() != Some(&b'\n');
        if is_cut {
            log.skip_until(b'\n')?;
            seen(number, None)?;
        } else if !line.trim_ascii().is_empty() {
            seen(number, Some(line.trim_ascii_end()))?;
        }
    }
}

impl Time {
    /// A number is in seconds, milliseconds or microseconds: whatever makes it a time of this age.
    fn of_number(number: f64) -> Option<Time> {
        let micros = match number {
            number if !number.is_finite() || number < 0.0 => return None,
            seconds if seconds < 1e11 => seconds * 1e6,
            millis if millis < 1e14 => millis * 1e3,
            micros => micros,
        };
        // What is too large is the last tick there is.
        Some(Time(Tick::from_micros(micros.round() as u64)))
    }

    fn of_text(text: &str) -> Option<Time> {
        let micros = text.parse::<Timestamp>().ok()?.as_microsecond();
        Some(Time(Tick::from_micros(u64::try_from(micros).ok()?)))
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Time, D::Error> {
        deserializer.deserialize_any(TimeVisitor)
    }
}

struct TimeVisitor;

impl Visitor<'_> for TimeVisitor {
    type Value = Time;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a time, such as \"2026-11-15T14:00:00Z\" or 1794751200")
    }

    fn visit_u64<E: Error>(self, number: u64) -> std::result::Result<Time, E> {
        self.visit_f64(number as f64)
    }

    fn visit_f64<E: Error>(self, number: f64) -> std::result::Result<Time, E> {
        Time::of_number(number).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Float(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> std::result::Result<Time, E> {
        Time::of_text(text).ok_or_else(|| E::invalid_value(serde::de::Unexpected::Str(text), &self))
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
        f.write_str("a text")
    }

    fn visit_borrowed_str<E: Error>(self, text: &'de str) -> std::result::Result<Text<'de>, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E: Error>(self, text: &str) -> std::result::Result<Text<'de>, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Amounts<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Amounts<'a>, D::Error> {
        deserializer.deserialize_map(AmountsVisitor)
    }
}

struct AmountsVisitor;

impl<'de> Visitor<'de> for AmountsVisitor {
    type Value = Amounts<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("amounts by the names of limits, such as {\"rpm\": 1}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<Amounts<'de>, A::Error> {
        let mut amounts = Vec::with_capacity(4);
        while let Some((Text(name), amount)) = map.next_entry::<Text<'de>, u64>()? {
            amounts.push((name, amount));
        }
        Ok(Amounts(amounts))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(json: &str) -> Option<u64> {
        serde_json::from_str::<Time>(json).ok().map(|Time(tick)| tick.as_micros())
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
        for json in ["-1", "\"noon\"", "null", "{}", "\"1969-12-31T00:00:00Z\""] {
            assert_eq!(time(json), None, "{json}");
        }
    }

    #[test]
    fn lines_are_counted_from_one_and_empty_ones_are_passed_over() {
        let long = "x".repeat(usize::try_from(LINE_MAX).unwrap() + 5);
        let log = format!("a\r\n\n{long}\nb");
        let mut seen = Vec::new();
        each_line(log.as_bytes(), |number, line| {
            seen.push((number, line.map(|line| String::from_utf8_lossy(line).into_owned())));
            Ok(())
        })
        .unwrap();
        assert_eq!(seen, [(1, Some("a".into())), (3, None), (4, Some("b".into()))]);
    }
}
