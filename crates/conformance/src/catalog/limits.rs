//! Stored limits: they are read as they were set, and listed.

use std::time::Duration;

use tollgate_catalog::{CatalogError, DEFAULT_RESOURCE, Level, OnUnavailable, PageRequest};
use tollgate_core::{Algorithm, Limit, Limits, UNBOUNDED, Unit};

use super::fixture::{CatalogFixture, all_pages, rpm};
use crate::OpenBackend;

crate::catalog::laws![
    every_kind_of_limit_is_read_as_it_was_set,
    setting_replaces_everything_that_was_set_before,
    an_empty_set_of_limits_is_refused,
    setting_limits_leaves_the_policy_of_the_system_alone,
    the_lists_name_the_entities_and_resources_with_limits,
    entities_with_limits_are_listed_in_pages,
];

fn every_kind_of_limit_is_read_as_it_was_set(open: OpenBackend<'_>) {
    let second = Duration::from_secs(1);
    let usd = Unit::new("US:D", 6).unwrap();
    let limits = Limits::new([
        Limit::per_minute("a", 100).burst(20),
        Limit::rate("a_cp", 3, Duration::from_millis(1_500)).algorithm(Algorithm::Gcra),
        Limit::rate("b", 3, second).algorithm(Algorithm::LeakyBucket).shadow(),
        Limit::fixed_window("c", 3, second).soft(2),
        Limit::sliding_window("d-e.f", 3, second).resolution(Duration::from_micros(70)),
        Limit::sliding_window("e", 3, second),
        Limit::calls(5, second),
        Limit::resource("g", 4),
        Limit::quota("h", 100, tollgate_calendar::daily("Europe/Berlin").unwrap()).unit(usd),
        Limit::quota("i", 100, Duration::from_secs(3_600)),
        Limit::quota("j", 100, Duration::from_micros(1)),
        Limit::per_minute("k", UNBOUNDED),
        Limit::per_minute("l", 10).burst(UNBOUNDED),
        Limit::resource("m", UNBOUNDED),
        Limit::per_second("n", tollgate_core::AMOUNT_MAX),
        Limit::rate("o", 1, tollgate_core::PERIOD_MAX.to_duration()),
    ]);
    let mut limits: Vec<Limit> = limits.unwrap().to_vec();
    limits.sort_by(|one, two| one.name().cmp(two.name()));
    let limits = Limits::new(limits).unwrap();
    let fixture = CatalogFixture::new(open);
    for level in [Level::System, Level::Resource("r"), Level::Entity("e"), Level::EntityResource("e", "r")] {
        fixture.catalog.set_limits(level, &limits).wait().unwrap();
        assert_eq!(fixture.catalog.limits(level).wait().unwrap().unwrap().limits, limits, "{level}");
    }
    assert_eq!(fixture.catalog.chain("e", "r").wait().unwrap().links[0].limits, limits);
}

fn setting_replaces_everything_that_was_set_before(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let both = Limits::new([Limit::per_minute("rpm", 10).shadow(), Limit::per_minute("tpm", 1_000)]).unwrap();
    for level in [Level::System, Level::Resource("r"), Level::Entity("e"), Level::EntityResource("e", "r")] {
        assert_eq!(fixture.catalog.limits(level).wait().unwrap(), None);
        fixture.catalog.set_limits(level, &both).wait().unwrap();
        let before = fixture.catalog.limits(level).wait().unwrap().unwrap();
        fixture.advance(1);
        fixture.catalog.set_limits(level, &rpm(20)).wait().unwrap();
        let after = fixture.catalog.limits(level).wait().unwrap().unwrap();
        assert_eq!(after.limits, rpm(20), "{level}");
        assert!(after.config_version > before.config_version, "{level}");
    }
}

fn an_empty_set_of_limits_is_refused(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let none = Limits::new::<[Limit; 0]>([]).unwrap();
    for level in [Level::System, Level::Resource("r"), Level::Entity("e"), Level::EntityResource("e", "r")] {
        let error = fixture.catalog.set_limits(level, &none).wait().unwrap_err();
        assert_eq!(error, CatalogError::EmptyLimits(level.to_string()));
        assert_eq!(fixture.catalog.limits(level).wait().unwrap(), None);
    }
    assert!(fixture.catalog.set_system_limits(&none, None).wait().is_err());
}

fn setting_limits_leaves_the_policy_of_the_system_alone(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let policy = || fixture.catalog.limits(Level::System).wait().unwrap().unwrap().on_unavailable;
    for set in [OnUnavailable::Block, OnUnavailable::Allow, OnUnavailable::Local] {
        fixture.catalog.set_system_limits(&rpm(10), Some(set)).wait().unwrap();
        assert_eq!(policy(), Some(set));
        fixture.catalog.set_limits(Level::System, &rpm(20)).wait().unwrap();
        assert_eq!(policy(), Some(set));
    }
    fixture.catalog.set_system_limits(&rpm(10), None).wait().unwrap();
    assert_eq!(policy(), None);
}

fn the_lists_name_the_entities_and_resources_with_limits(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    for resource in ["gpt-4", "a/b", "gpt-4"] {
        catalog.set_limits(Level::Resource(resource), &rpm(1)).wait().unwrap();
    }
    for entity in ["user-1", "user-2", "user-1"] {
        catalog.set_limits(Level::EntityResource(entity, "gpt-4"), &rpm(1)).wait().unwrap();
        catalog.set_limits(Level::Entity(entity), &rpm(1)).wait().unwrap();
    }
    assert_eq!(catalog.resources_with_limits().wait().unwrap(), ["a/b", "gpt-4"]);
    let counts = catalog.resources_with_entity_limits().wait().unwrap();
    assert_eq!(counts, [(DEFAULT_RESOURCE.into(), 2), ("gpt-4".into(), 2)].into());
    for resource in ["gpt-4", DEFAULT_RESOURCE] {
        let page = catalog.entities_with_limits(resource, PageRequest::default()).wait().unwrap();
        assert_eq!(page.items, ["user-1", "user-2"]);
    }

    catalog.delete_limits(Level::Resource("a/b")).wait().unwrap();
    catalog.delete_limits(Level::EntityResource("user-1", "gpt-4")).wait().unwrap();
    catalog.delete_limits(Level::Entity("user-1")).wait().unwrap();
    catalog.delete_limits(Level::Entity("user-2")).wait().unwrap();
    assert_eq!(catalog.resources_with_limits().wait().unwrap(), ["gpt-4"]);
    assert_eq!(catalog.resources_with_entity_limits().wait().unwrap(), [("gpt-4".into(), 1)].into());
    catalog.delete_limits(Level::Resource("gpt-4")).wait().unwrap();
    assert!(catalog.resources_with_limits().wait().unwrap().is_empty());
}

fn entities_with_limits_are_listed_in_pages(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    for index in 0..7 {
        let entity = format!("user-{index}");
        fixture.catalog.set_limits(Level::Entity(&entity), &rpm(1)).wait().unwrap();
    }
    let read = |page| fixture.catalog.entities_with_limits(DEFAULT_RESOURCE, page).wait();
    let all = all_pages(&PageRequest::of(3), read);
    assert_eq!(all, (0..7).map(|index| format!("user-{index}")).collect::<Vec<_>>());
}
