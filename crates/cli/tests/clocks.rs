//! The command on a store whose clock is ahead of the host's.

mod support;

use support::sandbox::Sandbox;
use tollgate::store::HostClock;
use tollgate::store::records::{Item, ItemKey, Records, Write};
use tollgate_file::FileStore;

#[test]
fn status_says_by_how_much_the_clock_of_a_store_is_ahead() {
    let sandbox = Sandbox::new();
    sandbox.tollgate(&["system", "set-defaults", "-l", "rpm:60"]);
    let status = sandbox.tollgate(&["status"]).stdout;
    assert!(!status.contains("clock"), "{status}");
    // A process that saw a time of day two hours later, before it was set back.
    let store =
        FileStore::builder(sandbox.path().join("limits.db")).host(HostClock::shifted(7_200)).build().unwrap();
    store.write(&[Write::Put(Item::new(ItemKey::new("tests", "any")), Vec::new())]).wait().unwrap();
    drop(store);
    let status = sandbox.tollgate(&["status"]).stdout;
    assert!(status.contains("ahead of this host's"), "{status}");
    let status: serde_json::Value =
        serde_json::from_str(&sandbox.tollgate(&["status", "--json"]).stdout).unwrap();
    let ahead = status["clock_ahead_us"].as_u64().unwrap();
    assert!((3_600_000_000..=7_200_000_000).contains(&ahead), "{ahead}");
}
