//! Waiters in different processes share one queue, and are woken by the process that gives back, whichever it is.

#![allow(clippy::unwrap_used, reason = "what panics here is a test")]

mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::Thread;
use std::time::Duration;

use support::fork::{Board, End, Forked, fork, lock_owner, one_at_a_time};
use support::{Folder, Tap, open, queue};
use tollgate_core::Span;
use tollgate_shm::ShmStore;
use tollgate_store::{Backend, Clock, Freed, LeaseTerm, Priority, QueueGuard, QueueKey, Store};

/// How long a test waits for what is to come within a second, on a machine with other work to do.
const PATIENCE: Span = Span::from_secs(300);

/// Gives way until `done`.
fn until(what: &str, done: impl Fn() -> bool) {
    let given_up = Clock::system().now() + PATIENCE;
    while !done() {
        assert!(Clock::system().now() < given_up, "{what}: not within {:?}", PATIENCE.to_duration());
        std::thread::yield_now();
    }
}

/// How long a waiter waits while a test starts others.
const WAIT_MAX: Duration = Duration::from_secs(180);

/// Waits for a future on this thread. It panics after [`WAIT_MAX`].
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(std::thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    let given_up = Clock::system().now() + Span::covering(WAIT_MAX);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(answer) => return answer,
            Poll::Pending if Clock::system().now() < given_up => std::thread::park_timeout(WAIT_MAX),
            Poll::Pending => panic!("it was not notified within {WAIT_MAX:?}"),
        }
    }
}

fn slots() -> QueueKey {
    queue("user")
}

/// Waits for one slot as a limiter does, and takes it; `queued` is called once it is in the queue. It never polls: if it is
/// not notified it waits for ever.
fn acquire(store: &ShmStore, queued: impl Fn()) {
    let (tap, keys) = (Tap::new(store, "user"), [slots()]);
    let mut guard = store.wait_queues().guard(store.clock(), Priority::default(), store.clock().now());
    loop {
        guard.clear_notification(100);
        let was_queued = guard.is_queued();
        if guard.may_ask(&keys, 100).expect("there is room") {
            let term = LeaseTerm { holder: store.new_holder_id(), ttl: Span::from_secs(3_600) };
            if tap.try_take(0, 1, Some(term)).expect("the store answers") {
                return;
            }
            if guard.enqueue(keys.clone(), 100).expect("there is room") {
                queued();
                continue;
            }
        } else if !was_queued {
            queued();
        }
        block_on(guard.notified(None));
    }
}

fn is_waited_for(store: &ShmStore) -> bool {
    store.wait_queues().ahead_of(&slots(), Priority::Normal, store.clock().now()).is_some()
}

/// Takes both slots, for ever.
fn exhaust(store: &ShmStore) {
    assert!(Tap::new(store, "user").take(0, 2));
}

fn wait_for(board: &Board, at: usize, value: u64) {
    until(&format!("word {at} is {value}"), || board[at].load(Ordering::SeqCst) >= value);
}

const STANDING: usize = 0;
const SERVED: usize = 1;
const NEXT: usize = 2;
const ORDER: usize = 8;

/// A process that waits, and then says which it is.
fn waiter(store: &ShmStore, board: &Board, number: u64) -> Forked {
    let standing = board[STANDING].load(Ordering::SeqCst);
    let process = fork(|| {
        acquire(store, || {
            board[STANDING].fetch_add(1, Ordering::SeqCst);
        });
        let place = board[NEXT].fetch_add(1, Ordering::SeqCst);
        board[ORDER + place as usize].store(number, Ordering::SeqCst);
        // Last, so that a reader that knows of it finds the number.
        board[SERVED].fetch_add(1, Ordering::SeqCst);
        loop {
            std::thread::park();
        }
    });
    wait_for(board, STANDING, standing + 1);
    process
}

fn give_back(store: &ShmStore) {
    Tap::new(store, "user").give_back(tollgate_core::Tick::ZERO, 0, 1);
}

#[test]
fn waiters_of_different_processes_are_served_in_the_order_they_came() {
    let _alone = one_at_a_time();
    let (folder, board) = (Folder::new(), Board::new(64));
    let store = open(folder.path());
    exhaust(&store);
    // Two slots are served at once, and a waiter that has one keeps it; so give back more than there are, through
    // others.
    let waiters: Vec<Forked> = (1..=2).map(|number| waiter(&store, &board, number)).collect();
    for served in 1..=2 {
        give_back(&store);
        wait_for(&board, SERVED, served);
    }
    drop(waiters);
    assert_eq!([1, 2], [0, 1].map(|place| board[ORDER + place].load(Ordering::SeqCst)));
}

#[test]
fn a_long_line_over_processes_is_served_in_order_and_nobody_overtakes() {
    let _alone = one_at_a_time();
    let (folder, board) = (Folder::new(), Board::new(64));
    let store = open(folder.path());
    exhaust(&store);
    let mut waiters: Vec<Forked> = (1..=12).map(|number| waiter(&store, &board, number)).collect();
    assert!(is_waited_for(&store));
    give_back(&store);
    for served in 1..=12 {
        // One after the other, because a waiter that is served says so a moment later.
        wait_for(&board, SERVED, served);
        if served == 1 {
            give_back(&store);
        }
        if (2..12).contains(&served) {
            // The first waiter that was served dies; no process notifies for it, but the next to look finds its slot
            // free.
            let first = waiters.remove(0);
            assert_eq!(first.kill(), End::Signal(libc::SIGKILL));
            store.wait_queues().notify(&Freed::all("tests", &slots().bucket));
        }
    }
    let order: Vec<u64> = (0..12).map(|place| board[ORDER + place].load(Ordering::SeqCst)).collect();
    assert_eq!(order, (1..=12).collect::<Vec<_>>());
    drop(waiters);
    assert!(!is_waited_for(&store));
    store.check().unwrap();
}

#[test]
fn waiters_of_processes_that_were_killed_are_passed_over() {
    let _alone = one_at_a_time();
    let (folder, board) = (Folder::new(), Board::new(64));
    let store = open(folder.path());
    exhaust(&store);
    let mut line: Vec<Forked> = (1..=5).map(|number| waiter(&store, &board, number)).collect();
    // The first two and the fourth are killed. No waiter is notified, and nothing was given back yet.
    for dead in [3, 1, 0] {
        assert_eq!(line.remove(dead).kill(), End::Signal(libc::SIGKILL));
    }
    give_back(&store);
    wait_for(&board, SERVED, 1);
    give_back(&store);
    wait_for(&board, SERVED, 2);
    assert_eq!([3, 5], [0, 1].map(|place| board[ORDER + place].load(Ordering::SeqCst)));
    drop(line);
    // One of all those who wait no more was the first that a newcomer met.
    assert!(!is_waited_for(&store));
    store.check().unwrap();
}

#[test]
fn one_behind_a_dead_head_notices_by_itself() {
    let _alone = one_at_a_time();
    let (folder, board) = (Folder::new(), Board::new(64));
    let store = open(folder.path());
    exhaust(&store);
    let first = waiter(&store, &board, 1);
    let second = waiter(&store, &board, 2);
    // A slot is free, and the first is stopped before it can take it. It dies, and no other process ever looks.
    first.signal(libc::SIGSTOP);
    until("the process is stopped", || is_stopped(&first));
    give_back(&store);
    assert_eq!(first.kill(), End::Signal(libc::SIGKILL));
    wait_for(&board, SERVED, 1);
    assert_eq!(board[ORDER].load(Ordering::SeqCst), 2);
    drop(second);
}

#[test]
fn a_process_that_is_stopped_is_passed_and_has_its_place_when_it_goes_on() {
    let _alone = one_at_a_time();
    let (folder, board) = (Folder::new(), Board::new(64));
    let store = open(folder.path());
    exhaust(&store);
    let first = waiter(&store, &board, 1);
    let second = waiter(&store, &board, 2);
    let third = waiter(&store, &board, 3);
    first.signal(libc::SIGSTOP);
    until("the process is stopped", || is_stopped(&first));
    give_back(&store);
    wait_for(&board, SERVED, 1);
    assert_eq!(board[ORDER].load(Ordering::SeqCst), 2);
    // From here on it is known to be stopped.
    give_back(&store);
    wait_for(&board, SERVED, 2);
    assert_eq!(board[ORDER + 1].load(Ordering::SeqCst), 3);
    // A newcomer passes it, too, once its last heartbeat is old enough.
    until("the stopped process is passed", || !is_waited_for(&store));
    first.signal(libc::SIGCONT);
    until("it has its place again", || is_waited_for(&store));
    assert_eq!(second.kill(), End::Signal(libc::SIGKILL));
    store.wait_queues().notify(&Freed::all("tests", &slots().bucket));
    wait_for(&board, SERVED, 3);
    assert_eq!(board[ORDER + 2].load(Ordering::SeqCst), 1);
    drop((first, third));
    store.check().unwrap();
}

/// Whether no thread of a process goes on.
fn is_stopped(process: &Forked) -> bool {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", process.pid())).unwrap();
    let is_stopped = |stat: String| stat.rsplit_once(") ").unwrap().1.starts_with('T');
    tasks
        .map(|task| task.unwrap().path().join("stat"))
        .all(|stat| is_stopped(std::fs::read_to_string(stat).unwrap()))
}

#[test]
fn waiters_of_a_parent_and_of_its_child_do_not_get_in_each_other_s_way() {
    let _alone = one_at_a_time();
    let (folder, board) = (Folder::new(), Board::new(64));
    let store = open(folder.path());
    exhaust(&store);
    std::thread::scope(|scope| {
        let parent = scope.spawn(|| {
            acquire(&store, || {
                board[STANDING].fetch_add(1, Ordering::SeqCst);
            })
        });
        wait_for(&board, STANDING, 1);
        // It has the memory of a process in which a thread waits, and that thread is not in it.
        let child = waiter(&store, &board, 7);
        give_back(&store);
        parent.join().unwrap();
        assert_eq!(board[SERVED].load(Ordering::SeqCst), 0, "the parent came first");
        give_back(&store);
        wait_for(&board, SERVED, 1);
        drop(child);
    });
    assert!(!is_waited_for(&store));
}

#[test]
fn a_line_is_as_long_as_it_may_be_over_all_processes() {
    let _alone = one_at_a_time();
    let (folder, board) = (Folder::new(), Board::new(64));
    let store = open(folder.path());
    exhaust(&store);
    let line: Vec<Forked> = (1..=3).map(|number| waiter(&store, &board, number)).collect();
    let mut guard = store.wait_queues().guard(store.clock(), Priority::default(), store.clock().now());
    let full = guard.enqueue([slots()], 3).unwrap_err();
    assert_eq!((full.waiting, full.max), (3, 3));
    assert!(guard.enqueue([slots()], 4).unwrap());
    drop((guard, line));
}

fn guard(store: &ShmStore) -> QueueGuard<'_> {
    store.wait_queues().guard(store.clock(), Priority::default(), store.clock().now())
}

fn is_notified(guard: &QueueGuard<'_>) -> bool {
    pin!(guard.notified(None)).poll(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn a_waiter_that_joins_and_one_that_leaves_while_the_lock_is_taken_are_dealt_with_later() {
    let _alone = one_at_a_time();
    let folder = Folder::new();
    let store =
        ShmStore::builder("x").folder(folder.path()).timeout(Duration::from_millis(50)).build().unwrap();
    let other = open(folder.path());
    exhaust(&store);
    let mut leaver = guard(&store);
    assert!(leaver.enqueue([slots()], 100).unwrap() && leaver.is_notified_of_all());
    let owner = lock_owner(store.path());
    let mut joiner = guard(&store);
    assert!(joiner.enqueue([slots()], 100).unwrap());
    assert!(!joiner.is_notified_of_all(), "no other process knows of it, so it polls");
    drop(leaver);
    assert_eq!(owner.kill(), End::Signal(libc::SIGKILL));
    until("the waiter that left is removed", || !is_waited_for(&other));
    joiner.clear_notification(100);
    assert!(joiner.is_notified_of_all() && is_waited_for(&other), "it is in the queue of all processes");
    assert!(!is_notified(&joiner));
    give_back(&other);
    until("it is notified by the other", || is_notified(&joiner));
    assert!(joiner.may_ask(&[slots()], 100).unwrap() && Tap::new(&store, "user").take(0, 1));
    drop(joiner);
    assert!(!is_waited_for(&other));
    store.check().unwrap();
}

/// How many times this thread has read a file, those of `/proc` included.
fn reads() -> u64 {
    let io = std::fs::read_to_string("/proc/thread-self/io").unwrap();
    let count = io.lines().find_map(|line| line.strip_prefix("syscr: "));
    count.expect("the system counts them").parse().unwrap()
}

/// How many files are read to open a store, and to join and leave a queue in it.
fn reads_to_open_and_to_join(folder: &Folder) -> [u64; 2] {
    let before = reads();
    let store = open(folder.path());
    let opened = reads();
    let mut newcomer = guard(&store);
    assert!(newcomer.enqueue([slots()], 1_000).unwrap());
    drop(newcomer);
    [opened - before, reads() - opened]
}

#[test]
fn processes_that_wait_make_it_no_dearer_to_open_a_store_and_to_join() {
    let _alone = one_at_a_time();
    let (folder, board) = (Folder::new(), Board::new(64));
    let store = open(folder.path());
    exhaust(&store);
    let mut crowd = vec![waiter(&store, &board, 1)];
    // What a thread finds out once.
    reads_to_open_and_to_join(&folder);
    let few = reads_to_open_and_to_join(&folder);
    crowd.extend((2..=40).map(|number| waiter(&store, &board, number)));
    assert_eq!(reads_to_open_and_to_join(&folder), few, "beside {} processes that wait", crowd.len());
}
