//! Invalid names are refused before the store is called.

use std::time::Duration;

use tollgate_catalog::{
    Catalog, CatalogError, Level, NewEntity, PageRequest, Registry, Result, Subject, UsageQuery, Window,
};
use tollgate_core::demand;

use super::fixture::{CatalogFixture, rpm, watched};
use crate::OpenBackend;

crate::catalog::laws![
    bad_names_are_refused_before_the_store_is_asked,
    bad_settings_are_refused_when_they_are_built,
];

const BAD_ENTITIES: [&str; 8] = ["", " ", "#", "a#b", "-a", "a/b", "$SYSTEM", "ü"];
const BAD_RESOURCES: [&str; 8] = ["", "4", "_x", "_default_", "a#b", "a b", "/a", "-"];
const BAD_NAMESPACES: [&str; 6] = ["", "_", "-a", "a/b", "a b", ".a"];

/// Calls every operation with `entity` in place of an entity.
fn with_entity(catalog: &Catalog, entity: &str) -> Vec<Result<()>> {
    let page = PageRequest::default;
    vec![
        catalog.create_entity(NewEntity::new(entity)).wait().map(drop),
        catalog.create_entity(NewEntity::new("e").parent(entity)).wait().map(drop),
        catalog.entity(entity).wait().map(drop),
        catalog.delete_entity(entity).wait(),
        catalog.children(entity, page()).wait().map(drop),
        catalog.set_parent(entity, None).wait().map(drop),
        catalog.set_parent("e", Some(entity)).wait().map(drop),
        catalog.set_cascades(entity, true).wait().map(drop),
        catalog.set_limits(Level::Entity(entity), &rpm(1)).wait(),
        catalog.set_limits(Level::EntityResource(entity, "r"), &rpm(1)).wait(),
        catalog.limits(Level::Entity(entity)).wait().map(drop),
        catalog.delete_limits(Level::EntityResource(entity, "r")).wait().map(drop),
        catalog.chain(entity, "r").wait().map(drop),
        catalog.disable_entity(entity).wait().map(drop),
        catalog.enable_entity(entity).wait().map(drop),
        catalog.reset(entity, "r", None).wait().map(drop),
        catalog.reset("e", "r", Some(entity)).wait().map(drop),
        catalog.top_up(entity, "r", &demand! { rpm: 1 }, None).wait().map(drop),
        catalog.top_up("e", "r", &demand! { rpm: 1 }, Some(entity)).wait().map(drop),
        catalog.audit(Subject::Entity(entity), page()).wait().map(drop),
        catalog.usage(UsageQuery::of_entity(entity, Window::Day)).wait().map(drop),
        catalog.usage_summary(UsageQuery::of_entity(entity, Window::Day)).wait().map(drop),
        catalog.buckets(entity).wait().map(drop),
        catalog.acting_as(entity).map(drop),
    ]
}

/// Calls every operation with `resource` in place of a resource.
fn with_resource(catalog: &Catalog, resource: &str) -> Vec<Result<()>> {
    let page = PageRequest::default;
    let of_entity = || UsageQuery::of_entity("e", Window::Day);
    let mut results = vec![
        catalog.set_limits(Level::Resource(resource), &rpm(1)).wait(),
        catalog.set_limits(Level::EntityResource("e", resource), &rpm(1)).wait(),
        catalog.limits(Level::Resource(resource)).wait().map(drop),
        catalog.delete_limits(Level::Resource(resource)).wait().map(drop),
        catalog.chain("e", resource).wait().map(drop),
        catalog.disable_resource(resource).wait().map(drop),
        catalog.enable_resource(resource).wait().map(drop),
        catalog.reset("e", resource, None).wait().map(drop),
        catalog.top_up("e", resource, &demand! { rpm: 1 }, None).wait().map(drop),
        catalog.audit(Subject::Resource(resource), page()).wait().map(drop),
        catalog.usage(of_entity().resource(resource)).wait().map(drop),
        catalog.usage(UsageQuery::of_resource(resource, Window::Day)).wait().map(drop),
        catalog.usage_summary(UsageQuery::of_resource(resource, Window::Day)).wait().map(drop),
        catalog.capacity(resource, "rpm").wait().map(drop),
    ];
    if resource != tollgate_catalog::DEFAULT_RESOURCE {
        results.push(catalog.entities_with_limits(resource, page()).wait().map(drop));
    }
    results
}

/// Calls every operation with `name` in place of the name or the id of a namespace.
fn with_namespace(registry: &Registry, name: &str) -> Vec<Result<()>> {
    let mut results = vec![
        registry.register(name).wait().map(drop),
        registry.register_all(&["good", name]).wait().map(drop),
        registry.get(name).wait().map(drop),
        registry.delete(name).wait().map(drop),
        registry.open(name).wait().map(drop),
        registry.open_or_register(name).wait().map(drop),
    ];
    if name != ".a" {
        results.push(registry.recover(name).wait().map(drop));
        results.push(registry.purge(name, |_| ()).wait().map(drop));
    }
    results
}

fn assert_refused(fixture: &CatalogFixture, name: &str, results: Vec<Result<()>>) {
    assert_eq!(fixture.spy.calls(), 0, "the store was asked about {name:?}");
    for (index, result) in results.into_iter().enumerate() {
        match result {
            Err(CatalogError::Name(error)) => assert_eq!(error.name(), name, "operation {index}"),
            other => panic!("operation {index} with {name:?}: {other:?}"),
        }
    }
}

fn bad_names_are_refused_before_the_store_is_asked(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.spy.calls();
    for name in BAD_ENTITIES {
        assert_refused(&fixture, name, with_entity(&fixture.catalog, name));
    }
    for name in BAD_RESOURCES {
        assert_refused(&fixture, name, with_resource(&fixture.catalog, name));
    }
    for name in BAD_NAMESPACES {
        assert_refused(&fixture, name, with_namespace(&fixture.registry, name));
    }
    for name in ["", "wcu", "a/b", "1"] {
        assert_refused(&fixture, name, vec![fixture.catalog.capacity("r", name).wait().map(drop)]);
    }
    let long = "x".repeat(257);
    assert!(with_entity(&fixture.catalog, &long).iter().all(Result::is_err));
    assert!(with_resource(&fixture.catalog, &long[..65]).iter().all(Result::is_err));
    assert_eq!(fixture.spy.calls(), 0);
}

fn bad_settings_are_refused_when_they_are_built(open: OpenBackend<'_>) {
    let (_, spy) = watched(open);
    let builder = || Registry::builder(spy.clone());
    assert!(matches!(builder().principal("a b").build(), Err(CatalogError::Name(_))));
    let error = builder().audit_retention(Some(Duration::ZERO)).build().unwrap_err();
    let expected =
        "audit_retention is 0, but must be at least a microsecond, or None to keep events for ever";
    assert_eq!(error.to_string(), expected);
    assert!(builder().cache_max(0).cache_ttl(Duration::MAX).audit_retention(None).build().is_ok());
}
