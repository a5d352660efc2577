use std::fmt;
use std::time::Duration;

use tollgate::Span;
use tollgate::store::usage::{UsageRetention, Window};

use crate::duration_text;

/// The retention of data that is never deleted.
const FOREVER: &str = "forever";

/// A retention time; `None` is forever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retention(pub(crate) Option<Duration>);

impl Retention {
    /// Parses a retention time: `90d`, or `forever`.
    ///
    /// # Errors
    ///
    /// What would be valid.
    pub(crate) fn parse(text: &str) -> Result<Retention, String> {
        if text == FOREVER {
            return Ok(Retention(None));
        }
        match duration_text::parse(text) {
            Ok(length) if length.is_zero() => {
                Err(format!("a retention time must be longer than 0; valid is a duration, or {FOREVER}"))
            }
            Ok(length) => Ok(Retention(Some(length))),
            Err(why) => Err(format!("{why}, or {FOREVER}")),
        }
    }
}

impl fmt::Display for Retention {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(length) => f.write_str(&duration_text::print(length)),
            None => f.write_str(FOREVER),
        }
    }
}

/// The retention times of usage by hour, by day and by month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageRetentionArg(pub(crate) UsageRetention);

impl UsageRetentionArg {
    /// Parses one duration or `forever` for all windows, or three of them, separated by commas, for hours, days and months.
    ///
    /// # Errors
    ///
    /// What would be valid.
    pub(crate) fn parse(text: &str) -> Result<UsageRetentionArg, String> {
        let times: Result<Vec<Retention>, String> = text.split(',').map(Retention::parse).collect();
        let times: Vec<Option<Span>> = times?.iter().map(|time| time.0.map(Span::covering)).collect();
        match times[..] {
            [all] => Ok(UsageRetentionArg(UsageRetention::uniform(all))),
            [hours, days, months] => Ok(UsageRetentionArg(UsageRetention::new(hours, days, months))),
            _ => Err(format!(
                "{text:?} has {} durations; valid is one for all, such as 90d, or three for hours, days and \
                 months, such as 90d,400d,{FOREVER}",
                times.len()
            )),
        }
    }
}

impl fmt::Display for UsageRetentionArg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [hours, days, months] =
            Window::ALL.map(|window| Retention(self.0.of(window).map(Span::to_duration)));
        if hours == days && days == months {
            return hours.fmt(f);
        }
        write!(f, "{hours},{days},{months}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_can_be_read() {
        for text in ["90d", "forever", "12h"] {
            assert_eq!(Retention::parse(text).unwrap().to_string(), text);
        }
        assert!(Retention::parse("0s").is_err());
        assert!(Retention::parse("never").unwrap_err().contains("forever"));
    }

    #[test]
    fn usage_has_one_retention_time_or_three() {
        for text in ["90d", "forever", "90d,400d,3660d", "36h,forever,62d"] {
            assert_eq!(UsageRetentionArg::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(UsageRetentionArg::default().to_string(), "90d,400d,3660d");
        // A record is kept at least as long as it can be written to, and that is what is shown.
        assert_eq!(UsageRetentionArg::parse("1h").unwrap().to_string(), "2h,2d,62d");
        assert!(UsageRetentionArg::parse("90d,400d").unwrap_err().contains("has 2 durations"));
        assert!(UsageRetentionArg::parse("1d,1d,1d,1d").unwrap_err().contains("90d,400d,forever"));
        for text in ["", "0s", "90d,,forever", "90d, 400d, 3660d", "90d,400d,0d"] {
            assert!(UsageRetentionArg::parse(text).is_err(), "{text:?}");
        }
    }
}
