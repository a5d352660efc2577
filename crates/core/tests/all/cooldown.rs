//! Cooldowns: every demand is denied until they end, and no caller has to know their name.

use tollgate_core::{
    Bucket, Costs, DemandError, Limit, Limits, Name, Ready, Span, Take, Tick, Usage, demand,
};

const START: Tick = Tick::from_secs(1_000);

/// Returns limits of a plain bucket, and limits of a general one: both must behave the
/// same.
fn plain_and_general() -> [Limits; 2] {
    let rpm = Limit::per_minute("rpm", 100);
    let window = Limit::sliding_window("window", 100, std::time::Duration::from_secs(60));
    [vec![rpm.clone()], vec![rpm, window]]
        .map(|limits| Limits::new(limits).expect("they are valid").with_cooldown())
}

fn one(limits: &Limits) -> Costs {
    limits.costs(&demand! { rpm: 1 }).expect("it fits")
}

fn cool_down(bucket: &mut Bucket, limits: &Limits, now: Tick, micros: u64) {
    let used: Vec<u64> =
        limits.iter().map(|limit| if limit.is_cooldown() { micros + 1 } else { 0 }).collect();
    let reserved = Costs::none(limits.len());
    bucket.settle(limits, now, &Usage { at: now, reserved: &reserved, used: &used, holder: None });
}

fn passes(bucket: &mut Bucket, limits: &Limits, now: Tick) -> bool {
    bucket.take(limits, now, &Take::of(&one(limits))).is_ok()
}

#[test]
fn a_cooldown_lasts_to_the_tick_that_the_denial_reports() {
    for limits in plain_and_general() {
        let mut bucket = Bucket::fresh(&limits, START);
        assert!((0..10).all(|_| passes(&mut bucket, &limits, START)), "a call costs no time");
        cool_down(&mut bucket, &limits, START, 5_000_000);
        let end = START + Span::from_secs(5);
        let denial = bucket.take(&limits, START, &Take::of(&one(&limits))).expect_err("it lasts");
        assert_eq!((denial.ready(), denial.cooling_until()), (Ready::At(end), Some(end)));
        assert_eq!(denial.limited_by(), None, "a cooldown is not shown as a limit");
        assert_eq!(denial.statuses().count(), limits.len() - 1);
        assert!(!passes(&mut bucket, &limits, end - Span::from_micros(1)));
        assert!(passes(&mut bucket, &limits, end));
    }
}

#[test]
fn a_shorter_cooldown_does_not_shorten_a_longer_one_and_a_refund_changes_nothing() {
    for limits in plain_and_general() {
        let mut bucket = Bucket::fresh(&limits, START);
        let costs = one(&limits);
        let at = bucket.take(&limits, START, &Take::of(&costs)).expect("none lasts");
        cool_down(&mut bucket, &limits, START, 10_000_000);
        cool_down(&mut bucket, &limits, START + Span::from_secs(4), 1_000_000);
        let nothing = vec![0; limits.len()];
        let refund = Usage { at, reserved: &costs, used: &nothing, holder: None };
        bucket.settle(&limits, START + Span::from_secs(5), &refund);
        assert!(!passes(&mut bucket, &limits, START + Span::from_micros(9_999_999)));
        cool_down(&mut bucket, &limits, START + Span::from_secs(9), 2_000_000);
        assert!(
            !passes(&mut bucket, &limits, START + Span::from_micros(10_999_999)),
            "a longer one extends it"
        );
        assert!(passes(&mut bucket, &limits, START + Span::from_secs(11)));
    }
}

#[test]
fn a_top_up_ends_a_cooldown_and_leaves_other_limits_unchanged() {
    for limits in plain_and_general() {
        let mut bucket = Bucket::fresh(&limits, START);
        assert!(passes(&mut bucket, &limits, START));
        cool_down(&mut bucket, &limits, START, 60_000_000);
        bucket.top_up(&limits, START, &Costs::none(limits.len()));
        assert!(!passes(&mut bucket, &limits, START), "a top-up of nothing ends nothing");
        bucket.top_up(&limits, START, &Costs::none(limits.len()).of_cooldown(&limits, 1));
        assert_eq!(bucket.peek(&limits, START)[0].available(), 99);
        assert!(passes(&mut bucket, &limits, START));
    }
}

#[test]
fn a_clock_that_steps_back_does_not_end_a_cooldown_and_one_that_jumps_ahead_does() {
    for limits in plain_and_general() {
        let mut bucket = Bucket::fresh(&limits, START);
        cool_down(&mut bucket, &limits, START, 60_000_000);
        assert!(!passes(&mut bucket, &limits, START - Span::from_secs(500)));
        assert!(passes(&mut bucket, &limits, START + Span::from_secs(3_600)));
        assert!(bucket.is_fresh(&limits, START + Span::from_secs(7_200)));
    }
}

#[test]
fn a_cooldown_round_trips_and_is_carried_over_to_other_limits() {
    let [few, more] = plain_and_general();
    for (from, to) in [(&few, &more), (&more, &few), (&few, &few)] {
        let mut bucket = Bucket::fresh(from, START);
        cool_down(&mut bucket, from, START, 7_000_000);
        assert!(!bucket.is_fresh(from, START + Span::from_secs(6)));
        let mut read = Bucket::from_bytes(from, &bucket.to_bytes()).expect("it was written");
        assert_eq!(read, bucket);
        let parts = Bucket::of_parts(from, bucket.stamp(), &bucket.parts(from)).expect("they are its parts");
        assert_eq!(parts, bucket);
        read.adopt(from, to, START + Span::from_secs(1));
        assert!(!passes(&mut read, to, START + Span::from_micros(6_999_999)));
        assert!(passes(&mut read, to, START + Span::from_secs(7)));
    }
}

#[test]
fn limits_with_a_cooldown_round_trip_and_forged_ones_are_refused() {
    let limits = plain_and_general()[0].clone().at_version(3);
    let text = limits.to_text();
    let read = Limits::from_text(&text, &|_| None).expect("it was written");
    assert_eq!((&read, read.version()), (&limits, 3));
    for line in
        ["cooldown rpm 1", "cooldown _cooldown_ 2", "cooldown _cooldown_ 1 soft=1", "resource _cooldown_ 1"]
    {
        assert!(Limits::from_text(&format!("limits/1 version=0\n{line}\n"), &|_| None).is_err(), "{line}");
    }
    assert_eq!(Name::new("_cooldown_"), None);
    assert_eq!(limits.without_cooldown().len(), 1);
    assert_eq!(limits.with_cooldown(), limits, "one is enough");
}

#[test]
fn no_demand_can_name_a_cooldown_and_no_error_does() {
    let limits = &plain_and_general()[0];
    let error = limits.costs(&demand! { rpm: 1, "_cooldown_": 1 }).expect_err("it is no limit of theirs");
    let DemandError::UnknownLimit { known, .. } = error else { panic!("{error}") };
    assert_eq!(known.iter().map(Name::as_str).collect::<Vec<_>>(), ["rpm"]);
    let costs = one(limits);
    assert_eq!((costs.amounts(), costs.is_explicit(1)), (&[1, 1][..], false));
}
