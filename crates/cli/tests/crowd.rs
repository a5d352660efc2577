//! Many processes that wait for a few slots: each is served, even if others are killed or stopped.
//!
//! `TOLLGATE_CROWD` sets how many; the long form is a thousand.
#![cfg(all(feature = "shm", target_os = "linux"))]

mod support;

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use support::sandbox::{Sandbox, TOLLGATE};

const SLOTS: usize = 8;

/// The number of waiting processes; a fifth of them is killed and a twentieth stopped meanwhile.
fn crowd() -> usize {
    std::env::var("TOLLGATE_CROWD").ok().and_then(|crowd| crowd.parse().ok()).unwrap_or(60)
}

/// What a process does while it has a slot: it signs in, counts those that are in, and signs out.
const WORK: &str = "touch running/$$ && ls running | wc -l >> seen && rm running/$$ && echo done >> done";

fn signal(child: &Child, signal: Signal) {
    let pid = Pid::from_raw(child.id() as i32).expect("a process has an id");
    kill_process(pid, signal).expect("it has not been waited for");
}

/// Whether the program has begun to wait: it has more than one thread, and all of them sleep.
fn is_asleep(child: &Child) -> bool {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{}/task", child.id())) else { return false };
    let sleeps = |stat: String| stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('S'));
    let states: Vec<bool> = tasks
        .flatten()
        .map(|task| std::fs::read_to_string(task.path().join("stat")).is_ok_and(sleeps))
        .collect();
    states.len() > 1 && states.iter().all(|asleep| *asleep)
}

/// A store in the sandbox, deleted with it.
fn shared_memory(sandbox: &Sandbox) -> String {
    let name = sandbox.path().file_name().expect("it has a name").to_string_lossy().into_owned();
    format!("shm:{name}")
}

fn lines(sandbox: &Sandbox, file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(sandbox.path().join(file)).unwrap_or_default();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

fn each_of_a_crowd_is_served(sandbox: &Sandbox) {
    let (crowd, folder) = (crowd(), sandbox.path());
    for name in ["running", "holding"] {
        std::fs::create_dir(folder.join(name)).expect("an empty folder");
    }
    let limit = format!("slots:{SLOTS}/at-once");
    let ran = sandbox.tollgate(&["system", "set-defaults", "-l", &limit]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    // All slots are taken until the crowd has been started.
    let gate = "touch holding/$$ && while [ ! -e open ]; do sleep 0.05; done";
    let spawn = |words: &[&str], script: &str| {
        let mut command = sandbox.command(TOLLGATE);
        command.args(["run", "me", "jobs"]).args(words).args(["--", "sh", "-c", script]);
        // A thousand processes that start at once keep the processors busy for longer than a call may take otherwise.
        command.env("TOLLGATE_STORE_TIMEOUT", "600s");
        command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the program is built")
    };
    let holders: Vec<Child> = (0..SLOTS).map(|_| spawn(&[], gate)).collect();
    while std::fs::read_dir(folder.join("holding")).expect("it is there").count() < SLOTS {
        std::thread::yield_now();
    }
    let mut waiters: Vec<Child> = (0..crowd).map(|_| spawn(&["--timeout", "1h"], WORK)).collect();
    let stopped = waiters.split_off(crowd - crowd / 20);
    let killed = waiters.split_off(waiters.len() - crowd / 5);
    for child in &stopped {
        // Not while it works on the store: a process that is stopped with the lock of shared memory holds up all others.
        while !is_asleep(child) {
            std::thread::yield_now();
        }
        signal(child, Signal::STOP);
    }
    std::fs::write(folder.join("open"), "").expect("it can be written");
    for mut child in killed {
        signal(&child, Signal::KILL);
        child.wait().expect("it ends");
    }
    let finish = |child: Child| {
        let output = child.wait_with_output().expect("it ends");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{}: {said}", output.status);
    };
    let served = waiters.len() + stopped.len();
    holders.into_iter().for_each(finish);
    waiters.into_iter().for_each(finish);
    stopped.iter().for_each(|child| signal(child, Signal::CONT));
    stopped.into_iter().for_each(finish);
    assert!(lines(sandbox, "done").len() >= served, "of {served}");
    // A process that was killed while it had a slot leaves its sign behind, and its slot is another's.
    let most = lines(sandbox, "seen").iter().map(|seen| seen.parse::<usize>().expect("a count")).max();
    assert!(most.is_some_and(|most| most <= SLOTS + crowd / 5), "{most:?} at once");
}

#[test]
fn each_of_a_crowd_that_shares_a_file_is_served() {
    each_of_a_crowd_is_served(&Sandbox::new());
}

#[test]
fn each_of_a_crowd_that_shares_memory_is_served() {
    let sandbox = Sandbox::new();
    let store = shared_memory(&sandbox);
    let file = format!("/dev/shm/tollgate-{}-{}", rustix::process::getuid().as_raw(), &store["shm:".len()..]);
    let sandbox = sandbox.with_store(&store);
    each_of_a_crowd_is_served(&sandbox);
    std::fs::remove_file(file).expect("the memory was there");
}

#[cfg(feature = "redis")]
#[test]
fn each_of_a_crowd_that_shares_redis_is_served() {
    let server = tollgate_redis_local::Server::start(tollgate_redis_local::ServerKind::Redis);
    each_of_a_crowd_is_served(&Sandbox::new().with_store(&server.url()));
}
