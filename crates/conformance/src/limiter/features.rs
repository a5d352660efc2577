//! Features: several resources, dry runs, consumption, switches, cascades, outages.

use std::time::Duration;

use tollgate::OnDrop;
use tollgate::limiter::LimiterError;
use tollgate_catalog::{Access, Cascade, CatalogError, Level, OnUnavailable};
use tollgate_core::{Limit, demand};

use super::LimiterFixture;
use super::fixture::{RESOURCE, built, limiter_on, take_now};
use crate::OpenBackend;
use crate::fixture::{UNEVEN_START, open_at};
use crate::outage::StoreOutage;

/// One call takes from two resources, or from neither.
pub fn several_resources_are_taken_all_or_nothing(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("rpm", 10)]);
    let both = |chat: u64, embed: u64| {
        let call = fixture.limiter.try_acquire("user", RESOURCE, demand! { rpm: chat });
        call.also("embed", demand! { rpm: embed }).wait().expect("the demand of a law is valid").into_result()
    };
    let left = |resource| {
        let status = fixture.limiter.available("user", resource).wait().expect("the store answers");
        status.available("rpm").expect("the limit is there")
    };
    let mut lease = both(2, 5).expect("there is room");
    assert_eq!((left(RESOURCE), left("embed")), (8, 5));
    let refused = both(1, 6).expect_err("embed has 5 left");
    let (link, _) = refused.limited_by().expect("a limit denies it");
    assert_eq!(link.resource, "embed");
    assert_eq!((left(RESOURCE), left("embed")), (8, 5));
    lease.report_for("embed", demand! { rpm: 1 }).expect("it was taken");
    assert!(lease.report_for("audio", demand! { rpm: 1 }).is_err());
    lease.settle(demand! { rpm: 1 }).wait().expect("the store answers");
    assert_eq!((left(RESOURCE), left("embed")), (9, 9));
}

/// A dry run takes nothing.
pub fn a_dry_run_returns_the_limit_its_entity_and_the_wait(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    fixture.create("user", Some("parent"));
    fixture.set(Level::Entity("parent"), [Limit::per_minute("tpm", 60)]);
    fixture.set(Level::Entity("user"), [Limit::per_minute("tpm", 600)]);
    fixture.spend("user", demand! { tpm: 50 });
    let ask = |tpm: u64| fixture.limiter.check_availability("user", RESOURCE, demand! { tpm: tpm }).wait();
    assert!(ask(10).expect("it is valid").passes());
    let status = ask(25).expect("it is valid");
    let (link, limit) = status.limited_by().expect("a limit refuses");
    assert_eq!((link.entity.as_str(), limit.available()), ("parent", 10));
    assert_eq!(status.retry_after(), Some(Duration::from_secs(15)));
    let wait = fixture.limiter.time_until_available("user", RESOURCE, demand! { tpm: 25 }).wait();
    assert_eq!(wait.expect("it is valid"), Some(Duration::from_secs(15)));
    assert_eq!(ask(25).expect("it is valid"), status, "asking changes nothing");
    fixture.advance_ms(15_000);
    fixture.spend("user", demand! { tpm: 25 });
}

/// A limit in shadow mode counts, and never refuses.
pub fn a_shadow_limit_counts_and_never_refuses(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("rpm", 5), Limit::per_hour("tpm", 10).shadow()]);
    let warnings: Vec<usize> = (0..3)
        .map(|_| {
            let lease =
                fixture.take("user", demand! { rpm: 1, tpm: 6 }).expect("a shadow limit denies no call");
            let warnings = lease.warnings().len();
            lease.commit().wait().expect("the store answers");
            warnings
        })
        .collect();
    assert_eq!(warnings, [0, 1, 1]);
    assert_eq!((fixture.available("user", "rpm"), fixture.available("user", "tpm")), (2, -8));
    fixture.spend("user", demand! { rpm: 2, tpm: 1_000 });
    fixture.refusal("user", demand! { rpm: 1 });
}

/// The lease carries a warning once the soft limit is passed, and the hard limit still denies.
pub fn a_soft_limit_warns_and_admits(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("rpm", 3).soft(1)]);
    let warnings: Vec<bool> = (0..3)
        .map(|_| {
            let lease = fixture.take("user", demand! { rpm: 1 }).expect("there is room");
            let is_warned = lease.warnings().iter().any(|limit| *limit == *"rpm");
            lease.commit().wait().expect("the store answers");
            is_warned
        })
        .collect();
    assert_eq!(warnings, [false, true, true]);
    fixture.refusal("user", demand! { rpm: 1 });
}

/// More can be taken on the same lease: all of it or nothing.
pub fn consume_takes_more_or_nothing_and_is_held_like_the_rest(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    fixture.create("user", Some("parent"));
    fixture.set(Level::System, [Limit::per_hour("tpm", 100), Limit::resource("slots", 4)]);
    let mut lease = fixture.take("user", demand! { tpm: 50 }).expect("there is room");
    lease.consume(demand! { tpm: 30 }).wait().expect("there is room");
    assert_eq!((fixture.available("user", "tpm"), fixture.available("parent", "tpm")), (20, 20));
    assert_eq!(fixture.available("user", "slots"), 3, "only what is named is taken");
    assert_eq!(lease.reserved("tpm"), Some(80));
    let refused = lease.consume(demand! { tpm: 30 }).wait().expect_err("20 are left");
    assert!(matches!(refused, LimiterError::Denied(_)), "{refused}");
    lease.settle(demand! { tpm: 40 }).wait().expect("the store answers");
    assert_eq!((fixture.available("user", "tpm"), fixture.available("parent", "tpm")), (30, 30));
    assert_eq!(fixture.available("user", "slots"), 4);
    let mut lease = fixture.take("user", demand! { tpm: 10 }).expect("there is room");
    lease.consume(demand! { tpm: 10, slots: 1 }).wait().expect("there is room");
    assert_eq!(fixture.available("user", "slots"), 2);
    lease.cancel().wait().expect("the store answers");
    assert_eq!((fixture.available("user", "tpm"), fixture.available("user", "slots")), (30, 4));
}

/// A resource that a lease consumed later is free as well when its holder has died.
pub fn consumed_resources_expire_with_their_holder(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::with(open, |builder| {
        builder.lease_ttl(Duration::from_secs(10)).heartbeats(tollgate::limiter::Heartbeats::Manual)
    });
    fixture.set(Level::System, [Limit::per_hour("tpm", 100), Limit::resource("slots", 1)]);
    let mut lease = fixture.take("user", demand! { tpm: 1, slots: 0 }).expect("there is room");
    lease.consume(demand! { slots: 1 }).wait().expect("there is room");
    assert_eq!(fixture.available("user", "slots"), 0);
    fixture.advance_ms(10_000);
    assert_eq!(fixture.available("user", "slots"), 1);
    assert!(!lease.heartbeat().wait().expect("the store answers"));
}

/// The last report of a limit counts, and adjustments add to it.
pub fn reports_and_adjustments_add_up(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("tpm", 100), Limit::per_hour("rpm", 100)]);
    let mut lease = fixture.take("user", demand! { tpm: 50, rpm: 1 }).expect("there is room");
    lease.report(demand! { tpm: 20 }).expect("tpm is a limit");
    lease.adjust([("tpm", 7)]).expect("tpm is a limit");
    lease.adjust([("tpm", -3), ("rpm", -5)]).expect("they are limits");
    assert!(lease.adjust([("nonsense", 1), ("tpm", 1)]).is_err(), "and tpm is noted all the same");
    lease.commit().wait().expect("the store answers");
    assert_eq!((fixture.available("user", "tpm"), fixture.available("user", "rpm")), (75, 100));
}

pub fn a_disabled_entity_or_resource_is_refused_until_it_is_enabled(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    fixture.create("user", Some("parent"));
    fixture.set(Level::System, [Limit::per_hour("rpm", 10)]);
    let (catalog, is_admitted) =
        (fixture.catalog(), || take_now(&fixture.limiter, "user", RESOURCE, demand! { rpm: 1 }).is_ok());
    assert!(is_admitted());
    catalog.disable_entity("parent").wait().expect("it is there");
    assert!(!is_admitted());
    catalog.enable_entity("parent").wait().expect("it is there");
    assert!(is_admitted());
    catalog.disable_resource(RESOURCE).wait().expect("the store answers");
    assert!(!is_admitted());
    catalog.enable_resource(RESOURCE).wait().expect("the store answers");
    assert!(is_admitted());
}

/// Each resource has its own policy.
pub fn a_cascade_policy_decides_which_entities_are_charged(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    fixture.create("user", Some("parent"));
    fixture.set(Level::System, [Limit::per_hour("rpm", 10)]);
    let left = || (fixture.available("user", "rpm"), fixture.available("parent", "rpm"));
    let set = |level, cascade| {
        let changed = fixture.catalog().set_cascade(level, cascade).wait();
        assert!(changed.expect("the store answers"), "it changes something");
    };
    fixture.spend("user", demand! { rpm: 1 });
    assert_eq!(left(), (9, 9));
    let before = fixture.take("user", demand! { rpm: 2 }).expect("there is room");
    set(Level::Resource(RESOURCE), Some(Cascade::Off));
    fixture.spend("user", demand! { rpm: 1 });
    assert_eq!(left(), (6, 7), "the resource is charged to the user alone");
    // A cancelled lease is refunded where it was taken from.
    before.cancel().wait().expect("the store answers");
    assert_eq!(left(), (8, 9));
    let other = fixture.limiter.acquire("user", "embed", demand! { rpm: 4 }).wait().expect("there is room");
    other.commit().wait().expect("the store answers");
    let of_parent = fixture.limiter.available("parent", "embed").wait().expect("the store answers");
    assert_eq!(of_parent.available("rpm"), Some(6), "another resource is charged to both");
    // Another program sees the exception of one entity.
    set(Level::EntityResource("user", RESOURCE), Some(Cascade::On));
    let second = limiter_on(&fixture.backend, |builder| builder);
    let lease = second.acquire("user", RESOURCE, demand! { rpm: 1 }).wait().expect("there is room");
    lease.commit().wait().expect("the store answers");
    assert_eq!(left(), (7, 8));
    set(Level::EntityResource("user", RESOURCE), None);
    set(Level::Resource(RESOURCE), None);
    fixture.spend("user", demand! { rpm: 7 });
    assert_eq!(left(), (0, 1), "the policy of the entity itself again");
}

/// Another entity may be denied a resource that is enabled.
pub fn an_entity_is_exempt_from_a_disabled_resource(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    fixture.create("user", Some("parent"));
    fixture.set(Level::System, [Limit::per_hour("rpm", 10)]);
    let catalog = fixture.catalog();
    let is_admitted = |entity: &str, resource: &str| match fixture
        .limiter
        .acquire(entity, resource, demand! { rpm: 1 })
        .wait()
    {
        Ok(lease) => lease.commit().wait().is_ok(),
        Err(LimiterError::Catalog(CatalogError::Disabled { .. })) => false,
        Err(other) => panic!("{other}"),
    };
    let set = |entity, access| {
        let changed = catalog.set_access(entity, RESOURCE, access).wait();
        assert!(changed.expect("the store answers"), "it changes something");
    };
    catalog.disable_resource(RESOURCE).wait().expect("the store answers");
    assert!(!is_admitted("user", RESOURCE));
    set("user", Some(Access::On));
    assert!(is_admitted("user", RESOURCE), "it alone may");
    assert_eq!((fixture.available("user", "rpm"), is_admitted("other", RESOURCE)), (9, false));
    assert!(!is_admitted("parent", RESOURCE), "the parent is charged for it, and may not call itself");
    let second = limiter_on(&fixture.backend, |builder| builder);
    assert!(
        second.acquire("user", RESOURCE, demand! { rpm: 1 }).wait().is_ok(),
        "another program knows it, too"
    );
    set("user", None);
    assert!(!is_admitted("user", RESOURCE));
    catalog.enable_resource(RESOURCE).wait().expect("the store answers");
    set("user", Some(Access::Off));
    assert_eq!([is_admitted("user", RESOURCE), is_admitted("user", "embed")], [false, true]);
    assert!(is_admitted("other", RESOURCE) && is_admitted("parent", RESOURCE));
}

/// Top-ups and resets count once for each key, and never make a bucket more than full.
pub fn reset_and_top_up_count_once_for_each_key(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("tpm", 100), Limit::resource("slots", 1)]);
    fixture.spend("user", demand! { tpm: 90 });
    let catalog = fixture.catalog();
    let top_up = |key| catalog.top_up("user", RESOURCE, &demand! { tpm: 30 }, Some(key)).wait();
    assert_eq!(top_up("january"), Ok(true));
    assert_eq!(top_up("january"), Ok(false));
    assert_eq!(fixture.available("user", "tpm"), 40);
    assert_eq!(top_up("february"), Ok(true));
    assert_eq!(top_up("march"), Ok(true));
    assert_eq!(fixture.available("user", "tpm"), 100);
    let lease = fixture.take("user", demand! { tpm: 100 }).expect("there is room");
    assert_eq!(catalog.reset("user", RESOURCE, Some("now")).wait(), Ok(true));
    assert_eq!(catalog.reset("user", RESOURCE, Some("now")).wait(), Ok(false));
    assert_eq!((fixture.available("user", "tpm"), fixture.available("user", "slots")), (100, 1));
    drop(lease);
    assert_eq!((fixture.available("user", "tpm"), fixture.available("user", "slots")), (100, 1));
}

/// A session begins with the first use.
pub fn a_session_quota_is_full_again_so_long_after_its_first_use(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::quota("messages", 3, Duration::from_secs(5 * 3_600))]);
    fixture.advance_ms(1_000);
    fixture.spend("user", demand! { messages: 1 });
    fixture.advance_ms(3_600_000);
    fixture.spend("user", demand! { messages: 2 });
    let refusal = fixture.refusal("user", demand! { messages: 1 });
    assert_eq!(refusal.retry_after(), Some(Duration::from_secs(4 * 3_600)));
    fixture.advance_ms(4 * 3_600_000);
    fixture.spend("user", demand! { messages: 3 });
}

/// The fallback is a bucket of this process with a share of the limit.
pub fn while_the_store_is_unavailable_local_keeps_to_a_share_of_the_limit(open: OpenBackend<'_>) {
    let (outage, backend) = StoreOutage::of(open_at(UNEVEN_START, open).1);
    let limiter =
        limiter_on(&backend, |builder| builder.on_unavailable(OnUnavailable::Local).local_share(25));
    let limits = built([Limit::per_hour("rpm", 40), Limit::resource("slots", 8)]);
    limiter.catalog().set_limits(Level::System, &limits).wait().expect("the store is there");
    let take = || take_now(&limiter, "user", RESOURCE, demand! { rpm: 1 });
    assert!(!take().expect("there is room").is_degraded());
    outage.begin();
    let mut admitted = 0;
    while let Ok(lease) = take() {
        assert!(lease.is_degraded());
        lease.commit().wait().expect("this process answers");
        admitted += 1;
    }
    assert_eq!(admitted, 10);
    let unknown = limiter.acquire("stranger", RESOURCE, demand! { rpm: 1 }).wait();
    assert!(unknown.expect_err("its limits were never read").is_unavailable());
}

/// It still has the calls that it admitted before.
pub fn a_store_that_comes_back_is_used_again(open: OpenBackend<'_>) {
    let (clock, store) = open_at(UNEVEN_START, open);
    let (outage, backend) = StoreOutage::of(store);
    let limiter = limiter_on(&backend, |builder| builder.on_unavailable(OnUnavailable::Allow));
    let limits = built([Limit::per_day("rpm", 2)]);
    limiter.catalog().set_limits(Level::System, &limits).wait().expect("the store is there");
    let take = || take_now(&limiter, "user", RESOURCE, demand! { rpm: 1 });
    take().expect("there is room").commit().wait().expect("the store is there");
    outage.begin();
    for _ in 0..5 {
        assert!(take().expect("the policy is to allow").is_degraded());
    }
    outage.end();
    clock.advance(tollgate_core::Span::from_secs(2));
    let lease = take().expect("one is left");
    assert!(!lease.is_degraded());
    lease.commit().wait().expect("the store is there");
    assert!(take().expect_err("two were admitted by the store").denial().is_some());
}

/// The reservation stays charged, unless the limiter refunds dropped leases; what was
/// reported counts in any case.
pub fn a_dropped_lease_frees_resources_and_stays_charged_or_is_refunded(open: OpenBackend<'_>) {
    for (on_drop, left) in [(None, 90), (Some(OnDrop::Keep), 90), (Some(OnDrop::Refund), 100)] {
        let fixture = LimiterFixture::with(open, |builder| match on_drop {
            Some(on_drop) => builder.on_drop(on_drop),
            None => builder,
        });
        fixture.set(Level::System, [Limit::per_hour("tpm", 100), Limit::resource("slots", 1)]);
        drop(fixture.take("user", demand! { tpm: 10 }));
        assert_eq!((fixture.available("user", "tpm"), fixture.available("user", "slots")), (left, 1));
        let mut reported = fixture.take("user", demand! { tpm: 10 }).expect("there is room");
        reported.report(demand! { tpm: 4 }).expect("tpm is a limit");
        drop(reported);
        assert_eq!((fixture.available("user", "tpm"), fixture.available("user", "slots")), (left - 4, 1));
    }
}
