use tollgate_core::Tick;

use super::HOUR;

/// A window that usage is summed over.
///
/// # Examples
///
/// ```
/// use tollgate_core::Tick;
/// use tollgate_store::usage::{Window, iso};
///
/// let at = Tick::from_secs(1_763_216_100);
/// assert_eq!(iso(at), "2025-11-15T14:15:00Z");
/// assert_eq!(iso(Window::Hour.start(at)), "2025-11-15T14:00:00Z");
/// assert_eq!(iso(Window::Month.start(at)), "2025-11-01T00:00:00Z");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Window {
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A month.
    Month,
}

impl Window {
    /// All of them, the shortest first.
    pub const ALL: [Window; 3] = [Window::Hour, Window::Day, Window::Month];

    /// Returns its name in records.
    pub fn name(self) -> &'static str {
        match self {
            Window::Hour => "hourly",
            Window::Day => "daily",
            Window::Month => "monthly",
        }
    }

    /// Returns when the window of `at` began.
    pub fn start(self, at: Tick) -> Tick {
        let hours = at.as_micros() / HOUR;
        let days = hours / 24;
        let hours = match self {
            Window::Hour => hours,
            Window::Day => days * 24,
            Window::Month => (days - u64::from(date_of(days).2 - 1)) * 24,
        };
        Tick::from_micros(hours * HOUR)
    }
}

/// Returns a time as text, such as `2026-11-15T14:00:00Z`, in whole seconds. Years past 9999 do not sort after earlier ones.
pub fn iso(at: Tick) -> String {
    let seconds = at.as_micros() / 1_000_000;
    let (year, month, day) = date_of(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3_600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The date of a day since the epoch: year, month and day of the month.
///
/// Years are counted from March, so that the day that some years have more is the last one; eras of 400 years repeat.
fn date_of(days: u64) -> (u64, u32, u32) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (era * 400 + year_of_era + u64::from(month <= 2), month as u32, day as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (seconds, text) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_767_225_599, "2025-12-31T23:59:59Z"),
            (1_772_323_200, "2026-03-01T00:00:00Z"),
            (4_107_542_400, "2100-03-01T00:00:00Z"),
        ] {
            assert_eq!(iso(Tick::from_secs(seconds)), text);
        }
    }

    #[test]
    fn every_day_of_800_years_follows_the_one_before() {
        let is_leap =
            |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let (mut year, mut month, mut day) = (1970, 1, 1);
        for days in 0..800 * 365 {
            assert_eq!(date_of(days), (year, month, day));
            let length = match month {
                2 if is_leap(year) => 29,
                2 => 28,
                4 | 6 | 9 | 11 => 30,
                _ => 31,
            };
            (year, month, day) = match (month, day) {
                (12, 31) => (year + 1, 1, 1),
                (_, last) if last == length => (year, month + 1, 1),
                _ => (year, month, day + 1),
            };
        }
    }

    #[test]
    fn windows_begin_with_their_hour_day_and_month() {
        let at = Tick::from_secs(1_772_323_200 - 1);
        let starts = [Window::Hour, Window::Day, Window::Month].map(|window| iso(window.start(at)));
        assert_eq!(starts, ["2026-02-28T23:00:00Z", "2026-02-28T00:00:00Z", "2026-02-01T00:00:00Z"]);
    }
}
