//! Inspection of a store: no finding where nothing is wrong, and one for every planted fault.

use tollgate_catalog::{Level, NewEntity};
use tollgate_store::records::{Change, ItemKey, Write};

use super::fixture::{CatalogFixture, rpm};
use super::keys;
use crate::OpenBackend;

crate::catalog::laws![a_store_that_only_we_wrote_to_has_no_faults, planted_faults_are_found];

fn filled(open: OpenBackend<'_>) -> CatalogFixture {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    catalog.create_entity(NewEntity::new("p")).wait().unwrap();
    for child in ["a", "b"] {
        catalog.create_entity(NewEntity::new(child).parent("p").cascades(true)).wait().unwrap();
    }
    catalog.create_entity(NewEntity::new("c").parent("a")).wait().unwrap();
    catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    catalog.set_limits(Level::Resource("gpt-4"), &rpm(20)).wait().unwrap();
    catalog.set_limits(Level::Resource("gpt-3"), &rpm(20)).wait().unwrap();
    catalog.set_limits(Level::Entity("a"), &rpm(30)).wait().unwrap();
    catalog.set_limits(Level::EntityResource("a", "gpt-4"), &rpm(40)).wait().unwrap();
    fixture
}

fn a_store_that_only_we_wrote_to_has_no_faults(open: OpenBackend<'_>) {
    let fixture = filled(open);
    fixture.registry.register("other").wait().unwrap();
    fixture.registry.delete("other").wait().unwrap();
    fixture.catalog.delete_limits(Level::Entity("a")).wait().unwrap();
    fixture.catalog.delete_limits(Level::Resource("gpt-3")).wait().unwrap();
    fixture.catalog.set_parent("c", None).wait().unwrap();
    fixture.catalog.delete_entity("b").wait().unwrap();
    let inspection = fixture.registry.inspect().wait().unwrap();
    assert_eq!(inspection.findings, []);
    assert!(inspection.records > 10, "{}", inspection.records);
}

fn planted_faults_are_found(open: OpenBackend<'_>) {
    let ns = |fixture: &CatalogFixture| fixture.catalog.namespace_id().to_owned();
    let change = |key: ItemKey, change: Change| Write::Change(key, vec![change], Vec::new());
    let delete = |key: ItemKey| Write::Delete(key, Vec::new());
    let set = |name: &str, value: i64| Change::Set(name.into(), value.into());
    type Plant<'a> = &'a dyn Fn(&str) -> Write;
    let faults: [(Plant<'_>, &str); 10] = [
        (&|ns| delete(keys::entity(ns, "p")), "entity \"a\": its parent \"p\" does not exist"),
        (&|ns| change(keys::entity(ns, "p"), set("children", 7)), "says that it has 7 children, and has 2"),
        (
            &|ns| change(keys::entity(ns, "p"), Change::Set("parent_id".into(), "c".into())),
            "entity \"p\": it is below itself",
        ),
        (
            &|ns| change(keys::system_config(ns), set("l_rpm_cp", 0)),
            "the limits of the system: it cannot be read",
        ),
        (
            &|ns| change(keys::entity_config(ns, "a", "gpt-4"), Change::Remove("l_rpm_ra".into())),
            "the limits of entity \"a\", resource \"gpt-4\": it cannot be read",
        ),
        (
            &|ns| delete(keys::resource_config(ns, "gpt-4")),
            "in the list of those that have limits, but has none",
        ),
        (&|ns| delete(keys::resources(ns)), "it has limits, but is not in the list"),
        (
            &|ns| change(keys::entity_config_resources(ns), set("gpt-4", 3)),
            "3 entities are said to have limits for it, and 1 have",
        ),
        (&|ns| delete(keys::namespace_by_id(ns)), "no namespace in use has its id"),
        (&|_| delete(keys::namespace_by_name("default")), "its name \"default\" does not lead to it"),
    ];
    for (plant, expected) in faults {
        let fixture = filled(open);
        let write = plant(&ns(&fixture));
        fixture.spy.inner().write(&[write]).wait().unwrap();
        let findings = fixture.registry.inspect().wait().unwrap().findings;
        let found: Vec<String> = findings.iter().map(|it| format!("{}: {}", it.what, it.problem)).collect();
        assert!(found.iter().any(|it| it.contains(expected)), "{expected:?} is not in {found:#?}");
    }
}
