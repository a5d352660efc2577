//! Resets and top-ups: once for each key, together with their event.

use std::time::Duration;

use tollgate_catalog::{CatalogError, KEY_KEPT, Level, NewEntity};
use tollgate_core::{Demand, DemandError, Limit, Limits, demand};

use super::fixture::{CatalogFixture, rpm};
use crate::OpenBackend;

crate::catalog::laws![
    a_reset_happens_once_for_each_key,
    a_top_up_happens_once_for_each_key_and_never_overflows,
    a_top_up_gives_what_it_names_and_nothing_else,
    invalid_credit_is_refused,
    a_change_that_failed_can_be_retried,
    only_the_bucket_of_the_entity_is_changed,
    a_bucket_without_stored_limits_can_be_reset,
    a_bucket_under_later_limits_can_be_reset,
    capacity_is_that_of_all_entities_with_a_bucket,
    buckets_of_an_entity_are_listed,
];

fn with_ten(open: OpenBackend<'_>) -> CatalogFixture {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    fixture
}

fn a_reset_happens_once_for_each_key(open: OpenBackend<'_>) {
    let fixture = with_ten(open);
    let reset = |key| fixture.catalog.reset("e", "gpt-4", key).wait().unwrap();
    let take = |amount: u64| assert!(fixture.take("e", "gpt-4", &demand! { rpm: amount }));
    take(7);
    assert!(reset(Some("k1")));
    assert_eq!(fixture.available("e", "gpt-4"), 10);
    take(7);
    assert!(!reset(Some("k1")));
    assert_eq!(fixture.available("e", "gpt-4"), 3);
    assert!(reset(Some("k2")));
    assert!(reset(None) && reset(None));
    assert_eq!(fixture.available("e", "gpt-4"), 10);
    fixture.advance(KEY_KEPT.as_micros() / 1_000_000 - 1);
    assert!(!reset(Some("k1")));
    fixture.advance(1);
    assert!(reset(Some("k1")));
}

fn a_top_up_happens_once_for_each_key_and_never_overflows(open: OpenBackend<'_>) {
    let fixture = with_ten(open);
    let top_up = |amount: u64, key| {
        fixture.catalog.top_up("e", "gpt-4", &demand! { rpm: amount }, key).wait().unwrap()
    };
    assert!(fixture.take("e", "gpt-4", &demand! { rpm: 9 }));
    assert!(top_up(4, Some("k")));
    assert_eq!(fixture.available("e", "gpt-4"), 5);
    assert!(!top_up(4, Some("k")));
    assert_eq!(fixture.available("e", "gpt-4"), 5);
    assert!(top_up(100, None));
    assert_eq!(fixture.available("e", "gpt-4"), 10);
    assert!(top_up(100, None));
    assert_eq!(fixture.available("e", "gpt-4"), 10);
}

fn a_top_up_gives_what_it_names_and_nothing_else(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let minute = Duration::from_secs(60);
    let limits = [Limit::calls(10, minute), Limit::per_minute("tpm", 100), Limit::per_minute("usd", 100)];
    fixture.catalog.set_limits(Level::System, &Limits::new(limits).unwrap()).wait().unwrap();
    assert!(fixture.take("e", "gpt-4", &demand! { call_count: 5, tpm: 50, usd: 50 }));
    fixture.catalog.top_up("e", "gpt-4", &demand! { tpm: 20 }, None).wait().unwrap();
    let status = fixture.catalog.buckets("e").wait().unwrap().remove(0).limits;
    let left: Vec<(&str, i64)> =
        status.iter().map(|status| (status.limit().name().as_str(), status.available())).collect();
    assert_eq!(left, [("call_count", 5), ("tpm", 70), ("usd", 50)]);
}

fn invalid_credit_is_refused(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let limits =
        [Limit::per_minute("rpm", 10), Limit::resource("slots", 2)].map(|limit| limit.build().unwrap());
    fixture.catalog.set_limits(Level::System, &Limits::new(limits).unwrap()).wait().unwrap();
    let refused = |credit: Demand| fixture.catalog.top_up("e", "r", &credit, Some("k")).wait().unwrap_err();
    let unknown = refused(Demand::new().with("tpm", 1));
    assert!(matches!(unknown, CatalogError::Credit(DemandError::UnknownLimit { .. })), "{unknown}");
    assert_eq!(refused(Demand::new().with("slots", 1)), CatalogError::CreditOfResource("slots".into()));
    let negative = refused(Demand::new().with("rpm", -1));
    assert!(matches!(negative, CatalogError::Credit(DemandError::BadAmount { .. })), "{negative}");
    let twice = refused(Demand::new().with("rpm", 1).with("rpm", 2));
    assert!(matches!(twice, CatalogError::Credit(DemandError::Repeated { .. })), "{twice}");
    assert!(matches!(refused(Demand::new()), CatalogError::Invalid { .. }));
    // No refused top-up has used up the key.
    assert!(fixture.catalog.top_up("e", "r", &demand! { rpm: 1 }, Some("k")).wait().unwrap());
}

fn a_change_that_failed_can_be_retried(open: OpenBackend<'_>) {
    let fixture = with_ten(open);
    assert!(fixture.take("e", "gpt-4", &demand! { rpm: 9 }));
    let keys = fixture.keys();
    fixture.spy.fail_after(0);
    let lost = fixture.catalog.reset("e", "gpt-4", Some("k")).wait();
    assert!(lost.unwrap_err().is_unavailable());
    fixture.spy.heal();
    assert_eq!((fixture.keys(), fixture.available("e", "gpt-4")), (keys, 1));
    assert!(fixture.catalog.reset("e", "gpt-4", Some("k")).wait().unwrap());
    assert_eq!(fixture.available("e", "gpt-4"), 10);
}

fn only_the_bucket_of_the_entity_is_changed(open: OpenBackend<'_>) {
    let fixture = with_ten(open);
    fixture.catalog.create_entity(NewEntity::new("p")).wait().unwrap();
    fixture.catalog.create_entity(NewEntity::new("e").parent("p").cascades(true)).wait().unwrap();
    for (entity, resource) in [("e", "gpt-4"), ("e", "gpt-3"), ("p", "gpt-4")] {
        assert!(fixture.take(entity, resource, &demand! { rpm: 6 }));
    }
    // A caller can reset the bucket of an entity that is disabled.
    fixture.catalog.disable_entity("e").wait().unwrap();
    assert!(fixture.catalog.reset("e", "gpt-4", None).wait().unwrap());
    fixture.catalog.enable_entity("e").wait().unwrap();
    let left = [("e", "gpt-4"), ("e", "gpt-3"), ("p", "gpt-4")].map(|(e, r)| fixture.available(e, r));
    assert_eq!(left, [10, 4, 4]);
}

fn a_bucket_without_stored_limits_can_be_reset(open: OpenBackend<'_>) {
    let fixture = with_ten(open);
    assert!(fixture.take("e", "gpt-4", &demand! { rpm: 6 }));
    fixture.catalog.delete_limits(Level::System).wait().unwrap();
    let error = fixture.catalog.reset("nobody", "gpt-4", None).wait().unwrap_err();
    assert!(matches!(error, CatalogError::NoLimits { .. }), "{error}");
    assert!(fixture.catalog.reset("e", "gpt-4", None).wait().unwrap());
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    assert_eq!(fixture.available("e", "gpt-4"), 10);
}

fn a_bucket_under_later_limits_can_be_reset(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::without_revision(open);
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    fixture.catalog.chain("e", "gpt-4").wait().unwrap();
    let other = fixture.another();
    other.catalog.set_limits(Level::System, &rpm(20)).wait().unwrap();
    assert!(other.take("e", "gpt-4", &demand! { rpm: 15 }));
    fixture.spy.be_stale_once();
    assert!(fixture.catalog.reset("e", "gpt-4", None).wait().unwrap());
    assert_eq!(other.available("e", "gpt-4"), 20);
    assert_eq!(fixture.catalog.chain("e", "gpt-4").wait().unwrap().links[0].limits, rpm(20));
}

fn capacity_is_that_of_all_entities_with_a_bucket(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let limits = Limits::new([Limit::per_minute("rpm", 100), Limit::per_minute("tpm", 1_000)]).unwrap();
    fixture.catalog.set_limits(Level::System, &limits).wait().unwrap();
    fixture.catalog.set_limits(Level::Entity("b"), &rpm(50)).wait().unwrap();
    assert!(fixture.take("a", "gpt-4", &demand! { rpm: 40, tpm: 1 }));
    assert!(fixture.take("b", "gpt-4", &demand! { rpm: 50 }));
    assert!(fixture.take("a", "gpt-3", &demand! { rpm: 1, tpm: 1 }));
    let capacity = fixture.catalog.capacity("gpt-4", "rpm").wait().unwrap();
    let entities: Vec<_> =
        capacity.entities.iter().map(|it| (it.entity.as_str(), it.capacity, it.used)).collect();
    assert_eq!(entities, [("a", Some(100), 40), ("b", Some(50), 50)]);
    let totals = (capacity.total_capacity, capacity.total_available, capacity.total_used);
    assert_eq!(totals, (150, 60, 90));
    assert_eq!(fixture.catalog.capacity("gpt-4", "tpm").wait().unwrap().entities.len(), 1);
    assert_eq!(
        fixture.catalog.capacity("nothing", "rpm").wait().unwrap(),
        tollgate_catalog::ResourceCapacity::default()
    );
}

fn buckets_of_an_entity_are_listed(open: OpenBackend<'_>) {
    let fixture = with_ten(open);
    assert!(fixture.take("a", "gpt-4", &demand! { rpm: 4 }));
    assert!(fixture.take("a", "gpt-3", &demand! { rpm: 1 }));
    assert!(fixture.take("b", "gpt-3", &demand! { rpm: 1 }));
    let mut buckets = fixture.catalog.buckets("a").wait().unwrap();
    buckets.sort_by(|one, two| one.resource.cmp(&two.resource));
    let listed: Vec<_> =
        buckets.iter().map(|bucket| (bucket.resource.as_str(), bucket.limits[0].available())).collect();
    assert_eq!(listed, [("gpt-3", 9), ("gpt-4", 6)]);
    assert!(fixture.catalog.buckets("nobody").wait().unwrap().is_empty());
}
