use std::fmt;
use std::time::Duration;

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
}
