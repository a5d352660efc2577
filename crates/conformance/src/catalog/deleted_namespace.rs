//! A deleted namespace refuses every change.

use tollgate_catalog::{CatalogError, Level, NewEntity, OnUnavailable, Result};
use tollgate_core::demand;

use super::fixture::{CatalogFixture, keys_in, rpm};
use crate::OpenBackend;

crate::catalog::laws![a_deleted_namespace_takes_no_change];

/// Calls every change, each of which would be made if the namespace were active.
fn changes(fixture: &CatalogFixture) -> Vec<(&'static str, Result<()>)> {
    let catalog = &fixture.catalog;
    let done = |result: Result<bool>| result.map(drop);
    vec![
        ("create", catalog.create_entity(NewEntity::new("new")).wait().map(drop)),
        ("create below", catalog.create_entity(NewEntity::new("new").parent("a")).wait().map(drop)),
        ("delete", catalog.delete_entity("b").wait()),
        ("delete implicit", catalog.delete_entity("implicit").wait()),
        ("parent", done(catalog.set_parent("a", Some("b")).wait())),
        ("cascade", done(catalog.set_cascades("a", true).wait())),
        ("system", catalog.set_limits(Level::System, &rpm(2)).wait()),
        ("policy", catalog.set_system_limits(&rpm(2), Some(OnUnavailable::Block)).wait()),
        ("resource", catalog.set_limits(Level::Resource("gpt-4"), &rpm(2)).wait()),
        ("entity", catalog.set_limits(Level::Entity("a"), &rpm(2)).wait()),
        ("entity, resource", catalog.set_limits(Level::EntityResource("a", "gpt-4"), &rpm(2)).wait()),
        ("delete system", done(catalog.delete_limits(Level::System).wait())),
        ("delete entity's", done(catalog.delete_limits(Level::Entity("implicit")).wait())),
        ("disable", done(catalog.disable_entity("a").wait())),
        ("enable", done(catalog.enable_entity("off").wait())),
        ("disable resource", done(catalog.disable_resource("gpt-4").wait())),
        ("enable resource", done(catalog.enable_resource("off").wait())),
        ("reset", done(catalog.reset("a", "gpt-4", Some("k")).wait())),
        ("rotate", catalog.rotate_secret().wait().map(drop)),
        ("top up", done(catalog.top_up("a", "gpt-4", &demand! { rpm: 1 }, None).wait())),
    ]
}

fn a_deleted_namespace_takes_no_change(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    catalog.create_entity(NewEntity::new("a")).wait().unwrap();
    catalog.create_entity(NewEntity::new("b")).wait().unwrap();
    catalog.set_limits(Level::System, &rpm(1)).wait().unwrap();
    catalog.set_limits(Level::Entity("implicit"), &rpm(1)).wait().unwrap();
    catalog.disable_entity("off").wait().unwrap();
    catalog.disable_resource("off").wait().unwrap();
    assert!(fixture.take("a", "gpt-4", &demand! { rpm: 1 }));
    fixture.registry.delete("default").wait().unwrap();
    let records = |keys: Vec<_>| keys.into_iter().map(|key| fixture.item(key).unwrap()).collect::<Vec<_>>();
    let before = records(keys_in(&*fixture.spy, catalog.namespace_id()));
    let gone = CatalogError::NamespaceGone { name: "default".into(), id: catalog.namespace_id().to_owned() };
    for (name, result) in changes(&fixture) {
        assert_eq!(result, Err(gone.clone()), "{name}");
    }
    assert_eq!(records(keys_in(&*fixture.spy, catalog.namespace_id())), before);
    assert_eq!(fixture.available("a", "gpt-4"), 0);
    // Registered again, it is another namespace.
    fixture.registry.register("default").wait().unwrap();
    assert_eq!(catalog.disable_entity("a").wait(), Err(gone));
}
