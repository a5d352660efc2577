//! Viewing changes nothing: no command that only shows writes a byte to the store.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::sync::Arc;

use support::furnish;
use support::sandbox::Sandbox;

const ENTITIES: usize = 20_000;

const VIEWS: [&str; 7] = [
    "tollgate top --once --max 5",
    "tollgate usage list --max 10",
    "tollgate usage list -e user-7",
    "tollgate usage summary",
    "tollgate usage summary -r gpt-4 -w month",
    "tollgate usage plot -r gpt-4",
    "tollgate peek user-7 gpt-4",
];

/// Runs all views, each of which must leave every byte as it is.
fn nothing_is_written(sandbox: &Sandbox, store: &Path) {
    let before = std::fs::read(store).expect("the store is there");
    for line in VIEWS {
        let ran = sandbox.shell(line);
        assert_eq!(ran.exit, 0, "{line}: {}", ran.stderr);
        let after = std::fs::read(store).expect("the store is there");
        assert_eq!(after.len(), before.len(), "{line} has made the store grow");
        let changed = before.iter().zip(&after).filter(|(one, two)| one != two).count();
        assert_eq!(changed, 0, "{line} has changed bytes");
    }
}

/// What is shown is all there is, though none of it was written down.
fn all_is_shown(sandbox: &Sandbox) {
    let shown = |line: &str| sandbox.shell(line).stdout;
    let top = shown("tollgate top --once --max 1");
    assert!(top.contains("20,000 in use") && top.contains("user-19999"), "{top}");
    let summary = shown("tollgate usage summary --json");
    assert!(summary.contains("\"calls\": 20001"), "{summary}");
    let one = shown("tollgate usage list -e user-19999 --json");
    assert!(one.contains("\"calls\": 2"), "{one}");
}

#[test]
fn no_view_changes_a_byte_of_a_file() {
    let sandbox = Sandbox::new();
    let path = sandbox.path().join("limits.db");
    let store = tollgate_file::FileStore::open(&path).expect("the file can be made");
    drop(furnish::used_by_many(Arc::new(store), ENTITIES));
    all_is_shown(&sandbox);
    nothing_is_written(&sandbox, &path);
}

#[cfg(feature = "shm")]
#[test]
fn no_view_changes_a_byte_of_shared_memory() {
    let name = format!("viewing-{}", std::process::id());
    let sandbox = Sandbox::new().with_store(&format!("shm:{name}"));
    let store = tollgate_shm::ShmStore::open(&name).expect("it can be made");
    let path = store.path().to_path_buf();
    let limiter = furnish::used_by_many(Arc::new(store), ENTITIES);
    all_is_shown(&sandbox);
    nothing_is_written(&sandbox, &path);
    std::fs::remove_file(path).expect("it can be removed");
    drop(limiter);
}

#[test]
fn a_call_that_is_charged_to_three_entities_is_one_call_in_every_sum() {
    let sandbox = Sandbox::new();
    for line in [
        "tollgate system set-defaults -l spend:1000/day",
        "tollgate entity create org",
        "tollgate entity create team --parent org --cascade",
        "tollgate entity create key --parent team --cascade",
        "tollgate acquire key gpt-4 spend=10",
    ] {
        let ran = sandbox.shell(line);
        assert_eq!(ran.exit, 0, "{line}: {}", ran.stderr);
    }
    let shown = |line: &str| sandbox.shell(line).stdout;
    for whose in ["", " -r gpt-4", " -e key", " -e team", " -e org"] {
        let summary = shown(&format!("tollgate usage summary{whose} --json"));
        assert!(summary.contains("\"calls\": 1") && summary.contains("\"total\": 10"), "{whose}: {summary}");
    }
    let plot = shown("tollgate usage plot -r gpt-4");
    assert!(plot.contains("10 ") && plot.contains("in all") && !plot.contains("30"), "{plot}");
    let list = shown("tollgate usage list");
    let of_children = list.lines().filter(|line| line.contains("1 call, spend")).count();
    assert_eq!(of_children, 2, "the team and the organisation: {list}");
}
