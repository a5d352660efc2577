//! The fields `RateLimit` and `RateLimit-Policy` of the IETF draft, and the dictionary of its
//! earlier versions.
//!
//! Both are lists of structured fields, `"rpm";q=1000;w=60` and `"rpm";r=998;t=1`, matched by name.
//! The parser accepts well-formed items, and supports no more of structured fields than these two
//! need.

use std::time::SystemTime;

use crate::headers::Headers;
use crate::meters::{self, METERS_MAX};
use crate::{LimitReading, LimitUnit, wait};

/// The maximum size of a field that is parsed.
const FIELD_MAX: usize = 2_048;

/// The maximum number of parameters of an item.
const PARAMETERS_MAX: usize = 16;

/// Returns all limits in the two fields.
pub(crate) fn read(headers: Headers<'_>, sent_at: SystemTime) -> Vec<LimitReading> {
    let policies: Vec<ListItem<'_>> = headers.all_of("ratelimit-policy").flat_map(items).collect();
    let states: Vec<ListItem<'_>> = headers.all_of("ratelimit").flat_map(items).collect();
    if let Some(reading) = dictionary(&states, sent_at) {
        return vec![reading];
    }
    let named = |name: &str| policies.iter().find(|policy| policy.name == name);
    let mut readings: Vec<LimitReading> =
        states.iter().filter_map(|item| reading(item, named(item.name), sent_at)).collect();
    let without_state = policies.iter().filter(|policy| !states.iter().any(|item| item.name == policy.name));
    readings.extend(without_state.filter_map(|policy| Some(policy.unit()?.with(policy.number("q")))));
    readings.retain(LimitReading::has_value);
    readings.truncate(METERS_MAX);
    readings
}

fn reading(item: &ListItem<'_>, policy: Option<&ListItem<'_>>, sent_at: SystemTime) -> Option<LimitReading> {
    let mut reading = policy.unwrap_or(item).unit()?.with(policy.and_then(|value| value.number("q")));
    reading.remaining = item.number("r");
    reading.reset = item.parameter("t").and_then(|text| wait::parse(text, sent_at));
    Some(reading)
}

/// Parses `limit=100, remaining=50, reset=5`.
fn dictionary(items: &[ListItem<'_>], sent_at: SystemTime) -> Option<LimitReading> {
    let value = |key: &str| items.iter().find_map(|item| item.name.strip_prefix(key)?.strip_prefix('='));
    let mut reading = LimitReading::new(LimitUnit::Requests);
    reading.remaining = Some(meters::count(value("remaining")?)?);
    reading.limit = value("limit").and_then(meters::count);
    reading.reset = value("reset").and_then(|text| wait::parse(text, sent_at));
    Some(reading)
}

impl LimitUnit {
    fn with(self, limit: Option<u64>) -> LimitReading {
        LimitReading { limit, ..LimitReading::new(self) }
    }
}

/// An item of a list, with its unparsed parameters.
struct ListItem<'a> {
    name: &'a str,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> ListItem<'a> {
    fn parameter(&self, wanted: &str) -> Option<&'a str> {
        self.parameters.iter().find(|(key, _)| *key == wanted).map(|(_, value)| *value)
    }

    fn number(&self, wanted: &str) -> Option<u64> {
        meters::count(self.parameter(wanted)?)
    }

    /// Returns the unit: that of the parameter, or else of the name, or else requests, which is the
    /// default of the draft.
    fn unit(&self) -> Option<LimitUnit> {
        match self.parameter("qu") {
            Some(unit) => meters::unit(&unit.to_ascii_lowercase()),
            None => Some(meters::unit(&self.name.to_ascii_lowercase()).unwrap_or(LimitUnit::Requests)),
        }
    }
}

fn items(field: &str) -> Vec<ListItem<'_>> {
    if field.len() > FIELD_MAX {
        return Vec::new();
    }
    let texts = split(field, ',').into_iter().take(METERS_MAX);
    texts.filter_map(item).collect()
}

fn item(text: &str) -> Option<ListItem<'_>> {
    let mut pieces = split(text, ';').into_iter();
    let name = unquoted(pieces.next()?);
    let parameters = pieces.take(PARAMETERS_MAX).filter_map(|piece| {
        let (key, value) = piece.split_once('=')?;
        Some((key.trim(), unquoted(value)))
    });
    Some(ListItem { name, parameters: parameters.collect() }).filter(|item| !item.name.is_empty())
}

fn unquoted(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix('"').and_then(|value| value.strip_suffix('"')).unwrap_or(text)
}

/// Splits at a separator outside of quotes.
fn split(text: &str, separator: char) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut quoted, mut escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if c == separator && !quoted => {
                pieces.push(&text[start..at]);
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    pieces.push(&text[start..]);
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read_all(headers: &[(&str, &str)]) -> Vec<LimitReading> {
        read(Headers::new(headers), SystemTime::UNIX_EPOCH)
    }

    fn reading(unit: LimitUnit, limit: u64, remaining: u64, reset: u64) -> LimitReading {
        LimitReading::new(unit)
            .with_limit(limit)
            .with_remaining(remaining)
            .with_reset(Duration::from_secs(reset))
    }

    #[test]
    fn the_two_fields_are_matched_by_name() {
        let readings = read_all(&[
            ("RateLimit-Policy", r#""rpm";q=1000;w=60, "tpm";q=100000;w=60"#),
            ("RateLimit", r#""rpm";r=998;t=1, "tpm";r=99000;t=2"#),
        ]);
        assert_eq!(
            readings,
            [reading(LimitUnit::Requests, 1_000, 998, 1), reading(LimitUnit::Tokens, 100_000, 99_000, 2)]
        );
    }

    #[test]
    fn the_unit_comes_from_a_parameter_or_from_the_name() {
        let readings = read_all(&[
            ("ratelimit-policy", r#""a";q=5;qu="requests", "b";q=9;qu="content-bytes""#),
            ("ratelimit-policy", r#""c,;\"tokens";q=7;pk=:c2VjcmV0:"#),
            ("ratelimit", r#"b;r=1;t=1"#),
        ]);
        let of = |unit| LimitReading::new(unit);
        assert_eq!(readings, [of(LimitUnit::Requests).with_limit(5), of(LimitUnit::Tokens).with_limit(7)]);
    }

    #[test]
    fn the_dictionary_of_earlier_drafts_is_parsed() {
        let readings = read_all(&[("ratelimit", "limit=100, remaining=50, reset=5")]);
        assert_eq!(readings, [reading(LimitUnit::Requests, 100, 50, 5)]);
    }

    #[test]
    fn malformed_fields_have_no_values() {
        for text in ["", ",,,;;;", "\"", ";r=5", "\"\\", "=;=;="] {
            let found = read_all(&[("ratelimit", text), ("ratelimit-policy", text)]);
            assert!(
                found.iter().all(|value| value.limit.is_none() && value.remaining.is_none()),
                "{text:?}: {found:?}"
            );
        }
        assert_eq!(read_all(&[("ratelimit", &"\"a\";r=1,".repeat(1_000))]), []);
    }
}
