use std::fmt;

/// A calendar that could not be created.
///
/// ```
/// use tollgate_calendar::{CalendarError, cron};
///
/// let error = cron("0 0 30 2 *", "UTC").unwrap_err();
/// assert!(matches!(error, CalendarError::NoSuchDate { longest: 29, .. }));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CalendarError {
    /// A part of the expression is not valid.
    #[error("cron {expression:?}: {field} is {value}, but must be {valid}")]
    Field {
        /// The expression as it was given.
        expression: String,
        /// The invalid field, such as `minute`.
        field: &'static str,
        /// The invalid part of the field, as it was given.
        value: String,
        /// The valid values.
        valid: String,
    },
    /// Every field is valid, but no year has such a date, as for 31 February.
    #[error("cron {expression:?}: day of month is {days}, but must be at most {longest} in month {months}")]
    NoSuchDate {
        /// The expression as it was given.
        expression: String,
        /// The field for the day of the month.
        days: String,
        /// The field for the month.
        months: String,
        /// The last day of the longest of these months.
        longest: u32,
    },
    /// The time zone database has no such zone.
    #[error("time zone is {zone:?}, but must be an IANA name{hint}")]
    UnknownZone {
        /// The zone as it was given.
        zone: String,
        /// The zone with the most similar name, if there is one.
        hint: ZoneHint,
    },
}

/// The zone that the caller may have meant. Its text ends the sentence of the error.
///
/// ```
/// use tollgate_calendar::{CalendarError, daily};
///
/// let error = daily("Europe/Berln").unwrap_err();
/// let CalendarError::UnknownZone { hint, .. } = error else { panic!("{error}") };
/// assert_eq!(hint.name(), Some("Europe/Berlin"));
/// assert_eq!(hint.to_string(), "; did you mean Europe/Berlin?");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneHint(pub(crate) Option<String>);

impl ZoneHint {
    /// Returns the name of the zone, if a similar one exists.
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
