//! Times as text: a date, a time, or how long ago.

use jiff::Timestamp;
use jiff::civil::{Date, DateTime};
use jiff::tz::TimeZone;
use tollgate::catalog::Window;
use tollgate::store::usage::iso;
use tollgate::{Span, Tick};

use crate::duration_text;

/// The valid form, for error messages.
const VALID: &str = "a date (2026-11-15), a time (2026-11-15T14:00:00Z), or how long ago (24h)";

/// An absolute time, or one relative to the current time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum TimeArg {
    /// An absolute time.
    At(Tick),
    /// This long ago.
    Ago(Span),
}

impl TimeArg {
    /// Parses a time. Without a time zone it is in UTC.
    ///
    /// # Errors
    ///
    /// What would be valid.
    pub(crate) fn parse(text: &str) -> Result<TimeArg, String> {
        if let Ok(ago) = duration_text::parse(text) {
            return Ok(TimeArg::Ago(Span::covering(ago)));
        }
        let in_utc = |time: DateTime| time.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp());
        let time = text.parse::<Timestamp>().ok();
        let time = time.or_else(|| in_utc(text.parse::<DateTime>().ok()?));
        let time = time.or_else(|| in_utc(text.parse::<Date>().ok()?.at(0, 0, 0, 0)));
        let micros = time.and_then(|time| u64::try_from(time.as_microsecond()).ok());
        micros.map(|micros| TimeArg::At(Tick::from_micros(micros))).ok_or_else(|| format!("valid is {VALID}"))
    }

    /// Returns the absolute time, given the current time.
    pub(crate) fn seen_from(self, now: Tick) -> Tick {
        match self {
            TimeArg::At(at) => at,
            TimeArg::Ago(span) => now - span,
        }
    }
}

/// Formats the start of a window without the parts that are always zero: `2026-11-15 14:00`, `2026-11-15`, `2026-11`.
pub(crate) fn window_start(window: Window, start: Tick) -> String {
    let iso = iso(start);
    let length = match window {
        Window::Hour => 16,
        Window::Day => 10,
        Window::Month => 7,
    };
    iso.get(..length).unwrap_or(&iso).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_times_and_ages_are_times() {
        let at = |seconds| Ok(TimeArg::At(Tick::from_secs(seconds)));
        assert_eq!(TimeArg::parse("2026-11-15"), at(1_794_700_800));
        assert_eq!(TimeArg::parse("2026-11-15T01:00:00Z"), at(1_794_704_400));
        assert_eq!(TimeArg::parse("2026-11-15 01:00"), at(1_794_704_400));
        assert_eq!(TimeArg::parse("2026-11-15T01:00:00+01:00"), at(1_794_700_800));
        assert_eq!(TimeArg::parse("24h"), Ok(TimeArg::Ago(Span::from_secs(86_400))));
        assert_eq!(TimeArg::Ago(Span::from_secs(10)).seen_from(Tick::from_secs(15)), Tick::from_secs(5));
    }

    #[test]
    fn a_text_that_is_not_a_time_is_refused() {
        for text in ["", "yesterday", "2026-13-01", "15.11.2026", "1969-12-31"] {
            assert!(TimeArg::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_start_of_a_window_is_as_long_as_it_must_be() {
        let start = |window| window_start(window, Tick::from_secs(1_794_704_400));
        assert_eq!(
            [Window::Hour, Window::Day, Window::Month].map(start),
            ["2026-11-15 01:00", "2026-11-15", "2026-11"]
        );
    }
}
