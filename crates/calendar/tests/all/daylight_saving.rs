//! Edges on days with a change of the clock, written out by hand.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail it")]

use jiff::Timestamp;
use tollgate_calendar::{cron, daily, hourly, monthly, weekly};
use tollgate_core::{Calendar, Tick};

fn tick(utc: &str) -> Tick {
    let at: Timestamp = utc.parse().unwrap();
    Tick::from_micros(at.as_microsecond().try_into().unwrap())
}

/// Returns the edges after `after`, as UTC.
fn edges(calendar: &Calendar, after: &str, count: usize) -> Vec<String> {
    let mut at = tick(after);
    let mut next = || {
        at = calendar.next_edge(at);
        Timestamp::from_microsecond(at.as_micros().try_into().unwrap()).unwrap().to_string()
    };
    (0..count).map(|_| next()).collect()
}

#[test]
fn a_day_in_berlin_lasts_23_hours_in_spring_and_25_in_autumn() {
    let calendar = daily("Europe/Berlin").unwrap();
    assert_eq!(
        edges(&calendar, "2026-03-28T12:00:00Z", 3),
        ["2026-03-28T23:00:00Z", "2026-03-29T22:00:00Z", "2026-03-30T22:00:00Z"]
    );
    assert_eq!(
        edges(&calendar, "2026-10-24T12:00:00Z", 3),
        ["2026-10-24T22:00:00Z", "2026-10-25T23:00:00Z", "2026-10-26T23:00:00Z"]
    );
}

#[test]
fn a_skipped_time_has_its_edge_after_the_gap() {
    let calendar = cron("30 2 * * *", "Europe/Berlin").unwrap();
    assert_eq!(edges(&calendar, "2026-03-28T12:00:00Z", 2), ["2026-03-29T01:00:00Z", "2026-03-30T00:30:00Z"]);
}

#[test]
fn a_repeated_time_has_its_edge_at_the_first_occurrence() {
    let calendar = cron("30 2 * * *", "Europe/Berlin").unwrap();
    let expected = ["2026-10-25T00:30:00Z", "2026-10-26T01:30:00Z"];
    assert_eq!(edges(&calendar, "2026-10-24T12:00:00Z", 2), expected);
    // Queried while the clock shows 02:10 for the second time.
    assert_eq!(edges(&calendar, "2026-10-25T01:10:00Z", 1), expected[1..]);
}

#[test]
fn times_that_are_skipped_together_share_one_edge() {
    let calendar = cron("*/15 * * * *", "Europe/Berlin").unwrap();
    assert_eq!(
        edges(&calendar, "2026-03-29T00:44:00Z", 3),
        ["2026-03-29T00:45:00Z", "2026-03-29T01:00:00Z", "2026-03-29T01:15:00Z"]
    );
}

#[test]
fn a_repeated_hour_has_one_edge() {
    let calendar = hourly("Europe/Berlin").unwrap();
    assert_eq!(
        edges(&calendar, "2026-10-24T23:30:00Z", 3),
        ["2026-10-25T00:00:00Z", "2026-10-25T02:00:00Z", "2026-10-25T03:00:00Z"]
    );
}

#[test]
fn a_skipped_midnight_has_its_edge_at_the_start_of_the_day() {
    let cases = [
        ("America/Sao_Paulo", "2018-11-03T12:00:00Z", ["2018-11-04T03:00:00Z", "2018-11-05T02:00:00Z"]),
        ("Africa/Cairo", "2024-04-25T12:00:00Z", ["2024-04-25T22:00:00Z", "2024-04-26T21:00:00Z"]),
        ("America/Havana", "2024-03-09T12:00:00Z", ["2024-03-10T05:00:00Z", "2024-03-11T04:00:00Z"]),
    ];
    for (zone, after, expected) in cases {
        assert_eq!(edges(&daily(zone).unwrap(), after, 2), expected, "{zone}");
    }
}

#[test]
fn a_repeated_midnight_has_one_edge() {
    // At 00:01 the clocks of St. John's were set back to 23:01.
    let calendar = daily("America/St_Johns").unwrap();
    assert_eq!(edges(&calendar, "2006-10-28T12:00:00Z", 2), ["2006-10-29T02:30:00Z", "2006-10-30T03:30:00Z"]);
}

#[test]
fn a_skipped_date_shares_the_edge_of_the_next() {
    // Samoa had no 30 December 2011.
    let calendar = daily("Pacific/Apia").unwrap();
    assert_eq!(
        edges(&calendar, "2011-12-29T00:00:00Z", 3),
        ["2011-12-29T10:00:00Z", "2011-12-30T10:00:00Z", "2011-12-31T10:00:00Z"]
    );
    let skipped = cron("0 12 30 12 *", "Pacific/Apia").unwrap();
    assert_eq!(edges(&skipped, "2011-01-01T00:00:00Z", 2), ["2011-12-30T10:00:00Z", "2012-12-29T22:00:00Z"]);
}

#[test]
fn weeks_begin_on_sunday_and_months_on_the_first() {
    assert_eq!(
        edges(&weekly("Asia/Tokyo").unwrap(), "2026-01-01T00:00:00Z", 2),
        ["2026-01-03T15:00:00Z", "2026-01-10T15:00:00Z"]
    );
    assert_eq!(
        edges(&monthly("Asia/Tokyo").unwrap(), "2026-01-01T00:00:00Z", 2),
        ["2026-01-31T15:00:00Z", "2026-02-28T15:00:00Z"]
    );
}

#[test]
fn the_29th_of_february_is_found_across_a_century_without_a_leap_day() {
    let calendar = cron("0 0 29 2 *", "UTC").unwrap();
    assert_eq!(edges(&calendar, "2096-02-29T00:00:00Z", 1), ["2104-02-29T00:00:00Z"]);
}

#[test]
fn an_edge_is_strictly_later_to_the_microsecond() {
    let calendar = daily("Europe/Berlin").unwrap();
    let edge = tick("2026-03-29T22:00:00Z");
    assert_eq!(calendar.next_edge(Tick::from_micros(edge.as_micros() - 1)), edge);
    assert_eq!(calendar.next_edge(edge), tick("2026-03-30T22:00:00Z"));
    assert_eq!(calendar.next_edge(Tick::from_micros(edge.as_micros() + 1)), tick("2026-03-30T22:00:00Z"));
}

#[test]
fn after_the_last_year_there_is_no_edge() {
    let calendar = daily("Europe/Berlin").unwrap();
    assert_eq!(edges(&calendar, "9999-12-29T12:00:00Z", 1), ["9999-12-29T23:00:00Z"]);
    assert_eq!(calendar.next_edge(tick("9999-12-30T12:00:00Z")), Tick::MAX);
    assert_eq!(calendar.next_edge(Tick::MAX), Tick::MAX);
}
