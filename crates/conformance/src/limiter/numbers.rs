//! The numbers that must hold.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tollgate::limiter::LimiterError;
use tollgate_catalog::{CatalogError, Level, OnUnavailable, Registry, UsageQuery};
use tollgate_core::{DemandError, Limit, Tick, demand};
use tollgate_store::Scope;
use tollgate_store::records::{Index, Query, Records as _};
use tollgate_store::usage::Window;

use super::LimiterFixture;
use super::fixture::{RESOURCE, built, limiter_on};
use crate::OpenBackend;
use crate::fixture::{UNEVEN_START, open_at};
use crate::outage::StoreOutage;
use crate::poll::{block_on, poll, until};

/// tpm 1000/min, acquire 500, adjust +1500: -1000; the next 1 is refused with 60.06 s and admitted then.
pub fn tpm_1000_acquired_500_adjusted_by_1500_is_1000_in_debt_and_the_next_waits_60_06_s(
    open: OpenBackend<'_>,
) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::Resource(RESOURCE), [Limit::per_minute("tpm", 1_000)]);
    let mut lease = fixture.take("user", demand! { tpm: 500 }).expect("there is room");
    lease.adjust([("tpm", 1_500)]).expect("tpm is a limit");
    lease.commit().wait().expect("the store answers");
    assert_eq!(fixture.available("user", "tpm"), -1_000);
    let refusal = fixture.refusal("user", demand! { tpm: 1 });
    assert_eq!(refusal.retry_after(), Some(Duration::from_millis(60_060)));
    fixture.advance_ms(60_059);
    fixture.refusal("user", demand! { tpm: 1 });
    fixture.advance_ms(1);
    fixture.spend("user", demand! { tpm: 1 });
}

/// parent 100, child 50, cascading: 50 through the first child, 50 through a second, a third is refused by the parent,
/// with the statuses of both; after every refusal neither has moved.
pub fn a_parent_of_100_admits_50_through_each_of_two_children_and_refuses_a_third(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    ["a", "b", "c"].iter().for_each(|child| fixture.create(child, Some("parent")));
    fixture.set(Level::Resource(RESOURCE), [Limit::per_hour("rpm", 50)]);
    fixture.set(Level::Entity("parent"), [Limit::per_hour("rpm", 100)]);
    fixture.spend("a", demand! { rpm: 50 });
    let refusal = fixture.refusal("a", demand! { rpm: 1 });
    assert_eq!(refusal.limited_by().expect("a limit refuses").0.entity, "a");
    assert_eq!((fixture.available("a", "rpm"), fixture.available("parent", "rpm")), (0, 50));
    fixture.spend("b", demand! { rpm: 50 });
    let refusal = fixture.refusal("c", demand! { rpm: 1 });
    let statuses: Vec<_> =
        refusal.statuses().map(|(part, status)| (part.entity.as_str(), status.available())).collect();
    assert_eq!(statuses, [("c", 50), ("parent", 0)]);
    assert_eq!(refusal.limited_by().expect("a limit refuses").0.entity, "parent");
    assert_eq!((fixture.available("c", "rpm"), fixture.available("parent", "rpm")), (50, 0));
}

/// system 10, resource 20, entity default 30, entity + resource 40: 40; take them away from the top: 30, 20, 10, error.
pub fn the_first_level_with_limits_wins_and_they_fall_back_from_the_top_to_an_error(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    let levels = [
        (Level::System, 10),
        (Level::Resource(RESOURCE), 20),
        (Level::Entity("user"), 30),
        (Level::EntityResource("user", RESOURCE), 40),
    ];
    for (level, capacity) in levels {
        fixture.set(level, [Limit::per_hour("rpm", capacity)]);
        assert_eq!(fixture.available("user", "rpm"), capacity);
    }
    for (level, capacity) in levels.into_iter().rev() {
        assert_eq!(fixture.available("user", "rpm"), capacity);
        assert!(fixture.catalog().delete_limits(level).wait().expect("the store answers"));
    }
    let error =
        fixture.limiter.acquire("user", RESOURCE, demand! { rpm: 1 }).wait().expect_err("no limits are left");
    assert!(matches!(error, LimiterError::Catalog(CatalogError::NoLimits { .. })), "{error}");
}

/// resource has only rpm, system has rpm and tpm: tpm is not enforced.
pub fn a_resource_with_only_rpm_does_not_enforce_the_tpm_of_the_system(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("rpm", 10), Limit::per_hour("tpm", 1)]);
    fixture.set(Level::Resource(RESOURCE), [Limit::per_hour("rpm", 10)]);
    fixture.spend("user", demand! { rpm: 10 });
    let error =
        fixture.limiter.acquire("user", RESOURCE, demand! { rpm: 1, tpm: 1 }).wait().expect_err("no tpm");
    assert!(matches!(error, LimiterError::Demand { why: DemandError::UnknownLimit { .. }, .. }), "{error}");
}

/// 1000 lowered to 10 on a full bucket: 50 is refused; raised again: refills at the new rate.
pub fn lowered_from_1000_to_10_a_full_bucket_refuses_50_and_raised_again_refills_at_the_new_rate(
    open: OpenBackend<'_>,
) {
    let fixture = LimiterFixture::new(open);
    let level = Level::Entity("user");
    fixture.set(level, [Limit::per_minute("tpm", 1_000)]);
    fixture.spend("user", demand! { tpm: 1 });
    fixture.set(level, [Limit::per_minute("tpm", 10)]);
    let error =
        fixture.limiter.acquire("user", RESOURCE, demand! { tpm: 50 }).wait().expect_err("50 never fit 10");
    assert!(
        matches!(error, LimiterError::Demand { why: DemandError::Impossible { capacity: 10, .. }, .. }),
        "{error}"
    );
    assert_eq!(fixture.available("user", "tpm"), 10);
    fixture.spend("user", demand! { tpm: 1 });
    fixture.set(level, [Limit::per_minute("tpm", 1_000)]);
    assert_eq!(fixture.available("user", "tpm"), 9);
    fixture.refusal("user", demand! { tpm: 50 });
    fixture.advance_ms(60 * (50 - 9));
    fixture.spend("user", demand! { tpm: 50 });
}

/// limit 1000 lowered to 10 (a demand of 50 refused in between), raised to 1000: at most 10 are there, with or without a write
/// in between.
pub fn limits_that_only_refused_a_demand_were_in_force_all_the_same(open: OpenBackend<'_>) {
    for spends in [false, true] {
        let fixture = LimiterFixture::new(open);
        let set = |amount| fixture.set(Level::System, [Limit::per_hour("tpm", amount)]);
        fixture.create("team", None);
        fixture.create("user", Some("team"));
        set(1_000);
        fixture.spend("user", demand! { tpm: 1 });
        set(10);
        for _ in 0..2 {
            let asked = fixture.limiter.acquire("user", RESOURCE, demand! { tpm: 50 }).wait();
            assert!(asked.expect_err("50 never fit 10").is_impossible());
        }
        if spends {
            fixture.spend("user", demand! { tpm: 1 });
        }
        set(1_000);
        for entity in ["user", "team"] {
            assert_eq!(fixture.available(entity, "tpm"), 10 - i64::from(spends), "{entity}");
        }
    }
}

/// override of 10 on a bucket of 100: 50 refused.
pub fn an_override_of_10_on_a_bucket_of_100_refuses_50(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::Resource(RESOURCE), [Limit::per_hour("rpm", 100)]);
    fixture.spend("user", demand! { rpm: 10 });
    let ten = built([Limit::per_hour("rpm", 10)]);
    let ask = |amount: u64| {
        fixture.limiter.acquire("user", RESOURCE, demand! { rpm: amount }).limits(ten.clone()).wait()
    };
    let error = ask(50).expect_err("50 never fit 10");
    assert!(matches!(error, LimiterError::Demand { why: DemandError::Impossible { .. }, .. }), "{error}");
    assert_eq!(fixture.available("user", "rpm"), 90);
    ask(10).expect("10 fit 10").commit().wait().expect("the store answers");
    let ask = fixture.limiter.try_acquire("user", RESOURCE, demand! { rpm: 1 }).limits(ten.clone()).wait();
    assert!(!ask.expect("it is valid").is_admitted());
    // Limits of the call also serve an entity for which none are stored.
    let lease = fixture.limiter.acquire("nobody", "other", demand! { rpm: 1 }).limits(ten.clone()).wait();
    lease.expect("limits came with the call").commit().wait().expect("the store answers");
}

/// 200 tries from 10 threads on 100: exactly 100.
pub fn of_200_tries_from_10_threads_on_100_exactly_100_are_admitted(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::Resource(RESOURCE), [Limit::per_hour("rpm", 100)]);
    let admitted = AtomicUsize::new(0);
    thread::scope(|scope| {
        for thread in 0..10 {
            let (fixture, admitted) = (&fixture, &admitted);
            scope.spawn(move || {
                // Half of the threads have their own limiter, as other processes would.
                let own = limiter_on(&fixture.backend, |builder| builder);
                let limiter = if thread % 2 == 0 { &fixture.limiter } else { &own };
                for _ in 0..20 {
                    let taken = limiter.try_acquire("user", RESOURCE, demand! { rpm: 1 }).wait();
                    if let Some(lease) = taken.expect("the store answers").admitted() {
                        lease.commit().wait().expect("the store answers");
                        admitted.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    assert_eq!(admitted.into_inner(), 100);
    assert_eq!(fixture.available("user", "rpm"), 0);
}

/// 50 leases adjust by 10 at once: 500.
pub fn fifty_leases_that_adjust_by_10_at_once_make_500(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::Resource(RESOURCE), [Limit::per_hour("tpm", 1_000)]);
    thread::scope(|scope| {
        for _ in 0..50 {
            scope.spawn(|| {
                let mut lease = fixture.take("user", demand! { tpm: 0 }).expect("nothing always fits");
                lease.adjust([("tpm", 10)]).expect("tpm is a limit");
                lease.commit().wait().expect("the store answers");
            });
        }
    });
    assert_eq!(fixture.available("user", "tpm"), 500);
}

/// task cancelled in the block: as before it.
pub fn a_task_cancelled_in_the_block_leaves_everything_as_before_it(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::Resource(RESOURCE), [Limit::per_hour("tpm", 100), Limit::resource("slots", 2)]);
    let entered = AtomicBool::new(false);
    let call = fixture.limiter.acquire("user", RESOURCE, demand! { tpm: 40 });
    let mut task = Box::pin(call.run::<(), AnyError, _>(async |lease| {
        lease.adjust([("tpm", 30)])?;
        entered.store(true, Ordering::SeqCst);
        std::future::pending().await
    }));
    until(|| {
        assert!(poll(task.as_mut()).is_pending());
        entered.load(Ordering::SeqCst)
    });
    assert_eq!((fixture.available("user", "tpm"), fixture.available("user", "slots")), (60, 1));
    drop(task);
    assert_eq!((fixture.available("user", "tpm"), fixture.available("user", "slots")), (100, 2));
}

/// The error type of blocks in laws.
pub type AnyError = Box<dyn std::error::Error + Send + Sync>;

/// exception in the block: as before it, adjustments made earlier not applied.
pub fn an_error_in_the_block_leaves_everything_as_before_it_adjustments_included(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    fixture.create("user", Some("parent"));
    fixture.set(Level::Resource(RESOURCE), [Limit::per_hour("tpm", 100), Limit::resource("slots", 2)]);
    let call = fixture.limiter.acquire("user", RESOURCE, demand! { tpm: 40 });
    let failed = call.run::<(), AnyError, _>(async |lease| {
        lease.adjust([("tpm", 30)])?;
        Err("the provider is down".into())
    });
    let failed = block_on(failed);
    assert_eq!(failed.expect_err("the block failed").to_string(), "the provider is down");
    for entity in ["user", "parent"] {
        assert_eq!(
            (fixture.available(entity, "tpm"), fixture.available(entity, "slots")),
            (100, 2),
            "{entity}"
        );
    }
}

/// refund into a bucket that has refilled meanwhile: never above capacity.
pub fn a_refund_into_a_bucket_that_has_refilled_meanwhile_never_goes_above_capacity(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::Resource(RESOURCE), [Limit::per_minute("tpm", 100)]);
    let lease = fixture.take("user", demand! { tpm: 80 }).expect("there is room");
    fixture.advance_ms(60_000);
    lease.settle(demand! { tpm: 0 }).wait().expect("the store answers");
    assert_eq!(fixture.available("user", "tpm"), 100);
    fixture.spend("user", demand! { tpm: 100 });
    fixture.refusal("user", demand! { tpm: 1 });
}

/// entity deleted while a lease is open: leaving the block creates nothing.
pub fn an_entity_deleted_while_a_lease_is_open_is_not_made_anew_by_its_end(open: OpenBackend<'_>) {
    for used in [0, 40, 90] {
        let fixture = LimiterFixture::new(open);
        fixture.create("user", None);
        fixture.set(Level::Resource(RESOURCE), [Limit::per_hour("tpm", 100)]);
        let lease = fixture.take("user", demand! { tpm: 40 }).expect("there is room");
        fixture.catalog().delete_entity("user").wait().expect("it is there");
        lease.settle(demand! { tpm: used }).wait().expect("the store answers");
        let left =
            fixture.backend.buckets(fixture.catalog().namespace_id(), Scope::Entity("user"), None, 10).wait();
        assert_eq!(left.expect("the store answers").items, [], "used {used}");
        assert_eq!(fixture.available("user", "tpm"), 100, "used {used}");
    }
}

/// usage: 10 in the hour after midnight and 10 at 14 h: hours 10 and 10, day 20.
pub fn ten_in_the_hour_after_midnight_and_ten_at_14_h_are_hours_of_10_and_a_day_of_20(open: OpenBackend<'_>) {
    const MIDNIGHT: Tick = Tick::from_secs(1_767_225_600);
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::Resource(RESOURCE), [Limit::per_hour("tpm", 100)]);
    for hour in [0, 14] {
        fixture.clock.set(MIDNIGHT + tollgate_core::Span::from_secs(hour * 3_600 + 60));
        let lease = fixture.take("user", demand! { tpm: 15 }).expect("there is room");
        lease.settle(demand! { tpm: 10 }).wait().expect("the store answers");
    }
    let amounts = |window| {
        let query = UsageQuery::of_entity("user", window).resource(RESOURCE);
        let page = fixture.catalog().usage(query).wait().expect("the store answers");
        page.items.iter().map(|row| (row.start, row.amounts["tpm"], row.events)).collect::<Vec<_>>()
    };
    let two_pm = MIDNIGHT + tollgate_core::Span::from_secs(14 * 3_600);
    assert_eq!(amounts(Window::Hour), [(MIDNIGHT, 10, 1), (two_pm, 10, 1)]);
    assert_eq!(amounts(Window::Day), [(MIDNIGHT, 20, 2)]);
    assert_eq!(amounts(Window::Month), [(MIDNIGHT, 20, 2)]);
}

/// two namespaces, same entity: nothing in common; purge leaves no item of it in the table.
pub fn two_namespaces_have_nothing_in_common_and_a_purge_leaves_nothing(open: OpenBackend<'_>) {
    let (_, backend) = open_at(UNEVEN_START, open);
    let registry = Registry::new(Arc::clone(&backend));
    let limiters = ["one", "two"].map(|name| {
        let catalog = registry.open_or_register(name).wait().expect("a fresh store can be opened");
        catalog
            .set_limits(Level::Entity("user"), &built([Limit::per_hour("rpm", 5)]))
            .wait()
            .expect("it can be stored");
        tollgate::Limiter::builder(catalog).build()
    });
    for limiter in &limiters {
        for _ in 0..5 {
            let lease = limiter.acquire("user", RESOURCE, demand! { rpm: 1 }).wait().expect("there is room");
            lease.commit().wait().expect("the store answers");
        }
        let sixth = limiter.try_acquire("user", RESOURCE, demand! { rpm: 1 }).wait();
        assert!(!sixth.expect("it is valid").is_admitted());
    }
    let id = limiters[0].catalog().namespace_id().to_string();
    registry.delete("one").wait().expect("it is there");
    registry.purge(&id, |_| {}).wait().expect("it was deleted");
    let left = backend.find(Index::Namespace, &Query::all(id.clone())).wait().expect("the store answers");
    assert_eq!(left.items, []);
    let buckets = backend.buckets(&id, Scope::All, None, 10).wait().expect("the store answers");
    assert_eq!(buckets.items, []);
    // A limiter of a purged namespace can make nothing in it.
    assert!(limiters[0].acquire("other", RESOURCE, demand! { rpm: 1 }).wait().is_err());
    let status = limiters[1].available("user", RESOURCE).wait().expect("the other namespace is as it was");
    assert_eq!(status.available("rpm"), Some(0));
}

/// store unavailable: block returns an error within the timeout; allow runs the body with a lease that is degraded.
pub fn an_unavailable_store_blocks_with_an_error_or_allows_with_a_degraded_lease(open: OpenBackend<'_>) {
    let (outage, backend) = StoreOutage::of(open_at(UNEVEN_START, open).1);
    let limiter = limiter_on(&backend, |builder| builder);
    let limits = built([Limit::per_hour("rpm", 1)]);
    limiter.catalog().set_limits(Level::Entity("user"), &limits).wait().expect("the store is there");
    let allowing = limiter_on(&backend, |builder| builder.on_unavailable(OnUnavailable::Allow));
    outage.begin();
    let error =
        limiter.acquire("user", RESOURCE, demand! { rpm: 1 }).wait().expect_err("the store is unavailable");
    assert!(error.is_unavailable(), "{error}");
    for _ in 0..3 {
        let lease =
            allowing.acquire("user", RESOURCE, demand! { rpm: 1 }).wait().expect("the policy is to allow");
        assert!(lease.is_degraded());
        lease.settle(demand! { rpm: 1 }).wait().expect("there is nothing to write");
    }
    outage.end();
    let status = limiter.available("user", RESOURCE).wait().expect("the store is back");
    assert_eq!(status.available("rpm"), Some(1), "nothing was charged while the store was unavailable");
}
