//! The fields `RateLimit` and `RateLimit-Policy` of the IETF draft, and the dictionary of its earlier versions.
//!
//! Both are lists of structured fields, `"rpm";q=1000;w=60` and `"rpm";r=998;t=1`, and belong together by name. This
//! reads what is well formed as far as it goes, and no more of structured fields than these two need.

use std::time::SystemTime;

use crate::headers::Headers;
use crate::meters::{self, METERS_MAX};
use crate::{LimitReading, LimitUnit, wait};

/// How many bytes of a field are read.
const FIELD_MAX: usize = 2_048;

/// How many parameters an item may have.
const PARAMETERS_MAX: usize = 16;

/// All limits that the two fields tell of.
pub(crate) fn read(headers: Headers<'_>, sent_at: SystemTime) -> Vec<LimitReading> {
    let policies: Vec<ListItem<'_>> = headers.all_of("ratelimit-policy").flat_map(items).collect();
    let standing: Vec<ListItem<'_>> = headers.all_of("ratelimit").flat_map(items).collect();
    if let Some(meter) = dictionary(&standing, sent_at) {
        return vec![meter];
    }
    let named = |name: &str| policies.iter().find(|policy| policy.name == name);
    let mut meters: Vec<LimitReading> =
        standing.iter().filter_map(|item| meter(item, named(item.name), sent_at)).collect();
    let alone = policies.iter().filter(|policy| !standing.iter().any(|item| item.name == policy.name));
    meters.extend(alone.filter_map(|policy| Some(policy.unit()?.with(policy.number("q")))));
    meters.retain(LimitReading::says_something);
    meters.truncate(METERS_MAX);
    meters
}

fn meter(item: &ListItem<'_>, policy: Option<&ListItem<'_>>, sent_at: SystemTime) -> Option<LimitReading> {
    let mut meter = policy.unwrap_or(item).unit()?.with(policy.and_then(|it| it.number("q")));
    meter.remaining = item.number("r");
    meter.reset = item.parameter("t").and_then(|text| wait::parse(text, sent_at));
    Some(meter)
}

/// `limit=100, remaining=50, reset=5`.
fn dictionary(items: &[ListItem<'_>], sent_at: SystemTime) -> Option<LimitReading> {
    let value = |key: &str| items.iter().find_map(|item| item.name.strip_prefix(key)?.strip_prefix('='));
    let mut meter = LimitReading::new(LimitUnit::Requests);
    meter.remaining = Some(meters::count(value("remaining")?)?);
    meter.limit = value("limit").and_then(meters::count);
    meter.reset = value("reset").and_then(|text| wait::parse(text, sent_at));
    Some(meter)
}

impl LimitUnit {
    fn with(self, limit: Option<u64>) -> LimitReading {
        LimitReading { limit, ..LimitReading::new(self) }
    }
}

/// An item of a list, with its parameters as they are written.
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

    /// The draft has a parameter for the unit, and requests if it is not there; a name may say more.
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
    text.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(text)
}

/// Splits where a mark stands outside of quotes.
fn split(text: &str, mark: char) -> Vec<&str> {
    let mut pieces = Vec::new();
    let (mut start, mut quoted, mut escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' if quoted => escaped = true,
            '"' => quoted = !quoted,
            _ if c == mark && !quoted => {
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

    fn meter(unit: LimitUnit, limit: u64, remaining: u64, reset: u64) -> LimitReading {
        LimitReading::new(unit)
            .with_limit(limit)
            .with_remaining(remaining)
            .with_reset(Duration::from_secs(reset))
    }

    #[test]
    fn the_two_fields_belong_together_by_name() {
        let meters = read_all(&[
            ("RateLimit-Policy", r#""rpm";q=1000;w=60, "tpm";q=100000;w=60"#),
            ("RateLimit", r#""rpm";r=998;t=1, "tpm";r=99000;t=2"#),
        ]);
        assert_eq!(
            meters,
            [meter(LimitUnit::Requests, 1_000, 998, 1), meter(LimitUnit::Tokens, 100_000, 99_000, 2)]
        );
    }

    #[test]
    fn the_unit_is_said_by_a_parameter_or_by_the_name() {
        let meters = read_all(&[
            ("ratelimit-policy", r#""a";q=5;qu="requests", "b";q=9;qu="content-bytes""#),
            ("ratelimit-policy", r#""c,;\"tokens";q=7;pk=:c2VjcmV0:"#),
            ("ratelimit", r#"b;r=1;t=1"#),
        ]);
        let of = |unit| LimitReading::new(unit);
        assert_eq!(meters, [of(LimitUnit::Requests).with_limit(5), of(LimitUnit::Tokens).with_limit(7)]);
    }

    #[test]
    fn the_dictionary_of_earlier_drafts_is_read() {
        let meters = read_all(&[("ratelimit", "limit=100, remaining=50, reset=5")]);
        assert_eq!(meters, [meter(LimitUnit::Requests, 100, 50, 5)]);
    }

    #[test]
    fn what_is_not_well_formed_says_nothing() {
        for text in ["", ",,,;;;", "\"", ";r=5", "\"\\", "=;=;="] {
            let said = read_all(&[("ratelimit", text), ("ratelimit-policy", text)]);
            assert!(said.iter().all(|it| it.limit.is_none() && it.remaining.is_none()), "{text:?}: {said:?}");
        }
        assert_eq!(read_all(&[("ratelimit", &"\"a\";r=1,".repeat(1_000))]), []);
    }
}
