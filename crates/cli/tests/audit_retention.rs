//! How long the command lets audit events be kept.

mod support;

use std::sync::Arc;

use support::sandbox::Sandbox;
use tollgate::catalog::Registry;
use tollgate::store::Store;
use tollgate::store::records::{Query, Records};
use tollgate_file::FileStore;

const DAY_US: u64 = 86_400_000_000;

/// In how many days the only event about an entity expires, rounded; `None` if it is kept forever.
fn kept_days(sandbox: &Sandbox, entity: &str) -> Option<u64> {
    let store = Arc::new(FileStore::open(sandbox.path().join("limits.db")).expect("it is there"));
    let namespace = Registry::new(store.clone()).get("default").wait();
    let namespace = namespace.expect("it answers").expect("it is registered");
    let events = store.query(&Query::all(format!("{}/AUDIT#{entity}", namespace.id))).wait();
    let events = events.expect("it answers").items;
    let [event] = &events[..] else { panic!("{events:?}") };
    let left = event.expires?.as_micros() - store.clock().now().as_micros();
    Some((left + DAY_US / 2) / DAY_US)
}

#[test]
fn an_event_expires_when_the_setting_says() {
    let sandbox = Sandbox::new();
    let create = |entity: &str, more: &[&str], variable: Option<&str>| {
        let mut command = sandbox.command("tollgate");
        command.args(["entity", "create", entity]).args(more);
        command.envs(variable.map(|value| ("TOLLGATE_AUDIT_RETENTION", value)));
        assert!(command.output().expect("it runs").status.success(), "{entity}");
        kept_days(&sandbox, entity)
    };
    assert_eq!(create("default", &[], None), Some(90));
    assert_eq!(create("flag", &["--audit-retention", "30d"], None), Some(30));
    assert_eq!(create("variable", &[], Some("10d")), Some(10));
    assert_eq!(create("both", &["--audit-retention", "20d"], Some("10d")), Some(20));
    assert_eq!(create("forever", &["--audit-retention", "forever"], None), None);
    let folder = sandbox.path().join(".config/tollgate");
    std::fs::create_dir_all(&folder).expect("there is room");
    std::fs::write(folder.join("config.toml"), "audit_retention = \"5d\"\n").expect("there is room");
    assert_eq!(create("file", &[], None), Some(5));
}
