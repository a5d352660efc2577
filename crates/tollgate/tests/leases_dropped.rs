//! Leases that end without a word, in other threads and tasks, or by expiry, and what they never show.

mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread;
use std::time::Duration;

use support::{Ears, advance_ms, answer, available, builder, hands, poll, set, try_take};
use tollgate::{AcquireError, Limit, LimitBuilder, LimitPool, LimitSet, OnDrop, demand};

const SECOND: Duration = Duration::from_secs(1);

fn limits() -> [LimitBuilder; 2] {
    [Limit::per_minute("tpm", 1_000), Limit::resource("connections", 4)]
}

/// What is left of tokens and connections.
fn left(set: &LimitSet) -> (i64, i64) {
    (available(set, "tpm"), available(set, "connections"))
}

#[derive(Debug, PartialEq)]
enum CallError {
    Provider(&'static str),
    Limits,
}

impl From<AcquireError> for CallError {
    fn from(_: AcquireError) -> CallError {
        CallError::Limits
    }
}

fn call_that_fails(set: &LimitSet) -> Result<(), CallError> {
    let lease = set.acquire(demand! { tpm: 400 }).wait()?;
    Err(CallError::Provider("overloaded"))?;
    lease.settle(demand! { tpm: 1 }).wait().map_err(|_| CallError::Limits)
}

#[test]
fn an_early_return_frees_resources_keeps_the_charge_and_passes_the_callers_own_error() {
    let set = set(&hands(), limits());
    assert_eq!(call_that_fails(&set), Err(CallError::Provider("overloaded")));
    assert_eq!(left(&set), (600, 4));
}

#[test]
fn a_panic_frees_resources_keeps_the_charge_and_passes_the_callers_own_payload() {
    let set = set(&hands(), limits());
    let payload = catch_unwind(AssertUnwindSafe(|| {
        let _lease = try_take(&set, demand! { tpm: 400 }).unwrap();
        std::panic::panic_any("the caller's own");
    }))
    .unwrap_err();
    assert_eq!(payload.downcast_ref::<&str>(), Some(&"the caller's own"));
    assert_eq!(left(&set), (600, 4));
    assert!(try_take(&set, demand! { tpm: 600 }).is_some(), "and the set goes on");
}

#[tokio::test]
async fn a_cancelled_task_frees_resources_and_keeps_the_charge() {
    let set = set(&hands(), limits());
    let (started, heard) = tokio::sync::oneshot::channel();
    let shared = set.clone();
    let task = tokio::spawn(async move {
        let _lease = shared.acquire(demand! { tpm: 400 }).await.unwrap();
        started.send(()).unwrap();
        std::future::pending::<()>().await;
    });
    heard.await.unwrap();
    assert_eq!(left(&set), (600, 3));
    task.abort();
    assert!(task.await.unwrap_err().is_cancelled());
    assert_eq!(left(&set), (600, 4));
}

#[test]
fn a_set_that_refunds_drops_gives_everything_back_unless_it_was_reported_or_committed() {
    let set = builder(&hands(), limits()).on_drop(OnDrop::Refund).build().unwrap();
    drop(try_take(&set, demand! { tpm: 400 }).unwrap());
    assert_eq!(left(&set), (1_000, 4));
    assert_eq!(call_that_fails(&set), Err(CallError::Provider("overloaded")));
    assert_eq!(left(&set), (1_000, 4));

    let mut lease = try_take(&set, demand! { tpm: 400 }).unwrap();
    lease.report(demand! { tpm: 100 }).unwrap();
    drop(lease);
    assert_eq!(left(&set), (900, 4), "what was reported counts");
    try_take(&set, demand! { tpm: 400 }).unwrap().commit().wait().unwrap();
    assert_eq!(left(&set), (500, 4), "and so does what was committed");
}

#[test]
fn a_set_without_resources_refunds_drops_as_well() {
    let set = builder(&hands(), [Limit::per_minute("tpm", 1_000)]).on_drop(OnDrop::Refund).build().unwrap();
    drop(try_take(&set, demand! { tpm: 400 }).unwrap());
    drop(try_take(&set, demand! { tpm: 400 }).unwrap().into_owned());
    assert_eq!(available(&set, "tpm"), 1_000);
}

#[test]
fn an_owned_lease_ends_in_another_thread_and_outlives_every_handle_of_its_set() {
    let hands = hands();
    let set = set(&hands, limits());
    let lease = set.acquire(demand! { tpm: 400 }).wait().unwrap().into_owned();
    let watcher = set.clone();
    drop(set);
    thread::spawn(move || lease.settle(demand! { tpm: 100 }).wait()).join().unwrap().unwrap();
    assert_eq!(left(&watcher), (900, 4));
    let last = watcher.acquire(demand! { tpm: 1 }).wait().unwrap().into_owned();
    drop(watcher);
    assert_eq!(left(&last.set().clone()), (899, 3));
    assert!(thread::spawn(move || drop(last)).join().is_ok());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_owned_lease_ends_in_another_task() {
    let set = set(&hands(), limits());
    let lease = set.acquire(demand! { tpm: 400 }).await.unwrap().into_owned();
    tokio::spawn(async move { lease.settle(demand! { tpm: 100 }).await }).await.unwrap().unwrap();
    assert_eq!(left(&set), (900, 4));
}

#[test]
fn a_silent_holder_loses_its_permits_once_and_is_told_by_its_heartbeat() {
    let hands = hands();
    let set = builder(&hands, limits()).lease_ttl(10 * SECOND).build().unwrap();
    let silent = try_take(&set, demand! { connections: 3 }).unwrap();
    let alive = try_take(&set, demand! { connections: 1 }).unwrap();
    advance_ms(&hands, 9_999);
    assert!(alive.heartbeat().wait().unwrap());
    assert_eq!(available(&set, "connections"), 0);
    advance_ms(&hands, 1);
    assert_eq!(available(&set, "connections"), 3, "what it had is back");
    assert!(!silent.heartbeat().wait().unwrap());

    // The permits are another's now, and stay so whatever the old holder does.
    let other = try_take(&set, demand! { connections: 3 }).unwrap();
    assert!(!silent.heartbeat().wait().unwrap());
    drop(silent);
    assert_eq!(available(&set, "connections"), 0);
    drop(other);
    assert_eq!(available(&set, "connections"), 3);
    assert!(alive.heartbeat().wait().unwrap());
    drop(alive);
    assert_eq!(available(&set, "connections"), 4);
}

#[test]
fn to_settle_after_expiry_settles_rates_and_frees_nobody_elses_permits() {
    let hands = hands();
    let set = builder(&hands, limits()).lease_ttl(10 * SECOND).build().unwrap();
    let expired = try_take(&set, demand! { tpm: 400, connections: 4 }).unwrap();
    advance_ms(&hands, 60_000);
    let other = try_take(&set, demand! { tpm: 1_000, connections: 4 }).unwrap();
    expired.settle(demand! { tpm: 150 }).wait().unwrap();
    assert_eq!(left(&set), (250, 0));
    drop(other);
    assert_eq!(left(&set), (250, 4));
}

#[test]
fn one_who_waits_gets_the_permit_at_the_instant_of_expiry_and_a_heartbeat_puts_it_off() {
    let hands = hands();
    let set = builder(&hands, limits()).lease_ttl(10 * SECOND).build().unwrap();
    let holder = try_take(&set, demand! { connections: 4 }).unwrap();
    let mut waiting = set.acquire(demand! { connections: 1 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    advance_ms(&hands, 9_000);
    assert!(holder.heartbeat().wait().unwrap());
    advance_ms(&hands, 9_999);
    assert!(poll(&mut waiting).is_pending());
    advance_ms(&hands, 1);
    let lease = answer(&mut waiting).unwrap();
    assert_eq!(lease.waited(), Some(19 * SECOND));
    assert!(lease.heartbeat().wait().unwrap());
}

#[test]
fn a_lease_that_holds_no_resource_has_nothing_to_expire() {
    let (hands, ears) = (hands(), Ears::default());
    let set = builder(&hands, limits()).lease_ttl(SECOND).observer(ears.observer()).build().unwrap();
    let none = try_take(&set, demand! { tpm: 1, connections: 0 }).unwrap();
    assert!(none.heartbeat().wait().unwrap());
    advance_ms(&hands, 5_000);
    assert!(none.heartbeat().wait().unwrap());
    let without = builder(&hands, [Limit::per_minute("tpm", 1)]).lease_ttl(SECOND).build().unwrap();
    assert!(try_take(&without, demand! { tpm: 1 }).unwrap().heartbeat().wait().unwrap());
    assert_eq!(ears.count("ExpiredLease"), 0);
}

#[test]
fn without_a_term_a_lease_holds_until_it_ends() {
    let hands = hands();
    let set = set(&hands, limits());
    let lease = try_take(&set, demand! { connections: 4 }).unwrap();
    advance_ms(&hands, 86_400_000);
    assert_eq!(available(&set, "connections"), 0);
    assert!(lease.heartbeat().wait().unwrap());
}

#[test]
fn the_config_of_the_set_is_on_the_lease_and_its_values_are_never_shown() {
    const CANARY: &str = "sk-canary-4711";
    let hands = hands();
    let builder = builder(&hands, limits()).config("region", "eu-central-1").config("api_key", CANARY);
    let shown = format!("{builder:?} {builder:#?}");
    let set = builder.build().unwrap();
    let lease = try_take(&set, demand! { tpm: 1 }).unwrap();
    assert_eq!((&*lease.config()["region"], &*lease.config()["api_key"]), ("eu-central-1", CANARY));
    let shown = format!("{shown} {set:?} {set:#?} {lease:?} {lease:#?} {:?}", set.peek().wait().unwrap());
    let pool = LimitPool::new([set.clone()]).unwrap();
    let attempt = set.try_acquire(demand! { tpm: 1_000 }).wait().unwrap();
    let error = set.acquire(demand! { tpm: 1_001 }).wait().unwrap_err();
    let shown = format!("{shown} {pool:?} {attempt:?} {error:?} {error} {:?}", lease.into_owned());
    assert!(!shown.contains(CANARY) && !shown.contains("eu-central-1"), "{shown}");
    assert!(shown.contains("region") && shown.contains("tpm"), "but it shows what helps: {shown}");
}
