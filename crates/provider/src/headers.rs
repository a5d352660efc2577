//! Headers of a reply: case-insensitive lookup, with a bound on their number.

use std::time::{Duration, SystemTime};

use crate::wait;

/// The maximum number of headers that are parsed. Servers and proxies send fewer.
const HEADERS_MAX: usize = 256;

/// The maximum difference between the provider's clock and ours for which dates use ours.
const CLOCKS_APART_MAX: Duration = Duration::from_secs(5);

/// The headers of a reply.
#[derive(Clone, Copy)]
pub(crate) struct Headers<'a> {
    all: &'a [(&'a str, &'a str)],
}

impl<'a> Headers<'a> {
    pub(crate) fn new(all: &'a [(&'a str, &'a str)]) -> Self {
        Self { all: &all[..all.len().min(HEADERS_MAX)] }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.all.iter().map(|&(name, value)| (name, value.trim()))
    }

    pub(crate) fn get(self, wanted: &str) -> Option<&'a str> {
        self.all_of(wanted).next()
    }

    /// Returns all values of a name; a list may be sent in several headers.
    pub(crate) fn all_of(self, wanted: &str) -> impl Iterator<Item = &'a str> {
        self.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted)).map(|(_, value)| value)
    }

    /// Returns when the reply was sent, by the clock that its other dates come from. Our clock is
    /// finer than the header, so the header only counts if the two clearly differ.
    pub(crate) fn sent_at(self, now: SystemTime) -> SystemTime {
        let Some(date) = self.get("date").and_then(wait::date) else { return now };
        let apart = date.duration_since(now).unwrap_or_else(|before| before.duration());
        if apart > CLOCKS_APART_MAX { date } else { now }
    }

    /// Returns how long the headers ask to wait.
    pub(crate) fn advice(self, sent_at: SystemTime) -> Option<Duration> {
        const IN_MS: [&str; 2] = ["retry-after-ms", "x-ms-retry-after-ms"];
        let in_ms = IN_MS.iter().find_map(|name| wait::parse_ms(self.get(name)?));
        in_ms.or_else(|| wait::parse(self.get("retry-after")?, sent_at))
    }

    /// Returns whether the provider wants a retry, if it sent that header.
    pub(crate) fn should_retry(self) -> Option<bool> {
        let value = self.get("x-should-retry")?;
        let known = [("true", true), ("false", false)];
        known.iter().find(|(text, _)| value.eq_ignore_ascii_case(text)).map(|(_, should)| *should)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOON: Duration = Duration::from_secs(1_794_744_000);

    fn advice(headers: &[(&str, &str)]) -> Option<u128> {
        let now = SystemTime::UNIX_EPOCH + NOON;
        let headers = Headers::new(headers);
        headers.advice(headers.sent_at(now)).map(|wait| wait.as_millis())
    }

    #[test]
    fn milliseconds_take_precedence_unless_they_are_invalid() {
        assert_eq!(advice(&[("Retry-After", "2"), ("Retry-After-Ms", "1500")]), Some(1_500));
        assert_eq!(advice(&[("retry-after", "2"), ("retry-after-ms", "-1")]), Some(2_000));
        assert_eq!(advice(&[("retry-after", "-2")]), None);
    }

    #[test]
    fn a_date_is_relative_to_the_provider_s_clock_if_ours_differs() {
        let until = ("retry-after", "Sun, 15 Nov 2026 12:00:30 GMT");
        assert_eq!(advice(&[until]), Some(30_000));
        assert_eq!(advice(&[until, ("date", "Sun, 15 Nov 2026 12:00:02 GMT")]), Some(30_000));
        assert_eq!(advice(&[until, ("date", "Sun, 15 Nov 2026 11:50:00 GMT")]), Some(630_000));
        assert_eq!(advice(&[until, ("date", "yesterday")]), Some(30_000));
    }

    #[test]
    fn a_value_other_than_true_and_false_is_ignored() {
        let should_retry = |value| Headers::new(&[("x-should-retry", value)]).should_retry();
        assert_eq!(
            (should_retry("true"), should_retry("False"), should_retry("maybe")),
            (Some(true), Some(false), None)
        );
    }
}
