//! Usage: what was used of each limit, by hour, day and month.
//!
//! A take counts in the hour in which it is taken, and what a settlement gives back or adds in the hour in which it is
//! settled: each event once, at its own time. Resources are not used up, so they are not counted. Hours, days and
//! months are those of UTC.
//!
//! A store keeps the sums of the hour beside the bucket, and writes them down when the hour is over or somebody asks.

use tollgate_core::{Costs, Limits, Span, Tick, Usage};

use crate::records::{Change, Index, ItemKey, Value, Write};

const HOUR: u64 = 3_600_000_000;

/// How long a record of usage is kept after its window has begun.
pub const USAGE_KEPT: [(Window, Span); 3] = [
    (Window::Hour, Span::from_secs(90 * 86_400)),
    (Window::Day, Span::from_secs(400 * 86_400)),
    (Window::Month, Span::from_secs(3_660 * 86_400)),
];

/// What usage is added up over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Window {
    /// An hour.
    Hour,
    /// A day.
    Day,
    /// A month.
    Month,
}

/// What was used of each limit in one hour.
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    hour: u32,
    events: u32,
    limits: Limits,
    amounts: Box<[i64]>,
}

impl Window {
    /// The name it has in records.
    pub fn name(self) -> &'static str {
        match self {
            Window::Hour => "hourly",
            Window::Day => "daily",
            Window::Month => "monthly",
        }
    }

    /// When the window began that `at` falls into.
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

impl Sums {
    /// Nothing used of `limits` yet, in the hour of `at`.
    pub fn new(limits: &Limits, at: Tick) -> Sums {
        let hour = (at.as_micros() / HOUR) as u32;
        Sums { hour, events: 0, limits: limits.clone(), amounts: vec![0; limits.len()].into() }
    }

    /// What was counted before, to go on with.
    pub fn restored(limits: Limits, hour: u32, events: u32, amounts: Box<[i64]>) -> Option<Sums> {
        (limits.len() == amounts.len()).then_some(Sums { hour, events, limits, amounts })
    }

    /// The hour, counted since the epoch.
    pub fn hour(&self) -> u32 {
        self.hour
    }

    /// How many takes there were.
    pub fn events(&self) -> u32 {
        self.events
    }

    /// The limits that the amounts belong to.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// What was used of each limit. Below zero if more was given back than taken in this hour.
    pub fn amounts(&self) -> &[i64] {
        &self.amounts
    }

    /// Whether nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.events == 0 && self.amounts.iter().all(|amount| *amount == 0)
    }

    /// Whether what happens at `at` under `limits` can be added to these as they are.
    #[inline]
    pub fn covers(&self, limits: &Limits, at: Tick) -> bool {
        self.limits.same(limits) && self.is_open(at)
    }

    /// Goes on under other limits, if they are of the same names in the same places and it is the same hour: what is
    /// counted is known by name. `false`, with nothing changed, if not.
    pub fn adopt(&mut self, limits: &Limits, at: Tick) -> bool {
        let fits = self.is_open(at) && limits.has_places_of(&self.limits);
        if fits {
            self.limits = limits.clone();
        }
        fits
    }

    /// Whether there is room for another event, at `at`.
    #[inline]
    fn is_open(&self, at: Tick) -> bool {
        self.is_of_hour(at) && self.events < u32::MAX
    }

    /// Whether `at` is in their hour.
    #[inline]
    pub fn is_of_hour(&self, at: Tick) -> bool {
        at.as_micros() / HOUR == u64::from(self.hour)
    }

    /// Makes them nothing, in the same hour of the same limits.
    pub fn clear(&mut self) {
        self.events = 0;
        self.amounts.fill(0);
    }

    /// Adds what was taken.
    #[inline]
    pub fn add_take(&mut self, costs: &Costs) {
        self.events += 1;
        for (index, amount) in costs.amounts().iter().enumerate() {
            self.add(index, i64::try_from(*amount).unwrap_or(i64::MAX));
        }
    }

    /// Adds what a settlement changes.
    #[inline]
    pub fn add_settlement(&mut self, usage: &Usage<'_>) {
        for (index, (used, reserved)) in usage.used.iter().zip(usage.reserved.amounts()).enumerate() {
            let difference = i128::from(*used) - i128::from(*reserved);
            self.add(index, i64::try_from(difference).unwrap_or(i64::MAX));
        }
    }

    #[inline]
    fn add(&mut self, index: usize, amount: i64) {
        if !self.limits[index].is_resource() {
            self.amounts[index] = self.amounts[index].saturating_add(amount);
        }
    }

    /// The writes that add these to the records of the hour, the day and the month.
    pub fn writes(&self, namespace: &str, entity: &str, resource: &str) -> Vec<Write> {
        let at = Tick::from_micros(u64::from(self.hour) * HOUR);
        let write = |(window, kept): (Window, Span)| {
            let start = window.start(at);
            let iso = iso(start);
            let text = |name: &str, text: &str| Change::Set(name.into(), Value::Text(text.into()));
            let mut changes = vec![
                text("entity_id", entity),
                text("resource", resource),
                text("window", window.name()),
                text("window_start", &iso),
                Change::Add("total_events".into(), self.events.into()),
                Change::Place(
                    Index::Resource,
                    ItemKey::new(
                        format!("{namespace}/RESOURCE#{resource}"),
                        usage_sort(window, &iso, entity),
                    ),
                ),
                Change::Expire(Some(start + kept)),
            ];
            let counted = self.limits.iter().zip(&self.amounts).filter(|(limit, _)| !limit.is_resource());
            changes.extend(counted.map(|(limit, sum)| Change::Add(used_field(limit.name()), *sum)));
            Write::Change(usage_key(namespace, entity, resource, window, &iso), changes, Vec::new())
        };
        USAGE_KEPT.map(write).into()
    }
}

/// Fields of a record of usage that are no limits.
const FIELDS: [&str; 6] = ["entity_id", "resource", "window", "window_start", "total_events", "ttl"];

/// The name of the field that says how much was used of a limit: that of the limit, unless it would be mistaken for
/// another field.
pub fn used_field(limit: &str) -> String {
    if FIELDS.contains(&limit) || limit.starts_with("u_") { format!("u_{limit}") } else { limit.into() }
}

/// The limit whose usage a field says, if it says one.
pub fn limit_of_field(field: &str) -> Option<&str> {
    if FIELDS.contains(&field) { None } else { Some(field.strip_prefix("u_").unwrap_or(field)) }
}

/// The key of a record of usage.
pub fn usage_key(namespace: &str, entity: &str, resource: &str, window: Window, iso: &str) -> ItemKey {
    let sort = format!("#USAGE#{resource}#{}#{iso}", window.name());
    ItemKey::new(format!("{namespace}/ENTITY#{entity}"), sort)
}

/// Where a record of usage stands in the index of its resource.
fn usage_sort(window: Window, iso: &str, entity: &str) -> String {
    format!("USAGE#{}#{iso}#{entity}", window.name())
}

/// `2026-11-15T14:00:00Z`. Whole seconds; years past 9999 sort behind nothing, and nobody will count them.
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
    fn every_limit_has_a_field_of_its_own() {
        for limit in ["tpm", "window", "u_window", "u_", "ttl", "u_u_x"] {
            assert_eq!(limit_of_field(&used_field(limit)), Some(limit));
        }
        assert_eq!(limit_of_field("window"), None);
    }

    #[test]
    fn windows_begin_with_their_hour_day_and_month() {
        let at = Tick::from_secs(1_772_323_200 - 1);
        let starts = [Window::Hour, Window::Day, Window::Month].map(|window| iso(window.start(at)));
        assert_eq!(starts, ["2026-02-28T23:00:00Z", "2026-02-28T00:00:00Z", "2026-02-01T00:00:00Z"]);
    }
}
