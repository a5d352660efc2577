//! Waits in all their formats.
//!
//! `1s`, `6m0s`, `2m59.56s`, `12ms`, `7`, `0.5`, `1700000000`, `2026-11-15T12:00:00Z` and `Sun, 15
//! Nov 2026 12:00:00 GMT` are all in use, some of them in headers of the same name. Anything else,
//! and waits longer than [`WAIT_MAX`], are ignored.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;
use jiff::civil::DateTime;
use jiff::fmt::rfc2822;
use jiff::fmt::strtime::BrokenDownTime;
use jiff::tz::TimeZone;

use crate::WAIT_MAX;

/// The maximum length of a time in any format, in bytes.
const TEXT_MAX: usize = 64;

/// How far in the past a date may be to mean "now": clocks of hosts differ, and replies take time.
const PAST_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// Whole numbers from here on are seconds, milliseconds or microseconds since 1970; smaller ones
/// are seconds to wait. [`WAIT_MAX`] is smaller, so there is no ambiguity.
const EPOCH_SECONDS_MIN: u64 = 1_000_000_000;

const NANOS_IN_SECOND: u128 = 1_000_000_000;

/// Parses a wait, relative to `now`.
pub(crate) fn parse(text: &str, now: SystemTime) -> Option<Duration> {
    let text = text.trim();
    if text.is_empty() || text.len() > TEXT_MAX {
        return None;
    }
    if let Some((number, "")) = Decimal::split(text) {
        return number.seconds_or_epoch(now);
    }
    units(text).or_else(|| from(date(text)?, now))
}

/// Parses a wait in milliseconds.
pub(crate) fn parse_ms(text: &str) -> Option<Duration> {
    let text = text.trim();
    match Decimal::split(text)? {
        (number, "") if text.len() <= TEXT_MAX => number.times(NANOS_IN_SECOND / 1_000),
        _ => None,
    }
}

/// Finds the wait in a sentence: "Please try again in 6m0s.", "Please retry after 7 seconds."
pub(crate) fn in_sentence(text: &str) -> Option<Duration> {
    const PHRASES: [&str; 4] = ["try again in ", "retry after ", "retry in ", "try again after "];
    let lower = text.to_ascii_lowercase();
    let after = PHRASES.iter().find_map(|phrase| lower.find(phrase).map(|at| &lower[at + phrase.len()..]))?;
    let mut words = after.split_whitespace();
    let first = words.next()?.trim_end_matches(['.', ',', ';', '!', ')']);
    if first.len() > TEXT_MAX {
        return None;
    }
    match Decimal::split(first)? {
        (number, "") => {
            let unit = words.next()?.trim_end_matches(['.', ',', ';', '!', ')']);
            number.times(unit_nanos(unit.strip_suffix('s').filter(|unit| unit.len() > 2).unwrap_or(unit))?)
        }
        _ => units(first),
    }
}

/// Returns the time from `now` until `time`: zero if it has just passed.
pub(crate) fn from(time: SystemTime, now: SystemTime) -> Option<Duration> {
    match time.duration_since(now) {
        Ok(wait) => bounded(wait),
        Err(past) if past.duration() <= PAST_MAX => Some(Duration::ZERO),
        Err(_) => None,
    }
}

/// Parses a date in the format of HTTP or RFC 3339.
pub(crate) fn date(text: &str) -> Option<SystemTime> {
    let text = text.trim();
    if text.len() > TEXT_MAX {
        return None;
    }
    let http = rfc2822::DateTimeParser::new().relaxed_weekday(true);
    let stamp = text.parse::<Timestamp>().or_else(|_| http.parse_timestamp(text)).ok();
    let stamp = stamp.or_else(|| Some(old_http_date(text)?.to_zoned(TimeZone::UTC).ok()?.timestamp()))?;
    Some(SystemTime::from(stamp))
}

/// Parses the two obsolete formats of dates that HTTP clients must still accept.
fn old_http_date(text: &str) -> Option<DateTime> {
    const FORMS: [&str; 2] = ["%A, %d-%b-%y %H:%M:%S GMT", "%a %b %e %H:%M:%S %Y"];
    FORMS.iter().find_map(|form| BrokenDownTime::parse(form, text).ok()?.to_datetime().ok())
}

fn bounded(wait: Duration) -> Option<Duration> {
    (wait <= WAIT_MAX).then_some(wait)
}

/// Parses numbers with units: `1h2m3.5s`.
fn units(text: &str) -> Option<Duration> {
    let mut rest = text;
    let mut sum = Duration::ZERO;
    while !rest.is_empty() {
        let (number, tail) = Decimal::split(rest)?;
        let end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(end);
        sum = sum.checked_add(number.times(unit_nanos(unit)?)?)?;
        rest = tail;
    }
    bounded(sum)
}

fn unit_nanos(unit: &str) -> Option<u128> {
    Some(match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => NANOS_IN_SECOND / 1_000_000,
        "ms" | "millisecond" => NANOS_IN_SECOND / 1_000,
        "s" | "sec" | "second" => NANOS_IN_SECOND,
        "m" | "min" | "minute" => 60 * NANOS_IN_SECOND,
        "h" | "hour" => 3_600 * NANOS_IN_SECOND,
        "d" | "day" => 86_400 * NANOS_IN_SECOND,
        _ => return None,
    })
}

/// A number with up to nine decimals, in billionths. Further decimals are cut off.
#[derive(Clone, Copy)]
struct Decimal {
    billionths: u128,
}

impl Decimal {
    /// Parses the number at the start of a text, and returns the rest.
    fn split(text: &str) -> Option<(Decimal, &str)> {
        let (whole, rest) = digits(text);
        if whole.is_empty() {
            return None;
        }
        let (decimals, rest) = match rest.strip_prefix('.').map(digits) {
            Some(("", _)) => return None,
            Some(split) => split,
            None => ("", rest),
        };
        let whole: u64 = whole.parse().ok()?;
        let kept = &decimals[..decimals.len().min(9)];
        let billionths = format!("{kept:0<9}").parse::<u64>().ok()?;
        Some((Decimal { billionths: u128::from(whole) * NANOS_IN_SECOND + u128::from(billionths) }, rest))
    }

    /// Returns the product with a unit of `nanos` nanoseconds.
    fn times(self, nanos: u128) -> Option<Duration> {
        let sum = self.billionths.checked_mul(nanos)? / NANOS_IN_SECOND;
        let seconds = u64::try_from(sum / NANOS_IN_SECOND).ok()?;
        let rest = u32::try_from(sum % NANOS_IN_SECOND).ok()?;
        bounded(Duration::new(seconds, rest))
    }

    fn seconds_or_epoch(self, now: SystemTime) -> Option<Duration> {
        let whole = self.billionths / NANOS_IN_SECOND;
        let epoch = u128::from(EPOCH_SECONDS_MIN);
        let nanos = match whole {
            _ if whole < epoch => return self.times(NANOS_IN_SECOND),
            _ if whole < epoch * 1_000 => NANOS_IN_SECOND,
            _ if whole < epoch * 1_000_000 => NANOS_IN_SECOND / 1_000,
            _ => NANOS_IN_SECOND / 1_000_000,
        };
        let since_1970 = self.billionths.checked_mul(nanos)? / NANOS_IN_SECOND;
        let micros = u64::try_from(since_1970 / 1_000).ok()?;
        from(SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(micros))?, now)
    }
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-11-15T12:00:00Z.
    fn noon() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_794_744_000)
    }

    #[test]
    fn a_wait_is_parsed_in_every_format() {
        let table = [
            ("1s", 1_000),
            ("6m0s", 360_000),
            ("2m59.56s", 179_560),
            ("12ms", 12),
            ("1h2m3.5s", 3_723_500),
            ("1d", 86_400_000),
            ("7", 7_000),
            (" 0.25 ", 250),
            ("0", 0),
            ("0s", 0),
            ("38.000000001s", 38_000),
            ("1794744030", 30_000),
            ("1794744030500", 30_500),
            ("1794744030500000", 30_500),
            ("2026-11-15T12:00:30Z", 30_000),
            ("2026-11-15T13:00:30+01:00", 30_000),
            ("Sun, 15 Nov 2026 12:00:30 GMT", 30_000),
            ("Mon, 15 Nov 2026 12:00:30 GMT", 30_000),
            ("Sunday, 15-Nov-26 12:00:30 GMT", 30_000),
            ("Sun Nov 15 12:00:30 2026", 30_000),
            ("Sun, 15 Nov 2026 11:59:00 GMT", 0),
        ];
        for (text, ms) in table {
            let read = parse(text, noon()).map(|wait| wait.as_millis());
            assert_eq!(read, Some(ms), "{text:?}");
        }
    }

    #[test]
    fn invalid_waits_are_ignored() {
        let long = "9".repeat(1_000);
        let table = [
            "",
            " ",
            "-5",
            "-5s",
            "+3",
            "NaN",
            "inf",
            "1e9",
            "5 apples",
            "s",
            "1..5s",
            "1.s",
            ".5",
            "5x",
            "99999999999999999999",
            "32d",
            "2678401",
            "999999999",
            "1970-01-01T00:00:00Z",
            "9999-12-31T00:00:00Z",
            "1500000000",
            "Sun, 99 Nov 2026 12:00:30 GMT",
            "1m1",
            &long,
        ];
        for text in table {
            assert_eq!(parse(text, noon()), None, "{text:?}");
        }
    }

    #[test]
    fn waits_are_found_in_sentences() {
        let table = [
            ("Rate limit reached. Please try again in 6m0s. Visit us.", Some(360_000)),
            ("Please try again in 120ms.", Some(120)),
            ("Please retry after 7 seconds.", Some(7_000)),
            ("Please retry after 1 minute, or so", Some(60_000)),
            ("Please retry in 36.429760048s.", Some(36_429)),
            ("Please try again later.", None),
            ("try again in", None),
            ("try again in 5", None),
            ("try again in 5 apples", None),
        ];
        for (text, ms) in table {
            assert_eq!(in_sentence(text).map(|wait| wait.as_millis()), ms, "{text:?}");
        }
    }

    #[test]
    fn milliseconds_are_parsed() {
        assert_eq!(parse_ms("1500"), Some(Duration::from_millis(1_500)));
        assert_eq!(parse_ms("0.5"), Some(Duration::from_micros(500)));
        assert_eq!(parse_ms("1s"), None);
        assert_eq!(parse_ms("99999999999999"), None);
    }
}
