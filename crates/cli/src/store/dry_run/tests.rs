use tollgate::catalog::{CatalogError, PageRequest};
use tollgate::{Level, Limit, Limits, Memory, NewEntity, Registry, demand};

use super::*;

fn fixture() -> (Arc<dyn Backend>, Registry) {
    let store: Arc<dyn Backend> = Arc::new(Memory::default());
    let catalog = Registry::new(Arc::clone(&store)).open_or_register("default").wait().unwrap();
    catalog.create_entity(NewEntity::new("acme")).wait().unwrap();
    let dry_run = Registry::new(Arc::new(DryRunStore::on(Arc::clone(&store))));
    (store, dry_run)
}

#[test]
fn changes_are_visible_in_the_dry_run_and_not_made() {
    let (store, dry_run) = fixture();
    let catalog = dry_run.open("default").wait().unwrap();
    catalog.create_entity(NewEntity::new("key-1").parent("acme")).wait().unwrap();
    catalog.create_entity(NewEntity::new("key-2").parent("key-1")).wait().unwrap();
    let children = |id| catalog.children(id, PageRequest::default()).wait().unwrap().items;
    assert_eq!((children("acme"), children("key-1")), (vec!["key-1".into()], vec!["key-2".into()]));
    assert_eq!(catalog.entities(PageRequest::default()).wait().unwrap().items.len(), 3);
    catalog.delete_entity("key-2").wait().unwrap();
    assert_eq!(catalog.entities(PageRequest::default()).wait().unwrap().items, ["acme", "key-1"]);

    let real = Registry::new(store).open("default").wait().unwrap();
    assert_eq!(real.entities(PageRequest::default()).wait().unwrap().items, ["acme"]);
    assert_eq!(real.entity("acme").wait().unwrap().unwrap().children, 0);
    assert_eq!(real.audit_of_all(PageRequest::default()).wait().unwrap().items.len(), 1);
}

#[test]
fn a_dry_run_fails_as_the_real_change_would() {
    let (_, dry_run) = fixture();
    let catalog = dry_run.open("default").wait().unwrap();
    let again = catalog.create_entity(NewEntity::new("acme")).wait();
    assert_eq!(again, Err(CatalogError::EntityExists("acme".into())));
    catalog.create_entity(NewEntity::new("key-1").parent("acme")).wait().unwrap();
    let deleted = catalog.delete_entity("acme").wait();
    assert!(matches!(deleted, Err(CatalogError::HasChildren { .. })), "{deleted:?}");
}

#[test]
fn a_dry_run_of_a_purge_counts_and_removes_nothing() {
    let (store, dry_run) = fixture();
    let real = Registry::new(store);
    let limiter = tollgate::Limiter::builder(real.open("default").wait().unwrap()).build();
    let limits = Limits::new([Limit::per_minute("rpm", 10)]).unwrap();
    limiter.catalog().set_limits(Level::System, &limits).wait().unwrap();
    limiter.acquire("acme", "gpt-4", demand! { rpm: 1 }).wait().unwrap().commit().wait().unwrap();
    let id = dry_run.delete("default").wait().unwrap().id;
    let purged = dry_run.purge(&id, |_| {}).wait().unwrap();
    assert_eq!(purged.buckets, 1);
    assert!(purged.records > 3, "{}", purged.records);
    assert_eq!(dry_run.orphans().wait().unwrap(), []);
    assert_eq!(real.list().wait().unwrap().len(), 1);
    assert_eq!(limiter.available("acme", "gpt-4").wait().unwrap().available("rpm"), Some(9));
}

#[test]
fn a_dry_run_of_a_take_is_decided_and_takes_nothing() {
    let (_, dry_run) = fixture();
    let limiter = tollgate::Limiter::builder(dry_run.open("default").wait().unwrap()).build();
    let limits = Limits::new([Limit::per_minute("rpm", 10)]).unwrap();
    limiter.catalog().set_limits(Level::System, &limits).wait().unwrap();
    for _ in 0..3 {
        limiter.acquire("acme", "gpt-4", demand! { rpm: 7 }).wait().unwrap().commit().wait().unwrap();
    }
    assert!(limiter.acquire("acme", "gpt-4", demand! { rpm: 11 }).wait().is_err());
}
