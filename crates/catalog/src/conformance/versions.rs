//! The version of the records, and how it is changed.

use tollgate_store::records::{Item, ItemKey, Query, Records, Value, Write};

use super::fixture::{START, Suite};
use super::spy::Spy;
use crate::{CatalogError, NewEntity, Registry};

super::promises![
    the_first_who_uses_a_store_writes_its_version,
    records_of_a_later_version_are_refused,
    records_that_want_a_later_program_are_refused,
    records_of_an_earlier_version_work_once_they_are_migrated,
    a_migration_that_was_interrupted_can_be_run_again,
];

fn version_item(schema: &str) -> Item {
    Item::new(ItemKey::new("_/SYSTEM#", "#VERSION"))
        .with("schema_version", schema)
        .with("client_min_version", "0.0.0")
        .with("lambda_version", "0.10.1")
}

fn put(spy: &Spy, item: Item) {
    spy.inner().write(&[Write::Put(item, Vec::new())]).wait().unwrap();
}

fn the_first_who_uses_a_store_writes_its_version(suite: &Suite<'_>) {
    let (_, spy) = suite.empty();
    let registry = Registry::builder(spy.clone()).principal("ops@example.com").build().unwrap();
    let version = registry.version().wait().unwrap();
    assert_eq!((version.schema_version.as_str(), version.client_min_version.as_str()), ("1.0.0", "0.1.0"));
    assert_eq!(version.updated_at, tollgate_store::usage::iso(START));
    assert_eq!(version.updated_by, "ops@example.com");
    assert_eq!(Registry::new(spy.clone()).version().wait().unwrap(), version);
    assert_eq!(registry.migrate().wait().unwrap(), []);
    let records = spy.query(&Query::all("_/SYSTEM#")).wait().unwrap().items;
    assert_eq!(records.len(), 1);
}

fn records_of_a_later_version_are_refused(suite: &Suite<'_>) {
    let (_, spy) = suite.empty();
    put(&spy, version_item("1.0.1"));
    let registry = Registry::new(spy.clone());
    let too_new = CatalogError::TooNew { found: "1.0.1".into(), known: "1.0.0".into() };
    assert_eq!(registry.open_or_register("default").wait().unwrap_err(), too_new);
    assert_eq!(registry.open("default").wait().unwrap_err(), too_new);
    assert_eq!(registry.list().wait().unwrap_err(), too_new);
    assert_eq!(registry.purge("abc", |_| ()).wait().unwrap_err(), too_new);
    assert_eq!(registry.migrate().wait().unwrap_err(), too_new);
    assert_eq!(registry.version().wait().unwrap().schema_version, "1.0.1");
    assert_eq!(spy.query(&Query::all("_/SYSTEM#")).wait().unwrap().items.len(), 1);
    put(&spy, version_item("newest"));
    assert!(matches!(registry.version().wait(), Err(CatalogError::BadRecord { .. })));
}

fn records_that_want_a_later_program_are_refused(suite: &Suite<'_>) {
    let (_, spy) = suite.empty();
    put(&spy, version_item("1.0.0").with("client_min_version", "999.0.0"));
    let error = Registry::new(spy).open_or_register("default").wait().unwrap_err();
    assert!(matches!(error, CatalogError::ClientTooOld { .. }), "{error}");
}

/// A table as the original would have left it: entities that do not say how many children they have.
fn older(suite: &Suite<'_>) -> (std::sync::Arc<Spy>, Registry) {
    let (_, spy) = suite.empty();
    put(&spy, version_item("0.10.0"));
    let namespace = |sort: &str| Item::new(ItemKey::new("_/SYSTEM#", sort)).with("status", "active");
    put(&spy, namespace("#NAMESPACE#default").with("namespace_id", "a7x3kq"));
    put(&spy, namespace("#NSID#a7x3kq").with("namespace", "default"));
    for (id, parent) in [("p", None), ("c1", Some("p")), ("c2", Some("p")), ("alone", None)] {
        let item = Item::new(ItemKey::new(format!("a7x3kq/ENTITY#{id}"), "#META")).with("entity_id", id);
        put(
            &spy,
            match parent {
                Some(parent) => item.with("parent_id", parent).with("cascade", true).indexed(
                    tollgate_store::records::Index::Children,
                    format!("a7x3kq/PARENT#{parent}"),
                    format!("CHILD#{id}"),
                ),
                None => item,
            },
        );
    }
    let registry = Registry::new(spy.clone());
    (spy, registry)
}

fn assert_migrated(registry: &Registry, spy: &Spy) {
    let version = registry.version().wait().unwrap();
    assert_eq!(version.schema_version, "1.0.0");
    let kept = spy.inner().get_many(&[ItemKey::new("_/SYSTEM#", "#VERSION")]).wait().unwrap().remove(0);
    assert_eq!(kept.unwrap().fields["lambda_version"], Value::from("0.10.1"));
    let catalog = registry.open("default").wait().unwrap();
    assert_eq!(catalog.namespace_id(), "a7x3kq");
    let children = |id: &str| catalog.entity(id).wait().unwrap().unwrap().children;
    assert_eq!(["p", "c1", "c2", "alone"].map(children), [2, 0, 0, 0]);
    let has_children = CatalogError::HasChildren { entity: "p".into(), children: 2 };
    assert_eq!(catalog.delete_entity("p").wait(), Err(has_children));
    catalog.create_entity(NewEntity::new("c3").parent("p")).wait().unwrap();
    assert!(catalog.set_cascades("alone", true).wait().unwrap());
    assert!(catalog.set_parent("alone", Some("c1")).wait().unwrap());
    for id in ["alone", "c1", "c2", "c3", "p"] {
        catalog.delete_entity(id).wait().unwrap();
    }
}

fn records_of_an_earlier_version_work_once_they_are_migrated(suite: &Suite<'_>) {
    let (spy, registry) = older(suite);
    let too_old = CatalogError::TooOld { found: "0.10.0".into(), known: "1.0.0".into() };
    assert_eq!(registry.open("default").wait().unwrap_err(), too_old);
    let migrated = registry.migrate().wait().unwrap();
    assert_eq!(migrated.len(), 1);
    assert_eq!((migrated[0].from.as_str(), migrated[0].to.as_str()), ("0.10.0", "1.0.0"));
    assert_eq!(migrated[0].records, 4);
    assert_eq!(registry.migrate().wait().unwrap(), []);
    assert_migrated(&registry, &spy);
}

fn a_migration_that_was_interrupted_can_be_run_again(suite: &Suite<'_>) {
    for writes in 0..5 {
        let (spy, registry) = older(suite);
        spy.fail_after(writes);
        assert!(registry.migrate().wait().unwrap_err().is_unavailable());
        spy.heal();
        assert!(matches!(registry.open("default").wait(), Err(CatalogError::TooOld { .. })));
        assert_eq!(registry.migrate().wait().unwrap().len(), 1);
        assert_migrated(&registry, &spy);
    }
}
