//! A holder lives for as long as any thread of its process does.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tollgate::file::FileStore;
use tollgate::shm::ShmStore;
use tollgate::store::Backend;
use tollgate::{Attempt, Clock, Limit, LimitSet, ManualClock, demand};
use tollgate_core::Span;

use crate::stores;
use crate::support::fork::{Board, End, Forked, fork, one_at_a_time};
use crate::support::{Folder, START};

fn set_in(store: Arc<dyn Backend>) -> LimitSet {
    let set = LimitSet::builder().limits([Limit::resource("slots", 1)]).store(store).name("shared");
    set.build().expect("it is valid")
}

fn is_denied(set: &LimitSet) -> bool {
    matches!(set.try_acquire(demand! {}).wait(), Ok(Attempt::Denied(_)))
}

/// Waits until the system says this of a process.
fn wait_for_state(process: &Forked, state: &str) {
    let stat = format!("/proc/{}/stat", process.pid());
    let is_there = || {
        let text = std::fs::read_to_string(&stat).expect("it was not buried");
        text.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with(state))
    };
    while !is_there() {
        std::thread::yield_now();
    }
}

/// A process that holds the slot in its second thread, and whose first one ends.
fn one_without_its_first_thread(open: impl Fn() -> Arc<dyn Backend>) -> Forked {
    let board = Board::new(1);
    let process = fork(|| {
        let (set, board) = (set_in(open()), &board);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _lease = set.acquire(demand! {}).wait().expect("it is free");
                board[0].store(1, Ordering::SeqCst);
                loop {
                    std::thread::park();
                }
            });
            while board[0].load(Ordering::SeqCst) == 0 {
                std::thread::yield_now();
            }
            // SAFETY: it ends this thread, and nothing of it is used by the other.
            unsafe { libc::syscall(libc::SYS_exit, 0) };
        });
    });
    wait_for_state(&process, "Z");
    process
}

fn check(open: impl Fn() -> Arc<dyn Backend>) {
    let process = one_without_its_first_thread(&open);
    let set = set_in(open());
    assert!(is_denied(&set), "a thread of the process lives and holds the slot");
    assert!(set.peek().wait().expect("it answers").limits[0].available() == 0);
    assert_eq!(process.kill(), End::Signal(libc::SIGKILL));
    drop(set.acquire(demand! {}).wait().expect("the holder is gone"));
}

#[test]
fn a_process_whose_first_thread_has_ended_keeps_its_slot_in_shared_memory() {
    let (_alone, folder) = (one_at_a_time(), Folder::new());
    check(|| Arc::new(crate::support::open(folder.path())));
}

#[test]
fn a_process_whose_first_thread_has_ended_keeps_its_slot_in_a_file() {
    let (_alone, folder) = (one_at_a_time(), Folder::new());
    check(|| Arc::new(stores::file(folder.path())));
}

const AN_HOUR: Span = Span::from_secs(3_600);

/// Starts a process whose clock shows [`START`], and that takes the slot and then asks on demand whether it still has
/// it.
fn one_who_holds(open: &impl Fn(Clock) -> Arc<dyn Backend>, board: &Board) -> Forked {
    let process = fork(|| {
        let clock = ManualClock::at(START).clock();
        let set = set_in(open(clock));
        let lease = set.acquire(demand! {}).wait().expect("it is free");
        board[0].store(1, Ordering::SeqCst);
        for asked in 1.. {
            while board[1].load(Ordering::SeqCst) < asked {
                std::thread::yield_now();
            }
            assert!(lease.heartbeat().wait().expect("it answers"), "it lives, so it holds the slot");
            board[0].fetch_add(1, Ordering::SeqCst);
        }
    });
    wait_for(board, 1);
    process
}

fn wait_for(board: &Board, value: u64) {
    while board[0].load(Ordering::SeqCst) < value {
        std::thread::yield_now();
    }
}

/// Whatever its clock says and whether it runs or not, a process that lives keeps its slot.
fn check_clocks(open: impl Fn(Clock) -> Arc<dyn Backend>) {
    let board = Board::new(2);
    let process = one_who_holds(&open, &board);
    let hands = ManualClock::at(START + AN_HOUR);
    let set = set_in(open(hands.clock()));
    assert!(is_denied(&set), "the other clock is an hour behind");
    assert_eq!(set.peek().wait().expect("it answers").limits[0].available(), 0);
    board[1].store(1, Ordering::SeqCst);
    wait_for(&board, 2);
    assert!(is_denied(&set));
    process.signal(libc::SIGSTOP);
    wait_for_state(&process, "T");
    for _ in 0..3 {
        hands.advance(AN_HOUR);
        assert!(is_denied(&set), "it is stopped, and lives");
    }
    process.signal(libc::SIGCONT);
    board[1].store(2, Ordering::SeqCst);
    wait_for(&board, 3);
    assert_eq!(process.kill(), End::Signal(libc::SIGKILL));
    assert_eq!(set.peek().wait().expect("it answers").limits[0].available(), 1, "it is seen to be gone");
    drop(set.acquire(demand! {}).wait().expect("the holder is gone"));
}

#[test]
fn a_process_that_is_stopped_or_has_another_clock_keeps_its_slot_in_shared_memory() {
    let (_alone, folder) = (one_at_a_time(), Folder::new());
    check_clocks(|clock| {
        Arc::new(ShmStore::builder("x").folder(folder.path()).clock(clock).build().expect("it can be opened"))
    });
}

#[test]
fn a_process_that_is_stopped_or_has_another_clock_keeps_its_slot_in_a_file() {
    let (_alone, folder) = (one_at_a_time(), Folder::new());
    check_clocks(|clock| {
        let store = FileStore::builder(folder.file("limits.db")).clock(clock).build();
        Arc::new(store.expect("it can be opened"))
    });
}
