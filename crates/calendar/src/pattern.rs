//! Patterns: a cron expression as sets of numbers, and the search for the next local time.

use std::fmt;

use jiff::civil::{Date, DateTime};

use crate::CalendarError;
use crate::field::{DAY, Field, FieldError, HOUR, MINUTE, MONTH, Set, WEEKDAY};

/// The local times that a cron expression names: those in `minutes`, `hours` and `months` whose
/// date is in `days` or in `weekdays`.
///
/// The representation is canonical, so that the text of a pattern is canonical: days that none of
/// the months has are removed, and so are months that have none of the days. If `weekdays` is 0,
/// only `days` counts, and the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pattern {
    minutes: u64,
    hours: u32,
    days: u32,
    months: u16,
    weekdays: u8,
}

const FIELDS_VALID: &str = "5: minute, hour, day of month, month, day of week";
const NICKNAMES_VALID: &str = "@hourly, @daily, @weekly, @monthly or @yearly";

/// Days 1 to 31, as bits.
const EVERY_DAY: u32 = !1;

impl Pattern {
    /// Parses a cron expression of five fields, or a nickname.
    pub(crate) fn parse(expression: &str) -> Result<Pattern, CalendarError> {
        let [minute, hour, day, month, weekday] = split(expression)?;
        let set = |field: &Field, text| {
            let in_field = |error: FieldError| error.of(expression, field.name);
            field.parse(text).map_err(in_field)
        };
        let (minutes, hours) = (set(&MINUTE, minute)?, set(&HOUR, hour)?);
        let (days, months, weekdays) = (set(&DAY, day)?, set(&MONTH, month)?, set(&WEEKDAY, weekday)?);
        let (days, weekdays) = either(days, weekdays);
        let pattern = Pattern {
            minutes: minutes.bits,
            hours: hours.bits as u32,
            days,
            months: months.bits as u16,
            weekdays,
        };
        pattern.canonical().ok_or_else(|| CalendarError::NoSuchDate {
            expression: expression.to_owned(),
            days: day.to_owned(),
            months: month.to_owned(),
            longest: pattern.longest_month(),
        })
    }

    /// Returns the first local time of the pattern in a later minute than `at`.
    pub(crate) fn next_after(&self, at: DateTime) -> Option<DateTime> {
        let today = at.date();
        let time =
            has(self.days_of(today), today.day()).then(|| self.time_after(at.hour(), at.minute())).flatten();
        if let Some((hour, minute)) = time {
            return Some(today.at(hour, minute, 0, 0));
        }
        let (hour, minute) = (lowest(self.hours.into())?, lowest(self.minutes)?);
        Some(self.date_after(today)?.at(hour, minute, 0, 0))
    }

    fn time_after(&self, hour: i8, minute: i8) -> Option<(i8, i8)> {
        if has(self.hours.into(), hour)
            && let Some(minute) = lowest_above(self.minutes, minute)
        {
            return Some((hour, minute));
        }
        Some((lowest_above(self.hours.into(), hour)?, lowest(self.minutes)?))
    }

    /// Returns the first matching date after `date`, going from month to month. It passes at most
    /// eight years without a match: 29 February from 2096 to 2104.
    fn date_after(&self, date: Date) -> Option<Date> {
        let (mut month, mut day) = (date.first_of_month(), date.day());
        loop {
            if let Some(day) = lowest_above(self.days_of(month), day) {
                return Date::new(month.year(), month.month(), day).ok();
            }
            (month, day) = (self.month_after(month)?, 0);
        }
    }

    fn month_after(&self, month: Date) -> Option<Date> {
        match lowest_above(self.months.into(), month.month()) {
            Some(later) => Date::new(month.year(), later, 1).ok(),
            None => Date::new(month.year() + 1, lowest(self.months.into())?, 1).ok(),
        }
    }

    /// Returns the matching days in the month of `date`, as bits from 1 on.
    fn days_of(&self, date: Date) -> u64 {
        if !has(self.months.into(), date.month()) {
            return 0;
        }
        /// The same week six times, 7 bits each, which covers every month.
        const WEEKS: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28 | 1 << 35;
        let first = date.first_of_month().weekday().to_sunday_zero_offset();
        let by_weekday = (u64::from(self.weekdays) * WEEKS) >> first << 1;
        (by_weekday | u64::from(self.days)) & days_to(date.days_in_month().unsigned_abs().into())
    }

    /// Returns the canonical form; `None` if the pattern has no local time at all.
    fn canonical(mut self) -> Option<Pattern> {
        let every = days_to(self.longest_month()) as u32;
        self.days &= every;
        if self.days == every || self.weekdays == WEEKDAY.full() as u8 {
            (self.days, self.weekdays) = (EVERY_DAY, 0);
        }
        if self.weekdays == 0 {
            let possible = |month| u64::from(self.days) & days_to(month_length(month)) != 0;
            self.months &= (1..=12).filter(|month| possible(*month)).fold(0, |bits, month| bits | 1 << month);
        }
        (self.months != 0).then_some(self)
    }

    fn longest_month(&self) -> u32 {
        (1..=12).filter(|month| has(self.months.into(), *month)).map(month_length).max().unwrap_or(0)
    }
}

/// Writes the canonical text of the pattern.
impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days = if self.days == 0 { EVERY_DAY } else { self.days };
        let weekdays = if self.weekdays == 0 { WEEKDAY.full() } else { self.weekdays.into() };
        let (minutes, hours) = (MINUTE.show(self.minutes), HOUR.show(self.hours.into()));
        let (days, weekdays) = (DAY.show(days.into()), WEEKDAY.show(weekdays));
        write!(f, "{minutes} {hours} {days} {} {weekdays}", MONTH.show(self.months.into()))
    }
}

/// Splits an expression into its five fields.
fn split(expression: &str) -> Result<[&str; 5], CalendarError> {
    let plain = match expression.trim_ascii() {
        nickname if nickname.starts_with('@') => expand(nickname).ok_or_else(|| {
            let error = FieldError { value: format!("{nickname:?}"), valid: NICKNAMES_VALID.into() };
            error.of(expression, "nickname")
        })?,
        plain => plain,
    };
    let fields: Vec<&str> = plain.split_ascii_whitespace().collect();
    fields.as_slice().try_into().map_err(|_| {
        let error = FieldError { value: fields.len().to_string(), valid: FIELDS_VALID.into() };
        error.of(expression, "number of fields")
    })
}

fn expand(nickname: &str) -> Option<&'static str> {
    Some(match nickname {
        "@hourly" => "0 * * * *",
        "@daily" => "0 0 * * *",
        "@weekly" => "0 0 * * 0",
        "@monthly" => "0 0 1 * *",
        "@yearly" => "0 0 1 1 *",
        _ => return None,
    })
}

/// Applies cron's rule for the two fields for days: a `*` does not count, and if both count, a date
/// that matches either of them matches.
fn either(days: Set, weekdays: Set) -> (u32, u8) {
    match (days.any, weekdays.any) {
        (true, true) => (EVERY_DAY, 0),
        (true, false) => (0, weekdays.bits as u8),
        (false, true) => (days.bits as u32, 0),
        (false, false) => (days.bits as u32, weekdays.bits as u8),
    }
}

/// Returns the length of the month in a leap year.
fn month_length(month: i8) -> u32 {
    match month {
        2 => 29,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

fn days_to(last: u32) -> u64 {
    (2 << last) - 2
}

fn has(bits: u64, number: i8) -> bool {
    bits >> number & 1 == 1
}

fn lowest(bits: u64) -> Option<i8> {
    (bits != 0).then(|| bits.trailing_zeros() as i8)
}

fn lowest_above(bits: u64, number: i8) -> Option<i8> {
    lowest(bits & (!1 << number))
}
