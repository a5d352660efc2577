//! Quotas of the core that reset by a calendar.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail it")]

use std::error::Error;

use jiff::Timestamp;
use jiff::civil::date;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use tollgate_calendar::{cron, daily};
use tollgate_core::{Bucket, Limit, Limits, Ready, Take, Tick, Usage, demand};

type Outcome = Result<(), Box<dyn Error>>;

fn tick(at: Timestamp) -> Tick {
    Tick::from_micros(at.as_microsecond().try_into().unwrap())
}

fn utc(text: &str) -> Tick {
    tick(text.parse().unwrap())
}

fn just_before(at: Tick) -> Tick {
    Tick::from_micros(at.as_micros() - 1)
}

fn berlin() -> TimeZone {
    TimeZoneDatabase::bundled().get("Europe/Berlin").unwrap()
}

fn left(bucket: &Bucket, limits: &Limits, now: Tick) -> i64 {
    bucket.peek(limits, now)[0].available()
}

fn spend_limits() -> Result<Limits, Box<dyn Error>> {
    Ok(Limits::new([Limit::quota("spend", 100, daily("Europe/Berlin")?)])?)
}

#[test]
fn a_daily_quota_is_full_again_at_each_local_midnight_of_a_year() -> Outcome {
    let limits = spend_limits()?;
    let all = demand! { spend: 100 };
    let costs = limits.costs(&all)?;
    let mut lengths = Vec::new();
    let mut day = date(2026, 1, 1);
    let mut midnight = tick(day.to_zoned(berlin())?.timestamp());
    let mut bucket = Bucket::fresh(&limits, midnight);
    while day.year() == 2026 {
        day = day.tomorrow()?;
        let next = tick(day.to_zoned(berlin())?.timestamp());
        bucket.take(&limits, midnight, &Take::of(&costs)).expect("the day has just begun");
        let denial = bucket.take(&limits, just_before(next), &Take::of(&costs)).unwrap_err();
        assert_eq!(denial.ready(), Ready::At(next), "{day}");
        lengths.push(next.since(midnight).as_micros() / 3_600_000_000);
        midnight = next;
    }
    let of_length = |hours| lengths.iter().filter(|length| **length == hours).count();
    assert_eq!((of_length(23), of_length(24), of_length(25)), (1, 363, 1));
    Ok(())
}

#[test]
fn a_debt_is_carried_over_the_edge_of_a_long_day() -> Outcome {
    let limits = spend_limits()?;
    let reserved = limits.costs(&demand! { spend: 100 })?;
    // 25 October has 25 hours.
    let midnight = utc("2026-10-24T22:00:00Z");
    let (first, second) = (utc("2026-10-25T23:00:00Z"), utc("2026-10-26T23:00:00Z"));
    let mut bucket = Bucket::fresh(&limits, midnight);
    let at = bucket.take(&limits, midnight, &Take::of(&reserved)).expect("nothing was used yet");
    // The call used more than was reserved for it, in the repeated hour.
    let usage = Usage { at, reserved: &reserved, used: &[250], holder: None };
    bucket.settle(&limits, utc("2026-10-25T01:30:00Z"), &usage);
    assert_eq!(left(&bucket, &limits, just_before(first)), -150);
    assert_eq!(left(&bucket, &limits, first), -50);
    assert_eq!(left(&bucket, &limits, just_before(second)), -50);
    assert_eq!(left(&bucket, &limits, second), 50);
    let one = limits.costs(&demand! { spend: 1 })?;
    assert_eq!(bucket.ready(&limits, midnight, &one), Ready::At(second));
    Ok(())
}

#[test]
fn a_quota_that_resets_in_a_repeated_hour_resets_once() -> Outcome {
    let limits = Limits::new([Limit::quota("spend", 100, cron("30 2 * * *", "Europe/Berlin")?)])?;
    let costs = limits.costs(&demand! { spend: 100 })?;
    let edge = utc("2026-10-25T00:30:00Z");
    let mut bucket = Bucket::fresh(&limits, edge);
    bucket.take(&limits, edge, &Take::of(&costs)).expect("nothing was used yet");
    assert_eq!(left(&bucket, &limits, utc("2026-10-25T01:30:00Z")), 0);
    assert_eq!(left(&bucket, &limits, utc("2026-10-26T01:30:00Z")), 100);
    Ok(())
}

#[test]
fn limits_with_the_same_calendar_written_in_two_ways_are_equal() -> Outcome {
    let written = |expression| -> Result<Limit, Box<dyn Error>> {
        Ok(Limit::quota("spend", 100, cron(expression, "europe/berlin")?).build()?)
    };
    assert_eq!(written("@daily")?, written("00 0 1-31 */1 *")?);
    assert_ne!(written("@daily")?, written("@hourly")?);
    Ok(())
}
