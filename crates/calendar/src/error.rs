use std::fmt;

/// Why a calendar could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CalendarError {
    /// A part of the expression is not valid.
    #[error("cron {expression:?}: {field} is {value}, but must be {valid}")]
    Field {
        /// The expression as it was given.
        expression: String,
        /// The field at fault, such as `minute`.
        field: &'static str,
        /// The part of the field at fault, as it was given.
        value: String,
        /// What would be valid in its place.
        valid: String,
    },
    /// Every field is valid, but there is no such date, as on 31 February.
    #[error("cron {expression:?}: day of month is {days}, but must be at most {longest} in month {months}")]
    NoSuchDate {
        /// The expression as it was given.
        expression: String,
        /// The field for the day of the month.
        days: String,
        /// The field for the month.
        months: String,
        /// The last day that any of the months has.
        longest: u32,
    },
    /// The time zone database has no such zone.
    #[error("time zone is {zone:?}, but must be an IANA name{hint}")]
    UnknownZone {
        /// The zone as it was given.
        zone: String,
        /// A zone with a similar name.
        hint: ZoneHint,
    },
}

/// The zone that was perhaps meant. Written as the end of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneHint(pub(crate) Option<String>);

impl ZoneHint {
    /// The name of the zone that was perhaps meant.
    pub fn name(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

impl fmt::Display for ZoneHint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(name) => write!(f, "; did you mean {name}?"),
            None => f.write_str(", such as Europe/Berlin"),
        }
    }
}
