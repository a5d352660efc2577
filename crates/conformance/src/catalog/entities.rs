//! Entities: created once, read and listed.

use tollgate_catalog::{CatalogError, Level, METADATA_MAX, NewEntity, PageRequest, TEXT_MAX};

use super::fixture::{CatalogFixture, rpm};
use crate::OpenBackend;

crate::catalog::laws![
    an_entity_is_read_as_it_was_created,
    an_entity_is_created_once,
    a_parent_must_exist,
    children_are_counted_and_listed,
    what_is_stored_of_an_entity_has_a_bound,
    what_does_not_exist_cannot_be_changed,
];

fn an_entity_is_read_as_it_was_created(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    catalog.create_entity(NewEntity::new("project-7")).wait().unwrap();
    let new = NewEntity::new("key-1").name("the first key").parent("project-7").cascades(true);
    let created = catalog.create_entity(new.metadata("team", "red").metadata("é", "")).wait().unwrap();
    assert_eq!(catalog.entity("key-1").wait().unwrap(), Some(created.clone()));
    assert_eq!((created.id.as_str(), created.name.as_str()), ("key-1", "the first key"));
    assert_eq!((created.parent.as_deref(), created.cascades), (Some("project-7"), true));
    let metadata = [("team", "red"), ("é", "")].map(|(key, value)| (key.to_string(), value.to_string()));
    assert_eq!(created.metadata, metadata.into());
    assert_eq!((created.created_at.as_str(), created.children), ("2026-11-15T00:00:00Z", 0));
    let parent = catalog.entity("project-7").wait().unwrap().unwrap();
    assert_eq!((parent.name.as_str(), parent.parent, parent.children), ("project-7", None, 1));
}

fn an_entity_is_created_once(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.create_entity(NewEntity::new("a").name("first")).wait().unwrap();
    let again = fixture.catalog.create_entity(NewEntity::new("a").name("second")).wait();
    assert_eq!(again, Err(CatalogError::EntityExists("a".into())));
    assert_eq!(fixture.catalog.entity("a").wait().unwrap().unwrap().name, "first");
    // Limits may be stored before their entity is created.
    fixture.catalog.set_limits(Level::Entity("b"), &rpm(1)).wait().unwrap();
    fixture.catalog.create_entity(NewEntity::new("b")).wait().unwrap();
}

fn a_parent_must_exist(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let keys = fixture.keys();
    let error = fixture.catalog.create_entity(NewEntity::new("a").parent("b")).wait().unwrap_err();
    assert_eq!(error, CatalogError::ParentNotFound { entity: "a".into(), parent: "b".into() });
    let error = fixture.catalog.create_entity(NewEntity::new("a").parent("a")).wait().unwrap_err();
    assert_eq!(error, CatalogError::Cycle { entity: "a".into(), parent: "a".into() });
    assert_eq!(fixture.keys(), keys);
}

fn children_are_counted_and_listed(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    catalog.create_entity(NewEntity::new("p")).wait().unwrap();
    for child in ["c", "a", "b"] {
        catalog.create_entity(NewEntity::new(child).parent("p")).wait().unwrap();
    }
    catalog.create_entity(NewEntity::new("grandchild").parent("a")).wait().unwrap();
    assert_eq!(catalog.entity("p").wait().unwrap().unwrap().children, 3);
    let page = catalog.children("p", PageRequest::of(2)).wait().unwrap();
    assert_eq!(page.items, ["a", "b"]);
    let rest = catalog.children("p", PageRequest::of(2).after(page.next.unwrap())).wait().unwrap();
    assert_eq!((rest.items.as_slice(), rest.next), (["c".to_string()].as_slice(), None));
    catalog.delete_entity("b").wait().unwrap();
    catalog.set_parent("c", None).wait().unwrap();
    assert_eq!(catalog.children("p", PageRequest::default()).wait().unwrap().items, ["a"]);
    assert_eq!(catalog.entity("p").wait().unwrap().unwrap().children, 1);
    assert!(catalog.children("nobody", PageRequest::default()).wait().unwrap().items.is_empty());
}

fn what_is_stored_of_an_entity_has_a_bound(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let long = "x".repeat(TEXT_MAX + 1);
    let many = (0..=METADATA_MAX).fold(NewEntity::new("a"), |new, index| new.metadata(index.to_string(), ""));
    for new in [
        NewEntity::new("a").name(&long),
        NewEntity::new("a").metadata("key", &long),
        NewEntity::new("a").metadata(&long, "value"),
        NewEntity::new("a").metadata("", "value"),
        many,
    ] {
        let error = fixture.catalog.create_entity(new).wait().unwrap_err();
        assert!(matches!(error, CatalogError::Invalid { .. }), "{error}");
        assert!(error.to_string().len() < 200, "{error}");
    }
    assert_eq!(fixture.catalog.entity("a").wait().unwrap(), None);
}

fn what_does_not_exist_cannot_be_changed(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let (catalog, keys) = (&fixture.catalog, fixture.keys());
    let missing = CatalogError::EntityNotFound("a".into());
    assert_eq!(catalog.set_parent("a", None).wait(), Err(missing.clone()));
    assert_eq!(catalog.set_cascades("a", true).wait(), Err(missing.clone()));
    assert_eq!(catalog.delete_entity("a").wait(), Err(missing));
    assert!(!catalog.enable_entity("a").wait().unwrap());
    assert_eq!(fixture.keys(), keys);
}
