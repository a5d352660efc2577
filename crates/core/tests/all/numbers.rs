//! The numbers that the documentation promises.

use std::time::Duration;

use tollgate_core::{Bucket, Costs, Limit, LimitBuilder, Limits, Take, Tick, demand};

/// An instant that is not a multiple of any period.
const T: u64 = 1_700_000_000_123_457;

struct OneBucket {
    limits: Limits,
    bucket: Bucket,
}

impl OneBucket {
    fn new<const N: usize>(limits: [LimitBuilder; N]) -> OneBucket {
        let limits = Limits::new(limits).expect("the limits are valid");
        OneBucket { bucket: Bucket::fresh(&limits, Tick::from_micros(T)), limits }
    }

    /// Takes `after` microseconds after `T`; returns the wait if it is denied.
    fn take(&mut self, after: i64, costs: &Costs) -> Result<(), Duration> {
        let now = Tick::from_micros(T.checked_add_signed(after).expect("near T"));
        let taken = self.bucket.take(&self.limits, now, &Take::of(costs));
        taken.map(drop).map_err(|denial| denial.wait().expect("the wait is known"))
    }

    fn take_until_denied(&mut self, after: i64, costs: &Costs) -> u64 {
        (0..).take_while(|_| self.take(after, costs).is_ok()).count() as u64
    }

    fn available(&self, after: u64) -> Vec<i64> {
        let statuses = self.bucket.peek(&self.limits, Tick::from_micros(T + after));
        statuses.iter().map(|status| status.available()).collect()
    }
}

const SECOND: i64 = 1_000_000;
const HOUR: i64 = 3_600 * SECOND;

#[test]
fn rpm_100_admits_100_and_the_101st_600_ms_later() {
    let mut fixture = OneBucket::new([Limit::per_minute("rpm", 100)]);
    let one = fixture.limits.costs(&demand! { rpm: 1 }).unwrap();
    assert_eq!(fixture.take_until_denied(0, &one), 100);
    assert_eq!(fixture.take(0, &one), Err(Duration::from_millis(600)));
    assert_eq!(fixture.take(599_000, &one), Err(Duration::from_millis(1)));
    assert_eq!(fixture.take(599_999, &one), Err(Duration::from_micros(1)));
    assert_eq!(fixture.take(600_000, &one), Ok(()));
    assert!(fixture.take(600_000, &one).is_err());
}

#[test]
fn rpm_100_idle_for_an_hour_admits_100_not_101() {
    let mut fixture = OneBucket::new([Limit::per_minute("rpm", 100)]);
    let one = fixture.limits.costs(&demand! { rpm: 1 }).unwrap();
    assert_eq!(fixture.take_until_denied(0, &one), 100);
    assert_eq!(fixture.take_until_denied(HOUR, &one), 100);
}

#[test]
fn rpm_100_and_tpm_1000_admit_2_of_100_demands_of_1_and_400() {
    let mut fixture = OneBucket::new([Limit::per_minute("rpm", 100), Limit::per_minute("tpm", 1_000)]);
    let costs = fixture.limits.costs(&demand! { rpm: 1, tpm: 400 }).unwrap();
    let denied: Vec<Duration> = (0..100).filter_map(|_| fixture.take(0, &costs).err()).collect();
    assert_eq!(denied, [Duration::from_secs(12); 98]);
    assert_eq!(fixture.available(0), [98, 200]);
    let denial = fixture.bucket.denial(&fixture.limits, Tick::from_micros(T), &costs);
    assert_eq!(denial.limited_by().unwrap().limit().name().as_str(), "tpm");
    assert_eq!(denial.to_string(), "tpm has 200 of the 400 asked; retry in 12s");
}

#[test]
fn ten_per_day_beside_one_per_second_touched_every_4_s_regains_its_10() {
    let mut fixture = OneBucket::new([Limit::per_day("slow", 10), Limit::per_second("fast", 1)]);
    let all = fixture.limits.costs(&demand! { slow: 10 }).unwrap();
    let touch = fixture.limits.costs(&demand! { fast: 1 }).unwrap();
    fixture.take(0, &all).unwrap();
    for round in 1..=21_600 {
        fixture.take(round * 4 * SECOND, &touch).unwrap();
    }
    assert_eq!(fixture.available(24 * HOUR as u64), [10, 0]);
    assert_eq!(fixture.take(24 * HOUR, &all), Ok(()));
}

#[test]
fn seven_per_3_s_taken_every_100_ms_for_an_hour_is_7_and_8400_without_drift() {
    let mut fixture = OneBucket::new([Limit::rate("odd", 7, Duration::from_secs(3))]);
    let one = fixture.limits.costs(&demand! { odd: 1 }).unwrap();
    let mut admitted = 0;
    for round in 0..=36_000 {
        // Takes all there is, so that nothing is lost to a full bucket.
        admitted += fixture.take_until_denied(round * 100_000, &one);
    }
    assert_eq!(admitted, 7 + 8_400);
}

#[test]
fn a_clock_5_s_back_mints_nothing_and_waits_stay_finite() {
    let mut fixture = OneBucket::new([Limit::per_minute("rpm", 100)]);
    let one = fixture.limits.costs(&demand! { rpm: 1 }).unwrap();
    assert_eq!(fixture.take_until_denied(0, &one), 100);
    assert_eq!(fixture.take(-5 * SECOND, &one), Err(Duration::from_millis(5_600)));
    assert_eq!(fixture.take_until_denied(0, &one), 0);
    assert_eq!(fixture.take_until_denied(599_999, &one), 0);
    assert_eq!(fixture.take_until_denied(600_000, &one), 1);
}

#[test]
fn a_clock_an_hour_forward_fills_the_bucket_once() {
    let mut fixture = OneBucket::new([Limit::per_minute("rpm", 100)]);
    let one = fixture.limits.costs(&demand! { rpm: 1 }).unwrap();
    assert_eq!(fixture.take_until_denied(0, &one), 100);
    assert_eq!(fixture.available(HOUR as u64), [100]);
    assert_eq!(fixture.take_until_denied(HOUR, &one), 100);
    // When the clock steps back, nothing is admitted until it has caught up; then the usual rate
    // applies.
    assert_eq!(fixture.take_until_denied(0, &one), 0);
    assert_eq!(fixture.take_until_denied(HOUR + 600_000, &one), 1);
}
