//! What a child does until it is done or killed. It says each thing once it has happened, in a line of its own.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tollgate::file::FileStore;
use tollgate::store::Backend;
use tollgate::{Clock, Limiter, Registry, demand};

/// What to do, and on which file.
pub(crate) struct Task {
    pub(crate) what: What,
    pub(crate) path: PathBuf,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum What {
    /// So many tries, each kept if it is admitted.
    Try(u32),
    /// The same with no cache.
    TryUncached(u32),
    /// Calls without end: take, hold a slot, settle.
    CallForever,
    /// Takes a slot and keeps it.
    Hold,
    /// Waits for so many slots, and gives them back.
    Wait(u32),
}

const TASK: &str = "TOLLGATE_CHILD_TASK";
const FILE: &str = "TOLLGATE_CHILD_FILE";

pub(crate) const RESOURCE: &str = "gpt-4";

impl Task {
    /// What this process was started for, if it is a child.
    pub(crate) fn given() -> Option<Task> {
        let task = std::env::var(TASK).ok()?;
        let (name, count) = task.split_once(' ').unwrap_or((&task, "0"));
        let count = count.parse().unwrap_or(0);
        let what = match name {
            "try" => What::Try(count),
            "try-uncached" => What::TryUncached(count),
            "call-forever" => What::CallForever,
            "hold" => What::Hold,
            "wait" => What::Wait(count),
            other => panic!("no such task: {other:?}"),
        };
        Some(Task { what, path: std::env::var_os(FILE).expect("a child is given its file").into() })
    }

    /// The environment that tells a child this task.
    pub(crate) fn environment(&self) -> [(&'static str, String); 2] {
        let task = match self.what {
            What::Try(count) => format!("try {count}"),
            What::TryUncached(count) => format!("try-uncached {count}"),
            What::CallForever => "call-forever".into(),
            What::Hold => "hold".into(),
            What::Wait(slots) => format!("wait {slots}"),
        };
        [(TASK, task), (FILE, self.path.display().to_string())]
    }

    pub(crate) fn run(&self) {
        match self.what {
            What::Try(count) => try_often(&limiter(&self.path, Duration::from_secs(60)), count),
            What::TryUncached(count) => try_often(&limiter(&self.path, Duration::ZERO), count),
            What::CallForever => call_forever(&limiter(&self.path, Duration::from_secs(60))),
            What::Hold => hold(&limiter(&self.path, Duration::from_secs(60))),
            What::Wait(slots) => wait(&self.path, slots),
        }
    }
}

/// A limiter on the file.
pub(crate) fn limiter(path: &Path, cache_ttl: Duration) -> Limiter {
    limiter_on(Arc::new(FileStore::open(path).expect("the file can be opened")), cache_ttl)
}

fn limiter_on(store: Arc<FileStore>, cache_ttl: Duration) -> Limiter {
    let registry = Registry::builder(store).cache_ttl(cache_ttl).build().expect("the settings are valid");
    let catalog = registry.open_or_register("default").wait().expect("the store answers");
    Limiter::builder(catalog).build()
}

/// Says a line at once: a child that is killed after this has said it.
fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A parent that is gone wants to hear nothing.
    let _ = out.write_all(format!("{line}\n").as_bytes());
    let _ = out.flush();
}

fn try_often(limiter: &Limiter, count: u32) {
    for _ in 0..count {
        let attempt =
            limiter.try_acquire("user", RESOURCE, demand! { total: 1 }).wait().expect("the store answers");
        if let Some(lease) = attempt.admitted() {
            lease.commit().wait().expect("the store answers");
            say("admitted");
        }
    }
}

fn call_forever(limiter: &Limiter) {
    let clock = Clock::system();
    loop {
        let before = clock.now().as_micros();
        let wait = limiter
            .acquire("user", RESOURCE, demand! { total: 10, rate: 1 })
            .timeout(Duration::from_secs(30));
        let lease = wait.wait().expect("the store answers");
        let after = clock.now().as_micros();
        say(&format!("taken {before} {after}"));
        lease.settle(demand! { total: 7, rate: 1 }).wait().expect("the store answers");
        say("settled");
    }
}

fn hold(limiter: &Limiter) {
    let _lease = limiter.acquire("user", RESOURCE, demand! { total: 0 }).wait().expect("the store answers");
    say("held");
    loop {
        std::thread::park();
    }
}

/// Says that it waits once it is in the queue, and then when it was served, while no other process can be.
fn wait(path: &Path, slots: u32) {
    let store = Arc::new(FileStore::open(path).expect("the file can be opened"));
    let limiter = limiter_on(Arc::clone(&store), Duration::from_secs(60));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let queues = store.wait_queues();
            while queues.waiting() == 0 || queues.is_busy() {
                std::thread::yield_now();
            }
            say("waits");
        });
        let wait = limiter.acquire("user", RESOURCE, demand! { slots: u64::from(slots) });
        let lease = wait.timeout(Duration::from_secs(600)).wait().expect("the store answers");
        say(&format!("served {}", Clock::system().now().as_micros()));
        lease.commit().wait().expect("the store answers");
    });
}
