//! Viewing changes nothing: no command that only shows writes a byte to the store.
#![cfg(target_os = "linux")]

mod support;

use std::path::Path;
use std::sync::Arc;

use support::furnish;
use support::sandbox::Sandbox;
use tollgate::store::Backend;
use tollgate::{Limiter, ManualClock, Span, Tick};
#[cfg(feature = "redis")]
use tollgate_open::{OpenOptions, StoreUrl};
#[cfg(feature = "redis")]
use tollgate_redis_local::{Server, ServerKind};

const ENTITIES: usize = 20_000;

const VIEWS: [&str; 13] = [
    "tollgate top --once --max 5",
    "tollgate usage list --max 10",
    "tollgate usage list -e user-7",
    "tollgate usage summary",
    "tollgate usage summary -r gpt-4 -w month",
    "tollgate usage plot -r gpt-4",
    "tollgate peek user-7 gpt-4",
    "tollgate explain user-7 gpt-4 rpm=1",
    "tollgate entity show user-7",
    "tollgate resource capacity gpt-4 tpm",
    "tollgate set list",
    "tollgate set show openai/blue",
    "tollgate status",
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

/// All usage is shown, although none of it is in a record yet.
fn all_is_shown(sandbox: &Sandbox) {
    let shown = |line: &str| sandbox.shell(line).stdout;
    let top = shown("tollgate top --once --max 1");
    assert!(top.contains("20,000 in use") && top.contains("user-19999"), "{top}");
    let summary = shown("tollgate usage summary --json");
    assert!(summary.contains("\"calls\": 20001"), "{summary}");
    let one = shown("tollgate usage list -e user-19999 --json");
    assert!(one.contains("\"calls\": 2"), "{one}");
}

/// Entities and limit sets that were used a moment ago.
fn furnished(store: Arc<dyn Backend>, entities: usize) -> Limiter {
    furnish::used_sets_on(&store);
    furnish::used_by_many(store, entities)
}

#[test]
fn no_view_changes_a_byte_of_a_file() {
    let sandbox = Sandbox::new();
    let path = sandbox.path().join("limits.db");
    let store = tollgate_file::FileStore::open(&path).expect("the file can be made");
    drop(furnished(Arc::new(store), ENTITIES));
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
    let limiter = furnished(Arc::new(store), ENTITIES);
    all_is_shown(&sandbox);
    nothing_is_written(&sandbox, &path);
    std::fs::remove_file(path).expect("it can be removed");
    drop(limiter);
}

/// The server counts every change to its data set, without reads and expiry.
#[cfg(feature = "redis")]
#[test]
fn no_view_changes_anything_on_redis() {
    let server = Server::start(ServerKind::Redis);
    let sandbox = Sandbox::new().with_store(&server.url());
    let url: StoreUrl = server.url().parse().expect("it is a URL");
    let store = url.open(&OpenOptions::default()).wait().expect("the server is there");
    drop(furnished(store, 1_000));
    let changes = || {
        let said = server.command(&["INFO", "persistence"]);
        said.field("rdb_changes_since_last_save").expect("the server counts changes").to_owned()
    };
    let before = changes();
    for line in VIEWS {
        let ran = sandbox.shell(line);
        assert_eq!(ran.exit, 0, "{line}: {}", ran.stderr);
        assert_eq!(changes(), before, "{line} has written");
    }
    let ran = sandbox.shell("tollgate entity create acme");
    assert!(ran.exit == 0 && changes() != before, "a write is noticed: {ran:?}");
    let shown = |line: &str| sandbox.shell(line).stdout;
    let (top, summary) = (shown("tollgate top --once --max 1"), shown("tollgate usage summary --json"));
    assert!(top.contains("1,000 in use") && top.contains("user-999"), "{top}");
    assert!(summary.contains("\"calls\": 1001"), "{summary}");
}

/// Usage is one row next to the bucket until its hour is over, and then three records, two of which the next hour adds to.
#[test]
fn an_hour_of_an_entity_takes_few_bytes_of_a_file() {
    const USERS: u64 = 2_000;
    let sandbox = Sandbox::new();
    let path = sandbox.path().join("limits.db");
    let hands = ManualClock::at(Tick::from_secs(1_800_000_000));
    let store = tollgate_file::FileStore::builder(&path).clock(hands.clock()).build();
    let store: Arc<dyn Backend> = Arc::new(store.expect("the file can be made"));
    // Pages, those of the log included.
    let size = || {
        let pages = "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()";
        let opened = rusqlite::Connection::open(&path).expect("it can be opened");
        opened.query_row(pages, [], |row| row.get::<_, i64>(0)).expect("it is SQLite") as u64
    };
    let limiter = furnish::used_by_many(Arc::clone(&store), USERS as usize);
    let mut sizes = vec![size()];
    for _ in 0..2 {
        hands.advance(Span::from_secs(3_600));
        furnish::take_once_each(&store, &limiter, USERS as usize);
        sizes.push(size());
    }
    let grown: Vec<u64> = sizes.windows(2).map(|pair| (pair[1] - pair[0]) / USERS).collect();
    assert!(sizes[0] / USERS < 300, "the first hour of an entity: {} bytes", sizes[0] / USERS);
    assert!(grown[0] < 2_500, "the first hour that is written, with its day and month: {grown:?} bytes");
    assert!(grown[1] < 1_000, "an hour that follows: {grown:?} bytes");
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
    assert!(plot.contains("10 ") && plot.contains("in total") && !plot.contains("30"), "{plot}");
    let list = shown("tollgate usage list");
    let of_children = list.lines().filter(|line| line.contains("1 call, spend")).count();
    assert_eq!(of_children, 2, "the team and the organisation: {list}");
}
