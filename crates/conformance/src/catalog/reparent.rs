//! Moves to another parent: no cycles, also by concurrent moves.

use std::sync::Arc;

use tollgate_catalog::{CatalogError, NewEntity, PageRequest};
use tollgate_store::CHAIN_MAX;

use super::fixture::CatalogFixture;
use super::spy::Spy;
use crate::OpenBackend;

crate::catalog::laws![
    a_move_counts_for_both_parents,
    no_entity_becomes_its_own_ancestor,
    two_concurrent_moves_make_no_cycle,
    no_move_is_refused_for_ancestors_that_never_existed_together,
    a_move_among_relatives_is_one_transaction,
    a_parent_that_is_deleted_during_a_move_is_not_found,
    no_entity_is_moved_deeper_than_a_chain_may_be,
    an_entity_can_be_given_another_name,
];

fn create(fixture: &CatalogFixture, id: &str, parent: Option<&str>) {
    let new = NewEntity::new(id);
    let new = parent.into_iter().fold(new, NewEntity::parent);
    fixture.catalog.create_entity(new).wait().unwrap();
}

fn create_all(fixture: &CatalogFixture, entities: &[(&str, Option<&str>)]) {
    entities.iter().for_each(|(id, parent)| create(fixture, id, *parent));
}

fn children(fixture: &CatalogFixture, id: &str) -> u64 {
    let listed = fixture.catalog.children(id, PageRequest::default()).wait().unwrap().items.len() as u64;
    let counted = fixture.catalog.entity(id).wait().unwrap().unwrap().children;
    assert_eq!(counted, listed, "children of {id}");
    counted
}

fn a_move_counts_for_both_parents(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    create_all(&fixture, &[("a", None), ("b", None), ("c", Some("a"))]);
    assert_eq!((children(&fixture, "a"), children(&fixture, "b")), (1, 0));
    assert!(fixture.catalog.set_parent("c", Some("b")).wait().unwrap());
    assert!(!fixture.catalog.set_parent("c", Some("b")).wait().unwrap());
    assert_eq!((children(&fixture, "a"), children(&fixture, "b")), (0, 1));
    assert!(fixture.catalog.set_parent("c", None).wait().unwrap());
    assert_eq!((children(&fixture, "a"), children(&fixture, "b")), (0, 0));
    let error = fixture.catalog.set_parent("c", Some("nobody")).wait().unwrap_err();
    assert_eq!(error, CatalogError::ParentNotFound { entity: "c".into(), parent: "nobody".into() });
}

fn no_entity_becomes_its_own_ancestor(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    create_all(&fixture, &[("a", None), ("b", Some("a")), ("c", Some("b"))]);
    for parent in ["a", "b", "c"] {
        let error = fixture.catalog.set_parent("a", Some(parent)).wait().unwrap_err();
        assert_eq!(error, CatalogError::Cycle { entity: "a".into(), parent: parent.into() });
    }
    assert_eq!(children(&fixture, "a"), 1);
}

fn two_concurrent_moves_make_no_cycle(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    create_all(&fixture, &[("a", None), ("b", None), ("c", Some("b"))]);
    // While `a` is moved below `c`, another caller moves `b`, which is above `c`, below `a`.
    let other = fixture.catalog.clone();
    fixture.spy.before_write(move || assert!(other.set_parent("b", Some("a")).wait().unwrap()));
    let error = fixture.catalog.set_parent("a", Some("c")).wait().unwrap_err();
    assert_eq!(error, CatalogError::Cycle { entity: "a".into(), parent: "c".into() });
    assert_eq!((children(&fixture, "a"), children(&fixture, "b"), children(&fixture, "c")), (1, 1, 0));
}

fn no_move_is_refused_for_ancestors_that_never_existed_together(open: OpenBackend<'_>) {
    // `a` is below `b` when it is read. Before `b` is read, `a` is moved to the top, and `b` below another entity.
    for below in ["x", "a"] {
        let fixture = CatalogFixture::new(open);
        create_all(&fixture, &[("x", None), ("b", None), ("a", Some("b"))]);
        let other = fixture.catalog.clone();
        before_get(&fixture.spy, 3, move || {
            assert!(other.set_parent("a", None).wait().unwrap());
            assert!(other.set_parent("b", Some(below)).wait().unwrap());
        });
        assert!(fixture.catalog.set_parent("x", Some("a")).wait().unwrap());
        assert_eq!(children(&fixture, "a"), if below == "a" { 2 } else { 1 });
    }
}

/// Runs a function during the read that is the `count`th from now.
fn before_get(spy: &Arc<Spy>, count: usize, intrusion: impl FnOnce() + Send + 'static) {
    let again = Arc::clone(spy);
    spy.during_get(move || match count {
        1 => intrusion(),
        _ => before_get(&again, count - 1, Box::new(intrusion) as Box<dyn FnOnce() + Send>),
    });
}

fn a_move_among_relatives_is_one_transaction(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    // The former parent is above the new one, and then the other way round.
    create_all(&fixture, &[("a", None), ("b", Some("a")), ("c", Some("a"))]);
    assert!(fixture.catalog.set_parent("c", Some("b")).wait().unwrap());
    assert_eq!((children(&fixture, "a"), children(&fixture, "b")), (1, 1));
    assert!(fixture.catalog.set_parent("c", Some("a")).wait().unwrap());
    assert_eq!((children(&fixture, "a"), children(&fixture, "b")), (2, 0));
}

fn a_parent_that_is_deleted_during_a_move_is_not_found(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    create_all(&fixture, &[("a", None), ("b", None)]);
    let other = fixture.catalog.clone();
    fixture.spy.before_write(move || other.delete_entity("b").wait().unwrap());
    let missing = |entity: &str| CatalogError::ParentNotFound { entity: entity.into(), parent: "b".into() };
    assert_eq!(fixture.catalog.set_parent("a", Some("b")).wait(), Err(missing("a")));
    create(&fixture, "b", None);
    let other = fixture.catalog.clone();
    fixture.spy.before_write(move || other.delete_entity("b").wait().unwrap());
    let error = fixture.catalog.create_entity(NewEntity::new("c").parent("b")).wait().unwrap_err();
    assert_eq!(error, missing("c"));
    assert_eq!(fixture.catalog.entity("b").wait().unwrap(), None);
}

fn no_entity_is_moved_deeper_than_a_chain_may_be(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    create(&fixture, "e1", None);
    for depth in 2..=CHAIN_MAX {
        create(&fixture, &format!("e{depth}"), Some(&format!("e{}", depth - 1)));
    }
    create(&fixture, "x", None);
    let deepest = format!("e{CHAIN_MAX}");
    let error = fixture.catalog.set_parent("x", Some(&deepest)).wait().unwrap_err();
    assert_eq!(error, CatalogError::ChainTooLong("x".into()));
    let parent = format!("e{}", CHAIN_MAX - 1);
    assert!(fixture.catalog.set_parent("x", Some(&parent)).wait().unwrap());
}

fn an_entity_can_be_given_another_name(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let catalog = &fixture.catalog;
    let missing = catalog.set_name("e", "Eve").wait();
    assert_eq!(missing, Err(CatalogError::EntityNotFound("e".into())));
    catalog.create_entity(NewEntity::new("e")).wait().unwrap();
    assert_eq!(catalog.set_name("e", "Eve").wait(), Ok(true));
    assert_eq!(catalog.set_name("e", "Eve").wait(), Ok(false));
    assert_eq!(catalog.entity("e").wait().unwrap().unwrap().name, "Eve");
    assert!(catalog.set_name("e", &"x".repeat(tollgate_catalog::TEXT_MAX + 1)).wait().is_err());
}
