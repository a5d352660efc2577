//! Wall clocks that are set, or differ between processes: nothing is stuck, and no process gets more than the rate.

#![allow(clippy::unwrap_used, reason = "what panics here is a test")]

mod support;

use std::path::Path;
use std::time::Duration;

use support::child::{self, Process};
use support::{Folder, START, Tap};
use tollgate_core::{Span, Tick};
use tollgate_file::{Durability, FileStore};
use tollgate_store::{Clock, HostClock, ManualClock, Op, Store, TxnOutcome};

const BOOTED: Tick = Tick::from_secs(5_000);
const AN_HOUR: u64 = 3_600;
const A_DAY: u64 = 86_400;

/// What a token of 100 a minute takes, if the clock is slewed all the while.
const A_TOKEN: Duration = Duration::from_millis(700);

/// A host with manual clocks.
struct Host {
    monotonic: ManualClock,
    wall: ManualClock,
    boot: &'static str,
}

impl Host {
    fn new() -> Host {
        Host { monotonic: ManualClock::at(BOOTED), wall: ManualClock::at(START), boot: "first" }
    }

    fn clock(&self) -> HostClock {
        HostClock::manual(&self.monotonic, &self.wall, self.boot)
    }

    fn advance(&self, span: Span) {
        self.monotonic.advance(span);
        self.wall.advance(span);
    }

    fn set_forward(&self, secs: u64) {
        self.wall.set(self.wall.now() + Span::from_secs(secs));
    }

    fn set_back(&self, secs: u64) {
        self.wall.set(self.wall.now() - Span::from_secs(secs));
    }
}

/// How long a token is waited for; `None` if it was there.
fn wait(tap: &Tap<'_>) -> Option<Duration> {
    let costs = tap.costs(1, 0);
    match tap.apply(Op::Take { costs: &costs, term: None }).unwrap() {
        TxnOutcome::Done(_) => None,
        TxnOutcome::Denied(denials) => Some(denials[0].wait().unwrap()),
        other => panic!("{other:?}"),
    }
}

/// Takes all that there is.
fn drain(tap: &Tap<'_>) {
    while wait(tap).is_none() {}
}

/// Whether tokens come as fast as ever, but for what the clock is slewed.
fn assert_flows(host: &Host, tap: &Tap<'_>) {
    for _ in 0..20 {
        drain(tap);
        let wait = wait(tap).unwrap();
        assert!(wait <= A_TOKEN, "a token of 600 ms is waited for {wait:?}");
        let (before, mut passed) = (host.monotonic.now(), None);
        // It is asked again when it said, and again then: a clock that is slewed says a little too early.
        for _ in 0..10 {
            if passed.is_none() {
                host.advance(Span::covering(self::wait(tap).unwrap_or_default()));
                passed = self::wait(tap).is_none().then(|| host.monotonic.now().since(before).to_duration());
            }
        }
        assert!(passed.is_some_and(|passed| passed <= A_TOKEN * 2), "it came after {passed:?}");
    }
}

fn open(folder: &Folder, host: &Host) -> FileStore {
    let builder = FileStore::builder(folder.file("x")).durability(Durability::Off);
    builder.host(host.clock()).build().unwrap()
}

fn open_shifted(path: &Path, secs: i64) -> FileStore {
    FileStore::builder(path).host(HostClock::shifted(secs)).build().unwrap()
}

#[test]
fn a_clock_that_is_set_back_an_hour_holds_up_no_bucket() {
    let (folder, host) = (Folder::new(), Host::new());
    let store = open(&folder, &host);
    let tap = Tap::new(&store, "user");
    drain(&tap);
    host.set_back(AN_HOUR);
    assert_flows(&host, &tap);
    // A process that comes later knows the time of the others.
    let other = open(&folder, &host);
    assert_flows(&host, &Tap::new(&other, "user"));
    assert_flows(&host, &tap);
}

#[test]
fn a_clock_that_was_set_back_while_no_process_had_the_store_open_holds_up_no_bucket() {
    let (folder, host) = (Folder::new(), Host::new());
    drain(&Tap::new(&open(&folder, &host), "user"));
    host.set_back(AN_HOUR);
    let store = open(&folder, &host);
    assert_flows(&host, &Tap::new(&store, "user"));
}

#[test]
fn a_clock_that_was_a_month_ahead_and_is_set_back_holds_up_no_bucket() {
    let (folder, host) = (Folder::new(), Host::new());
    let store = open(&folder, &host);
    host.set_forward(30 * A_DAY);
    host.advance(Span::from_secs(1));
    drain(&Tap::new(&store, "user"));
    host.set_back(30 * A_DAY);
    drop(store);
    let store = open(&folder, &host);
    assert_flows(&host, &Tap::new(&store, "user"));
}

#[test]
fn a_process_that_was_idle_while_the_clock_was_ahead_catches_up() {
    let (folder, host) = (Folder::new(), Host::new());
    let (busy, idle) = (open(&folder, &host), open(&folder, &host));
    assert!(Tap::new(&idle, "other").take(1, 0));
    host.set_forward(30 * A_DAY);
    host.advance(Span::from_secs(1));
    drain(&Tap::new(&busy, "user"));
    host.set_back(30 * A_DAY);
    host.advance(Span::from_secs(1));
    let tap = Tap::new(&idle, "user");
    assert!(tap.left()[0] <= 3, "a look sees the time of the others, too");
    assert_flows(&host, &tap);
}

#[test]
fn an_hour_is_healed_in_eight_and_then_the_clocks_agree() {
    let (folder, host) = (Folder::new(), Host::new());
    let stores = [open(&folder, &host), open(&folder, &host)];
    let taps = stores.each_ref().map(|store| Tap::new(store, "user"));
    host.set_back(AN_HOUR);
    let mut last = stores[0].clock().now();
    // It begins when a process finds out.
    for minute in 0..8 * 60 + 2 {
        host.advance(Span::from_secs(60));
        taps[minute % 2].take(1, 0);
        let now = stores[minute % 2].clock().now();
        assert!(now >= last + Span::from_secs(52), "minute {minute}: the clock stands");
        last = now;
    }
    for store in &stores {
        let ahead = store.clock().now().since(host.wall.now());
        assert!(ahead <= Span::from_secs(2), "still ahead by {ahead:?}");
    }
}

#[test]
fn two_processes_an_hour_apart_get_no_more_than_the_rate_and_no_less_than_most_of_it() {
    let (folder, host) = (Folder::new(), Host::new());
    let ahead = ManualClock::at(START + Span::from_secs(AN_HOUR));
    let other = Host { monotonic: host.monotonic.clone(), wall: ahead, boot: host.boot };
    // The process whose clock is ahead comes first: this is the one step forward that there is.
    let stores = [open(&folder, &other), open(&folder, &host)];
    let taps = stores.each_ref().map(|store| Tap::new(store, "user"));
    drain(&taps[0]);
    let (mut taken, seconds) = (0, 900);
    for second in 1..=seconds {
        host.advance(Span::from_secs(1));
        other.wall.advance(Span::from_secs(1));
        let tap = &taps[second as usize / 7 % 2];
        while tap.take(1, 0) {
            taken += 1;
        }
        assert!(taken <= second * 100 / 60, "{taken} in {second} s");
    }
    assert!(taken >= seconds * 100 / 60 * 7 / 8, "{taken} in {seconds} s");
}

#[test]
fn a_clock_that_was_given_is_used_as_it_is() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START + Span::from_secs(AN_HOUR)));
    let store = support::open_at(&folder.file("x"), &hands);
    drain(&Tap::new(&store, "user"));
    hands.set(START);
    assert_eq!(store.clock().now(), START);
    assert!(wait(&Tap::new(&store, "user")).unwrap() >= Duration::from_secs(AN_HOUR));
}

#[test]
fn a_process_whose_clock_is_an_hour_behind_another_one_s_waits_as_long_as_ever() {
    let folder = Folder::new();
    for (ahead, here) in [(3_600, 0), (0, -3_600), (30 * 86_400, 0)] {
        let path = folder.file(&format!("{ahead}"));
        let mut other = Process::start("another_process", &format!("drain {ahead}"), &path);
        assert_eq!(other.hears().as_deref(), Some("drained"));
        let store = open_shifted(&path, here);
        // It was drained a moment ago: however long that is, no token is further away than the time it takes to come.
        let wait = wait(&Tap::new(&store, "user"));
        assert!(wait.is_none_or(|wait| wait <= A_TOKEN), "ahead by {ahead} s: {wait:?}");
    }
}

#[test]
fn processes_an_hour_apart_that_take_in_turn_get_no_more_than_the_rate() {
    let folder = Folder::new();
    let path = folder.file("x");
    let before = Clock::system().now();
    let roles = ["take 3600", "take 0", "take 3600", "take 0"];
    let mut others = roles.map(|role| Process::start("another_process", role, &path));
    let taken: u64 = others.iter_mut().map(|other| other.hears().unwrap().parse::<u64>().unwrap()).sum();
    let passed = Clock::system().now().since(before).as_micros();
    // Twice what fits: the clocks an hour apart are one step forward, after which the bucket is full again.
    assert!(taken <= 200 + passed * 100 / 60_000_000 + 1, "{taken} in {passed} µs");
}

/// What another process does, whose wall clock is ahead.
#[test]
fn another_process() {
    let Some((role, path)) = child::role() else { return };
    let (what, ahead) = role.split_once(' ').unwrap();
    let store = open_shifted(&path, ahead.parse().unwrap());
    let tap = Tap::new(&store, "user");
    match what {
        "drain" => {
            drain(&tap);
            child::say("drained");
        }
        _ => child::say(&(0..2_000).filter(|_| tap.take(1, 0)).count().to_string()),
    }
}

/// The host is started anew: its monotonic clock begins again.
fn reboot(host: Host) -> Host {
    Host { monotonic: ManualClock::at(Tick::from_secs(20)), wall: host.wall, boot: "second" }
}

#[test]
fn after_a_boot_store_time_goes_on_where_it_was() {
    let (folder, host) = (Folder::new(), Host::new());
    let store = open(&folder, &host);
    drain(&Tap::new(&store, "user"));
    host.set_back(AN_HOUR);
    host.advance(Span::from_secs(1));
    drain(&Tap::new(&store, "user"));
    let before = store.clock().now();
    drop(store);
    let host = reboot(host);
    host.wall.advance(Span::from_secs(30));
    let store = open(&folder, &host);
    let passed = store.clock().now().since(before);
    assert!((Span::from_secs(26)..=Span::from_secs(30)).contains(&passed), "{passed:?}");
    assert_flows(&host, &Tap::new(&store, "user"));
}

#[test]
fn a_boot_with_a_clock_that_was_lost_holds_up_no_bucket() {
    let (folder, host) = (Folder::new(), Host::new());
    let store = open(&folder, &host);
    drain(&Tap::new(&store, "user"));
    // The row says nothing about this day, because it was an ordinary one.
    host.advance(Span::from_secs(A_DAY));
    drain(&Tap::new(&store, "user"));
    drop(store);
    let host = reboot(host);
    host.wall.set(Tick::from_secs(25));
    let store = open(&folder, &host);
    let tap = Tap::new(&store, "user");
    assert_flows(&host, &tap);
    // The time comes from the network, and is followed.
    let today = START + Span::from_secs(2 * A_DAY);
    host.wall.set(today);
    host.advance(Span::from_secs(1));
    assert!(tap.take(100, 0), "a day has passed");
    assert_eq!(store.clock().now(), host.wall.now());
}

#[test]
fn a_file_of_an_earlier_version_is_used_as_it_is() {
    let (folder, host) = (Folder::new(), Host::new());
    // An earlier version has the clock of its process, and no row.
    let hands = ManualClock::at(START + Span::from_secs(AN_HOUR));
    let earlier = support::open_at(&folder.file("x"), &hands);
    drain(&Tap::new(&earlier, "user"));
    let file = rusqlite::Connection::open(folder.file("x")).unwrap();
    file.execute_batch("DROP TABLE clock").unwrap();
    let store = open(&folder, &host);
    let tap = Tap::new(&store, "user");
    assert_flows(&host, &tap);
    // It may go on writing meanwhile.
    hands.advance(Span::from_secs(AN_HOUR));
    drain(&Tap::new(&earlier, "user"));
    assert_flows(&host, &tap);
    drop((store, earlier));
    let store = open(&folder, &host);
    assert_flows(&host, &Tap::new(&store, "user"));
    store.check().wait().unwrap();
}

#[test]
fn a_file_that_is_full_goes_on_without_its_row() {
    let (folder, host) = (Folder::new(), Host::new());
    let path = folder.file("x");
    let builder = || FileStore::builder(&path).durability(Durability::Off).bytes_max(4_096);
    let made = open(&folder, &host);
    drain(&Tap::new(&made, "user"));
    drop(made);
    // No page is free for a table that is not there.
    rusqlite::Connection::open(&path).unwrap().execute_batch("DROP TABLE clock; VACUUM").unwrap();
    let store = builder().host(host.clock()).build().unwrap();
    let tap = Tap::new(&store, "user");
    assert_flows(&host, &tap);
    host.set_back(AN_HOUR);
    assert_flows(&host, &tap);
    drop(store);
    let file = rusqlite::Connection::open(&path).unwrap();
    assert!(!file.table_exists(None, "clock").unwrap(), "there was room for it");
}
