//! A hundred threads do everything at once: no error that is not the caller's, no orphan record, audit complete.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use tollgate::catalog::{CatalogError, PageRequest, Subject, UsageQuery, Window};
use tollgate::file::{Durability, FileStore};
use tollgate::store::records::{Index, ItemKey, Query, Value};
use tollgate::store::{Backend, Memory, Scope, SplitMix64, StoreError};
use tollgate::{Attempt, LimiterError};
use tollgate::{Catalog, Clock, Level, Limit, Limiter, Limits, NewEntity, Registry, Span, demand};

const THREADS: u64 = 100;
const LASTS: Span = Span::from_secs(10);
const NAMESPACES: u64 = 4;
const ENTITIES: u64 = 24;
const RESOURCES: [&str; 3] = ["chat", "embed", "audio"];

#[test]
fn a_hundred_threads_on_memory_leave_everything_in_order() {
    hammer(Arc::new(Memory::default()));
}

#[test]
fn a_hundred_threads_on_a_file_leave_everything_in_order() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hammer.db");
    for suffix in ["", "-wal", "-shm"] {
        let _ = std::fs::remove_file(format!("{}{suffix}", path.display()));
    }
    let store =
        FileStore::builder(&path).durability(Durability::Normal).timeout(Duration::from_secs(30)).build();
    hammer(Arc::new(store.expect("a new file can be opened")));
}

/// What was changed: the namespace, whom the audit should say it of, and what. A deletion is not counted, since it may
/// say that limits were deleted, too, or that another was quicker.
type Changes = BTreeMap<(String, String, &'static str), usize>;

struct Hammer {
    registry: Registry,
    changes: Mutex<Changes>,
    done: Mutex<BTreeMap<&'static str, usize>>,
}

fn hammer(backend: Arc<dyn Backend>) {
    let until = Clock::system().now() + LASTS;
    let registry = Registry::new(Arc::clone(&backend));
    let hammer = Hammer { registry, changes: Mutex::default(), done: Mutex::default() };
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let hammer = &hammer;
            scope.spawn(move || {
                let mut random = SplitMix64::new(thread);
                while Clock::system().now() < until {
                    hammer.blow(&mut random);
                }
            });
        }
    });
    let done = hammer.done.into_inner().expect("nobody panicked");
    assert!(done.len() >= 14, "not everything was ever done: {done:?}");
    look_after(&*backend, &hammer.registry, &hammer.changes.into_inner().expect("nobody panicked"));
}

/// What a caller can get as an error when others do what they like with the same names.
fn is_the_callers(error: &CatalogError) -> bool {
    use CatalogError as E;
    matches!(
        error,
        E::EntityExists(_)
            | E::EntityNotFound(_)
            | E::HasChildren { .. }
            | E::Cycle { .. }
            | E::ChainTooLong(_)
            | E::NoLimits { .. }
            | E::Disabled { .. }
            | E::NamespaceNotFound(_)
            | E::NamespaceGone { .. }
            | E::NamespaceStatus { .. }
            | E::NamespaceTaken { .. }
            | E::ParentNotFound { .. }
            | E::Store(StoreError::NamespaceGone(_))
    )
}

impl Hammer {
    fn note(&self, what: &'static str) {
        *self.done.lock().expect("nobody panics").entry(what).or_default() += 1;
    }

    /// Whether it was done; an error that is not the caller's ends the test.
    fn judge<T>(&self, what: &'static str, result: Result<T, CatalogError>) -> Option<T> {
        match result {
            Ok(value) => {
                self.note(what);
                Some(value)
            }
            Err(error) if is_the_callers(&error) => None,
            Err(error) => panic!("{what}: {error}"),
        }
    }

    fn audited(&self, catalog: &Catalog, (subject, action): (String, &'static str)) {
        let mut changes = self.changes.lock().expect("nobody panics");
        *changes.entry((catalog.namespace_id().into(), subject, action)).or_default() += 1;
    }

    fn blow(&self, random: &mut SplitMix64) {
        let name = format!("tenant-{}", random.below(NAMESPACES));
        if random.below(60) == 0 {
            return self.end_namespace(&name);
        }
        let Some(catalog) = self.judge("open", self.registry.open_or_register(&name).wait()) else { return };
        for _ in 0..8 {
            self.change(&catalog, random);
        }
    }

    fn end_namespace(&self, name: &str) {
        let Some(ended) = self.judge("delete namespace", self.registry.delete(name).wait()) else { return };
        let orphans = self.judge("orphans", self.registry.orphans().wait()).unwrap_or_default();
        // Another may purge the same at the same time.
        for orphan in orphans.iter().filter(|orphan| orphan.id == ended.id) {
            self.judge("purge", self.registry.purge(&orphan.id, |_| {}).wait());
        }
    }

    fn change(&self, catalog: &Catalog, random: &mut SplitMix64) {
        let entity = format!("entity-{}", random.below(ENTITIES));
        let other = format!("entity-{}", random.below(ENTITIES));
        let resource = RESOURCES[random.below(3) as usize];
        let limits = Limits::new([Limit::per_second("rpm", 1 + random.below(50))]).expect("they are valid");
        let about_resource = || format!("$RESOURCE:{resource}");
        let audited = match random.below(14) {
            0 => {
                let new = NewEntity::new(entity.as_str());
                let new = if random.below(2) == 0 { new.parent(other.as_str()).cascades(true) } else { new };
                self.judge("create", catalog.create_entity(new).wait()).map(|_| (entity, "entity_created"))
            }
            1 => {
                self.judge("delete", catalog.delete_entity(&entity).wait());
                None
            }
            2 => self
                .judge("move", catalog.set_parent(&entity, Some(&other)).wait())
                .filter(|moved| *moved)
                .map(|_| (entity, "parent_set")),
            3 => self
                .judge("orphan", catalog.set_parent(&entity, None).wait())
                .filter(|moved| *moved)
                .map(|_| (entity, "parent_set")),
            4 => {
                let level = Level::EntityResource(&entity, resource);
                self.judge("set entity limits", catalog.set_limits(level, &limits).wait())
                    .map(|_| (entity, "limits_set"))
            }
            5 => {
                let level = Level::EntityResource(&entity, resource);
                self.judge("delete entity limits", catalog.delete_limits(level).wait());
                None
            }
            6 => {
                let set = catalog.set_limits(Level::Resource(resource), &limits).wait();
                self.judge("set resource limits", set).map(|_| (about_resource(), "limits_set"))
            }
            7 => {
                let deleted = self
                    .judge("delete resource limits", catalog.delete_limits(Level::Resource(resource)).wait());
                deleted.filter(|deleted| *deleted).map(|_| (about_resource(), "limits_deleted"))
            }
            8 => {
                let set = catalog.set_limits(Level::System, &limits).wait();
                self.judge("set system limits", set).map(|_| ("$SYSTEM".into(), "limits_set"))
            }
            9 => {
                let reset = self.judge("reset", catalog.reset(&entity, resource, None).wait());
                reset.filter(|done| *done).map(|_| (entity, "reset"))
            }
            _ => {
                self.read(catalog, &entity, resource);
                self.charge(catalog, &entity, resource, random);
                None
            }
        };
        if let Some(change) = audited {
            self.audited(catalog, change);
        }
    }

    fn read(&self, catalog: &Catalog, entity: &str, resource: &str) {
        self.judge("entity", catalog.entity(entity).wait());
        self.judge("children", catalog.children(entity, PageRequest::default()).wait());
        self.judge("limits", catalog.limits(Level::Entity(entity)).wait());
        self.judge("lists", catalog.entities_with_limits(resource, PageRequest::default()).wait());
        self.judge("usage", catalog.usage(UsageQuery::of_entity(entity, Window::Hour)).wait());
        self.judge("audit", catalog.audit(Subject::Entity(entity), PageRequest::default()).wait());
    }

    fn charge(&self, catalog: &Catalog, entity: &str, resource: &str, random: &mut SplitMix64) {
        let limiter = Limiter::builder(catalog.clone()).build();
        match limiter.try_acquire(entity, resource, demand! { rpm: 1 }).wait() {
            Ok(Attempt::Admitted(lease)) => {
                self.note("admitted");
                let used = random.below(3);
                let settled = lease.settle(demand! { rpm: used }).wait();
                settled.expect("a lease can always be settled");
            }
            Ok(Attempt::Denied(_)) => self.note("refused"),
            Err(LimiterError::Catalog(error)) => assert!(is_the_callers(&error), "{error}"),
            Err(LimiterError::Store(StoreError::NamespaceGone(_))) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

/// What must be so when all threads are done.
fn look_after(backend: &dyn Backend, registry: &Registry, changes: &Changes) {
    let living = registry.list().wait().expect("the store answers");
    let orphans = registry.orphans().wait().expect("the store answers");
    let is_kept = |id: &str| living.iter().chain(&orphans).any(|namespace| namespace.id == id);
    for ((id, subject, action), changed) in changes {
        if !is_kept(id) {
            assert_eq!(records_of(backend, id), [], "a purged namespace left records");
            let buckets = backend.buckets(id, Scope::All, None, 10).wait().expect("the store answers");
            assert_eq!(buckets.items, [], "a purged namespace left buckets");
            continue;
        }
        let partition = format!("{id}/AUDIT#{subject}");
        let events = all(|after| {
            let query = Query { after, ..Query::all(partition.as_str()) };
            backend.query(&query).wait().map(|page| (page.items, page.next)).expect("the store answers")
        });
        let told = events.iter().filter(|event| event.text("action") == Some(*action)).count();
        assert_eq!(told, *changed, "audit of {action} of {subject} in {id}");
    }
    for namespace in living.iter().chain(&orphans) {
        look_after_namespace(backend, &namespace.id);
    }
}

fn all<T>(
    mut page: impl FnMut(
        Option<tollgate::store::records::Cursor>,
    ) -> (Vec<T>, Option<tollgate::store::records::Cursor>),
) -> Vec<T> {
    let (mut items, mut next) = page(None);
    while let Some(after) = next {
        let more = page(Some(after));
        items.extend(more.0);
        next = more.1;
    }
    items
}

fn records_of(backend: &dyn Backend, id: &str) -> Vec<ItemKey> {
    all(|after| {
        let query = Query { after, ..Query::all(id) };
        backend
            .find(Index::Namespace, &query)
            .wait()
            .map(|page| (page.items, page.next))
            .expect("the store answers")
    })
}

/// Parents exist, and what is counted is as many as there are.
fn look_after_namespace(backend: &dyn Backend, id: &str) {
    let keys = records_of(backend, id);
    let items: Vec<_> = keys
        .chunks(100)
        .flat_map(|keys| backend.get_many(keys).wait().expect("the store answers"))
        .flatten()
        .collect();
    let entities: BTreeMap<&str, _> = items
        .iter()
        .filter(|item| item.key.sort == "#META")
        .map(|item| (item.text("entity_id").expect("it has one"), item))
        .collect();
    let mut children: BTreeMap<&str, i64> = BTreeMap::new();
    for item in entities.values() {
        if let Some(parent) = item.text("parent_id") {
            assert!(entities.contains_key(parent), "{parent} has a child and is not there");
            *children.entry(parent).or_default() += 1;
        }
    }
    for (name, item) in &entities {
        let counted = item.int("children").unwrap_or(0);
        assert_eq!(counted, children.get(name).copied().unwrap_or(0), "children of {name}");
    }
    let mut configs: BTreeMap<&str, i64> = BTreeMap::new();
    for item in &items {
        if let Some(resource) = item.key.sort.strip_prefix("#CONFIG#") {
            *configs.entry(resource).or_default() += 1;
        }
    }
    let counts = items.iter().find(|item| item.key.sort == "#ENTITY_CONFIG_RESOURCES");
    for resource in RESOURCES {
        let counted = counts.and_then(|item| item.int(resource)).unwrap_or(0);
        assert_eq!(
            counted,
            configs.get(resource).copied().unwrap_or(0),
            "entities with limits for {resource}"
        );
    }
    let listed =
        items.iter().find(|item| item.key.sort == "#RESOURCES").and_then(|item| item.fields.get("resources"));
    for resource in RESOURCES {
        let is_listed = matches!(listed, Some(Value::Set(names)) if names.contains(resource));
        let key = ItemKey::new(format!("{id}/RESOURCE#{resource}"), "#CONFIG");
        assert_eq!(is_listed, keys.contains(&key), "{resource} is listed as one with limits");
    }
}
