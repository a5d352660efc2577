//! Deleting an entity leaves nothing of it but its audit events.

use tollgate_catalog::{CatalogError, Level, NewEntity, PageRequest, Subject};
use tollgate_core::demand;
use tollgate_store::records::ItemKey;

use super::fixture::{CatalogFixture, rpm};
use crate::OpenBackend;

crate::catalog::laws![
    deleting_leaves_nothing_but_audit_events,
    what_was_never_created_can_be_deleted,
    an_entity_with_children_stays,
    a_child_made_during_the_deletion_is_refused_or_stops_it,
    a_deletion_that_was_interrupted_can_be_resumed,
    a_parent_that_is_being_deleted_gets_no_children,
    an_entity_created_anew_during_a_deletion_is_left_alone,
    usage_of_an_entity_created_anew_during_a_deletion_is_left_alone,
    an_entity_created_and_marked_anew_is_another_one,
    an_entity_created_before_the_deletion_begins_is_deleted_as_well,
];

/// Gives an entity limits on two levels, a switch, a bucket and usage.
fn fill(fixture: &CatalogFixture, entity: &str) {
    let catalog = &fixture.catalog;
    catalog.set_limits(Level::Entity(entity), &rpm(10)).wait().unwrap();
    catalog.set_limits(Level::EntityResource(entity, "gpt-4"), &rpm(10)).wait().unwrap();
    assert!(fixture.take(entity, "gpt-4", &demand! { rpm: 4 }));
    assert!(fixture.take(entity, "gpt-3", &demand! { rpm: 4 }));
    let all = tollgate_store::Scope::All;
    fixture.catalog.backend().write_usage(catalog.namespace_id(), all).wait().unwrap();
    catalog.disable_entity(entity).wait().unwrap();
}

fn stored(fixture: &CatalogFixture, entity: &str) -> Vec<ItemKey> {
    let ns = fixture.catalog.namespace_id();
    let partitions = [format!("{ns}/ENTITY#{entity}"), format!("{ns}/USAGE#{entity}")];
    fixture.keys().into_iter().filter(|key| partitions.contains(&key.partition)).collect()
}

fn assert_nothing_left(fixture: &CatalogFixture, entity: &str) {
    assert_eq!(stored(fixture, entity), []);
    assert_eq!(fixture.catalog.entity(entity).wait().unwrap(), None);
    assert!(fixture.catalog.buckets(entity).wait().unwrap().is_empty());
    assert!(fixture.catalog.resources_with_entity_limits().wait().unwrap().is_empty());
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    assert_eq!(fixture.available(entity, "gpt-4"), 10);
    let events = fixture.catalog.audit(Subject::Entity(entity), PageRequest::default()).wait().unwrap();
    assert_eq!(events.items.iter().filter(|event| event.action.name() == "entity_deleted").count(), 1);
    assert_eq!(
        fixture.catalog.delete_entity(entity).wait(),
        Err(CatalogError::EntityNotFound(entity.into()))
    );
}

fn deleting_leaves_nothing_but_audit_events(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.create_entity(NewEntity::new("parent")).wait().unwrap();
    fixture.catalog.create_entity(NewEntity::new("a").parent("parent")).wait().unwrap();
    fill(&fixture, "a");
    assert!(stored(&fixture, "a").len() >= 4 + 2 * 3);
    fixture.catalog.delete_entity("a").wait().unwrap();
    assert_nothing_left(&fixture, "a");
    assert_eq!(fixture.catalog.entity("parent").wait().unwrap().unwrap().children, 0);
    fixture.catalog.delete_entity("parent").wait().unwrap();
}

fn what_was_never_created_can_be_deleted(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fill(&fixture, "a");
    fixture.catalog.delete_entity("a").wait().unwrap();
    assert_nothing_left(&fixture, "a");
}

fn an_entity_with_children_stays(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.create_entity(NewEntity::new("a")).wait().unwrap();
    fixture.catalog.create_entity(NewEntity::new("b").parent("a")).wait().unwrap();
    fill(&fixture, "a");
    let before = stored(&fixture, "a");
    let error = fixture.catalog.delete_entity("a").wait().unwrap_err();
    assert_eq!(error, CatalogError::HasChildren { entity: "a".into(), children: 1 });
    assert_eq!(stored(&fixture, "a"), before);
    fixture.catalog.delete_entity("b").wait().unwrap();
    fixture.catalog.delete_entity("a").wait().unwrap();
}

fn a_child_made_during_the_deletion_is_refused_or_stops_it(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.create_entity(NewEntity::new("a")).wait().unwrap();
    fill(&fixture, "a");
    let before = stored(&fixture, "a");
    let other = fixture.catalog.clone();
    let child = NewEntity::new("b").parent("a");
    fixture.spy.before_write(move || {
        other.create_entity(child).wait().unwrap();
    });
    let error = fixture.catalog.delete_entity("a").wait().unwrap_err();
    assert_eq!(error, CatalogError::HasChildren { entity: "a".into(), children: 1 });
    assert_eq!(stored(&fixture, "a"), before);

    // Once the entity is marked, it gets no child.
    fixture.catalog.delete_entity("b").wait().unwrap();
    fixture.spy.fail_after(1);
    assert!(fixture.catalog.delete_entity("a").wait().unwrap_err().is_unavailable());
    fixture.spy.heal();
    let error = fixture.catalog.create_entity(NewEntity::new("b").parent("a")).wait().unwrap_err();
    assert_eq!(error, CatalogError::ParentNotFound { entity: "b".into(), parent: "a".into() });
    fixture.catalog.delete_entity("a").wait().unwrap();
}

fn a_deletion_that_was_interrupted_can_be_resumed(open: OpenBackend<'_>) {
    for writes in 0..6 {
        let fixture = CatalogFixture::new(open);
        fixture.catalog.create_entity(NewEntity::new("parent")).wait().unwrap();
        fixture.catalog.create_entity(NewEntity::new("a").parent("parent")).wait().unwrap();
        fill(&fixture, "a");
        fixture.spy.fail_after(writes);
        let interrupted = fixture.catalog.delete_entity("a").wait();
        fixture.spy.heal();
        if interrupted.is_err() {
            fixture.catalog.delete_entity("a").wait().unwrap();
        }
        assert_nothing_left(&fixture, "a");
        assert_eq!(fixture.catalog.entity("parent").wait().unwrap().unwrap().children, 0);
    }
}

fn an_entity_created_anew_during_a_deletion_is_left_alone(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.create_entity(NewEntity::new("a")).wait().unwrap();
    fixture.catalog.set_limits(Level::Entity("a"), &rpm(10)).wait().unwrap();
    // After the first write, which marks it, another caller completes the deletion and creates it anew.
    let (spy, other) = (fixture.spy.clone(), fixture.catalog.clone());
    fixture.spy.before_write(move || {
        spy.before_write(move || {
            other.delete_entity("a").wait().unwrap();
            other.create_entity(NewEntity::new("a").name("new")).wait().unwrap();
            other.set_limits(Level::Entity("a"), &rpm(20)).wait().unwrap();
        });
    });
    let lost = fixture.catalog.delete_entity("a").wait();
    assert_eq!(lost, Err(CatalogError::EntityNotFound("a".into())));
    assert_eq!(fixture.catalog.entity("a").wait().unwrap().unwrap().name, "new");
    let stored = fixture.catalog.limits(Level::Entity("a")).wait().unwrap();
    assert_eq!(stored.unwrap().limits, rpm(20));
}

fn usage_of_an_entity_created_anew_during_a_deletion_is_left_alone(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let flush = |fixture: &CatalogFixture| {
        assert!(fixture.take("a", "gpt-4", &demand! { rpm: 1 }));
        let (ns, all) = (fixture.catalog.namespace_id(), tollgate_store::Scope::All);
        fixture.spy.inner().write_usage(ns, all).wait().unwrap();
    };
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    fixture.catalog.create_entity(NewEntity::new("a")).wait().unwrap();
    flush(&fixture);
    // The first write marks it and the second one deletes usage: in between it is deleted and created anew.
    let other = fixture.another();
    let spy = fixture.spy.clone();
    fixture.spy.before_write(move || {
        spy.before_write(move || {
            other.catalog.delete_entity("a").wait().unwrap();
            other.catalog.create_entity(NewEntity::new("a")).wait().unwrap();
            flush(&other);
        });
    });
    let lost = fixture.catalog.delete_entity("a").wait();
    assert_eq!(lost, Err(CatalogError::EntityNotFound("a".into())));
    assert_eq!(stored(&fixture, "a").len(), 1 + 3);
}

fn a_parent_that_is_being_deleted_gets_no_children(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.create_entity(NewEntity::new("a")).wait().unwrap();
    fixture.catalog.create_entity(NewEntity::new("p")).wait().unwrap();
    let mark_first = || {
        let (spy, other) = (fixture.spy.clone(), fixture.catalog.clone());
        fixture.spy.before_write(move || {
            spy.fail_after(1);
            assert!(other.delete_entity("p").wait().unwrap_err().is_unavailable());
            spy.heal();
        });
    };
    let missing = |entity: &str| CatalogError::ParentNotFound { entity: entity.into(), parent: "p".into() };
    mark_first();
    assert_eq!(fixture.catalog.set_parent("a", Some("p")).wait(), Err(missing("a")));
    fixture.catalog.delete_entity("p").wait().unwrap();
    fixture.catalog.create_entity(NewEntity::new("p")).wait().unwrap();
    mark_first();
    assert_eq!(fixture.catalog.create_entity(NewEntity::new("b").parent("p")).wait(), Err(missing("b")));
    fixture.catalog.delete_entity("p").wait().unwrap();
}

fn an_entity_created_and_marked_anew_is_another_one(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    for id in ["p", "q"] {
        fixture.catalog.create_entity(NewEntity::new(id)).wait().unwrap();
    }
    fixture.catalog.create_entity(NewEntity::new("a").parent("p")).wait().unwrap();
    // Before the last write another caller completes the deletion, creates it anew and marks the new one.
    let (spy, other) = (fixture.spy.clone(), fixture.catalog.clone());
    fixture.spy.before_write(move || {
        let again = spy.clone();
        spy.before_write(move || {
            other.delete_entity("a").wait().unwrap();
            other.create_entity(NewEntity::new("a").parent("q")).wait().unwrap();
            again.fail_after(1);
            assert!(other.delete_entity("a").wait().is_err());
            again.heal();
        });
    });
    assert_eq!(fixture.catalog.delete_entity("a").wait(), Err(CatalogError::EntityNotFound("a".into())));
    let children = |id: &str| fixture.catalog.entity(id).wait().unwrap().unwrap().children;
    assert_eq!((children("p"), children("q")), (0, 1));
    fixture.catalog.delete_entity("a").wait().unwrap();
    assert_eq!((children("p"), children("q")), (0, 0));
}

fn an_entity_created_before_the_deletion_begins_is_deleted_as_well(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.set_limits(Level::Entity("a"), &rpm(10)).wait().unwrap();
    let other = fixture.catalog.clone();
    fixture.spy.before_write(move || drop(other.create_entity(NewEntity::new("a")).wait().unwrap()));
    fixture.catalog.delete_entity("a").wait().unwrap();
    assert_nothing_left(&fixture, "a");
    // An entity that is created after the deletion has begun is not.
    fixture.catalog.set_limits(Level::Entity("b"), &rpm(10)).wait().unwrap();
    let (spy, other) = (fixture.spy.clone(), fixture.catalog.clone());
    fixture.spy.before_write(move || {
        spy.before_write(move || drop(other.create_entity(NewEntity::new("b")).wait().unwrap()));
    });
    fixture.catalog.delete_entity("b").wait().unwrap();
    assert_eq!(fixture.catalog.limits(Level::Entity("b")).wait().unwrap().unwrap().limits, rpm(10));
}
