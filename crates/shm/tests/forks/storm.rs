//! Processes that are forked off while threads wait, acquire and release: the bound holds in each, and none hangs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tollgate::store::Backend;
use tollgate::{Limit, LimitSet, demand};

use crate::stores;
use crate::support::Folder;
use crate::support::fork::{Board, End, Forked, fork_for_a_while, one_at_a_time};

const CHILDREN: usize = 8;
const THREADS: usize = 3;
const TURNS: usize = 5;
const SLOTS: u64 = 2;

fn set(store: Option<Arc<dyn Backend>>) -> LimitSet {
    let builder = LimitSet::builder().limits([Limit::resource("slots", SLOTS)]);
    let builder = match store {
        Some(store) => builder.store(store).name("storm"),
        None => builder,
    };
    builder.build().expect("it is valid")
}

/// Takes a slot, and counts how many have one. More threads want one than there are.
fn turn(set: &LimitSet, held: &AtomicU64) {
    let lease = set.acquire(demand! {}).wait().expect("it is granted");
    assert!(held.fetch_add(1, Ordering::SeqCst) < SLOTS, "more than there are slots");
    std::thread::yield_now();
    held.fetch_sub(1, Ordering::SeqCst);
    lease.commit().wait().expect("nothing is missing");
}

fn turns(set: &LimitSet, held: &AtomicU64) {
    std::thread::scope(|scope| {
        (0..THREADS).for_each(|_| drop(scope.spawn(|| (0..TURNS).for_each(|_| turn(set, held)))));
    });
}

/// `counter` says where the process of a number counts what is held: the parent is 0.
fn storm(set: &LimitSet, counter: fn(usize) -> usize) {
    let (board, is_over) = (Board::new(CHILDREN + 1), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while !is_over.load(Ordering::SeqCst) {
                    turn(set, &board[counter(0)]);
                }
            });
        }
        let child = |number| fork_for_a_while(|| turns(set, &board[counter(number)]));
        let children: Vec<Forked> = (1..=CHILDREN).map(child).collect();
        let ended: Vec<End> = children.into_iter().map(Forked::end).collect();
        is_over.store(true, Ordering::SeqCst);
        assert_eq!(ended, [const { End::Code(0) }; CHILDREN]);
    });
    let status = set.peek().wait().expect("it answers");
    assert_eq!((status.limits[0].available(), status.waiting), (SLOTS as i64, 0));
}

#[test]
fn forks_in_a_storm_keep_the_bound_of_each_process_in_memory() {
    let _alone = one_at_a_time();
    storm(&set(None), |process| process);
}

#[test]
fn forks_in_a_storm_keep_the_bound_of_all_in_shared_memory() {
    let (_alone, folder) = (one_at_a_time(), Folder::new());
    storm(&set(Some(Arc::new(crate::support::open(folder.path())))), |_| 0);
}

#[test]
fn forks_in_a_storm_keep_the_bound_of_all_on_redis() {
    let _alone = one_at_a_time();
    storm(&set(Some(Arc::new(stores::redis("storm")))), |_| 0);
}
