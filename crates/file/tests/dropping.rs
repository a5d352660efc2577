//! Replies that their caller drops, and stores whose last handle is dropped.

mod support;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::task::{Context, Poll, Wake, Waker};

use rusqlite::Connection;
use support::{Folder, START, Tap, open_at};
use tollgate_core::Usage;
use tollgate_file::{Durability, FileStore};
use tollgate_store::{ManualClock, Op, OpId, Step, Store, Transaction, TxnOutcome};

/// Polls once, as a task would.
fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    pin!(future).poll(&mut Context::from_waker(Waker::noop()))
}

fn nap(spins: u32) {
    (0..spins).for_each(|_| std::hint::spin_loop());
}

#[test]
fn an_answer_that_is_never_asked_for_takes_nothing() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    let tap = Tap::new(&store, "user");
    let costs = tap.costs(10, 1);
    let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term: None } }];
    drop(store.apply(&Transaction { id: None, steps: &steps, metered: false }));
    assert_eq!(tap.left(), [100, 2]);
}

/// Drops answers before, while and after they are given; whichever it was, nothing stays taken.
#[test]
fn an_answer_that_is_dropped_at_any_instant_leaves_nothing_taken() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    let tap = Tap::new(&store, "user");
    let costs = tap.costs(10, 1);
    let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term: None } }];
    let mut dropped = 0;
    for round in 0..600u32 {
        let id = (round % 2 == 0).then_some(OpId(round.into()));
        let call = Transaction { id, steps: &steps, metered: false };
        let mut reply = store.apply(&call);
        if poll_once(&mut reply).is_ready() {
            // It was quick, and the answer was received.
            tap.give_back(START, 10, 1);
            continue;
        }
        nap(round % 60 * 400);
        drop(reply);
        dropped += 1;
        assert_eq!(tap.left(), [100, 2], "round {round}");
        if id.is_some() {
            // Undone means not applied: asked again, it is.
            assert!(matches!(store.apply(&call).wait(), Ok(TxnOutcome::Done(_))));
            assert_eq!(tap.left(), [90, 1], "round {round}");
            tap.give_back(START, 10, 1);
        }
    }
    // How many of them were quick depends on the machine; the other tests leave nothing to chance.
    println!("{dropped} of 600 were dropped before they were answered");
}

/// Keeps others from writing until it is dropped, so that what is asked meanwhile is asked and not answered.
fn hold_up(folder: &Folder) -> Connection {
    let other = Connection::open(folder.file("x")).expect("the file can be opened");
    other.execute_batch("BEGIN IMMEDIATE").expect("nobody writes");
    other
}

#[test]
fn an_answer_that_is_dropped_while_it_is_worked_on_or_in_line_leaves_nothing_taken() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    let tap = Tap::new(&store, "user");
    let costs = tap.costs(10, 0);
    let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term: None } }];
    let call = Transaction { id: None, steps: &steps, metered: false };
    for spins in [0, 100_000, 1_000_000] {
        let other = hold_up(&folder);
        let mut replies: Vec<_> = (0..10).map(|_| store.apply(&call)).collect();
        assert!(replies.iter_mut().all(|reply| poll_once(reply).is_pending()));
        nap(spins);
        // Some of the ten are being worked on by now, the others are queued.
        drop(replies.split_off(5));
        drop(replies);
        drop(other);
        assert_eq!(tap.left(), [100, 2]);
    }
}

#[test]
fn an_answer_that_is_dropped_when_it_was_given_and_not_received_leaves_nothing_taken() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    let tap = Tap::new(&store, "user");
    let costs = tap.costs(10, 0);
    let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term: None } }];
    let call = Transaction { id: Some(OpId(1)), steps: &steps, metered: false };
    let other = hold_up(&folder);
    let mut reply = store.apply(&call);
    assert!(poll_once(&mut reply).is_pending());
    drop(other);
    // Who comes later is served later, so the first has been answered by then.
    assert!(tap.take(1, 0));
    assert_eq!(tap.left(), [89, 2]);
    drop(reply);
    assert_eq!(tap.left(), [99, 2]);
}

#[test]
fn what_gives_back_is_done_though_nobody_stays_for_the_answer() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    let tap = Tap::new(&store, "user");
    let (costs, used) = (tap.costs(10, 1), [0, 0]);
    for spins in [0, 100_000, 1_000_000] {
        assert!(tap.take(10, 1));
        let usage = Usage { at: START, reserved: &costs, used: &used, holder: None };
        let steps = [Step { place: tap.place(), op: Op::Settle(usage) }];
        let call = Transaction { id: None, steps: &steps, metered: false };
        let other = hold_up(&folder);
        let mut reply = store.apply(&call);
        assert!(poll_once(&mut reply).is_pending());
        nap(spins);
        drop(reply);
        drop(other);
        assert_eq!(tap.left(), [100, 2]);
        // One that was never asked for is not owed.
        drop(store.apply(&call));
        assert_eq!(tap.left(), [100, 2]);
    }
}

#[test]
fn an_answer_that_was_received_stays() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    let tap = Tap::new(&store, "user");
    let costs = tap.costs(10, 1);
    let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term: None } }];
    let call = Transaction { id: Some(OpId(1)), steps: &steps, metered: false };
    let first = store.apply(&call).wait().unwrap();
    assert_eq!(tap.left(), [90, 1]);
    // The same call again, and the caller drops the reply, which says that it was applied before.
    let other = hold_up(&folder);
    let mut again = store.apply(&call);
    assert!(poll_once(&mut again).is_pending());
    drop(again);
    drop(other);
    assert_eq!(tap.left(), [90, 1]);
    assert_eq!(store.apply(&call).wait().unwrap(), first);
}

#[test]
fn what_was_handed_over_is_seen_by_who_looks_next_and_outlives_the_store() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let store = open_at(&folder.file("x"), &hands);
    for round in 0..50 {
        let tap = Tap::new(&store, "user");
        assert!(tap.take(10, 1));
        let reserved = tap.costs(10, 1);
        let usage = Usage { at: START, reserved: &reserved, used: &[0, 0], holder: None };
        let steps = [Step { place: tap.place(), op: Op::Settle(usage) }];
        store.apply_detached(&Transaction { id: None, steps: &steps, metered: false });
        assert_eq!(tap.left(), [100, 2], "round {round}");
    }
    {
        let tap = Tap::new(&store, "user");
        assert!(tap.take(50, 2));
        let reserved = tap.costs(1, 0);
        let usage = Usage { at: START, reserved: &reserved, used: &[0, 0], holder: None };
        let steps = [Step { place: tap.place(), op: Op::Settle(usage) }];
        for _ in 0..50 {
            store.apply_detached(&Transaction { id: None, steps: &steps, metered: false });
        }
    }
    drop(store);
    let store = open_at(&folder.file("x"), &hands);
    assert_eq!(Tap::new(&store, "user").left(), [100, 0]);
}

/// Drops the last store where it is woken, which is on a thread of the store.
struct LastOwner(std::sync::Mutex<Option<FileStore>>, Sender<()>);

impl Wake for LastOwner {
    fn wake(self: Arc<Self>) {
        drop(self.0.lock().expect("nobody panics with it").take());
        self.1.send(()).expect("the test waits for it");
    }
}

#[test]
fn the_last_store_may_be_dropped_by_a_waker() {
    let folder = Folder::new();
    let store = FileStore::builder(folder.file("x")).durability(Durability::Off).build().unwrap();
    let tap_store = store.clone();
    let tap = Tap::new(&tap_store, "user");
    let costs = tap.costs(10, 1);
    let (woken, wakes) = channel();
    let owner = Arc::new(LastOwner(std::sync::Mutex::new(Some(store)), woken));
    {
        let steps = [Step { place: tap.place(), op: Op::Take { costs: &costs, term: None } }];
        let mut reply = tap_store.apply(&Transaction { id: None, steps: &steps, metered: false });
        let waker = Waker::from(owner);
        let other = hold_up(&folder);
        assert!(pin!(&mut reply).poll(&mut Context::from_waker(&waker)).is_pending());
        drop(other);
        wakes.recv().unwrap();
    }
    drop(tap);
    drop(tap_store);
    FileStore::open(folder.file("x")).unwrap();
}
