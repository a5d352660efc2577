//! Processes that are killed at any instant: nothing is lost, nothing is given twice, no process is stuck.

#![allow(clippy::unwrap_used, reason = "what panics here is a test")]

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use support::Folder;
use support::fork::{Board, End, Forked, fork, one_at_a_time};
use tollgate_core::{AMOUNT_MAX, Costs, Limit, Limits, Span, Usage, demand};
use tollgate_shm::ShmStore;
use tollgate_store::records::{Change, ItemKey, Records, Write};
use tollgate_store::{
    Backend, BucketRef, Key, LeaseTerm, Op, Process, Step, StepOutcome, Store, Transaction, TxnOutcome,
};

const VICTIMS: u64 = 1_000;
const AT_ONCE: usize = 4;
const SLOTS: u64 = 3;

const TRIES: usize = 0;
const ANSWERS: usize = 1;
const DOUBLES: usize = 2;
const SEATS: usize = 3;

fn limits() -> Limits {
    let calls = Limit::quota("calls", AMOUNT_MAX, Duration::from_secs(86_400 * 365));
    Limits::new([calls, Limit::resource("slots", SLOTS)]).expect("they are valid")
}

fn counter() -> ItemKey {
    ItemKey::new("tests/COUNTER", "#ALL")
}

/// Takes a slot and counts the call, in the bucket and in a record.
fn take(store: &ShmStore, costs: &Costs, term: LeaseTerm) -> Option<StepOutcome> {
    let (limits, key) = (limits(), Key::new(&["all", "calls"]));
    let place = BucketRef { namespace: "tests", key: &key, limits: &limits };
    let steps = [Step { place, op: Op::Take { costs, term: Some(term) } }];
    let count = [Write::Change(counter(), vec![Change::Add("calls".into(), 1)], Vec::new())];
    let call = Transaction { id: None, steps: &steps, metered: true };
    match store.apply_with(&call, &count).wait().expect("the store answers") {
        TxnOutcome::Done(done) => Some(done[0]),
        _ => None,
    }
}

fn give_back(store: &ShmStore, costs: &Costs, term: LeaseTerm, done: StepOutcome) {
    let StepOutcome::Taken(taken) = done else { panic!("it was a take") };
    let (limits, key) = (limits(), Key::new(&["all", "calls"]));
    let place = BucketRef { namespace: "tests", key: &key, limits: &limits };
    let usage = Usage { at: taken.at, reserved: costs, used: &[1, 0], holder: Some(term.holder) };
    let steps = [Step { place, op: Op::Settle(usage) }];
    store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait().expect("the store answers");
}

/// Takes a seat that no living process has. There are as many seats as slots.
fn sit(board: &Board) -> Option<&AtomicU64> {
    let this = Process::this();
    let name = u64::from(this.started) << 32 | u64::from(this.pid);
    board[SEATS..SEATS + SLOTS as usize].iter().find(|seat| {
        let there = seat.load(Ordering::SeqCst);
        let other = Process { tag: this.tag, pid: there as u32, started: (there >> 32) as u32 };
        let is_free = there == 0 || there != name && !other.is_there();
        is_free && seat.compare_exchange(there, name, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    })
}

/// What one does until it is killed.
fn work(store: &ShmStore, board: &Board) {
    let costs = limits().costs(&demand! { calls: 1, slots: 1 }).expect("they are valid");
    loop {
        let term = LeaseTerm { holder: store.new_holder_id(), ttl: Span::from_secs(3_600) };
        board[TRIES].fetch_add(1, Ordering::SeqCst);
        let Some(done) = take(store, &costs, term) else {
            board[TRIES].fetch_sub(1, Ordering::SeqCst);
            continue;
        };
        board[ANSWERS].fetch_add(1, Ordering::SeqCst);
        match sit(board) {
            Some(seat) => seat.store(0, Ordering::SeqCst),
            None => drop(board[DOUBLES].fetch_add(1, Ordering::SeqCst)),
        }
        give_back(store, &costs, term, done);
    }
}

#[test]
fn of_a_thousand_that_are_killed_none_leaves_a_trace() {
    let _alone = one_at_a_time();
    let (folder, board) = (Folder::new(), Board::new(16));
    let open = || ShmStore::builder("x").folder(folder.path()).build().expect("it can be opened");
    let store = open();
    let mut random = 0x2545_F491_4F6C_DD1Du64;
    let mut victims: Vec<Forked> = Vec::new();
    for victim in 0..VICTIMS {
        // Half of them use the store of their parent, half open it themselves.
        victims.push(fork(|| if victim % 2 == 0 { work(&store, &board) } else { work(&open(), &board) }));
        if victims.len() == AT_ONCE {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            (0..random % 300_000).for_each(|_| std::hint::spin_loop());
            let next = victims.swap_remove((random >> 32) as usize % AT_ONCE);
            assert_eq!(next.kill(), End::Signal(libc::SIGKILL));
        }
        if victim % 100 == 0 {
            store.check().expect("it is whole while they are at work");
        }
    }
    victims.into_iter().for_each(|victim| assert_eq!(victim.kill(), End::Signal(libc::SIGKILL)));

    store.check().expect("it is whole");
    assert_eq!(board[DOUBLES].load(Ordering::SeqCst), 0, "a slot was given twice");
    let costs = limits().costs(&demand! { calls: 1, slots: 1 }).unwrap();
    let mut term = (0..).map(|_| LeaseTerm { holder: store.new_holder_id(), ttl: Span::from_secs(3_600) });
    for slot in 0..SLOTS {
        assert!(take(&store, &costs, term.next().unwrap()).is_some(), "slot {slot} is lost");
    }
    assert!(take(&store, &costs, term.next().unwrap()).is_none(), "there is one slot too many");

    let (limits, key) = (limits(), Key::new(&["all", "calls"]));
    let place = BucketRef { namespace: "tests", key: &key, limits: &limits };
    let left = store.peek(&place).wait().unwrap()[0].available();
    let taken = AMOUNT_MAX - u64::try_from(left).unwrap() - SLOTS;
    let (tries, answers) = (board[TRIES].load(Ordering::SeqCst), board[ANSWERS].load(Ordering::SeqCst));
    assert!(
        (answers..=tries + VICTIMS).contains(&taken),
        "{answers} were answered, {taken} are taken, {tries} tried"
    );
    let counted = store.get_many(&[counter()]).wait().unwrap().remove(0).unwrap();
    assert_eq!(counted.int("calls").unwrap() as u64, taken + SLOTS, "records and buckets change together");
    assert!(answers > VICTIMS, "they were killed before they did anything: {answers}");
}
