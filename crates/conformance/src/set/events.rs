//! Events of sets.

use std::time::Duration;

use tollgate_core::{Limit, demand};

use super::fixture::{RecordingObserver, spend, take};
use super::{OpenSetStore, SetFixture};

const SECOND: Duration = Duration::from_secs(1);

/// A limit on trial changes no verdict, and both the lease and the observer name it.
pub fn shadow_and_soft_limits_warn_and_admit(open: OpenSetStore<'_>) {
    let (fixture, events) = (SetFixture::new(open), RecordingObserver::default());
    let limits = [Limit::per_minute("rpm", 3).shadow(), Limit::resource("slots", 9).soft(4)];
    let set = fixture.builder("law", limits).observer(events.observer()).build().expect("it is valid");
    let first = take(&set, demand! { rpm: 3, slots: 4 }).expect("it fits");
    assert!(first.warnings().is_empty());
    assert_eq!(events.take(), ["Allowed"]);
    let second = take(&set, demand! { rpm: 1, slots: 1 }).expect("a shadow limit denies nothing");
    assert_eq!(second.warnings().iter().map(ToString::to_string).collect::<Vec<_>>(), ["rpm", "slots"]);
    let expected = ["Allowed", r#"WouldDeny { limit: "rpm" }"#, r#"SoftLimitPassed { limit: "slots" }"#];
    assert_eq!(events.take(), expected);
    assert!(take(&set, demand! { rpm: 1, slots: 5 }).is_none(), "the capacity itself is enforced");
    events.take();
    // A waiter that is granted later warns as well.
    let mut waiting = fixture.wait_for(&set, demand! { rpm: 1, slots: 5 });
    waiting.still_waits();
    drop(first);
    let third = waiting.answer().expect("slots are free");
    assert_eq!(third.warnings().len(), 2);
}

/// Observers may use the names as labels of metrics.
pub fn events_are_reported_once_and_name_only_limits_of_the_set(open: OpenSetStore<'_>) {
    let (fixture, events) = (SetFixture::new(open), RecordingObserver::default());
    let limits = [Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 1_000), Limit::resource("slots", 4)];
    let set = fixture.builder("law", limits).observer(events.observer()).build().expect("it is valid");
    let lease = take(&set, demand! { rpm: 2, tpm: 400 }).expect("it fits");
    assert_eq!(events.take(), ["Allowed"]);
    lease.settle(demand! { rpm: 0, tpm: 1_000 }).wait().expect("the report is valid");
    let expected = [r#"Refunded { limit: "rpm", amount: 2 }"#, r#"OverUsed { limit: "tpm", amount: 600 }"#];
    assert_eq!(events.take(), expected);
    assert!(take(&set, demand! { tpm: 200 }).is_none());
    assert_eq!(events.take(), [r#"Denied { limit: Some("tpm") }"#]);
    set.cool_down(SECOND).wait().expect("the store answers");
    set.cool_down(Duration::ZERO).wait().expect("the store answers");
    assert!(take(&set, demand! { rpm: 1 }).is_none());
    assert_eq!(events.take(), ["Cooldown { duration: 1s }", "Denied { limit: None }"]);
    fixture.advance_ms(60_000);
    spend(&set, demand! { rpm: 10 });
    events.take();
    // The first waiter in the queue has learned what it waits for.
    let mut waiting = fixture.wait_for(&set, demand! { rpm: 1 });
    drop(fixture.wait_for(&set, demand! { rpm: 1 }));
    waiting.still_waits();
    fixture.advance_ms(6_000);
    drop(waiting.answer());
    assert_eq!(events.take(), [r#"Waited { limit: Some("rpm"), duration: 6s }"#, "Allowed"]);
}
