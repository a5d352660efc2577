//! Several processes and one store: what there is, is shared, and no process gets too much.

#![allow(clippy::unwrap_used, reason = "what panics here is a test")]

mod support;

use std::sync::atomic::Ordering;
use std::time::Duration;

use support::child::{self, Process};
use support::fork::{Board, End, fork, one_at_a_time};
use support::{Folder, START, Tap, open, open_at};
use tollgate_core::{AMOUNT_MAX, Limit, Limits, Span, Tick, demand};
use tollgate_shm::ShmStore;
use tollgate_store::records::{Item, ItemKey, Records, RecordsError, Test, Write};
use tollgate_store::{
    BucketRef, Clock, Key, LeaseTerm, ManualClock, Op, OpId, Step, StepOutcome, Store, Transaction,
    TxnOutcome,
};

#[test]
fn two_handles_on_one_memory_are_one_store() {
    let (folder, hands) = (Folder::new(), ManualClock::at(START));
    let (one, two) = (open_at(folder.path(), &hands), open_at(folder.path(), &hands));
    let (here, there) = (Tap::new(&one, "user"), Tap::new(&two, "user"));
    assert!(here.take(60, 1));
    assert_eq!(there.left(), [40, 1]);
    assert!(there.take(40, 1));
    assert!(!here.take(1, 0));
    here.give_back(START, 60, 1);
    assert_eq!(there.left(), [60, 1]);

    let item = Item::new(ItemKey::new("tests/ENTITY#a", "#META"));
    let make = [Write::Put(item.clone(), vec![Test::Absent])];
    let revision = two.revision();
    one.write(&make).wait().unwrap();
    assert_ne!(two.revision(), revision, "a write is seen by who only looks at a number");
    assert_eq!(two.write(&make).wait(), Err(RecordsError::Failed(0)));

    let costs = here.costs(5, 0);
    let steps = [Step { place: here.place(), op: Op::Take { costs: &costs, term: None } }];
    let call = Transaction { id: Some(OpId(1)), steps: &steps, metered: false };
    assert_eq!(one.apply(&call).wait().unwrap(), two.apply(&call).wait().unwrap());
    assert_eq!(there.left(), [55, 1]);
}

/// So much for a year: whatever the clock says, it is not used up by time.
fn purse(amount: u64) -> Limits {
    Limits::new([Limit::quota("spend", amount, Duration::from_secs(86_400 * 365))]).expect("it is valid")
}

fn spend(store: &ShmStore, limits: &Limits) -> Option<Tick> {
    let (key, costs) = (Key::new(&["all", "spend"]), limits.costs(&demand! { spend: 1 }).expect("it fits"));
    let place = BucketRef { namespace: "tests", key: &key, limits };
    let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
    match store
        .apply(&Transaction { id: None, steps: &steps, metered: false })
        .wait()
        .expect("the store answers")
    {
        TxnOutcome::Done(done) => match done[0] {
            StepOutcome::Taken(taken) => Some(taken.at),
            other => panic!("{other:?}"),
        },
        _ => None,
    }
}

#[test]
fn of_200_demands_of_10_processes_on_100_exactly_100_are_met() {
    let _alone = one_at_a_time();
    for _ in 0..20 {
        let (folder, board) = (Folder::new(), Board::new(2));
        // The store does not exist yet: all processes race to make it.
        let demand = || {
            board[1].fetch_add(1, Ordering::SeqCst);
            while board[1].load(Ordering::SeqCst) < 10 {
                std::thread::yield_now();
            }
            let (store, limits) = (open(folder.path()), purse(100));
            let met = (0..20).filter(|_| spend(&store, &limits).is_some()).count();
            board[0].fetch_add(met as u64, Ordering::SeqCst);
        };
        let others: Vec<_> = (0..10).map(|_| fork(demand)).collect();
        others.into_iter().for_each(|other| assert_eq!(other.end(), End::Code(0)));
        assert_eq!(board[0].load(Ordering::SeqCst), 100);
        open(folder.path()).check().unwrap();
    }
}

#[test]
fn processes_that_were_started_share_what_there_is() {
    let folder = Folder::new();
    let mut others: Vec<_> =
        (0..3).map(|_| Process::start("another_process", "spend", folder.path())).collect();
    let (store, limits) = (open(folder.path()), purse(40_000));
    let here = std::iter::from_fn(|| spend(&store, &limits)).count();
    let there: Vec<usize> = others.iter_mut().map(|other| other.hears().unwrap().parse().unwrap()).collect();
    assert_eq!(here + there.iter().sum::<usize>(), 40_000, "{here} here, {there:?} there");
}

/// What another process does.
#[test]
fn another_process() {
    let Some((_, folder)) = child::role() else { return };
    let (store, limits) = (open(&folder), purse(40_000));
    child::say(&std::iter::from_fn(|| spend(&store, &limits)).count().to_string());
}

const RATE: u64 = 1_000;
const CROWD: usize = 8;
const SECONDS: u64 = 5;

#[test]
fn eight_processes_on_one_key_never_take_more_than_the_bound_in_any_window() {
    let _alone = one_at_a_time();
    // Of a window that slides: in no second of the joint history are there more.
    let limits = || Limits::new([Limit::sliding_window("spend", RATE, Duration::from_secs(1))]).unwrap();
    let room = (RATE * (SECONDS + 2)) as usize;
    let (folder, board) = (Folder::new(), Board::new(1 + room));
    let until = Clock::system().now() + Span::from_secs(SECONDS);
    let take = || {
        let (store, limits) = (open(folder.path()), limits());
        while Clock::system().now() < until {
            if let Some(at) = spend(&store, &limits) {
                let place = board[0].fetch_add(1, Ordering::SeqCst);
                board[1 + place as usize].store(at.as_micros(), Ordering::SeqCst);
            }
        }
    };
    let others: Vec<_> = (0..CROWD).map(|_| fork(take)).collect();
    others.into_iter().for_each(|other| assert_eq!(other.end(), End::Code(0)));
    let taken = board[0].load(Ordering::SeqCst) as usize;
    let mut history: Vec<u64> = board[1..=taken].iter().map(|at| at.load(Ordering::SeqCst)).collect();
    history.sort_unstable();
    for (first, last) in history.iter().zip(&history[(RATE as usize).min(history.len())..]) {
        assert!(last - first >= 1_000_000, "{RATE} and one more within {} us", last - first);
    }
    assert!(taken as u64 > RATE, "{taken} show nothing of the window");
}

#[test]
fn what_a_killed_process_held_is_back_at_once() {
    let _alone = one_at_a_time();
    let (folder, board) = (Folder::new(), Board::new(1));
    let store = open(folder.path());
    let tap = Tap::new(&store, "user");
    let holder = fork(|| {
        let term = LeaseTerm { holder: store.new_holder_id(), ttl: Span::from_secs(3_600) };
        assert!(Tap::new(&store, "user").try_take(0, 2, Some(term)).unwrap());
        board[0].store(1, Ordering::SeqCst);
        loop {
            std::thread::park();
        }
    });
    while board[0].load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    assert!(!tap.take(0, 1), "it lives, and holds both");
    assert_eq!(holder.kill(), End::Signal(libc::SIGKILL));
    assert!(tap.take(0, 2), "it is gone");
    assert!(!tap.take(0, 1), "and its slots are taken");
}

#[test]
fn a_child_goes_on_with_the_store_of_its_parent() {
    let _alone = one_at_a_time();
    let folder = Folder::new();
    let store = open(folder.path());
    let here = store.new_holder_id();
    let child = fork(|| {
        assert!(Tap::new(&store, "user").take(30, 0));
        assert_ne!(store.new_holder_id() >> 32, here >> 32, "its holders are its own");
        // And so does a child of the child, on threads of its own.
        let grandchild = fork(|| {
            std::thread::scope(|scope| {
                (0..4).for_each(|_| drop(scope.spawn(|| assert!(Tap::new(&store, "user").take(5, 0)))));
            });
        });
        assert_eq!(grandchild.end(), End::Code(0));
    });
    assert_eq!(child.end(), End::Code(0));
    assert!(!Tap::new(&store, "user").take(60, 0));
    assert!(Tap::new(&store, "user").take(50, 0));
    store.check().unwrap();
}

#[test]
fn a_store_of_very_many_buckets_finds_each_of_them() {
    const BUCKETS: u64 = 20_000;
    let folder = Folder::new();
    let (store, limits) = (open(folder.path()), purse(AMOUNT_MAX));
    let costs = limits.costs(&demand! { spend: 1 }).unwrap();
    let apply = |user: u64| {
        let key = Key::new(&[&format!("user-{user}"), "gpt"]);
        let place = BucketRef { namespace: "tests", key: &key, limits: &limits };
        let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
        store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait().unwrap();
        store.peek(&place).wait().unwrap()[0].available()
    };
    for round in 1..=2 {
        for user in 0..BUCKETS {
            assert_eq!(apply(user), (AMOUNT_MAX - round) as i64);
        }
    }
    store.check().unwrap();
}
