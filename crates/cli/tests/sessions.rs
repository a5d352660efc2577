//! Whole sessions at a shell: the output of every command, and its exit code.
//!
//! Each file in `sessions` is one session, in its own directory with an empty store. `TOLLGATE_BLESS=1` writes the actual
//! output to the files where it differs; read the diff before you commit it.
#![cfg(unix)]

mod support;

use support::{furnish, pages, session};

macro_rules! sessions {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            session::replay(stringify!($name));
        }
    )*};
}

sessions![
    audit,
    calls,
    configuration,
    entities,
    explained,
    limits,
    limits_file,
    money,
    namespaces,
    promises,
    run,
    simulate,
    store,
    tickets,
    trouble,
];

// Its lists of commands are those of a build with all features.
#[test]
#[cfg(all(
    feature = "batch",
    feature = "local",
    feature = "mock-provider",
    feature = "redis",
    feature = "shm"
))]
fn shell() {
    session::replay("shell");
}

#[test]
#[cfg(feature = "mock-provider")]
fn demo() {
    session::replay("demo");
}

#[test]
#[cfg(feature = "mock-provider")]
fn mock_provider() {
    session::replay("mock_provider");
}

#[test]
fn usage() {
    session::replay_after("usage", |sandbox| furnish::used_for_half_a_year(&sandbox.join("limits.db")));
}

#[test]
fn buckets() {
    session::replay_after("buckets", |sandbox| furnish::used_now(&sandbox.join("limits.db")));
}

#[test]
fn foreign() {
    session::replay_after("foreign", |sandbox| furnish::foreign(&sandbox.join("limits.db")));
}

#[test]
fn damaged() {
    session::replay_after("damaged", |sandbox| furnish::damage(&sandbox.join("limits.db")));
}

#[test]
fn old() {
    session::replay_after("old", |sandbox| furnish::age(&sandbox.join("limits.db")));
}

#[test]
fn the_pages_of_the_guide_are_true() {
    session::replay_page("docs/tutorial.md");
    session::replay_page("docs/guide/command-line.md");
    session::replay_page("docs/guide/limits-files.md");
}

#[test]
fn top() {
    session::replay_after("top", |sandbox| furnish::used_now(&sandbox.join("limits.db")));
}

#[test]
fn sets() {
    session::replay_after("sets", |sandbox| furnish::used_sets(&sandbox.join("limits.db")));
}

#[test]
fn every_session_is_replayed() {
    let folder = session::folder();
    let this = include_str!("sessions.rs");
    for file in std::fs::read_dir(folder).unwrap() {
        let name = file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned();
        assert!(this.contains(&name), "sessions/{name}.txt is not named in sessions.rs");
    }
}

#[test]
fn every_page_with_a_session_is_replayed() {
    let this = include_str!("sessions.rs");
    for (path, page) in pages::all() {
        let is_session = page.contains("```console\n");
        assert!(!is_session || this.contains(&format!("replay_page(\"{path}\")")), "{path} is not replayed");
    }
}

#[test]
fn a_planted_difference_is_found() {
    let session = "$ echo one; echo two >&2; exit 3\none\n! two\n= 3\n";
    assert_eq!(session::outcome(session), Ok(()));
    for planted in ["uno", "! tow", "= 4", "one\nmore"] {
        let what = if planted.starts_with('!') {
            "! two"
        } else if planted.starts_with('=') {
            "= 3"
        } else {
            "one\n!"
        };
        let with = if what.ends_with('!') { format!("{planted}\n!") } else { planted.into() };
        let session = session.replace(what, &with);
        assert!(session::outcome(&session).is_err(), "{session}");
    }
}
