//! Waiters of a store whose time of day was set back: they wait as long as a token takes to come, and no longer.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tollgate::file::{Durability, FileStore};
use tollgate::store::{Backend, HostClock};
use tollgate::{Limit, LimitSet, demand};

/// What no wait for a token of 50 ms takes, and much less than any clock is set back here.
const PATIENCE: Duration = Duration::from_secs(120);

fn file(name: &str, secs: i64) -> Arc<dyn Backend> {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}.db"));
    let builder = FileStore::builder(&path).durability(Durability::Off);
    Arc::new(builder.host(HostClock::shifted(secs)).build().expect("the file can be opened"))
}

#[cfg(target_os = "linux")]
fn memory(name: &str, secs: i64) -> Arc<dyn Backend> {
    let builder = tollgate::shm::ShmStore::builder(name).folder(env!("CARGO_TARGET_TMPDIR"));
    Arc::new(builder.host(HostClock::shifted(secs)).build().expect("it can be opened"))
}

fn set(store: Arc<dyn Backend>) -> LimitSet {
    let limits = [Limit::per_second("rps", 20)];
    LimitSet::builder().limits(limits).store(store).name("shared").build().expect("it is valid")
}

/// Removes what an earlier run left behind, if it did.
fn remove(name: &str) {
    let files = std::fs::read_dir(env!("CARGO_TARGET_TMPDIR")).into_iter().flatten().flatten();
    for file in files.filter(|file| file.file_name().to_string_lossy().contains(name)) {
        let _ = std::fs::remove_file(file.path());
    }
}

/// The clock of one process is ahead by so many seconds, and that of the next one is not.
fn waits(open: impl Fn(&str, i64) -> Arc<dyn Backend>, kind: &str, ahead: i64) {
    let name = format!("clocks-{kind}-{ahead}");
    remove(&name);
    let earlier = set(open(&name, ahead));
    while earlier.try_acquire(demand! { rps: 1 }).wait().expect("it is valid").admitted().is_some() {}
    let later = set(open(&name, 0));
    for set in [&later, &earlier, &later] {
        let lease = set.acquire(demand! { rps: 1 }).timeout(PATIENCE).wait();
        lease.expect("a token comes within 50 ms").settle(demand! { rps: 1 }).wait().expect("it is valid");
    }
}

#[test]
fn a_waiter_on_a_file_passes_after_the_clock_was_set_back() {
    waits(file, "file", 3_600);
    waits(file, "file", 30 * 86_400);
}

#[cfg(target_os = "linux")]
#[test]
fn a_waiter_in_shared_memory_passes_after_the_clock_was_set_back() {
    waits(memory, "memory", 3_600);
    waits(memory, "memory", 30 * 86_400);
}
