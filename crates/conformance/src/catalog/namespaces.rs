//! Namespaces: registered, listed, deleted, recovered.

use std::collections::BTreeSet;
use std::sync::Barrier;
use std::thread;

use tollgate_catalog::{CatalogError, Level, NamespaceStatus, NewEntity, Registry};

use super::fixture::{CatalogFixture, rpm, watched};
use crate::OpenBackend;

crate::catalog::laws![
    registering_again_returns_the_same_namespace,
    names_are_all_checked_before_any_is_registered,
    a_race_to_register_returns_one_namespace_to_all,
    a_namespace_that_is_not_registered_cannot_be_opened,
    a_deleted_namespace_can_be_recovered_with_all_it_had,
    a_name_that_was_given_away_cannot_be_recovered,
    a_name_that_is_given_away_during_a_recovery_stays_with_its_new_owner,
    only_a_deleted_namespace_can_be_recovered,
    namespaces_have_nothing_in_common,
];

fn registering_again_returns_the_same_namespace(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let first = fixture.registry.register("tenant").wait().unwrap();
    assert_eq!((first.id.len(), first.name.as_str()), (11, "tenant"));
    assert_eq!((first.status, first.created_at.as_str()), (NamespaceStatus::Active, "2026-11-15T00:00:00Z"));
    fixture.advance(60);
    assert_eq!(fixture.registry.register("tenant").wait().unwrap(), first);
    assert_eq!(fixture.registry.get("tenant").wait().unwrap(), Some(first.clone()));
    let listed = fixture.registry.list().wait().unwrap();
    assert_eq!(listed.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["default", "tenant"]);
    assert_ne!(listed[0].id, first.id);
}

fn names_are_all_checked_before_any_is_registered(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let error = fixture.registry.register_all(&["good", "also-good", "bad/"]).wait().unwrap_err();
    assert!(matches!(error, CatalogError::Name(_)), "{error}");
    assert_eq!(fixture.registry.list().wait().unwrap().len(), 1);
    let all = fixture.registry.register_all(&["good", "also-good"]).wait().unwrap();
    assert_eq!(all.iter().map(|it| it.name.as_str()).collect::<Vec<_>>(), ["good", "also-good"]);
}

fn a_race_to_register_returns_one_namespace_to_all(open: OpenBackend<'_>) {
    let (_, spy) = watched(open);
    let barrier = Barrier::new(8);
    let ids: BTreeSet<String> = thread::scope(|scope| {
        let register = || {
            let registry = Registry::new(spy.clone());
            barrier.wait();
            registry.register("tenant").wait().unwrap().id
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(register)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(ids.len(), 1);
    assert_eq!(Registry::new(spy).list().wait().unwrap().len(), 1);
}

fn a_namespace_that_is_not_registered_cannot_be_opened(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let missing = CatalogError::NamespaceNotFound("other".into());
    assert_eq!(fixture.registry.open("other").wait().unwrap_err(), missing);
    assert_eq!(fixture.registry.delete("other").wait().unwrap_err(), missing);
    assert_eq!(fixture.registry.get("other").wait().unwrap(), None);
    let opened = fixture.registry.open("default").wait().unwrap();
    assert_eq!(opened.namespace_id(), fixture.catalog.namespace_id());
    assert_eq!(opened.namespace_name(), "default");
}

fn a_deleted_namespace_can_be_recovered_with_all_it_had(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    let deleted = fixture.registry.delete("default").wait().unwrap();
    assert_eq!(deleted.status, NamespaceStatus::Deleted);
    assert_eq!(deleted.deleted_at.as_deref(), Some("2026-11-15T00:00:00Z"));
    assert!(fixture.registry.open("default").wait().is_err());
    assert_eq!(fixture.registry.orphans().wait().unwrap(), std::slice::from_ref(&deleted));
    assert!(fixture.registry.list().wait().unwrap().is_empty());

    let recovered = fixture.registry.recover(&deleted.id).wait().unwrap();
    assert_eq!((recovered.status, recovered.deleted_at.clone()), (NamespaceStatus::Active, None));
    assert_eq!(fixture.registry.list().wait().unwrap(), [recovered]);
    assert!(fixture.registry.orphans().wait().unwrap().is_empty());
    let catalog = fixture.registry.open("default").wait().unwrap();
    assert_eq!(catalog.limits(Level::System).wait().unwrap().unwrap().limits, rpm(10));
    fixture.catalog.set_limits(Level::System, &rpm(20)).wait().unwrap();
}

fn a_name_that_was_given_away_cannot_be_recovered(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let old = fixture.registry.delete("default").wait().unwrap();
    let new = fixture.registry.register("default").wait().unwrap();
    assert_ne!(old.id, new.id);
    let taken = CatalogError::NamespaceTaken { name: "default".into(), id: new.id };
    assert_eq!(fixture.registry.recover(&old.id).wait().unwrap_err(), taken);
    fixture.registry.delete("default").wait().unwrap();
    assert_eq!(fixture.registry.recover(&old.id).wait().unwrap().id, old.id);
}

fn a_name_that_is_given_away_during_a_recovery_stays_with_its_new_owner(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let old = fixture.registry.delete("default").wait().unwrap();
    let registry = fixture.registry.clone();
    fixture.spy.before_write(move || drop(registry.register("default").wait().unwrap()));
    let error = fixture.registry.recover(&old.id).wait().unwrap_err();
    assert!(matches!(error, CatalogError::NamespaceTaken { .. }), "{error}");
    assert_ne!(fixture.registry.get("default").wait().unwrap().unwrap().id, old.id);
    // The other way round: a namespace that was registered anew is not deleted by a caller that meant the old one.
    let new = fixture.registry.get("default").wait().unwrap().unwrap();
    let registry = fixture.registry.clone();
    fixture.spy.before_write(move || {
        registry.delete("default").wait().unwrap();
        registry.recover(&old.id).wait().unwrap();
    });
    assert_ne!(fixture.registry.delete("default").wait().unwrap().id, new.id);
    assert_eq!(fixture.registry.orphans().wait().unwrap().len(), 2);
}

fn only_a_deleted_namespace_can_be_recovered(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let id = fixture.catalog.namespace_id();
    let error = fixture.registry.recover(id).wait().unwrap_err();
    assert_eq!(error.to_string(), format!("namespace {id:?} is active, but must be deleted"));
    let missing = CatalogError::NamespaceNotFound("nobody".into());
    assert_eq!(fixture.registry.recover("nobody").wait().unwrap_err(), missing);
}

fn namespaces_have_nothing_in_common(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let other = fixture.registry.open_or_register("other").wait().unwrap();
    fixture.catalog.set_limits(Level::Resource("gpt-4"), &rpm(10)).wait().unwrap();
    fixture.catalog.create_entity(NewEntity::new("user-1")).wait().unwrap();
    fixture.catalog.set_limits(Level::Entity("user-1"), &rpm(30)).wait().unwrap();
    fixture.catalog.disable_entity("user-2").wait().unwrap();

    assert!(other.chain("user-1", "gpt-4").wait().is_err());
    assert_eq!(other.entity("user-1").wait().unwrap(), None);
    assert!(other.resources_with_limits().wait().unwrap().is_empty());
    assert!(other.resources_with_entity_limits().wait().unwrap().is_empty());
    other.set_limits(Level::System, &rpm(7)).wait().unwrap();
    assert_eq!(other.chain("user-2", "gpt-4").wait().unwrap().links[0].limits, rpm(7));
    assert_eq!(fixture.catalog.limits(Level::System).wait().unwrap(), None);
}
