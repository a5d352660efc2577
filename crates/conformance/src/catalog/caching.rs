//! The cache: what it keeps, for how long, and when it must read again.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Waker};
use std::time::Duration;

use tollgate_catalog::{Catalog, Level, NewEntity, Registry};

use super::fixture::{CatalogFixture, rpm, watched};
use super::spy::Spy;
use crate::OpenBackend;
use crate::poll::within_tries;

crate::catalog::laws![
    cached_records_are_not_read_again,
    each_entity_of_a_chain_costs_one_read,
    own_writes_are_seen_at_once_through_any_clone,
    a_write_whose_caller_gave_up_is_seen_all_the_same,
    changes_of_others_are_seen_at_once_if_the_store_has_a_revision,
    changes_of_others_are_seen_when_the_cache_expires,
    a_write_during_a_read_is_not_hidden_by_it,
    records_older_than_the_version_last_seen_are_read_again,
    limits_that_change_while_they_are_read_carry_their_own_version,
    refreshing_reads_the_chain_again,
    a_cache_that_is_off_keeps_nothing,
    the_cache_has_a_bound,
];

fn amount(catalog: &Catalog) -> u64 {
    catalog.chain("user-1", "gpt-4").wait().unwrap().links[0].limits[0].amount()
}

fn cached_records_are_not_read_again(open: OpenBackend<'_>) {
    for fixture in [CatalogFixture::new(open), CatalogFixture::without_revision(open)] {
        fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
        let chain = fixture.catalog.chain("user-1", "gpt-4").wait().unwrap();
        let first = fixture.catalog.cache_stats();
        assert_eq!((first.hits, first.misses, first.negative_hits, first.entries), (0, 7, 0, 7));
        fixture.spy.calls();
        assert!(fixture.catalog.is_current(&chain, fixture.clock.now()));
        assert_eq!(amount(&fixture.catalog), 10);
        assert_eq!(fixture.spy.calls(), 0);
        // The cache knows that all but the limits of the system are missing.
        let second = fixture.catalog.cache_stats();
        assert_eq!((second.hits, second.misses, second.negative_hits, second.entries), (7, 7, 6, 7));
        // Another entity shares the cached records of the resource and the system.
        fixture.catalog.chain("user-2", "gpt-4").wait().unwrap();
        let third = fixture.catalog.cache_stats();
        assert_eq!((third.hits, third.misses, third.entries), (10, 11, 11));
        fixture.catalog.invalidate();
        assert_eq!(fixture.catalog.cache_stats().entries, 0);
        assert!(!fixture.catalog.is_current(&chain, fixture.clock.now()));
    }
}

fn each_entity_of_a_chain_costs_one_read(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::without_revision(open);
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    fixture.catalog.create_entity(NewEntity::new("project")).wait().unwrap();
    fixture.catalog.create_entity(NewEntity::new("key").parent("project").cascades(true)).wait().unwrap();
    fixture.catalog.chain("other", "gpt-3").wait().unwrap();
    fixture.spy.gets();
    fixture.catalog.chain("key", "gpt-4").wait().unwrap();
    // The key: itself, its switch, two levels, the resource's switch and level, and the version; the system is cached.
    // The project: itself, its switch, two levels, and the version.
    assert_eq!(fixture.spy.gets(), (2, 7 + 5));
}

fn own_writes_are_seen_at_once_through_any_clone(open: OpenBackend<'_>) {
    for fixture in [CatalogFixture::new(open), CatalogFixture::without_revision(open)] {
        let (one, two) = (fixture.catalog.clone(), fixture.catalog.acting_as("somebody").unwrap());
        one.set_limits(Level::System, &rpm(10)).wait().unwrap();
        assert_eq!((amount(&one), amount(&two)), (10, 10));
        let chain = two.chain("user-1", "gpt-4").wait().unwrap();
        one.set_limits(Level::Resource("gpt-4"), &rpm(20)).wait().unwrap();
        assert!(!two.is_current(&chain, fixture.clock.now()));
        assert_eq!((amount(&one), amount(&two)), (20, 20));
        two.set_limits(Level::EntityResource("user-1", "gpt-4"), &rpm(30)).wait().unwrap();
        assert_eq!((amount(&one), amount(&two)), (30, 30));
        two.delete_limits(Level::EntityResource("user-1", "gpt-4")).wait().unwrap();
        assert_eq!((amount(&one), amount(&two)), (20, 20));
    }
}

fn a_write_whose_caller_gave_up_is_seen_all_the_same(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::without_revision(open);
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    assert_eq!(amount(&fixture.catalog), 10);
    fixture.spy.lose_an_answer();
    let limits = rpm(20);
    let mut cancelled = fixture.catalog.set_limits(Level::System, &limits);
    assert!(Pin::new(&mut cancelled).poll(&mut Context::from_waker(Waker::noop())).is_pending());
    drop(cancelled);
    // A store may cancel a write that it has not begun, and may take a moment to do so. Either outcome is seen.
    let is_seen = || amount(&fixture.catalog) == amount(&fixture.another().catalog);
    assert!(within_tries(is_seen));
}

fn changes_of_others_are_seen_at_once_if_the_store_has_a_revision(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    if fixture.catalog.backend().revision().is_none() {
        return;
    }
    let other = fixture.another().catalog;
    other.set_limits(Level::System, &rpm(10)).wait().unwrap();
    let chain = fixture.catalog.chain("user-1", "gpt-4").wait().unwrap();
    other.set_limits(Level::System, &rpm(20)).wait().unwrap();
    assert!(!fixture.catalog.is_current(&chain, fixture.clock.now()));
    assert_eq!(amount(&fixture.catalog), 20);
    let chain = fixture.catalog.chain("user-1", "gpt-4").wait().unwrap();
    fixture.advance(1_000_000);
    assert!(fixture.catalog.is_current(&chain, fixture.clock.now()));
}

fn changes_of_others_are_seen_when_the_cache_expires(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::without_revision(open);
    let other = fixture.another().catalog;
    other.set_limits(Level::System, &rpm(10)).wait().unwrap();
    let chain = fixture.catalog.chain("user-1", "gpt-4").wait().unwrap();
    other.set_limits(Level::EntityResource("user-1", "gpt-4"), &rpm(40)).wait().unwrap();
    fixture.advance(59);
    assert!(fixture.catalog.is_current(&chain, fixture.clock.now()));
    assert_eq!(amount(&fixture.catalog), 10);
    fixture.advance(1);
    assert!(!fixture.catalog.is_current(&chain, fixture.clock.now()));
    assert_eq!(amount(&fixture.catalog), 40);
}

fn a_write_during_a_read_is_not_hidden_by_it(open: OpenBackend<'_>) {
    for fixture in [CatalogFixture::new(open), CatalogFixture::without_revision(open)] {
        fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
        fixture.catalog.chain("other", "gpt-4").wait().unwrap();
        fixture.catalog.invalidate();
        let writer = fixture.catalog.clone();
        fixture.spy.during_get(move || writer.set_limits(Level::System, &rpm(20)).wait().unwrap());
        let chain = fixture.catalog.chain("user-1", "gpt-4").wait().unwrap();
        assert!(!fixture.catalog.is_current(&chain, fixture.clock.now()));
        assert_eq!(amount(&fixture.catalog), 20);
    }
}

fn records_older_than_the_version_last_seen_are_read_again(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::without_revision(open);
    let other = fixture.another().catalog;
    other.set_limits(Level::System, &rpm(10)).wait().unwrap();
    assert_eq!(amount(&fixture.catalog), 10);
    // That the entity has no limits of its own was read at version 1, and is out of date at version 3.
    other.set_limits(Level::EntityResource("user-1", "gpt-4"), &rpm(40)).wait().unwrap();
    fixture.catalog.set_limits(Level::System, &rpm(20)).wait().unwrap();
    let chain = fixture.catalog.chain("user-1", "gpt-4").wait().unwrap();
    assert_eq!((chain.links[0].limits[0].amount(), chain.links[0].limits.version()), (40, 3));
}

fn limits_that_change_while_they_are_read_carry_their_own_version(open: OpenBackend<'_>) {
    for changes in 1..5 {
        let fixture = CatalogFixture::without_revision(open);
        let other = fixture.another().catalog;
        // At version n the amount is n.
        other.set_limits(Level::System, &rpm(1)).wait().unwrap();
        fixture.catalog.chain("user-1", "gpt-4").wait().unwrap();
        fixture.catalog.invalidate();
        change_during_gets(&fixture.spy, other, 2, 1 + changes);
        for _ in 0..changes {
            let limits = fixture.catalog.chain("user-1", "gpt-4").wait().unwrap().links[0].limits.clone();
            assert!(limits.version() <= limits[0].amount(), "{limits:?} at {}", limits.version());
            fixture.catalog.invalidate();
        }
        // When the other catalog stops changing them, the version is that of the limits.
        fixture.catalog.invalidate();
        let limits = fixture.catalog.chain("user-1", "gpt-4").wait().unwrap().links[0].limits.clone();
        assert_eq!((limits.version(), limits[0].amount()), (1 + changes, 1 + changes));
    }
}

/// Sets the limits during each of the next reads.
fn change_during_gets(spy: &Arc<Spy>, catalog: Catalog, version: u64, last: u64) {
    let again = Arc::clone(spy);
    spy.during_get(move || {
        catalog.set_limits(Level::System, &rpm(version)).wait().unwrap();
        if version < last {
            change_during_gets(&again, catalog, version + 1, last);
        }
    });
}

fn refreshing_reads_the_chain_again(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::without_revision(open);
    let other = fixture.another().catalog;
    other.set_limits(Level::System, &rpm(10)).wait().unwrap();
    other.create_entity(NewEntity::new("parent")).wait().unwrap();
    other.create_entity(NewEntity::new("user-1").parent("parent").cascades(true)).wait().unwrap();
    assert_eq!(amount(&fixture.catalog), 10);
    for (level, link) in [(Level::System, 0), (Level::Entity("parent"), 1)] {
        other.set_limits(level, &rpm(20)).wait().unwrap();
        let before = fixture.catalog.chain("user-1", "gpt-4").wait().unwrap();
        assert_eq!(before.links[link].limits[0].amount(), if link == 0 { 10 } else { 20 });
        fixture.catalog.refresh("user-1", "gpt-4");
        let after = fixture.catalog.chain("user-1", "gpt-4").wait().unwrap();
        assert_eq!(after.links[link].limits[0].amount(), 20);
        assert!(after.links[link].limits.version() > before.links[link].limits.version());
    }
}

fn a_cache_that_is_off_keeps_nothing(open: OpenBackend<'_>) {
    for hides_revision in [false, true] {
        let (clock, spy) = watched(open);
        let registry = Registry::builder(spy.clone()).cache_ttl(Duration::ZERO).build().unwrap();
        let catalog = registry.open_or_register("default").wait().unwrap();
        if hides_revision {
            spy.hide_revision();
        }
        catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
        let chain = catalog.chain("user-1", "gpt-4").wait().unwrap();
        assert!(!catalog.is_current(&chain, clock.now()));
        spy.gets();
        assert_eq!(amount(&catalog), 10);
        assert_eq!(spy.gets(), (1, 8));
        assert_eq!((catalog.cache_stats().hits, catalog.cache_stats().entries), (0, 0));
    }
}

fn the_cache_has_a_bound(open: OpenBackend<'_>) {
    let (_, spy) = watched(open);
    spy.hide_revision();
    let registry = Registry::builder(spy).cache_max(50).build().unwrap();
    let catalog = registry.open_or_register("default").wait().unwrap();
    catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    for index in 0..200 {
        catalog.chain(&format!("user-{index}"), "gpt-4").wait().unwrap();
        assert!(catalog.cache_stats().entries <= 50);
    }
    // The records that all entities share are used by all, and never evicted.
    assert_eq!(catalog.cache_stats().hits, 199 * 3);
}
