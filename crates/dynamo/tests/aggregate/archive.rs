//! Audit events that have expired are archived.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;
use tollgate::NewEntity;
use tollgate_dynamo::aggregate::Folder;

use crate::world::World;

/// A place that is free at the end.
struct Temporary(PathBuf);

impl Temporary {
    fn new(name: &str) -> Temporary {
        let path = std::env::temp_dir().join(format!("tollgate-archive-{name}-{}", std::process::id()));
        // A process that was killed leaves its folders, and this one may have its number.
        let _ = std::fs::remove_dir_all(&path);
        Temporary(path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The files below a folder, by their names in it, and what is in them.
fn files(folder: &Path) -> BTreeMap<String, String> {
    let (mut found, mut pending) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(next) = pending.pop() {
        for entry in std::fs::read_dir(next).expect("the archive can be read") {
            let path = entry.expect("the archive can be read").path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let mut text = String::new();
            GzDecoder::new(std::fs::File::open(&path).expect("the archive can be read"))
                .read_to_string(&mut text)
                .expect("the archive can be read");
            found.insert(
                path.strip_prefix(folder).expect("the archive can be read").display().to_string(),
                text,
            );
        }
    }
    found
}

/// A world whose three audit events have expired: its limits, and two entities.
fn of_old_events() -> World {
    let world = World::new();
    for entity in ["user-1", "user-2"] {
        world.limiter.catalog().create_entity(NewEntity::new(entity)).wait().expect("the world can be made");
    }
    // Events are kept for ninety days by default.
    world.wait(91 * 86_400);
    world.engine.delete_expired().expect("the world can be made");
    world
}

#[test]
fn the_archive_has_every_event_that_expired_once() {
    let world = of_old_events();
    let folder = Temporary::new("once");
    let aggregator = world.aggregator().with_archive(Folder::new(&folder.0));
    let stream = world.stream();
    for _ in 0..2 {
        assert_eq!(aggregator.handle(&stream).wait().archived, 3);
    }
    let files = files(&folder.0);
    assert_eq!(files.len(), 1, "{files:?}");
    let (name, text) = files.iter().next().unwrap();
    let events: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let said = |field: &str| events.iter().map(|event| event[field].as_str().unwrap()).collect::<Vec<_>>();
    assert_eq!(said("entity_id"), ["$SYSTEM", "user-1", "user-2"]);
    assert_eq!(said("action"), ["limits_set", "entity_created", "entity_created"]);
    let (namespace, first) = (world.limiter.catalog().namespace_id(), said("event_id")[0]);
    assert_eq!(*name, format!("audit/{namespace}/2026/11/15/{first}-3.jsonl.gz"));
    assert!(events.iter().all(|event| event.get("PK").is_none() && event.get("ttl").is_none()));
}

#[test]
fn an_archive_that_fails_fails_its_events_and_nothing_else() {
    let world = of_old_events();
    world.take("user-1", 10);
    let folder = Temporary::new("failing");
    std::fs::write(&folder.0, "no folder").unwrap();
    let aggregator = world.aggregator().with_archive(Folder::new(&folder.0));
    let outcome = aggregator.handle(&world.stream()).wait();
    assert_eq!((outcome.failed.len(), outcome.archived, outcome.written), (3, 0, 1));
}
