//! A purge leaves nothing of a namespace, however often it is interrupted.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tollgate_catalog::{CatalogError, ChainLink, Level, NewEntity, PurgeProgress};
use tollgate_core::demand;
use tollgate_store::records::{Query, Records};
use tollgate_store::{BucketRef, Op, Scope, Step, StoreError, Transaction, TxnOutcome};

use super::fixture::{CatalogFixture, keys_in, rpm};
use crate::OpenBackend;

crate::catalog::laws![
    only_a_deleted_namespace_can_be_purged,
    a_purge_leaves_nothing_of_a_namespace_and_all_of_the_others,
    a_purge_finds_records_that_an_index_lists_late,
    a_purge_that_was_interrupted_can_be_resumed,
    a_purge_while_others_write_leaves_nothing,
    a_namespace_that_is_being_purged_cannot_be_recovered,
    no_bucket_comes_back_after_a_purge,
];

fn fill(fixture: &CatalogFixture, entities: usize) {
    fixture.catalog.set_limits(Level::System, &rpm(10)).wait().unwrap();
    for index in 0..entities {
        let id = format!("e{index}");
        fixture.catalog.create_entity(NewEntity::new(&id)).wait().unwrap();
        fixture.catalog.set_limits(Level::Entity(&id), &rpm(10)).wait().unwrap();
        assert!(fixture.take(&id, "gpt-4", &demand! { rpm: 1 }));
    }
}

fn only_a_deleted_namespace_can_be_purged(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fill(&fixture, 2);
    let id = fixture.catalog.namespace_id();
    let error = fixture.registry.purge(id, |_| ()).wait().unwrap_err();
    assert_eq!(error.to_string(), format!("namespace {id:?} is active, but must be deleted"));
    assert!(fixture.take("e0", "gpt-4", &demand! { rpm: 1 }));
    let missing = CatalogError::NamespaceNotFound("nobody".into());
    assert_eq!(fixture.registry.purge("nobody", |_| ()).wait(), Err(missing));
}

fn a_purge_leaves_nothing_of_a_namespace_and_all_of_the_others(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let other = fixture.registry.open_or_register("other").wait().unwrap();
    other.set_limits(Level::System, &rpm(10)).wait().unwrap();
    let others = keys_in(&*fixture.spy, other.namespace_id());
    fill(&fixture, 60);
    let id = fixture.catalog.namespace_id();
    let records = fixture.keys().len() as u64;
    fixture.registry.delete("default").wait().unwrap();
    let mut last = PurgeProgress::default();
    let watch = |progress: PurgeProgress| {
        assert!(progress.buckets >= last.buckets && progress.records >= last.records);
        last = progress;
    };
    let purged = fixture.registry.purge(id, watch).wait().unwrap();
    assert_eq!((purged.namespace.id.as_str(), purged.namespace.name.as_str()), (id, "default"));
    assert_eq!((last.buckets, last.records), (purged.buckets, purged.records));
    assert!(purged.buckets >= 60 && purged.records >= records, "{purged:?}");
    assert_eq!(fixture.keys(), []);
    assert!(fixture.registry.orphans().wait().unwrap().is_empty());
    assert_eq!(keys_in(&*fixture.spy, other.namespace_id()), others);
    let registry = fixture.spy.query(&Query::all("_/SYSTEM#")).wait().unwrap().items;
    assert!(registry.iter().all(|item| item.text("namespace_id") != Some(id)));
    assert_eq!(fixture.registry.recover(id).wait(), Err(CatalogError::NamespaceNotFound(id.into())));
}

fn a_purge_finds_records_that_an_index_lists_late(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fill(&fixture, 3);
    fixture.registry.delete("default").wait().unwrap();
    fixture.spy.lag_once();
    fixture.registry.purge(fixture.catalog.namespace_id(), |_| ()).wait().unwrap();
    assert_eq!(fixture.keys(), []);
}

fn a_purge_that_was_interrupted_can_be_resumed(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fill(&fixture, 100);
    let id = fixture.catalog.namespace_id();
    fixture.registry.delete("default").wait().unwrap();
    let (mut purged, mut interruptions) = (0, 0);
    loop {
        // One write at a time: the mark, then a batch, and so on.
        fixture.spy.fail_after(1);
        let left = fixture.keys().len();
        let result = fixture.registry.purge(id, |_| ()).wait();
        fixture.spy.heal();
        match result {
            Ok(_) => break,
            Err(error) => assert!(error.is_unavailable(), "{error}"),
        }
        interruptions += 1;
        purged += left - fixture.keys().len();
        let orphans = fixture.registry.orphans().wait().unwrap();
        assert_eq!((orphans.len(), orphans[0].id.as_str()), (1, id));
        assert!(interruptions < 100);
    }
    assert!(interruptions >= 3 && purged > 300, "{interruptions} {purged}");
    assert_eq!(fixture.keys(), []);
    assert!(fixture.registry.orphans().wait().unwrap().is_empty());
}

fn a_purge_while_others_write_leaves_nothing(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fill(&fixture, 8);
    let chain = fixture.catalog.chain("e0", "gpt-4").wait().unwrap();
    let (id, over) = (fixture.catalog.namespace_id(), AtomicBool::new(false));
    thread::scope(|scope| {
        for writer in 0..8 {
            let (fixture, chain, over) = (&fixture, &chain, &over);
            scope.spawn(move || {
                for round in 0.. {
                    if over.load(Ordering::SeqCst) {
                        break;
                    }
                    write_something(fixture, &format!("e{writer}"), round);
                    take(fixture, &chain.links[0]).ok();
                }
            });
        }
        fixture.registry.delete("default").wait().unwrap();
        fixture.registry.purge(id, |_| ()).wait().unwrap();
        let left = fixture.keys();
        over.store(true, Ordering::SeqCst);
        assert_eq!(left, []);
    });
    fixture.spy.inner().write_usage(id, Scope::All).wait().ok();
    assert_eq!(fixture.keys(), []);
    assert!(take(&fixture, &chain.links[0]).is_err());
}

/// Makes a change, which may fail because the namespace is gone.
fn write_something(fixture: &CatalogFixture, entity: &str, round: u64) {
    let catalog = &fixture.catalog;
    match round % 5 {
        0 => drop(catalog.set_limits(Level::Entity(entity), &rpm(1 + round)).wait()),
        1 => drop(catalog.create_entity(NewEntity::new(format!("{entity}-{round}")).parent(entity)).wait()),
        2 => drop(catalog.disable_entity(entity).wait()),
        3 => drop(catalog.enable_entity(entity).wait()),
        _ => drop(catalog.reset(entity, "gpt-4", None).wait()),
    }
}

fn take(fixture: &CatalogFixture, link: &ChainLink) -> Result<TxnOutcome, StoreError> {
    let costs = link.limits.costs(&demand! { rpm: 1 }).unwrap();
    let namespace = fixture.catalog.namespace_id();
    let place = BucketRef { namespace, key: &link.key, limits: &link.limits };
    let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
    fixture.spy.inner().apply(&Transaction { id: None, steps: &steps, metered: true }).wait()
}

fn a_namespace_that_is_being_purged_cannot_be_recovered(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fill(&fixture, 1);
    let id = fixture.catalog.namespace_id();
    fixture.registry.delete("default").wait().unwrap();
    fixture.spy.fail_after(1);
    assert!(fixture.registry.purge(id, |_| ()).wait().is_err());
    fixture.spy.heal();
    let error = fixture.registry.recover(id).wait().unwrap_err();
    assert_eq!(error.to_string(), format!("namespace {id:?} is purging, but must be deleted"));
    fixture.registry.purge(id, |_| ()).wait().unwrap();
}

fn no_bucket_comes_back_after_a_purge(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    fill(&fixture, 1);
    let chain = fixture.catalog.chain("e0", "gpt-4").wait().unwrap();
    let id = fixture.catalog.namespace_id();
    fixture.registry.delete("default").wait().unwrap();
    fixture.registry.purge(id, |_| ()).wait().unwrap();
    assert_eq!(take(&fixture, &chain.links[0]), Err(StoreError::NamespaceGone(id.into())));
    assert_eq!(fixture.keys(), []);
}
