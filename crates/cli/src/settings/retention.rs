use std::fmt;
use std::time::Duration;

use tollgate::Span;
use tollgate::store::usage::{UsageRetention, Window};

use crate::duration_text;

/// The word for what is never deleted.
const FOREVER: &str = "forever";

/// How long something is kept; `None` for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Retention(pub(crate) Option<Duration>);

impl Retention {
    /// What a text says: `90d`, or `forever`.
    ///
    /// # Errors
    ///
    /// What would be valid.
    pub(crate) fn parse(text: &str) -> Result<Retention, String> {
        if text == FOREVER {
            return Ok(Retention(None));
        }
        match duration_text::parse(text) {
            Ok(length) if length.is_zero() => Err(format!("what is kept is kept for a while, or {FOREVER}")),
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

/// How long usage is kept: by hour, by day and by month.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct UsageKept(pub(crate) UsageRetention);

impl UsageKept {
    /// What a text says: one length of time or `forever` for all windows, or three of them, separated by commas, for hours, days
    /// and months.
    ///
    /// # Errors
    ///
    /// What would be valid.
    pub(crate) fn parse(text: &str) -> Result<UsageKept, String> {
        let kept: Result<Vec<Retention>, String> = text.split(',').map(Retention::parse).collect();
        let kept: Vec<Option<Span>> = kept?.iter().map(|kept| kept.0.map(Span::covering)).collect();
        match kept[..] {
            [all] => Ok(UsageKept(UsageRetention::uniform(all))),
            [hours, days, months] => Ok(UsageKept(UsageRetention::new(hours, days, months))),
            _ => Err(format!(
                "{text:?} says {} lengths of time; valid is one for all, such as 90d, or three for hours, days and \
                 months, such as 90d,400d,{FOREVER}",
                kept.len()
            )),
        }
    }
}

impl fmt::Display for UsageKept {
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
    fn usage_is_kept_for_one_length_of_time_or_for_three() {
        for text in ["90d", "forever", "90d,400d,3660d", "36h,forever,62d"] {
            assert_eq!(UsageKept::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(UsageKept::default().to_string(), "90d,400d,3660d");
        // As long as a record may be written to it is kept, and that is what is shown.
        assert_eq!(UsageKept::parse("1h").unwrap().to_string(), "2h,2d,62d");
        assert!(UsageKept::parse("90d,400d").unwrap_err().contains("says 2 lengths of time"));
        assert!(UsageKept::parse("1d,1d,1d,1d").unwrap_err().contains("90d,400d,forever"));
        for text in ["", "0s", "90d,,forever", "90d, 400d, 3660d", "90d,400d,0d"] {
            assert!(UsageKept::parse(text).is_err(), "{text:?}");
        }
    }
}
