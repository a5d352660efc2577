//! The joint history of processes that are killed, stopped and forked, and whose clocks are hours apart: it keeps to the
//! bounds of rates, windows, slots and chains.
//!
//! `TOLLGATE_HISTORY_SECS` says how long; the long form is a minute.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use tollgate::Attempt;
use tollgate::file::FileStore;
use tollgate::shm::ShmStore;
use tollgate::store::{Backend, HostClock, SplitMix64};
use tollgate::{Clock, Level, Limit, LimitBuilder, Limiter, Limits, NewEntity, Registry, demand};

use crate::stores;
use crate::support::Folder;
use crate::support::fork::{Board, End, Forked, fork, fork_and_end, one_at_a_time};

const PROCESSES: usize = 8;
const CHILDREN: [&str; 2] = ["one", "other"];
const ENTITIES: [&str; 3] = ["one", "other", "parent"];

/// Slots that a call holds, and that there are.
const HELD: u64 = 2;
const SLOTS: u64 = 8;

/// What each entity may use: of the rate in a second and at once, and of the window in a second.
const RATES: [u64; 3] = [150, 150, 200];
const BURST: u64 = 20;
const WINDOWS: [u64; 3] = [100, 100, 120];

/// How far apart clocks are.
const HOUR: i64 = 3_600;

const SECOND: u64 = 1_000_000;

/// How many calls are noted at most, and in how many words each.
const CALLS_MAX: usize = 1 << 16;
const WORDS: usize = 4;

fn run_time() -> Duration {
    let secs = std::env::var("TOLLGATE_HISTORY_SECS").ok().and_then(|secs| secs.parse().ok());
    Duration::from_secs(secs.unwrap_or(2))
}

/// The monotonic time of the host in microseconds, by which all processes note what they do.
fn monotonic() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes to what it is given.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * SECOND + time.tv_nsec as u64 / 1_000
}

/// Lets time pass, which no test waits for.
fn pause(millis: u64) {
    std::thread::park_timeout(Duration::from_millis(millis));
}

/// A call that was admitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LoggedCall {
    child: usize,
    before: u64,
    admitted: u64,
    /// When it began to give back; 0 if its process was killed before.
    ended: u64,
}

/// How many calls show something, and how long to wait for so many on a busy machine.
const CALLS_MIN: usize = 40;
const GIVEN_UP: Duration = Duration::from_secs(300);

/// What all processes note: how many calls there are, whether the history is over, and each call.
struct Log(Board);

impl Log {
    fn new() -> Log {
        Log(Board::new(2 + CALLS_MAX * WORDS))
    }

    fn words(&self, call: usize) -> &[AtomicU64] {
        &self.0[2 + call * WORDS..][..WORDS]
    }

    fn len(&self) -> usize {
        self.0[0].load(Ordering::SeqCst) as usize
    }

    fn is_over(&self) -> bool {
        self.0[1].load(Ordering::SeqCst) != 0
    }

    fn end_history(&self) {
        self.0[1].store(1, Ordering::SeqCst);
    }

    fn begin(&self, child: usize, before: u64) -> usize {
        let call = self.0[0].fetch_add(1, Ordering::SeqCst) as usize;
        assert!(call < CALLS_MAX, "the log is full");
        let admitted = monotonic();
        // The instant comes last: a call without one is not noted.
        for (word, value) in self.words(call).iter().zip([child as u64, before, admitted]) {
            word.store(value, Ordering::SeqCst);
        }
        call
    }

    fn end(&self, call: usize) {
        self.words(call)[3].store(monotonic(), Ordering::SeqCst);
    }

    fn calls(&self) -> Vec<LoggedCall> {
        let calls = (0..self.len()).map(|call| {
            let [child, before, admitted, ended] =
                [0, 1, 2, 3].map(|word| self.words(call)[word].load(Ordering::SeqCst));
            LoggedCall { child: child as usize, before, admitted, ended }
        });
        calls.filter(|call| call.admitted > 0).collect()
    }
}

/// Returns the first stretch in which more calls lie than `allowed` says for its length: from when to when, and how many.
fn crowded(calls: &[LoggedCall], allowed: impl Fn(u64) -> u64) -> Option<(u64, u64, u64)> {
    let mut calls = calls.to_vec();
    calls.sort_by_key(|call| call.admitted);
    for (first, LoggedCall { before: start, .. }) in calls.iter().enumerate() {
        let mut count = 0;
        for LoggedCall { before, admitted, .. } in &calls[first..] {
            count += u64::from(before >= start);
            if count > allowed(admitted - start) {
                return Some((*start, *admitted, count));
            }
        }
    }
    None
}

/// The greatest number of calls that were under way at one instant, as far as it is known when they ended.
fn most_at_once(calls: &[LoggedCall]) -> u64 {
    let ended = calls.iter().filter(|call| call.ended > 0);
    let mut edges: Vec<(u64, i64)> = ended.flat_map(|call| [(call.admitted, 1), (call.ended, -1)]).collect();
    // What ends at an instant has ended when something else begins.
    edges.sort_unstable();
    let counts = edges.iter().scan(0, |sum, (_, change)| {
        *sum += change;
        Some(*sum)
    });
    counts.max().unwrap_or(0) as u64
}

fn limits_of(entity: usize) -> Limits {
    let limits: [LimitBuilder; 3] = [
        Limit::per_second("rate", RATES[entity]).burst(BURST),
        Limit::fixed_window("window", WINDOWS[entity], Duration::from_secs(1)),
        Limit::resource("slots", SLOTS),
    ];
    Limits::new(limits).expect("they are valid")
}

/// A store of these tests.
struct StoreUnderTest<'a> {
    /// Opens it in a process whose clock is so many seconds ahead.
    open: &'a dyn Fn(i64) -> Arc<dyn Backend>,
    /// By how much the time of the store may run ahead of that of the host while a history lasts, in microseconds.
    ahead: fn(Duration) -> u64,
}

fn limiter(store: Arc<dyn Backend>) -> Limiter {
    let catalog = Registry::new(store).open_or_register("history").wait().expect("it answers");
    // Long enough for a process that is stopped for a second.
    Limiter::builder(catalog).lease_ttl(Duration::from_secs(10)).build()
}

/// Calls until it is time to end, or is killed.
fn work(limiter: &Limiter, log: &Log, random: &mut SplitMix64) {
    while !log.is_over() {
        let child = random.below(2) as usize;
        call(limiter, log, child, random);
        if random.below(100) == 0 {
            let mut random = SplitMix64::new(random.below(u64::MAX >> 33));
            let ended = fork_and_end(|| (0..5).for_each(|_| call(limiter, log, child, &mut random)));
            assert_eq!(ended, End::Code(0));
        }
    }
}

fn call(limiter: &Limiter, log: &Log, child: usize, random: &mut SplitMix64) {
    let before = monotonic();
    let demand = demand! { rate: 1, window: 1, slots: HELD };
    let attempt = limiter.try_acquire(CHILDREN[child], "api", demand).wait().expect("the store answers");
    let Attempt::Admitted(lease) = attempt else {
        return pause(random.below(4));
    };
    let noted = log.begin(child, before);
    pause(random.below(8));
    log.end(noted);
    lease.commit().wait().expect("the store answers");
}

fn history_of(store: &StoreUnderTest<'_>) {
    let (log, mut random, time) = (Log::new(), SplitMix64::new(0x5EED), run_time());
    // The clock that is most ahead comes first: each that is even more ahead fills the buckets once.
    let parent = limiter((store.open)(HOUR));
    let new = NewEntity::new(ENTITIES[2]);
    parent.catalog().create_entity(new).wait().expect("it answers");
    for child in CHILDREN {
        let new = NewEntity::new(child).parent(ENTITIES[2]).cascades(true);
        parent.catalog().create_entity(new).wait().expect("it answers");
    }
    for (index, entity) in ENTITIES.iter().enumerate() {
        let set = parent.catalog().set_limits(Level::Entity(entity), &limits_of(index)).wait();
        set.expect("it answers");
    }
    let began = monotonic();
    let lasted = || Duration::from_micros(monotonic() - began);
    let start = |random: &mut SplitMix64| {
        let ahead = [-HOUR, 0, HOUR][random.below(3) as usize];
        let mut random = SplitMix64::new(random.below(u64::MAX >> 33));
        fork(|| work(&limiter((store.open)(ahead)), &log, &mut random))
    };
    let mut processes: Vec<Forked> = (0..PROCESSES).map(|_| start(&mut random)).collect();
    // On a busy machine it takes longer until there are enough calls.
    while lasted() < time || (log.len() < CALLS_MIN && lasted() < GIVEN_UP) {
        pause(50 + random.below(400));
        let chosen = random.below(PROCESSES as u64) as usize;
        if random.below(2) == 0 {
            // Or it was done just before.
            let ended = processes.remove(chosen).kill();
            assert!(matches!(ended, End::Signal(libc::SIGKILL) | End::Code(0)), "{ended:?}");
            processes.push(start(&mut random));
        } else {
            processes[chosen].signal(libc::SIGSTOP);
            pause(random.below(900));
            processes[chosen].signal(libc::SIGCONT);
        }
    }
    log.end_history();
    let ended: Vec<End> = processes.into_iter().map(Forked::end).collect();
    assert_eq!(ended, [const { End::Code(0) }; PROCESSES]);
    check(&log.calls(), (store.ahead)(lasted()));
}

/// Whether a history kept to every bound, though the time of the store ran ahead by so much.
fn check(calls: &[LoggedCall], ahead: u64) {
    assert!(calls.len() > CALLS_MIN / 2, "{} calls show nothing", calls.len());
    for (index, entity) in ENTITIES.iter().enumerate() {
        let of_entity = |call: &&LoggedCall| index == 2 || call.child == index;
        let calls: Vec<LoggedCall> = calls.iter().filter(of_entity).copied().collect();
        let by_rate = crowded(&calls, |length| BURST + (length + ahead) * RATES[index] / SECOND);
        assert_eq!(by_rate, None, "the rate of {entity}");
        // A stretch touches one window more than it is long, and begins in another.
        let by_window = crowded(&calls, |length| ((length + ahead) / SECOND + 2) * WINDOWS[index]);
        assert_eq!(by_window, None, "the window of {entity}");
        assert!(most_at_once(&calls) <= SLOTS / HELD, "the slots of {entity}");
    }
}

/// How much the clocks of two processes may differ that both follow the same one.
const JITTER: u64 = 20_000;

/// A clock that was set back is slewed by an eighth, and may be as far ahead again at once.
fn slewed(time: Duration) -> u64 {
    time.as_micros() as u64 / 8 + JITTER
}

#[test]
fn a_planted_fault_is_noticed() {
    let call = |at: u64| LoggedCall { child: 0, before: at, admitted: at + 10, ended: at + 100 };
    let good: Vec<LoggedCall> = (0..20).map(|_| call(0)).chain((1..=50).map(|n| call(n * 10_000))).collect();
    let allowed = |length: u64| 20 + length * 100 / SECOND;
    assert_eq!(crowded(&good, allowed), None);
    let bad: Vec<LoggedCall> = good.iter().copied().chain([call(250_000)]).collect();
    assert!(crowded(&bad, allowed).is_some());
    assert_eq!((most_at_once(&good), most_at_once(&[call(0), call(100), call(150)])), (20, 2));
}

#[test]
fn the_joint_history_keeps_to_the_bound_in_shared_memory() {
    let (_alone, folder) = (one_at_a_time(), Folder::new());
    let open = |ahead| -> Arc<dyn Backend> {
        let store = ShmStore::builder("history").folder(folder.path()).timeout(stores::PATIENT);
        Arc::new(store.host(HostClock::shifted(ahead)).build().expect("it can be opened"))
    };
    history_of(&StoreUnderTest { open: &open, ahead: slewed });
}

#[test]
fn the_joint_history_keeps_to_the_bound_in_a_file() {
    let (_alone, folder) = (one_at_a_time(), Folder::new());
    let path = folder.path().join("history.db");
    let open = |ahead| -> Arc<dyn Backend> {
        let store = FileStore::builder(&path).timeout(stores::PATIENT).host(HostClock::shifted(ahead));
        Arc::new(store.build().expect("it can be opened"))
    };
    history_of(&StoreUnderTest { open: &open, ahead: slewed });
}

#[test]
fn the_joint_history_keeps_to_the_bound_on_redis() {
    let _alone = one_at_a_time();
    // The time is that of the server, whatever the clock of a client says.
    let open = |_| -> Arc<dyn Backend> { Arc::new(stores::redis("history")) };
    history_of(&StoreUnderTest { open: &open, ahead: |_| JITTER });
}

#[test]
fn the_joint_history_keeps_to_the_bound_on_dynamodb() {
    let _alone = one_at_a_time();
    let open = |ahead: i64| -> Arc<dyn Backend> {
        let clock = Clock::system().corrected(Arc::new(AtomicI64::new(ahead * SECOND as i64)));
        Arc::new(stores::dynamo_with("history", |store| store.clock(clock)))
    };
    // The service says what time it is to the second.
    history_of(&StoreUnderTest { open: &open, ahead: |_| 2 * SECOND });
}
