//! Every edge of a year, compared with a minute-by-minute walk that shares only the rule with the
//! crate.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail it")]

use jiff::civil::{DateTime, date};
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, Timestamp};
use tollgate_calendar::{cron, daily};
use tollgate_core::{Calendar, Tick};

type Matches = fn(DateTime) -> bool;

const MINUTE: SignedDuration = SignedDuration::from_mins(1);

/// Expressions, each with an independent implementation of its meaning.
const EXPRESSIONS: [(&str, Matches); 9] = [
    ("*/5 * * * *", |at| at.minute() % 5 == 0),
    ("0 * * * *", |at| at.minute() == 0),
    ("0 0 * * *", |at| (at.hour(), at.minute()) == (0, 0)),
    ("30 2 * * *", |at| (at.hour(), at.minute()) == (2, 30)),
    ("*/20 0-3,23 * * *", |at| at.minute() % 20 == 0 && (at.hour() <= 3 || at.hour() == 23)),
    ("59 23 * * 6,7", |at| (at.hour(), at.minute()) == (23, 59) && weekday(at) % 6 == 0),
    ("15 1 13 * FRI", |at| (at.hour(), at.minute()) == (1, 15) && (at.day() == 13 || weekday(at) == 5)),
    ("0 0 31 * *", |at| (at.hour(), at.minute(), at.day()) == (0, 0, 31)),
    ("0 12 * MAR-OCT/2 MON-FRI", |at| {
        (at.hour(), at.minute()) == (12, 0)
            && [3, 5, 7, 9].contains(&at.month())
            && (1..=5).contains(&weekday(at))
    }),
];

/// Zones, each with a year in which its clock changed in an unusual way.
const YEARS: [(&str, i16); 10] = [
    ("Europe/Berlin", 2026),
    ("America/New_York", 2026),
    ("America/Sao_Paulo", 2018),
    ("Africa/Cairo", 2024),
    ("America/Havana", 2024),
    ("America/St_Johns", 2006),
    ("Australia/Lord_Howe", 2026),
    ("Antarctica/Troll", 2026),
    ("Asia/Kathmandu", 2026),
    ("Pacific/Apia", 2011),
];

fn weekday(at: DateTime) -> i8 {
    at.weekday().to_sunday_zero_offset()
}

fn zone(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

fn tick(at: Timestamp) -> Tick {
    Tick::from_micros(at.as_microsecond().try_into().unwrap())
}

fn instant(at: Tick) -> Timestamp {
    Timestamp::from_microsecond(at.as_micros().try_into().unwrap()).unwrap()
}

/// Returns the first minute of the year in UTC, and that of the next year.
fn year_of(year: i16) -> (Timestamp, Timestamp) {
    let utc = |year| date(year, 1, 1).to_zoned(TimeZone::UTC).unwrap().timestamp();
    (utc(year), utc(year + 1))
}

/// Walks the local clock. Whenever it shows more than ever before, all minutes up to there are
/// reached.
fn walked(zone: &TimeZone, year: i16) -> Vec<Vec<Timestamp>> {
    let (mut at, end) = year_of(year);
    let mut edges = vec![Vec::new(); EXPRESSIONS.len()];
    let mut highest = zone.to_datetime(at);
    while at < end - MINUTE {
        at += MINUTE;
        let shown = zone.to_datetime(at);
        while highest < shown {
            highest += MINUTE;
            for (edges, (_, matches)) in edges.iter_mut().zip(EXPRESSIONS) {
                if matches(highest) && edges.last() != Some(&at) {
                    edges.push(at);
                }
            }
        }
    }
    edges
}

/// Returns the first difference between the edges of the year and the expected ones.
fn difference(calendar: &Calendar, year: i16, expected: &[Timestamp]) -> Option<String> {
    let (start, end) = year_of(year);
    let mut at = tick(start);
    for expected in expected {
        at = calendar.next_edge(at);
        if instant(at) != *expected {
            return Some(format!("{}: {} instead of {expected}", calendar.text(), instant(at)));
        }
    }
    let surplus = instant(calendar.next_edge(at));
    (surplus < end).then(|| format!("{}: {surplus} is too many", calendar.text()))
}

#[test]
fn every_edge_of_a_year_agrees_with_the_walk() {
    let check = |(name, year)| {
        for ((expression, _), expected) in EXPRESSIONS.iter().zip(walked(&zone(name), year)) {
            assert!(!expected.is_empty());
            assert_eq!(difference(&cron(expression, name).unwrap(), year, &expected), None, "{year}");
        }
    };
    std::thread::scope(|scope| {
        for year in YEARS {
            scope.spawn(move || check(year));
        }
    });
}

#[test]
fn the_walk_finds_a_calendar_that_is_wrong_only_around_a_change_of_the_clock() {
    let expected = walked(&zone("Europe/Berlin"), 2026);
    for (index, wrong) in [(2, "0 0 * * * Africa/Lagos"), (3, "30 2 * * * Africa/Lagos")] {
        let (expression, zone) = wrong.rsplit_once(' ').unwrap();
        // Lagos has the winter time of Berlin all year.
        let found = difference(&cron(expression, zone).unwrap(), 2026, &expected[index]);
        assert!(found.unwrap().contains("2026-03-"));
    }
    let missing = &expected[2][..expected[2].len() - 1];
    assert!(difference(&daily("Europe/Berlin").unwrap(), 2026, missing).unwrap().ends_with("too many"));
}

/// Zones that crossed the date line and so skipped a date, each once.
const DATES_SKIPPED: [&str; 7] = [
    "Kwajalein",
    "Pacific/Kwajalein",
    "Pacific/Apia",
    "Pacific/Fakaofo",
    "Pacific/Enderbury",
    "Pacific/Kanton",
    "Pacific/Kiritimati",
];

#[test]
fn every_zone_has_one_edge_for_each_date_around_every_change_of_its_clock() {
    let (start, _) = year_of(1970);
    let (end, _) = year_of(2040);
    let around = SignedDuration::from_hours(60);
    for name in TimeZoneDatabase::bundled().available() {
        let (zone, calendar) = (zone(name.as_str()), daily(name.as_str()).unwrap());
        let changes = zone.following(start + around).map(|change| change.timestamp());
        for change in changes.take_while(|change| *change < end) {
            let mut edge = calendar.next_edge(tick(change - around));
            while instant(edge) < change + around {
                let next = calendar.next_edge(edge);
                let (today, tomorrow) = (zone.to_datetime(instant(edge)), zone.to_datetime(instant(next)));
                let days = (tomorrow.date() - today.date()).get_days();
                let skips = DATES_SKIPPED.contains(&name.as_str()) && days == 2;
                assert!(days == 1 || skips, "{name}: {today} and {tomorrow}");
                let eve = zone.to_datetime(instant(next) - SignedDuration::from_micros(1));
                assert!(
                    eve.date() < tomorrow.date(),
                    "{name}: {tomorrow} is not the first instant of its date"
                );
                edge = next;
            }
        }
    }
}
