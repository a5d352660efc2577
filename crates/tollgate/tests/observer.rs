//! Events: each reported exactly when it happens, and never who it happened to.

mod support;

use std::time::Duration;

use support::{Ears, Warnings, advance_ms, answer, builder, hands, poll, spend, try_take};
use tollgate::{Limit, LimitSet, ManualClock, OnDrop, demand};

const SECOND: Duration = Duration::from_secs(1);

fn api(hands: &ManualClock) -> (LimitSet, Ears) {
    let ears = Ears::default();
    let limits = [Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 1_000), Limit::resource("slots", 4)];
    let set = builder(hands, limits).observer(ears.observer()).lease_ttl(10 * SECOND).build();
    (set.expect("the limits are valid"), ears)
}

#[test]
fn an_admission_is_told_once_and_the_end_of_its_lease_only_if_the_amounts_differ() {
    let (set, ears) = api(&hands());
    let lease = try_take(&set, demand! { rpm: 1, tpm: 400 }).unwrap();
    assert_eq!(ears.take(), ["Allowed"]);
    lease.settle(demand! { rpm: 1, tpm: 400 }).wait().unwrap();
    drop(set.acquire(demand! { rpm: 1 }).wait().unwrap());
    assert_eq!(ears.take(), ["Allowed"]);
}

#[test]
fn a_denial_is_told_with_the_limit_that_takes_longest() {
    let (set, ears) = api(&hands());
    spend(&set, demand! { rpm: 10, tpm: 900 });
    ears.take();
    // A minute's worth of rpm, and six seconds' worth of tpm.
    assert!(try_take(&set, demand! { rpm: 10, tpm: 200 }).is_none());
    assert_eq!(ears.take(), [r#"Denied { limit: Some("rpm") }"#]);
    assert!(try_take(&set, demand! { tpm: 200 }).is_none());
    assert_eq!(ears.take(), [r#"Denied { limit: Some("tpm") }"#]);
    assert!(set.acquire(demand! { tpm: 200 }).timeout(SECOND).wait().is_err());
    assert_eq!(ears.take(), [r#"Denied { limit: Some("tpm") }"#], "a wait in vain is a denial, told once");
}

#[test]
fn a_denial_that_no_limit_made_names_none() {
    let hands = hands();
    let (set, ears) = api(&hands);
    set.cool_down(SECOND).wait().unwrap();
    assert!(try_take(&set, demand! { rpm: 1 }).is_none());
    assert_eq!(ears.take(), ["Cooldown { duration: 1s }", "Denied { limit: None }"]);
    advance_ms(&hands, 1_000);
    spend(&set, demand! { rpm: 9 });
    let mut waiting = set.acquire(demand! { rpm: 2 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    ears.take();
    assert!(try_take(&set, demand! { rpm: 1 }).is_none());
    assert_eq!(ears.take(), ["Denied { limit: None }"], "it is behind a queue");
}

#[test]
fn being_turned_away_from_a_full_queue_is_a_denial() {
    let (hands, ears) = (hands(), Ears::default());
    let limits = [Limit::per_minute("rpm", 1)];
    let set = builder(&hands, limits).waiters_max(0).observer(ears.observer()).build().unwrap();
    spend(&set, demand! { rpm: 1 });
    ears.take();
    assert!(set.acquire(demand! { rpm: 1 }).wait().is_err());
    assert_eq!(ears.take(), ["Denied { limit: None }"]);
}

#[test]
fn what_is_no_demand_is_no_event() {
    let (set, ears) = api(&hands());
    assert!(set.try_acquire(demand! { rpm: 11 }).wait().is_err());
    assert!(set.acquire(demand! { rpm: 11 }).wait().is_err());
    assert!(set.acquire(demand! { rpm: -1 }).wait().is_err());
    assert!(set.ready(demand! { rpm: 1 }).wait().is_ok());
    drop(set.peek().wait().unwrap());
    assert_eq!(ears.take(), [""; 0]);
}

#[test]
fn a_wait_is_told_once_at_its_end_and_a_cancelled_one_never() {
    let hands = hands();
    let (set, ears) = api(&hands);
    spend(&set, demand! { rpm: 10 });
    ears.take();
    let mut cancelled = set.acquire(demand! { rpm: 1 }).into_future();
    let mut waiting = set.acquire(demand! { rpm: 1 }).into_future();
    for _ in 0..5 {
        assert!(poll(&mut cancelled).is_pending() && poll(&mut waiting).is_pending());
        advance_ms(&hands, 1_000);
    }
    drop(cancelled);
    advance_ms(&hands, 1_000);
    assert_eq!(ears.take(), [""; 0]);
    let lease = answer(&mut waiting).unwrap();
    assert_eq!(ears.take(), [r#"Waited { limit: Some("rpm"), duration: 6s }"#, "Allowed"]);
    drop((lease, waiting));
    assert_eq!(ears.take(), [""; 0]);
}

#[test]
fn refunds_and_over_use_are_told_for_each_limit_with_the_difference() {
    let (set, ears) = api(&hands());
    let lease = try_take(&set, demand! { rpm: 2, tpm: 400, slots: 3 }).unwrap();
    ears.take();
    lease.settle(demand! { rpm: 0, tpm: 1_700, slots: 0 }).wait().unwrap();
    let expected = [r#"Refunded { limit: "rpm", amount: 2 }"#, r#"OverUsed { limit: "tpm", amount: 1300 }"#];
    assert_eq!(ears.take(), expected, "resources are no refund");
}

#[test]
fn a_drop_that_refunds_is_told_and_one_that_keeps_is_not() {
    let (hands, ears) = (hands(), Ears::default());
    for (on_drop, refunds) in [(OnDrop::Keep, 0), (OnDrop::Refund, 1)] {
        let limits = [Limit::per_minute("rpm", 10)];
        let set = builder(&hands, limits).on_drop(on_drop).observer(ears.observer()).build().unwrap();
        spend(&set, demand! { rpm: 3 });
        assert_eq!(ears.count("Refunded"), refunds);
    }
}

#[test]
fn more_than_taken_is_warned_of_once_for_each_limit_also_where_only_warnings_are_heard() {
    let hands = hands();
    let set = support::set(&hands, [Limit::per_minute("rpm", 100), Limit::per_minute("tpm", 100)]);
    let warnings = Warnings::during(|| {
        for _ in 0..3 {
            try_take(&set, demand! { tpm: 1 }).unwrap().settle(demand! { tpm: 2 }).wait().unwrap();
        }
        try_take(&set, demand! { rpm: 1 }).unwrap().settle(demand! { rpm: 3 }).wait().unwrap();
        try_take(&set, demand! { rpm: 3 }).unwrap().settle(demand! { rpm: 1 }).wait().unwrap();
    });
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("limit=tpm amount=1"), "{warnings:?}");
    assert!(warnings[1].contains("limit=rpm amount=2"), "{warnings:?}");
}

#[test]
fn an_unknown_name_is_told_each_time_in_demands_and_reports() {
    let ears = Ears::default();
    let set = builder(&hands(), [Limit::per_minute("rpm", 10)]).observer(ears.observer()).skip_unknown();
    let set = set.build().unwrap();
    let lease = try_take(&set, demand! { rpm: 1, gpu: 5 }).unwrap();
    lease.settle(demand! { rpm: 1, gpu: 5 }).wait().unwrap();
    let unknown = r#"UnknownLimit { name: "gpu" }"#;
    assert_eq!(ears.take(), [unknown, "Allowed", unknown]);
}

#[test]
fn an_expired_lease_is_told_once_by_whatever_its_holder_does_next() {
    let hands = hands();
    let (set, ears) = api(&hands);
    let take = || try_take(&set, demand! { rpm: 1, slots: 1 }).unwrap();
    let (beats, settles, drops, lives) = (take(), take(), take(), take());
    ears.take();
    advance_ms(&hands, 9_999);
    assert!(lives.heartbeat().wait().unwrap());
    advance_ms(&hands, 1);
    assert!(!beats.heartbeat().wait().unwrap());
    assert_eq!(ears.take(), ["ExpiredLease"]);
    assert!(!beats.heartbeat().wait().unwrap());
    drop(beats);
    assert_eq!(ears.take(), [""; 0], "told once");
    settles.settle(demand! { rpm: 1 }).wait().unwrap();
    assert_eq!(ears.take(), ["ExpiredLease"]);
    drop(drops);
    assert_eq!(ears.take(), ["ExpiredLease"]);
    drop(lives);
    assert_eq!(ears.take(), [""; 0], "a heartbeat has kept it");
}

#[test]
fn a_cooldown_is_told_when_it_begins_and_when_it_is_extended() {
    let hands = hands();
    let (set, ears) = api(&hands);
    set.cool_down(10 * SECOND).wait().unwrap();
    set.cool_down(20 * SECOND).wait().unwrap();
    assert_eq!(ears.take(), ["Cooldown { duration: 10s }", "Cooldown { duration: 20s }"]);
    set.cool_down(20 * SECOND).wait().unwrap();
    set.cool_down(SECOND).wait().unwrap();
    set.cool_down(Duration::ZERO).wait().unwrap();
    assert_eq!(ears.take(), [""; 0], "what changes nothing is no event");
    advance_ms(&hands, 20_000);
    set.cool_down(SECOND).wait().unwrap();
    assert_eq!(ears.take(), ["Cooldown { duration: 1s }"]);
}

#[test]
fn entities_and_config_are_in_no_event() {
    const CANARY: &str = "customer-4711";
    let (hands, ears) = (hands(), Ears::default());
    let limits = [Limit::per_minute("rpm", 2), Limit::resource("slots", 2)];
    let builder = builder(&hands, limits).observer(ears.observer()).lease_ttl(SECOND).skip_unknown();
    let set = builder.config("account", CANARY).build().unwrap();
    let lease = try_take(&set, demand! { rpm: 2, gpu: 1 }).unwrap();
    assert!(try_take(&set, demand! { rpm: 1 }).is_none());
    let mut waiting = set.acquire(demand! { rpm: 1 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    advance_ms(&hands, 60_000);
    lease.heartbeat().wait().unwrap();
    lease.settle(demand! { rpm: 5 }).wait().unwrap();
    answer(&mut waiting).unwrap().cancel().wait().unwrap();
    set.cool_down(SECOND).wait().unwrap();
    let heard = ears.take();
    assert!(heard.len() >= 8, "{heard:?}");
    assert!(!heard.concat().contains(CANARY), "{heard:?}");
}
