//! Limits from headers whose names have several parts.
//!
//! `x-ratelimit-remaining-tokens`, `anthropic-ratelimit-input-tokens-remaining`,
//! `x-ratelimit-limit-req-minute` and `RateLimit-Reset` follow one scheme: somewhere after
//! `ratelimit` the name has the attribute (limit, remaining or reset), and the rest of the name is
//! the scope.

use std::time::SystemTime;

use crate::headers::Headers;
use crate::{LimitReading, LimitUnit, fields, wait};

/// The maximum number of limits in a reply.
pub(crate) const METERS_MAX: usize = 16;

/// The maximum length of such a header's name, in bytes.
const NAME_MAX: usize = 100;

/// Returns all limits in the headers.
pub(crate) fn read(headers: Headers<'_>, sent_at: SystemTime) -> Vec<LimitReading> {
    let mut found: Vec<(String, LimitReading)> = Vec::new();
    for (name, value) in headers.iter() {
        let Some((attribute, scope)) = split_name(name) else { continue };
        let Some(unit) = unit(&scope) else { continue };
        let at = match found.iter().position(|(known, _)| *known == scope) {
            Some(at) => at,
            None if found.len() < METERS_MAX => {
                found.push((scope, LimitReading::new(unit)));
                found.len() - 1
            }
            None => continue,
        };
        attribute.set(value, sent_at, &mut found[at].1);
    }
    let mut meters: Vec<LimitReading> =
        found.into_iter().map(|(_, meter)| meter).filter(LimitReading::has_value).collect();
    meters.extend(fields::read(headers, sent_at));
    meters.truncate(METERS_MAX);
    meters
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Attribute {
    Limit,
    Remaining,
    Reset,
}

impl Attribute {
    fn of(word: &str) -> Option<Attribute> {
        Some(match word {
            "limit" => Attribute::Limit,
            "remaining" => Attribute::Remaining,
            "reset" => Attribute::Reset,
            _ => return None,
        })
    }

    /// Sets the attribute. The first header counts, because a proxy adds its own at the end.
    fn set(self, value: &str, sent_at: SystemTime, meter: &mut LimitReading) {
        match self {
            Attribute::Limit => meter.limit = meter.limit.or_else(|| count(value)),
            Attribute::Remaining => meter.remaining = meter.remaining.or_else(|| count(value)),
            Attribute::Reset => meter.reset = meter.reset.or_else(|| wait::parse(value, sent_at)),
        }
    }
}

/// Returns the attribute and the scope of a header.
fn split_name(name: &str) -> Option<(Attribute, String)> {
    if name.len() > NAME_MAX {
        return None;
    }
    let name = name.to_ascii_lowercase().replace('_', "-").replace("rate-limit", "ratelimit");
    let (_, rest) = name.split_once("ratelimit-")?;
    let mut words: Vec<&str> = rest.split('-').filter(|word| *word != "after").collect();
    // The last part that is an attribute: Anthropic has it at the end, others at the start.
    let at = words.iter().rposition(|word| Attribute::of(word).is_some())?;
    let attribute = Attribute::of(words.remove(at))?;
    Some((attribute, words.join("-")))
}

/// Returns the unit of a limit with that scope; `None` for units that are not supported.
pub(crate) fn unit(scope: &str) -> Option<LimitUnit> {
    let has = |part: &str| scope.contains(part);
    let tokens = has("token") || has("tpm");
    Some(match () {
        () if has("concurren") || has("byte") || has("image") || has("audio") => return None,
        () if tokens && (has("input") || has("prompt")) => LimitUnit::InputTokens,
        () if tokens && (has("output") || has("completion")) => LimitUnit::OutputTokens,
        () if tokens => LimitUnit::Tokens,
        () if scope.is_empty() || has("req") || has("rpm") || has("call") => LimitUnit::Requests,
        () => return None,
    })
}

/// Parses a whole number. Decimals are cut off, and text after a comma or semicolon is about
/// windows.
pub(crate) fn count(text: &str) -> Option<u64> {
    let text = text.split([',', ';']).next()?.trim();
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_number(whole) && is_number(decimals) { whole.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn read_all(headers: &[(&str, &str)]) -> Vec<LimitReading> {
        // 2026-11-15T12:00:00Z
        read(Headers::new(headers), SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_744_000))
    }

    fn meter(unit: LimitUnit, limit: u64, remaining: u64, reset_ms: u64) -> LimitReading {
        LimitReading::new(unit)
            .with_limit(limit)
            .with_remaining(remaining)
            .with_reset(Duration::from_millis(reset_ms))
    }

    #[test]
    fn headers_in_the_style_of_openai_are_parsed() {
        let meters = read_all(&[
            ("x-ratelimit-limit-requests", "60"),
            ("x-ratelimit-limit-tokens", "150000"),
            ("x-ratelimit-remaining-requests", "59"),
            ("x-ratelimit-remaining-tokens", "149984"),
            ("x-ratelimit-reset-requests", "1s"),
            ("x-ratelimit-reset-tokens", "6m0s"),
            ("x-ratelimit-limit-project-tokens", "9000"),
            ("x-ratelimit-remaining-project-tokens", "10"),
            ("x-ratelimit-reset-project-tokens", "12ms"),
        ]);
        let expected = [
            meter(LimitUnit::Requests, 60, 59, 1_000),
            meter(LimitUnit::Tokens, 150_000, 149_984, 360_000),
            meter(LimitUnit::Tokens, 9_000, 10, 12),
        ];
        assert_eq!(meters, expected);
    }

    #[test]
    fn headers_in_the_style_of_anthropic_are_parsed() {
        let meters = read_all(&[
            ("Anthropic-RateLimit-Requests-Limit", "50"),
            ("anthropic-ratelimit-requests-remaining", "49"),
            ("anthropic-ratelimit-requests-reset", "2026-11-15T12:00:01Z"),
            ("anthropic-ratelimit-input-tokens-limit", "40000"),
            ("anthropic-ratelimit-input-tokens-remaining", "39000"),
            ("anthropic-ratelimit-input-tokens-reset", "2026-11-15T12:00:02Z"),
            ("anthropic-ratelimit-output-tokens-limit", "8000"),
            ("anthropic-ratelimit-output-tokens-remaining", "0"),
            ("anthropic-ratelimit-output-tokens-reset", "2026-11-15T12:01:00Z"),
            ("anthropic-ratelimit-unified-status", "allowed"),
        ]);
        let expected = [
            meter(LimitUnit::Requests, 50, 49, 1_000),
            meter(LimitUnit::InputTokens, 40_000, 39_000, 2_000),
            meter(LimitUnit::OutputTokens, 8_000, 0, 60_000),
        ];
        assert_eq!(meters, expected);
    }

    #[test]
    fn headers_of_other_providers_are_parsed() {
        let azure = read_all(&[("x-ratelimit-remaining-tokens", "9500"), ("x-ratelimit-reset-tokens", "7")]);
        let tokens = LimitReading::new(LimitUnit::Tokens).with_remaining(9_500);
        assert_eq!(azure, [tokens.with_reset(Duration::from_secs(7))]);
        let plain = read_all(&[
            ("X-RateLimit-Limit", "20"),
            ("X-RateLimit-Remaining", "0"),
            ("X-RateLimit-Reset", "1794744060000"),
        ]);
        assert_eq!(plain, [meter(LimitUnit::Requests, 20, 0, 60_000)]);
        let fields = read_all(&[("ratelimit-limit", "10, 10;w=1"), ("rate_limit_reset_after", "0.5")]);
        assert_eq!(
            fields,
            [LimitReading::new(LimitUnit::Requests).with_limit(10).with_reset(Duration::from_millis(500))]
        );
        let minute =
            read_all(&[("x-ratelimit-limit-req-minute", "60"), ("x-ratelimit-limit-tokens-minute", "5")]);
        assert_eq!(
            minute.iter().map(|reading| reading.unit).collect::<Vec<_>>(),
            [LimitUnit::Requests, LimitUnit::Tokens]
        );
    }

    #[test]
    fn invalid_numbers_and_other_units_are_ignored() {
        let meters = read_all(&[
            ("x-ratelimit-limit-requests", "-5"),
            ("x-ratelimit-limit-tokens", "99999999999999999999"),
            ("x-ratelimit-reset-requests", "soon"),
            ("x-ratelimit-remaining-images", "3"),
            ("x-ratelimit-remaining-concurrent-requests", "3"),
            ("x-ratelimit-bucket", "abc"),
            ("ratelimit-", "1"),
        ]);
        assert_eq!(meters, []);
    }
}
