//! Leases: what they hold, and how they end.

use std::cell::Cell;
use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use tollgate::limiter::Heartbeats;
use tollgate::{AcquireError, Lease, LeaseError, LimitSet, OnDrop};
use tollgate_core::{Demand, DemandError, Limit, Name, demand};

use super::fixture::{RecordingObserver, available, count, denial, spend, take};
use super::{OpenSetStore, SetFixture};
use crate::poll::{block_on, eventually, until};

fn api(fixture: &SetFixture) -> LimitSet {
    fixture.set([Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 1_000), Limit::resource("slots", 4)])
}

fn left(set: &LimitSet) -> [i64; 3] {
    ["rpm", "tpm", "slots"].map(|limit| available(set, limit))
}

/// The set is 1,000 in debt, and the next demand waits for all of it.
pub fn less_than_taken_is_refunded_and_more_is_debt(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = api(&fixture);
    let lease = take(&set, demand! { rpm: 1, tpm: 400 }).expect("it fits");
    assert_eq!(left(&set), [9, 600, 3]);
    lease.settle(demand! { rpm: 1, tpm: 150 }).wait().expect("the report is valid");
    assert_eq!(left(&set), [9, 850, 4]);
    let lease = take(&set, demand! { rpm: 1, tpm: 350 }).expect("it fits");
    lease.settle(demand! { tpm: 1_850 }).wait().expect("the report is valid");
    assert_eq!(left(&set), [8, -1_000, 4]);
    assert_eq!(denial(&set, demand! { tpm: 1 }).wait(), Some(Duration::from_millis(60_060)));
    fixture.advance_ms(60_059);
    assert!(take(&set, demand! { tpm: 1 }).is_none());
    fixture.advance_ms(1);
    assert!(take(&set, demand! { tpm: 1 }).is_some());
}

/// The call may have been made.
pub fn a_dropped_lease_stays_charged_and_its_resources_are_free(open: OpenSetStore<'_>) {
    let set = api(&SetFixture::new(open));
    drop(take(&set, demand! { rpm: 2, tpm: 300, slots: 3 }).expect("it fits"));
    until(|| available(&set, "slots") == 4);
    assert_eq!(left(&set), [8, 700, 4]);
    let mut lease = take(&set, demand! { rpm: 1, tpm: 300 }).expect("it fits");
    lease.report(demand! { tpm: 100 }).expect("the report is valid");
    drop(lease);
    until(|| available(&set, "slots") == 4);
    assert_eq!(left(&set), [7, 600, 4], "what was reported counts");
}

pub fn a_policy_refunds_dropped_leases(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let builder = fixture.builder("law", [Limit::per_minute("tpm", 1_000), Limit::resource("slots", 4)]);
    let set = builder.on_drop(OnDrop::Refund).build().expect("it is valid");
    drop(take(&set, demand! { tpm: 300 }).expect("it fits").into_owned());
    until(|| available(&set, "tpm") == 1_000);
    assert_eq!(available(&set, "slots"), 4);
}

/// The lease lists the limits that were not reported.
pub fn a_committed_lease_counts_as_reported_and_otherwise_as_taken(open: OpenSetStore<'_>) {
    let set = api(&SetFixture::new(open));
    let unreported = |lease: &Lease<'_>| {
        lease.unreported().iter().map(|name| name.as_str().to_owned()).collect::<Vec<_>>()
    };
    let lease = take(&set, demand! { rpm: 1, tpm: 300 }).expect("it fits");
    assert_eq!(unreported(&lease), ["rpm", "tpm"]);
    lease.commit().wait().expect("the store answers");
    assert_eq!(left(&set), [9, 700, 4]);
    let mut lease = take(&set, demand! { tpm: 300 }).expect("it fits");
    lease.report(demand! { tpm: 100 }).expect("the report is valid");
    assert_eq!(unreported(&lease), Vec::<String>::new());
    lease.commit().wait().expect("the store answers");
    assert_eq!(left(&set), [9, 600, 4]);
}

/// Adjustments add to what was reported, or else to what was taken.
pub fn adjustments_add_up(open: OpenSetStore<'_>) {
    let set = api(&SetFixture::new(open));
    let mut lease = take(&set, demand! { rpm: 1, tpm: 300 }).expect("it fits");
    lease.adjust([("tpm", 900)]).expect("tpm is a limit");
    lease.adjust([("tpm", -100), ("rpm", -5)]).expect("they are limits");
    assert_eq!((lease.reported("tpm"), lease.reported("rpm")), (Some(1_100), Some(0)));
    let wrong = lease.adjust([("typo", 1), ("tpm", 50)]).expect_err("typo is no limit");
    assert!(matches!(wrong, LeaseError::Usage(_)), "{wrong}");
    lease.commit().wait().expect("the store answers");
    assert_eq!(left(&set), [10, -150, 4], "what is valid is noted all the same");
}

/// More can be taken on the same lease: all of it or nothing, and only what is named.
pub fn consume_takes_more_or_nothing_and_is_held_like_the_rest(open: OpenSetStore<'_>) {
    let set = api(&SetFixture::new(open));
    let mut lease = take(&set, demand! { tpm: 300, slots: 3 }).expect("it fits");
    lease.consume(demand! { tpm: 500 }).wait().expect("it fits");
    assert_eq!((left(&set), lease.reserved("tpm")), ([10, 200, 1], Some(800)));
    let denied = lease.consume(demand! { tpm: 201 }).wait().expect_err("200 are left");
    assert!(matches!(denied, AcquireError::Denied(_)), "{denied}");
    lease.consume(demand! { slots: 1 }).wait().expect("it fits");
    assert_eq!(left(&set), [10, 200, 0]);
    lease.settle(demand! { tpm: 100 }).wait().expect("the store answers");
    assert_eq!(left(&set), [10, 400, 4]);
    let mut lease = take(&set, demand! { tpm: 100 }).expect("it fits").into_owned();
    lease.consume(demand! { tpm: 100, slots: 1 }).wait().expect("it fits");
    lease.cancel().wait().expect("the store answers");
    assert_eq!(left(&set), [10, 400, 4]);
    let mut lease = take(&set, demand! { tpm: 100 }).expect("it fits");
    lease.consume(demand! { tpm: 100, slots: 1 }).wait().expect("it fits");
    drop(lease);
    until(|| left(&set) == [10, 200, 4]);
}

/// A report counts though the lease is dropped, and then the consumption counts, too.
pub fn a_reported_lease_that_is_dropped_keeps_what_it_consumed(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let builder = fixture.builder("law", [Limit::per_minute("tpm", 1_000)]).on_drop(OnDrop::Refund);
    let set = builder.build().expect("it is valid");
    for (is_reported, left) in [(false, 1_000), (true, 500)] {
        let mut lease = take(&set, demand! { tpm: 300 }).expect("it fits");
        lease.consume(demand! { tpm: 200 }).wait().expect("it fits");
        if is_reported {
            lease.report(demand! { tpm: 300 }).expect("tpm is a limit");
        }
        drop(lease);
        until(|| available(&set, "tpm") == left);
    }
}

/// A heartbeat keeps all that the lease holds.
pub fn a_heartbeat_keeps_consumed_resources(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let builder = fixture.builder("law", [Limit::resource("slots", 2)]).heartbeats(Heartbeats::Manual);
    let set = builder.lease_ttl(Duration::from_secs(10)).build().expect("it is valid");
    let mut lease = take(&set, demand! { slots: 1 }).expect("it fits");
    lease.consume(demand! { slots: 1 }).wait().expect("it fits");
    for _ in 0..3 {
        fixture.advance_ms(9_000);
        assert!(lease.heartbeat().wait().expect("the store answers") && !lease.lost());
        assert_eq!(available(&set, "slots"), 0);
    }
    fixture.advance_ms(10_000);
    assert!(!lease.heartbeat().wait().expect("the store answers"));
}

/// The lease is refunded, with what was reported and consumed.
pub fn a_block_that_fails_or_is_cancelled_gives_everything_back(open: OpenSetStore<'_>) {
    let set = api(&SetFixture::new(open));
    type AnyError = Box<dyn std::error::Error>;
    let acquire = || set.acquire(demand! { rpm: 1, tpm: 300 });
    let work = async |lease: &mut Lease<'_>| {
        lease.report(demand! { tpm: 900 })?;
        Ok::<_, AnyError>(lease.consume(demand! { tpm: 100, slots: 1 }).await?)
    };
    let failed = acquire().run::<(), AnyError, _>(async |lease| {
        work(lease).await?;
        Err("the provider is down".into())
    });
    assert_eq!(block_on(failed).expect_err("it fails").to_string(), "the provider is down");
    until(|| left(&set) == [10, 1_000, 4]);
    let (entered, mut context) = (Cell::new(false), Context::from_waker(Waker::noop()));
    let mut task = Box::pin(acquire().run::<(), AnyError, _>(async |lease| {
        work(lease).await?;
        entered.set(true);
        std::future::pending().await
    }));
    eventually(|| {
        assert!(task.as_mut().poll(&mut context).is_pending());
        entered.get().then_some(())
    });
    assert_eq!(left(&set), [9, 600, 2]);
    drop(task);
    until(|| left(&set) == [10, 1_000, 4]);
    let answer = acquire().run::<_, AnyError, _>(async |lease| {
        lease.report(demand! { tpm: 50 })?;
        Ok("an answer")
    });
    assert_eq!(block_on(answer).expect("it succeeds"), "an answer");
    assert_eq!(left(&set), [9, 950, 4]);
}

/// A lease is settled, committed, cancelled or dropped, awaited or not.
pub fn however_a_lease_ends_it_counts_once(open: OpenSetStore<'_>) {
    let set = api(&SetFixture::new(open));
    let lease = || take(&set, demand! { rpm: 1, tpm: 100, slots: 2 }).expect("it fits");
    lease().cancel().wait().expect("the store answers");
    assert_eq!(left(&set), [10, 1_000, 4]);
    let held = lease();
    lease().settle(demand! { rpm: 1, tpm: 50 }).wait().expect("the report is valid");
    assert_eq!(left(&set), [8, 850, 2], "the other's are still held");
    // It is sent when `settle` returns, also if the caller does not wait for the answer.
    drop(held.settle(demand! { rpm: 0, tpm: 0 }));
    until(|| left(&set) == [9, 950, 4]);
}

/// A report is 0 to what was taken.
pub fn calls_are_counted_without_being_named_and_not_reported_beyond(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::calls(10, Duration::from_secs(60)), Limit::per_minute("tpm", 1_000)]);
    let lease = take(&set, demand! { tpm: 100 }).expect("it fits");
    assert_eq!(lease.reserved("call_count"), Some(1));
    let error = lease.settle(demand! { call_count: 2, tpm: 40 }).wait().expect_err("that is too many");
    assert!(matches!(error, LeaseError::TooManyCalls { used: 2, reserved: 1, .. }), "{error}");
    assert_eq!((available(&set, "call_count"), available(&set, "tpm")), (9, 960));
    let none = set.try_acquire(demand! {}).wait().expect_err("tpm wants an amount");
    assert!(matches!(none, AcquireError::Demand(DemandError::MissingAmount { .. })), "{none}");
}

/// `skip_unknown` is for code that runs with some limits left out.
pub fn names_that_are_no_limits_are_errors_unless_the_set_skips_them(open: OpenSetStore<'_>) {
    let (fixture, events) = (SetFixture::new(open), RecordingObserver::default());
    let limits = || [Limit::per_minute("rpm", 10)];
    let skipping = fixture.builder("one", limits()).observer(events.observer()).skip_unknown();
    let set = skipping.build().expect("it is valid");
    spend(&set, demand! { rpm: 1, typo: 5 });
    assert!(events.take().contains(&r#"UnknownLimit { name: "typo" }"#.to_owned()));
    let strict = fixture.builder("two", limits()).build().expect("it is valid");
    for name in ["typo", "_cooldown_"] {
        let demand: Demand = [("rpm", 1_u64), (name, 5)].into_iter().collect();
        let error = strict.try_acquire(demand).wait().expect_err("it is no limit");
        let AcquireError::Demand(DemandError::UnknownLimit { known, .. }) = error else { panic!("{error}") };
        assert_eq!(known.iter().map(Name::as_str).collect::<Vec<_>>(), ["rpm"]);
    }
    assert_eq!(available(&strict, "rpm"), 10);
}

pub fn a_demand_that_can_never_fit_is_refused_at_once(open: OpenSetStore<'_>) {
    let set = api(&SetFixture::new(open));
    let impossible = |result: Result<(), AcquireError>| {
        matches!(result, Err(AcquireError::Demand(DemandError::Impossible { asked: 11, capacity: 10, .. })))
    };
    assert!(impossible(set.try_acquire(demand! { rpm: 11 }).wait().map(drop)));
    assert!(impossible(set.acquire(demand! { rpm: 11 }).wait().map(drop)));
    assert!(impossible(set.ready(demand! { rpm: 11 }).wait().map(|_| ())));
    assert!(set.acquire(demand! { rpm: -1 }).wait().is_err());
    assert_eq!(left(&set), [10, 1_000, 4]);
}

/// The config may be a region, an account or an endpoint.
pub fn a_lease_knows_its_config_and_what_was_reserved(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let builder = fixture.builder("law", [Limit::per_minute("rpm", 10), Limit::resource("slots", 1)]);
    let set = builder.config("region", "eu").build().expect("it is valid");
    let lease = take(&set, demand! { rpm: 3 }).expect("it fits").into_owned();
    assert_eq!(lease.config()["region"], "eu");
    let reserved = ["rpm", "slots", "tpm"].map(|limit| lease.reserved(limit));
    assert_eq!(reserved, [Some(3), Some(1), None]);
    assert_eq!((lease.waited(), lease.is_degraded()), (None, false));
    assert!(!format!("{lease:?} {set:?}").contains("\"eu\""), "values may be secret");
}

pub fn an_empty_set_admits_everything(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.builder("law", []).skip_unknown().build().expect("it is valid");
    let lease = take(&set, demand! {}).expect("there is no limit");
    lease.settle(demand! {}).wait().expect("there is nothing to report");
    assert!(set.acquire(demand! { rpm: 5 }).wait().is_ok(), "a name that is no limit is skipped");
    assert!(set.peek().wait().expect("the store answers").limits.is_empty());
    set.cool_down(Duration::from_secs(1)).wait().expect("the store answers");
    assert!(take(&set, demand! {}).is_none(), "it can cool down all the same");
    fixture.advance_ms(1_000);
    assert!(set.acquire(demand! {}).wait().is_ok());
}

/// A holder that hangs loses its resources, once.
pub fn heartbeats_keep_resources_and_a_silent_holder_loses_them_once(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let builder = fixture.builder("law", [Limit::resource("slots", 2)]).heartbeats(Heartbeats::Manual);
    let set = builder.lease_ttl(Duration::from_secs(10)).build().expect("it is valid");
    let hold = || take(&set, demand! {}).expect("it fits");
    let (alive, silent) = (hold(), hold());
    fixture.advance_ms(9_000);
    assert_eq!(alive.heartbeat().wait(), Ok(true));
    assert_eq!(count(&set, demand! {}), 0);
    fixture.advance_ms(1_000);
    let third = take(&set, demand! {}).expect("what the silent one held");
    assert_eq!(silent.heartbeat().wait(), Ok(false));
    drop(silent);
    assert_eq!(count(&set, demand! {}), 0, "never two for one");
    assert_eq!(alive.heartbeat().wait(), Ok(true));
    alive.commit().wait().expect("nothing is missing");
    third.commit().wait().expect("nothing is missing");
    until(|| available(&set, "slots") == 2);
}
