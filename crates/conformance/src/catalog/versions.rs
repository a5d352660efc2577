//! The version of the records, and how it is changed.

use tollgate_catalog::{Access, Cascade, CatalogError, Level, NewEntity, Registry};
use tollgate_store::records::{Item, ItemKey, Query, Records, Value, Write};

use super::fixture::{START, watched};
use super::spy::Spy;
use crate::OpenBackend;

crate::catalog::laws![
    the_first_registry_of_a_store_writes_its_version,
    records_of_a_later_version_are_refused,
    records_that_require_a_later_program_are_refused,
    the_minimum_version_of_the_original_is_ignored,
    records_of_an_earlier_version_work_once_they_are_migrated,
    a_migration_that_was_interrupted_can_be_run_again,
    migrated_switches_and_shadow_limits_are_as_they_were,
    cascade_policies_and_exceptions_are_as_they_were,
    records_without_a_form_here_are_reported_before_they_are_lost,
    usage_is_migrated_once_and_later_usage_of_the_original_is_not_listed,
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

fn the_first_registry_of_a_store_writes_its_version(open: OpenBackend<'_>) {
    let (_, spy) = watched(open);
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

fn records_of_a_later_version_are_refused(open: OpenBackend<'_>) {
    let (_, spy) = watched(open);
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

fn records_that_require_a_later_program_are_refused(open: OpenBackend<'_>) {
    let (_, spy) = watched(open);
    put(&spy, version_item("1.0.0").with("tollgate_min_version", "999.0.0"));
    let error = Registry::new(spy).open_or_register("default").wait().unwrap_err();
    assert!(matches!(error, CatalogError::ClientTooOld { .. }), "{error}");
}

fn the_minimum_version_of_the_original_is_ignored(open: OpenBackend<'_>) {
    let (spy, registry) = older(open);
    let raised = |item: Item| item.with("client_min_version", "0.17.0");
    put(&spy, raised(version_item("0.10.0")));
    registry.migrate().wait().unwrap();
    // A client of the original that still runs raises it again.
    let version = ItemKey::new("_/SYSTEM#", "#VERSION");
    let stored = || spy.inner().get_many(std::slice::from_ref(&version)).wait().unwrap().remove(0).unwrap();
    put(&spy, raised(stored()));
    let registry = Registry::new(spy.clone());
    registry.open("default").wait().unwrap();
    assert_eq!(registry.version().wait().unwrap().client_min_version, "0.1.0");
    assert_eq!(stored().fields["client_min_version"], Value::from("0.17.0"));
}

/// Opens a table as the original leaves it: its entities have no count of children.
fn older(open: OpenBackend<'_>) -> (std::sync::Arc<Spy>, Registry) {
    let (_, spy) = watched(open);
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
    let stored = spy.inner().get_many(&[ItemKey::new("_/SYSTEM#", "#VERSION")]).wait().unwrap().remove(0);
    assert_eq!(stored.unwrap().fields["lambda_version"], Value::from("0.10.1"));
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

fn records_of_an_earlier_version_work_once_they_are_migrated(open: OpenBackend<'_>) {
    let (spy, registry) = older(open);
    let too_old = CatalogError::TooOld { found: "0.10.0".into(), known: "1.0.0".into() };
    assert_eq!(registry.open("default").wait().unwrap_err(), too_old);
    let migrated = registry.migrate().wait().unwrap();
    assert_eq!(migrated.len(), 1);
    assert_eq!((migrated[0].from.as_str(), migrated[0].to.as_str()), ("0.10.0", "1.0.0"));
    assert_eq!(migrated[0].records, 4);
    assert_eq!(registry.migrate().wait().unwrap(), []);
    assert_migrated(&registry, &spy);
}

fn a_migration_that_was_interrupted_can_be_run_again(open: OpenBackend<'_>) {
    for writes in 0..5 {
        let (spy, registry) = older(open);
        spy.fail_after(writes);
        assert!(registry.migrate().wait().unwrap_err().is_unavailable());
        spy.heal();
        assert!(matches!(registry.open("default").wait(), Err(CatalogError::TooOld { .. })));
        assert_eq!(registry.migrate().wait().unwrap().len(), 1);
        assert_migrated(&registry, &spy);
    }
}

/// Returns limits as the original stores them.
fn config(partition: &str, sort: &str) -> Item {
    Item::new(ItemKey::new(format!("a7x3kq/{partition}"), sort))
        .with("config_version", 1)
        .with("l_rpm_cp", 5)
        .with("l_rpm_ra", 5)
        .with("l_rpm_rp", 60)
}

fn migrated_switches_and_shadow_limits_are_as_they_were(open: OpenBackend<'_>) {
    let (spy, registry) = older(open);
    put(&spy, config("SYSTEM#", "#CONFIG"));
    put(&spy, config("RESOURCE#off", "#CONFIG").with("disabled", true));
    put(&spy, Item::new(ItemKey::new("a7x3kq/RESOURCE#bare", "#CONFIG")).with("disabled", true));
    put(&spy, config("RESOURCE#on", "#CONFIG").with("disabled", false));
    put(&spy, config("RESOURCE#soft", "#CONFIG").with("l_rpm_soft", true));
    put(&spy, config("ENTITY#gone", "#CONFIG#_default_").with("disabled", true));
    put(&spy, config("ENTITY#p", "#CONFIG#on").with("disabled", false));
    let plan = registry.migration().wait().unwrap().unwrap();
    assert_eq!((plan.from.as_str(), plan.to.as_str(), plan.lost), ("0.10.0", "1.0.0", Vec::new()));
    registry.migrate().wait().unwrap();
    assert_eq!(registry.migration().wait().unwrap(), None);
    let catalog = registry.open("default").wait().unwrap();
    let is_off = |entity: &str, resource: &str| {
        matches!(catalog.chain(entity, resource).wait(), Err(CatalogError::Disabled { .. }))
    };
    assert!(is_off("p", "off") && is_off("p", "bare") && is_off("gone", "on"));
    assert!(!is_off("p", "on") && !is_off("p", "other"));
    let chain = catalog.chain("p", "soft").wait().unwrap();
    assert!(chain.links[0].limits[0].is_shadow(), "it counts, and never refuses");
    assert!(!catalog.chain("p", "on").wait().unwrap().links[0].limits[0].is_shadow());
    assert!(catalog.enable_resource("off").wait().unwrap());
    assert!(!is_off("p", "off"));
}

fn cascade_policies_and_exceptions_are_as_they_were(open: OpenBackend<'_>) {
    use Cascade::{Off, On};
    let (spy, registry) = older(open);
    put(&spy, config("SYSTEM#", "#CONFIG"));
    put(&spy, config("RESOURCE#budget", "#CONFIG").with("cascade", false));
    put(&spy, config("RESOURCE#off", "#CONFIG").with("disabled", true).with("cascade", true));
    put(&spy, config("ENTITY#c1", "#CONFIG#off").with("disabled", false).with("cascade", false));
    put(&spy, config("ENTITY#c1", "#CONFIG#model").with("disabled", true));
    put(&spy, config("ENTITY#c1", "#CONFIG#_default_").with("cascade", true));
    assert_eq!(registry.migration().wait().unwrap().unwrap().lost, []);
    registry.migrate().wait().unwrap();
    let catalog = registry.open("default").wait().unwrap();
    let cascade = |level| catalog.cascade(level).wait().unwrap();
    assert_eq!((cascade(Level::Resource("budget")), cascade(Level::Resource("off"))), (Some(Off), Some(On)));
    assert_eq!(cascade(Level::Entity("c1")), Some(On));
    assert_eq!(cascade(Level::EntityResource("c1", "off")), Some(Off));
    let access = |resource| catalog.access("c1", resource).wait().unwrap();
    assert_eq!((access("off"), access("model")), (Some(Access::On), Some(Access::Off)));
    assert_eq!(catalog.disabled_resources().wait().unwrap(), ["off"]);
    assert!(catalog.chain("c1", "off").wait().is_ok() && catalog.chain("c2", "off").wait().is_err());
}

fn records_without_a_form_here_are_reported_before_they_are_lost(open: OpenBackend<'_>) {
    let record = |partition: &str, sort: &str| Item::new(ItemKey::new(format!("a7x3kq/{partition}"), sort));
    let cases: [(&str, Vec<Item>); 9] = [
        ("must be true or false", vec![config("RESOURCE#r", "#CONFIG").with("cascade", "up")]),
        ("change by a schedule", vec![config("RESOURCE#r", "#CONFIG").with("l_rpm_sched", "x")]),
        ("begins with the first use", vec![config("SYSTEM#", "#CONFIG").with("w_five_cp", 3)]),
        ("\"l_rpm_xyz\" is not known", vec![config("SYSTEM#", "#CONFIG").with("l_rpm_xyz", 3)]),
        ("no limit counts for", vec![config("ENTITY#p", "#CONFIG#r").with("disabled", "bypass")]),
        (
            "but for resource \"r\"",
            vec![
                config("ENTITY#p", "#CONFIG#_default_").with("disabled", true),
                config("ENTITY#p", "#CONFIG#r").with("disabled", false),
            ],
        ),
        (
            "disabled for all others",
            vec![
                config("RESOURCE#r", "#CONFIG").with("disabled", true),
                config("ENTITY#p", "#CONFIG#_default_").with("disabled", false),
            ],
        ),
        ("\"quota\" is not known", vec![record("ENTITY#p", "#META").with("entity_id", "p").with("quota", 1)]),
        ("records of this kind", vec![record("SYSTEM#", "#PROVISIONER").with("state", "x")]),
    ];
    for (expected, items) in cases {
        let (spy, registry) = older(open);
        items.into_iter().for_each(|item| put(&spy, item));
        let before = spy.query(&Query::all("_/SYSTEM#")).wait().unwrap().items;
        let error = registry.migrate().wait().unwrap_err();
        let CatalogError::WouldLose(lost) = &error else { panic!("{error}") };
        assert!(lost.len() == 1 && lost[0].problem.contains(expected), "{expected}: {error}");
        assert_eq!(lost[0].namespace.as_deref(), Some("default"));
        assert_eq!(registry.migration().wait().unwrap().unwrap().lost, *lost);
        assert_eq!(spy.query(&Query::all("_/SYSTEM#")).wait().unwrap().items, before);
        assert!(matches!(registry.open("default").wait(), Err(CatalogError::TooOld { .. })));
        assert_eq!(registry.migrate_anyway().wait().unwrap().len(), 1);
        registry.open("default").wait().unwrap();
    }
}

fn usage_is_migrated_once_and_later_usage_of_the_original_is_not_listed(open: OpenBackend<'_>) {
    let (spy, registry) = older(open);
    let row = |requests: i64| {
        Item::new(ItemKey::new("a7x3kq/ENTITY#p", "#USAGE#api#2027-01-15T08:00:00Z"))
            .with("entity_id", "p")
            .with("resource", "api")
            .with("window", "hourly")
            .with("window_start", "2027-01-15T08:00:00Z")
            .with("rpm", requests)
            .with("total_events", requests)
    };
    put(&spy, row(7));
    registry.migrate().wait().unwrap();
    // The original goes on counting the same calls.
    put(&spy, row(2));
    let catalog = registry.open("default").wait().unwrap();
    let hour = tollgate_catalog::Window::Hour;
    for query in [
        tollgate_catalog::UsageQuery::of_entity("p", hour),
        tollgate_catalog::UsageQuery::of_entity("p", hour).resource("api"),
        tollgate_catalog::UsageQuery::of_resource("api", hour),
        tollgate_catalog::UsageQuery::of_all_entities(hour),
    ] {
        let rows = catalog.usage(query).wait().unwrap().items;
        let listed: Vec<_> =
            rows.iter().map(|row| (row.entity.as_str(), row.events, row.amounts["rpm"])).collect();
        assert_eq!(listed, [("p", 7, 7)]);
    }
}
