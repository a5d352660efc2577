//! Concurrent changes: in any order, all counts are right in the end.

use std::collections::{BTreeMap, BTreeSet};
use std::thread;

use tollgate_catalog::{
    Action, Catalog, CatalogError, DEFAULT_RESOURCE, Level, NewEntity, PageRequest, Result, Subject,
};
use tollgate_store::SplitMix64;
use tollgate_store::records::{Item, Value};

use super::fixture::{CatalogFixture, rpm};
use crate::OpenBackend;
use crate::random::{replayed_seed, seeded};

crate::catalog::laws![
    everything_adds_up_after_many_changes_at_once,
    a_hundred_threads_that_change_one_record_all_succeed,
];

const THREADS: u64 = 16;
const CHANGES: usize = 150;
const ENTITIES: [&str; 10] = ["e0", "e1", "e2", "e3", "e4", "e5", "e6", "e7", "e8", "e9"];
const RESOURCES: [&str; 3] = ["gpt-3", "gpt-4", "o1"];

const ACTIONS: [&str; 7] =
    ["entity_created", "entity_deleted", "parent_set", "limits_set", "limits_deleted", "disabled", "enabled"];

/// How often each change was made, by the results that its thread got.
type MadeChanges = BTreeMap<(String, &'static str), usize>;

fn everything_adds_up_after_many_changes_at_once(open: OpenBackend<'_>) {
    let (fixture, seed) = (CatalogFixture::without_revision(open), replayed_seed().unwrap_or(1));
    let mut made = MadeChanges::new();
    thread::scope(|scope| {
        let hammer = |thread| {
            scope.spawn({
                let catalog = fixture.catalog.clone();
                move || hammer(&catalog, seeded(seed << 8 | thread))
            })
        };
        let threads: Vec<_> = (0..THREADS).map(hammer).collect();
        for thread in threads {
            let theirs = thread.join().unwrap_or_else(|_| panic!("a thread failed; TOLLGATE_SEED={seed}"));
            theirs.into_iter().for_each(|(change, count)| *made.entry(change).or_default() += count);
        }
    });
    let records: Vec<Item> = fixture.keys().into_iter().map(|key| fixture.item(key).unwrap()).collect();
    check_families(&fixture, &records);
    check_lists(&fixture, &records);
    check_events(&fixture, &made);
    check_cache(&fixture);
}

fn a_hundred_threads_that_change_one_record_all_succeed(open: OpenBackend<'_>) {
    let fixture = CatalogFixture::new(open);
    let level = Level::EntityResource("e", "gpt-4");
    thread::scope(|scope| {
        for _ in 0..100 {
            scope.spawn(|| {
                fixture.catalog.set_limits(level, &rpm(1)).wait().unwrap();
                fixture.catalog.set_limits(Level::System, &rpm(1)).wait().unwrap();
                fixture.catalog.delete_limits(level).wait().unwrap();
            });
        }
    });
    assert!(fixture.catalog.resources_with_entity_limits().wait().unwrap().is_empty());
    fixture.catalog.set_limits(level, &rpm(1)).wait().unwrap();
    assert_eq!(fixture.catalog.resources_with_entity_limits().wait().unwrap(), [("gpt-4".into(), 1)].into());
}

fn hammer(catalog: &Catalog, mut random: SplitMix64) -> MadeChanges {
    let mut made = MadeChanges::new();
    for _ in 0..CHANGES {
        if let Some(change) = change(catalog, &mut random) {
            *made.entry(change).or_default() += 1;
        }
    }
    made
}

/// Makes a random change, and returns the event that it must have left if it was made.
fn change(catalog: &Catalog, random: &mut SplitMix64) -> Option<(String, &'static str)> {
    let (entity, other) = (random.pick(&ENTITIES), random.pick(&ENTITIES));
    let resource = random.pick(&RESOURCES);
    let of_entity = [Level::Entity(entity), Level::EntityResource(entity, resource)];
    let new = NewEntity::new(entity);
    let (made, action) = match random.below(14) {
        0 | 1 => (is_made(catalog.create_entity(new).wait()), "entity_created"),
        2 | 3 => (is_made(catalog.create_entity(new.parent(other)).wait()), "entity_created"),
        4 => (is_made(catalog.delete_entity(entity).wait()), "entity_deleted"),
        5 | 6 => (is_news(catalog.set_parent(entity, Some(other)).wait()), "parent_set"),
        7 => (is_news(catalog.set_parent(entity, None).wait()), "parent_set"),
        8 | 9 => (is_made(catalog.set_limits(random.pick(&of_entity), &rpm(1)).wait()), "limits_set"),
        10 => {
            // Deleting an entity deletes its limits, so it is not known which deletion was first.
            is_news(catalog.delete_limits(random.pick(&of_entity)).wait());
            return None;
        }
        11 => (is_news(catalog.disable_entity(entity).wait()), "disabled"),
        12 => (is_news(catalog.enable_entity(entity).wait()), "enabled"),
        _ => return change_resource(catalog, random, resource),
    };
    made.then(|| (entity.to_owned(), action))
}

fn change_resource(
    catalog: &Catalog,
    random: &mut SplitMix64,
    resource: &str,
) -> Option<(String, &'static str)> {
    let level = Level::Resource(resource);
    let (made, action) = match random.below(2) {
        0 => (is_made(catalog.set_limits(level, &rpm(1)).wait()), "limits_set"),
        _ => (is_news(catalog.delete_limits(level).wait()), "limits_deleted"),
    };
    made.then(|| (format!("$RESOURCE:{resource}"), action))
}

fn is_news(result: Result<bool>) -> bool {
    result.as_ref().is_ok_and(|is_news| *is_news) && is_made(result)
}

/// Returns whether the change was made. It may be refused for what is stored, but never for concurrent changes.
fn is_made<T>(result: Result<T>) -> bool {
    match result {
        Ok(_) => true,
        Err(
            CatalogError::EntityExists(_)
            | CatalogError::EntityNotFound(_)
            | CatalogError::ParentNotFound { .. }
            | CatalogError::HasChildren { .. }
            | CatalogError::Cycle { .. }
            | CatalogError::ChainTooLong(_),
        ) => false,
        Err(error) => panic!("{error}"),
    }
}

fn id_of(item: &Item) -> &str {
    item.key.partition.split_once("/ENTITY#").map_or("", |(_, id)| id)
}

/// Checks that every parent is there, no entity is above itself, and every count of children is right.
fn check_families(fixture: &CatalogFixture, records: &[Item]) {
    let entities = records.iter().filter(|item| item.key.sort == "#META");
    let parents: BTreeMap<&str, Option<&str>> =
        entities.clone().map(|it| (id_of(it), it.text("parent_id"))).collect();
    for item in entities {
        let id = id_of(item);
        let children: Vec<&str> =
            parents.iter().filter(|(_, parent)| **parent == Some(id)).map(|(child, _)| *child).collect();
        assert_eq!(item.int("children").unwrap_or(0), children.len() as i64, "children of {id}");
        assert_eq!(fixture.catalog.children(id, PageRequest::default()).wait().unwrap().items, children);
        assert_eq!(item.int("deleting"), None, "{id} is half deleted");
        let (mut above, mut steps) = (parents[id], 0);
        while let Some(parent) = above {
            above =
                *parents.get(parent).unwrap_or_else(|| panic!("the parent {parent} of {id} is not there"));
            steps += 1;
            assert!(steps <= ENTITIES.len(), "{id} is above itself");
        }
    }
}

/// Checks that the lists name exactly the entities and resources with limits.
fn check_lists(fixture: &CatalogFixture, records: &[Item]) {
    let catalog = &fixture.catalog;
    let mut counts: BTreeMap<String, u64> = BTreeMap::new();
    let mut resources = BTreeSet::new();
    for item in records {
        if let Some(resource) = item.key.sort.strip_prefix("#CONFIG#") {
            *counts.entry(resource.to_owned()).or_default() += 1;
        } else if item.key.sort == "#CONFIG" {
            resources.extend(item.text("resource").map(str::to_owned));
        }
    }
    assert_eq!(catalog.resources_with_entity_limits().wait().unwrap(), counts);
    assert_eq!(catalog.resources_with_limits().wait().unwrap(), Vec::from_iter(resources));
    for resource in RESOURCES.into_iter().chain([DEFAULT_RESOURCE]) {
        let listed = catalog.entities_with_limits(resource, PageRequest::default()).wait().unwrap().items;
        let sort = format!("#CONFIG#{resource}");
        let stored = records.iter().filter(|item| item.key.sort == sort).map(id_of);
        assert_eq!(listed, Vec::from_iter(stored), "entities with limits for {resource}");
    }
}

/// Checks that every change that was made has its event, and every change of limits a version.
fn check_events(fixture: &CatalogFixture, made: &MadeChanges) {
    let (mut recorded, mut config_changes) = (MadeChanges::new(), 0);
    for subject in ENTITIES.map(Subject::Entity).into_iter().chain(RESOURCES.map(Subject::Resource)) {
        let events = fixture.catalog.audit(subject, PageRequest::default()).wait().unwrap();
        assert_eq!(events.next, None, "more events than a page has");
        for event in events.items {
            config_changes += i64::from(matches!(event.action, Action::LimitsSet | Action::LimitsDeleted));
            let known = ACTIONS.iter().find(|action| **action == event.action.name());
            let known = known.unwrap_or_else(|| panic!("no thread made {}", event.action));
            *recorded.entry((event.subject, known)).or_default() += 1;
        }
    }
    recorded.retain(|(subject, action), _| *action != "limits_deleted" || subject.starts_with('$'));
    assert!(!made.is_empty());
    assert_eq!(&recorded, made);
    let version = super::keys::config_version(fixture.catalog.namespace_id());
    assert_eq!(fixture.item(version).unwrap().fields["version"], Value::Int(config_changes));
}

/// Checks that the cache agrees with the store.
fn check_cache(fixture: &CatalogFixture) {
    fixture.catalog.set_limits(Level::System, &rpm(1)).wait().unwrap();
    let fresh = fixture.registry.open("default").wait().unwrap();
    for (entity, resource) in ENTITIES.iter().flat_map(|entity| RESOURCES.map(|resource| (*entity, resource)))
    {
        let seen = |catalog: &Catalog| {
            let chain = catalog.chain(entity, resource).wait().map_err(|error| error.to_string())?;
            Ok::<_, String>(
                chain.links.iter().map(|link| (link.entity.clone(), link.source)).collect::<Vec<_>>(),
            )
        };
        assert_eq!(seen(&fixture.catalog), seen(&fresh), "{entity} {resource}");
    }
}
