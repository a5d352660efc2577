//! Messages while the store is unavailable.
#![cfg(unix)]

mod support;

use rusqlite::Connection;
use support::sandbox::Sandbox;

/// Locks the store against writes until this is dropped; it can still be read.
fn locked(sandbox: &Sandbox) -> Connection {
    let connection = Connection::open(sandbox.path().join("limits.db")).expect("the store is there");
    connection.execute_batch("BEGIN IMMEDIATE").expect("nobody else writes");
    connection
}

fn sandbox_that_allows() -> Sandbox {
    let sandbox = Sandbox::new();
    let ran = sandbox.shell("tollgate system set-defaults -l rpm:60 --on-unavailable allow");
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    sandbox
}

#[test]
fn acquire_reports_that_there_is_no_ticket() {
    let sandbox = sandbox_that_allows();
    let _lock = locked(&sandbox);
    let ran = sandbox.shell("tollgate acquire me jobs rpm=1 --store-timeout 100ms");
    assert_eq!((ran.stdout.as_str(), ran.exit), ("", 4), "{}", ran.stderr);
    let message = "the store did not answer, and the policy for that case (on_unavailable) admits calls";
    assert!(ran.stderr.contains(message), "{}", ran.stderr);
}

#[test]
fn run_reports_that_it_runs_without_the_store() {
    let sandbox = sandbox_that_allows();
    let _lock = locked(&sandbox);
    let ran = sandbox.shell("tollgate run me jobs --store-timeout 100ms -- echo it ran");
    assert_eq!((ran.stdout.as_str(), ran.exit), ("it ran\n", 0), "{}", ran.stderr);
    assert!(ran.stderr.contains("the store did not answer; it runs"), "{}", ran.stderr);
}
