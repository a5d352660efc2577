//! The queues in which callers wait for limits of buckets that cannot grant by themselves.
#![cfg(not(loom))]

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

use tollgate_core::{Span, Tick};
use tollgate_store::{
    Clock, Freed, Key, ManualClock, Priority, QueueFull, QueueGuard, QueueKey, Rank, Reply, SharedQueues,
    WaitQueues,
};

const NAMESPACE: &str = "test";
const MAX: usize = 1_000;

/// The queue of the limit `rpm` of a bucket.
fn key(name: &str) -> QueueKey {
    QueueKey { namespace: NAMESPACE.into(), bucket: Key::new(&[name]), limit: "rpm".into() }
}

fn enqueue(guard: &mut QueueGuard<'_>, names: &[&str]) -> bool {
    guard.enqueue(names.iter().map(|name| key(name)), MAX).expect("there is room")
}

fn may_ask(guard: &mut QueueGuard<'_>, names: &[&str]) -> bool {
    let keys: Vec<QueueKey> = names.iter().map(|name| key(name)).collect();
    guard.may_ask(&keys, MAX).expect("there is room")
}

fn is_notified(guard: &QueueGuard<'_>) -> bool {
    let notified = pin!(guard.notified(None));
    matches!(notified.poll(&mut Context::from_waker(Waker::noop())), Poll::Ready(()))
}

#[test]
fn who_came_first_is_first_wherever_it_stands() {
    let (queues, now) = (WaitQueues::default(), Tick::from_secs(1));
    let clock = ManualClock::at(now).clock();
    let mut guards: Vec<_> = (0..3).map(|_| queues.guard(&clock, Priority::Normal, now)).collect();
    for (guard, names) in guards.iter_mut().zip([["a", "b"], ["b", "c"], ["c", "a"]]) {
        enqueue(guard, &names);
    }
    assert_eq!(queues.waiting(), 3);
    let may =
        |guards: &mut Vec<QueueGuard<'_>>| guards.iter_mut().map(|it| may_ask(it, &[])).collect::<Vec<_>>();
    assert_eq!(may(&mut guards), [true, false, false]);
    drop(guards.remove(0));
    assert_eq!(may(&mut guards), [true, false]);
    drop(guards.remove(0));
    assert_eq!(may(&mut guards), [true]);
    drop(guards);
    assert!(queues.is_empty());
}

#[test]
fn whoever_stands_first_is_told_when_the_one_ahead_leaves() {
    let (queues, hands) = (WaitQueues::default(), ManualClock::at(Tick::from_secs(1)));
    let mut first = queues.guard(&hands.clock(), Priority::Normal, hands.now());
    let mut second = queues.guard(&hands.clock(), Priority::Normal, hands.now());
    enqueue(&mut first, &["a"]);
    enqueue(&mut second, &["a"]);
    assert!(!is_notified(&second));
    drop(first);
    assert!(is_notified(&second));
    second.clear_notification(MAX);
    assert!(!is_notified(&second));
    queues.notify(&Freed::all("other", &key("a").bucket));
    assert!(!is_notified(&second), "that was another namespace");
    queues.notify(&Freed::all(NAMESPACE, &key("a").bucket));
    assert!(is_notified(&second));
}

#[test]
fn a_newcomer_joins_the_line_of_those_it_may_not_overtake() {
    let (queues, now) = (WaitQueues::default(), Tick::from_secs(1));
    let clock = ManualClock::at(now).clock();
    let mut waiting = queues.guard(&clock, Priority::Normal, now);
    enqueue(&mut waiting, &["a"]);
    assert!(queues.ahead_of(&key("a"), Priority::Normal, now).is_some());
    assert!(queues.ahead_of(&key("b"), Priority::Normal, now).is_none());
    assert!(queues.ahead_of(&key("a"), Priority::Interactive, now).is_none(), "it may be passed");
    let mut newcomer = queues.guard(&clock, Priority::Normal, now);
    assert!(may_ask(&mut newcomer, &["b"]));
    assert!(!may_ask(&mut newcomer, &["a", "b"]));
    assert!(newcomer.is_queued());
    drop(waiting);
    assert!(may_ask(&mut newcomer, &["a", "b"]));
}

#[test]
fn a_full_line_turns_away_and_nothing_was_joined() {
    let (queues, now) = (WaitQueues::default(), Tick::from_secs(1));
    let clock = ManualClock::at(now).clock();
    let mut waiting = queues.guard(&clock, Priority::Normal, now);
    enqueue(&mut waiting, &["a"]);
    let mut turned_away = queues.guard(&clock, Priority::Normal, now);
    let keys = [key("b"), key("a")];
    assert_eq!(turned_away.enqueue(keys, 1), Err(QueueFull { waiting: 1, max: 1 }));
    assert!(!turned_away.is_queued());
    assert_eq!(queues.waiting(), 1);
}

#[test]
fn an_alarm_pokes_at_its_instant_and_alarms_do_not_pile_up() {
    let (queues, hands) = (WaitQueues::default(), ManualClock::at(Tick::from_secs(1)));
    let mut guard = queues.guard(&hands.clock(), Priority::Normal, hands.now());
    enqueue(&mut guard, &["a"]);
    let due = hands.now() + Span::from_secs(10);
    for _ in 0..1_000 {
        let mut poked = pin!(guard.notified(Some(due)));
        assert!(poked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    assert_eq!(hands.alarms(), 1);
    assert_eq!(queues.ahead_of(&key("a"), Priority::Normal, hands.now()), Some(Some(due)));
    hands.set(Tick::from_micros(due.as_micros() - 1));
    assert!(!is_notified(&guard));
    hands.set(due);
    assert!(is_notified(&guard));
}

/// A permit that is taken and given back by many threads: each grant is in the order of arrival, and no wake-up is lost.
#[test]
fn no_wake_up_is_lost_among_threads() {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 500;
    let (queues, is_free, granted) = (WaitQueues::default(), AtomicBool::new(true), AtomicU64::new(0));
    let hands = ManualClock::at(Tick::from_secs(1));
    let inside = Mutex::new(());
    let clock = hands.clock();
    let take = || is_free.swap(false, Ordering::SeqCst);
    thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    let mut guard = queues.guard(&clock, Priority::Normal, clock.now());
                    let wait = async {
                        loop {
                            guard.clear_notification(MAX);
                            if may_ask(&mut guard, &["a"]) && take() {
                                return;
                            }
                            if !enqueue(&mut guard, &["a"]) {
                                guard.notified(None).await;
                            }
                        }
                    };
                    Reply::later(wait).wait();
                    {
                        let _alone = inside.try_lock().expect("two have one permit");
                        granted.fetch_add(1, Ordering::SeqCst);
                    }
                    is_free.store(true, Ordering::SeqCst);
                    drop(guard);
                    queues.notify(&Freed::all(NAMESPACE, &key("a").bucket));
                }
            });
        }
    });
    assert_eq!(granted.into_inner(), THREADS * ROUNDS);
    assert!(queues.is_empty());
}

#[test]
fn a_notification_reaches_only_those_who_wait_for_what_was_freed() {
    let (queues, hands) = (WaitQueues::default(), ManualClock::at(Tick::from_secs(1)));
    let of_limit = |limit: &str| QueueKey { limit: limit.into(), ..key("a") };
    let mut rpm = queues.guard(&hands.clock(), Priority::Normal, hands.now());
    let mut budget = queues.guard(&hands.clock(), Priority::Normal, hands.now());
    rpm.enqueue([of_limit("rpm")], MAX).expect("there is room");
    budget.enqueue([of_limit("budget")], MAX).expect("there is room");
    assert!(may_ask(&mut rpm, &["a"]), "a waiter for the budget is in another queue");
    let freed = Freed { limits: Some(vec!["rpm".into()]), ..Freed::all(NAMESPACE, &key("a").bucket) };
    queues.notify(&freed);
    assert!(is_notified(&rpm) && !is_notified(&budget));
    queues.notify(&Freed::all(NAMESPACE, &key("a").bucket));
    assert!(is_notified(&budget));
}

/// How long a test waits for what is to come within a second, on a machine with other work to do.
const PATIENCE: Span = Span::from_secs(300);

/// Gives way until `done`. How long a waiter takes to react is measured by the clock of the system.
fn until(done: impl Fn() -> bool) {
    let given_up = Clock::system().now() + PATIENCE;
    while !done() {
        assert!(Clock::system().now() < given_up, "it did not come within {:?}", PATIENCE.to_duration());
        thread::yield_now();
    }
}

#[test]
fn a_waiter_that_does_not_react_is_passed_until_it_does() {
    let (queues, clock) = (WaitQueues::default(), ManualClock::at(Tick::from_secs(1)).clock());
    let join = || {
        let mut guard = queues.guard(&clock, Priority::Normal, Tick::from_secs(1));
        enqueue(&mut guard, &["a"]);
        guard.clear_notification(MAX);
        guard
    };
    // The first was polled once, was about to ask the store then, and is never polled again.
    let (mut asking, mut parked, mut last) = (join(), join(), join());
    assert!(!is_notified(&parked) && !is_notified(&last));
    assert!(!may_ask(&mut parked, &["a"]));
    until(|| is_notified(&parked));
    assert!(may_ask(&mut parked, &["a"]));
    // The second was notified, and does not react either.
    until(|| is_notified(&last));
    last.clear_notification(MAX);
    assert!(may_ask(&mut last, &["a"]) && !is_notified(&last));
    assert!(queues.ahead_of(&key("a"), Priority::Normal, clock.now()).is_some(), "the last one reacts");
    // A waiter that comes back is where it was.
    asking.clear_notification(MAX);
    assert!(!is_notified(&asking), "it waits again");
    assert!(may_ask(&mut asking, &["a"]) && !may_ask(&mut last, &["a"]));
    drop(asking);
    assert!(may_ask(&mut last, &["a"]), "the second is still passed");
    drop((parked, last));
    assert!(queues.is_empty());
}

/// Queues of all processes in which a waiter that is passed over reacts while it is being removed.
#[derive(Default)]
struct Slow {
    queue: Mutex<BTreeSet<Rank>>,
    /// How far the removal is: begun, the waiter has reacted, ended.
    removal: AtomicU64,
}

impl SharedQueues for Slow {
    fn is_empty(&self) -> bool {
        self.queue.lock().expect("no test panics").is_empty()
    }

    fn next_ticket(&self) -> u64 {
        0
    }

    fn generation(&self) -> u64 {
        0
    }

    fn join(&self, _: &QueueKey, rank: Rank, _: usize) -> Result<bool, QueueFull> {
        self.queue.lock().expect("no test panics").insert(rank);
        Ok(true)
    }

    fn leave(&self, _: &QueueKey, rank: Rank) {
        if self.removal.compare_exchange(0, 1, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            until(|| self.removal.load(Ordering::SeqCst) == 2);
        }
        self.queue.lock().expect("no test panics").remove(&rank);
        self.removal.store(3, Ordering::SeqCst);
    }

    fn head(&self, _: &QueueKey) -> Option<Rank> {
        self.queue.lock().expect("no test panics").first().copied()
    }

    fn notify(&self, _: &Freed) {}
}

#[test]
fn a_waiter_that_reacts_while_it_is_passed_over_is_not_lost() {
    let shared = Arc::new(Slow::default());
    let queues = WaitQueues::shared_by(shared.clone());
    let mut guard = queues.guard(&Clock::system(), Priority::Normal, Tick::from_secs(1));
    enqueue(&mut guard, &["a"]);
    guard.clear_notification(MAX);
    until(|| shared.removal.load(Ordering::SeqCst) == 1);
    guard.clear_notification(MAX);
    shared.removal.store(2, Ordering::SeqCst);
    until(|| shared.removal.load(Ordering::SeqCst) == 3);
    until(|| is_notified(&guard));
    guard.clear_notification(MAX);
    assert!(!shared.is_empty(), "it is in the queue of all processes again");
}

/// Queues of all processes whose lock is taken for the first joins.
#[derive(Default)]
struct Locked {
    queue: Mutex<BTreeSet<Rank>>,
    /// How many more joins find the lock taken.
    busy: AtomicU64,
}

impl SharedQueues for Locked {
    fn is_empty(&self) -> bool {
        self.queue.lock().expect("no test panics").is_empty()
    }

    fn next_ticket(&self) -> u64 {
        0
    }

    fn generation(&self) -> u64 {
        0
    }

    fn join(&self, _: &QueueKey, rank: Rank, _: usize) -> Result<bool, QueueFull> {
        let is_busy = self.busy.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |busy| busy.checked_sub(1));
        if is_busy.is_ok() {
            return Ok(false);
        }
        self.queue.lock().expect("no test panics").insert(rank);
        Ok(true)
    }

    fn leave(&self, _: &QueueKey, rank: Rank) {
        self.queue.lock().expect("no test panics").remove(&rank);
    }

    fn head(&self, _: &QueueKey) -> Option<Rank> {
        self.queue.lock().expect("no test panics").first().copied()
    }

    fn notify(&self, _: &Freed) {}
}

#[test]
fn a_waiter_that_could_not_join_polls_until_it_is_in_the_queue_of_all_processes() {
    let shared = Arc::new(Locked { busy: AtomicU64::new(2), ..Locked::default() });
    let queues = WaitQueues::shared_by(shared.clone());
    let mut guard = queues.guard(&Clock::system(), Priority::Normal, Tick::from_secs(1));
    assert!(enqueue(&mut guard, &["a"]), "it is in the queue of this process");
    assert!(shared.is_empty() && !guard.is_notified_of_all(), "no other process knows of it");
    assert!(may_ask(&mut guard, &["a"]), "it is the first that this process knows of");
    guard.clear_notification(MAX);
    assert!(shared.is_empty() && !guard.is_notified_of_all(), "the lock is still taken");
    guard.clear_notification(MAX);
    assert!(guard.is_notified_of_all());
    assert_eq!(shared.head(&key("a")), Some(guard.rank()));
    drop(guard);
    assert!(shared.is_empty());
}

#[test]
fn a_waiter_that_could_join_one_of_two_queues_is_not_notified_of_all() {
    let shared = Arc::new(Locked { busy: AtomicU64::new(1), ..Locked::default() });
    let queues = WaitQueues::shared_by(shared.clone());
    let mut guard = queues.guard(&Clock::system(), Priority::Normal, Tick::from_secs(1));
    enqueue(&mut guard, &["a", "b"]);
    assert!(!guard.is_notified_of_all());
    guard.clear_notification(MAX);
    assert!(guard.is_notified_of_all());
}
