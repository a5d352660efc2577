//! How long the command lets usage be kept.

mod support;

use std::sync::Arc;

use support::sandbox::Sandbox;
use tollgate::store::records::{Query, Records};
use tollgate::store::usage::Window;
use tollgate::store::{Clock, ManualClock};
use tollgate::{Level, Limit, Limiter, Limits, Span, Tick, demand};
use tollgate_file::FileStore;

const DAY_US: u64 = 86_400_000_000;

/// Acquires for an entity two hours ago, so that the next acquire writes that usage. Returns the time.
fn take_two_hours_ago(sandbox: &Sandbox, entity: &str) -> Tick {
    let hands = ManualClock::at(Clock::system().now() - Span::from_secs(7_200));
    let store = FileStore::builder(sandbox.path().join("limits.db")).clock(hands.clock());
    let limiter = Limiter::open(Arc::new(store.build().expect("it can be made")), "default").wait();
    let limiter = limiter.expect("it can be opened");
    let limits = Limits::new([Limit::per_minute("rpm", 100)]).expect("it is valid");
    limiter.catalog().set_limits(Level::System, &limits).wait().expect("it can be stored");
    let lease = limiter.acquire(entity, "api", demand! { rpm: 1 }).wait().expect("it is admitted");
    lease.commit().wait().expect("it is written");
    hands.now()
}

/// For how many days the records of what an entity used at an instant are kept after their windows began; `None` forever.
fn kept_days(sandbox: &Sandbox, entity: &str, used_at: Tick) -> [Option<u64>; 3] {
    let store = Arc::new(FileStore::open(sandbox.path().join("limits.db")).expect("it is there"));
    let limiter = Limiter::open(store.clone(), "default").wait().expect("it can be opened");
    let partition = format!("{}/USAGE#{entity}", limiter.catalog().namespace_id());
    let records = store.query(&Query::all(partition)).wait().expect("it answers").items;
    Window::ALL.map(|window| {
        let mut of_window = records.iter().filter(|record| record.text("window") == Some(window.name()));
        let record = of_window.next().unwrap_or_else(|| panic!("there is no {window:?} in {records:?}"));
        let left = record.expires?.as_micros() - window.start(used_at).as_micros();
        Some((left + DAY_US / 2) / DAY_US)
    })
}

#[test]
fn a_record_of_usage_expires_when_the_setting_says() {
    let sandbox = Sandbox::new();
    let take = |entity: &str, more: &[&str], variable: Option<&str>| {
        let used_at = take_two_hours_ago(&sandbox, entity);
        let mut command = sandbox.command("tollgate");
        command.args(["run", entity, "api"]).args(more).args(["--", "true"]);
        command.envs(variable.map(|value| ("TOLLGATE_USAGE_RETENTION", value)));
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{entity}: {}", String::from_utf8_lossy(&output.stderr));
        kept_days(&sandbox, entity, used_at)
    };
    assert_eq!(take("default", &[], None), [Some(90), Some(400), Some(3_660)]);
    assert_eq!(take("flag", &["--usage-retention", "100d"], None), [Some(100); 3]);
    assert_eq!(take("variable", &[], Some("10d,forever,70d")), [Some(10), None, Some(70)]);
    assert_eq!(take("both", &["--usage-retention", "forever"], Some("10d")), [None; 3]);
    let folder = sandbox.path().join(".config/tollgate");
    std::fs::create_dir_all(&folder).expect("there is room");
    std::fs::write(folder.join("config.toml"), "usage_retention = \"5d\"\n").expect("there is room");
    assert_eq!(take("file", &[], None), [Some(5), Some(5), Some(62)]);
}
