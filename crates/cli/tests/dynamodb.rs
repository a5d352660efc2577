//! Commands on a table of DynamoDB do what they do on a file: the sessions of the file, replayed.
#![cfg(all(unix, feature = "local"))]

mod support;

use support::sandbox::Sandbox;
use support::session;
use support::tables::Tables;

macro_rules! sessions {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            session::replay_on(stringify!($name), &Tables::up().store);
        }
    )*};
}

// Those that look at the file itself have no meaning here.
sessions![audit, calls, entities, limits, limits_file, namespaces, run];

#[test]
fn a_table_that_is_not_there_is_not_made_and_the_way_to_make_it_is_told() {
    let tables = Tables::up();
    let (creating, sandbox) = (tables.another("other"), Sandbox::new());
    let missing = creating.replace("&create=true", "");
    let ran = sandbox.tollgate(&["check", "--store", &missing]);
    assert_eq!(ran.exit, 4, "{ran:?}");
    let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("there is no table \"other\"") && said.contains("deploy/"), "{said}");
    assert!(said.replace(' ', "").contains(&creating.replace(' ', "")), "{said}");
    // A rehearsal makes no table either.
    let ran = sandbox.tollgate(&["entity", "create", "key-1", "--dry-run", "--store", &creating]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, "would create entity key-1\n"), "{ran:?}");
    assert_eq!(sandbox.tollgate(&["check", "--store", &missing]).exit, 4);
    let ran = sandbox.tollgate(&["version", "--store", &creating]);
    assert!(ran.stdout.contains("not there yet"), "{ran:?}");
    // Whoever asks for it gets it.
    assert_eq!(sandbox.tollgate(&["check", "--store", &creating]).exit, 4, "a look makes nothing");
    let ran = sandbox.tollgate(&["system", "set-defaults", "-l", "rpm:10", "--store", &creating]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert_eq!(sandbox.tollgate(&["check", "--store", &missing]).exit, 0);
}

#[test]
fn a_server_ends_cleanly_when_it_is_told_to() {
    assert_eq!(Tables::up().end(), Some(0));
}

#[test]
fn a_service_that_is_away_is_no_failure_of_the_command() {
    let mut tables = Tables::up();
    tables.end();
    let ran = Sandbox::new().tollgate(&["status", "--store", &tables.store, "--store-timeout", "300ms"]);
    assert_eq!(ran.exit, 4, "{ran:?}");
    assert!(ran.stdout.contains("reachable  no"), "{ran:?}");
}
