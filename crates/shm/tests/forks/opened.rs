//! Sets and limiters on stores that were opened before the fork.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tollgate::store::Backend;
use tollgate::{Attempt, Level, Limit, LimitSet, Limiter, Limits, demand};

use crate::stores;
use crate::support::Folder;
use crate::support::fork::{Board, End, Forked, fork, fork_and_end, one_at_a_time};

const CHILDREN: usize = 3;
const CAPACITY: u64 = 40;

/// The parent and its children take together what there is, and not one more.
fn take_together(store: &Arc<dyn Backend>) {
    let limits = [Limit::per_day("it", CAPACITY).build(), Limit::resource("slots", 8).build()];
    let limits = limits.map(|limit| limit.expect("it is valid"));
    let set = LimitSet::builder().limits(limits).store(store.clone()).name("together").build();
    let (set, board) = (set.expect("they are valid"), Board::new(1));
    // It has been used, so that there are connections and threads to be inherited.
    drop(set.acquire(demand! { it: 0 }).wait().expect("it is free"));
    let take = || {
        for _ in 0..CAPACITY / 2 {
            match set.try_acquire(demand! { it: 1 }).wait().expect("it answers") {
                Attempt::Admitted(lease) => {
                    board[0].fetch_add(1, Ordering::SeqCst);
                    lease.settle(demand! { it: 1 }).wait().expect("it answers");
                }
                Attempt::Denied(_) => {}
            }
        }
    };
    let children: Vec<Forked> = (0..CHILDREN).map(|_| fork(take)).collect();
    take();
    let ended: Vec<End> = children.into_iter().map(Forked::end).collect();
    assert_eq!(ended, [const { End::Code(0) }; CHILDREN]);
    assert_eq!(board[0].load(Ordering::SeqCst), CAPACITY);
    let status = set.peek().wait().expect("it answers");
    assert_eq!(status.limit("slots").expect("it is a limit").available(), 8, "all of it was given back");
}

/// Ids that are made after a fork are of one process each.
fn make_ids(store: &Arc<dyn Backend>) {
    let board = Board::new(64);
    let ids = |from: usize| {
        for place in (from..from + 32).step_by(2) {
            let id = store.new_holder_id();
            board[place].store((id >> 64) as u64, Ordering::SeqCst);
            board[place + 1].store(id as u64, Ordering::SeqCst);
        }
    };
    store.new_holder_id();
    assert_eq!(fork_and_end(|| ids(0)), End::Code(0));
    ids(32);
    let words: Vec<u64> = board.iter().map(|word| word.load(Ordering::SeqCst)).collect();
    let made: HashSet<&[u64]> = words.chunks(2).collect();
    assert_eq!(made.len(), 32);
}

/// A child waits for what its parent holds, and is granted it.
fn wait_for_the_parent(store: &Arc<dyn Backend>) {
    let limiter = Limiter::open(store.clone(), "default").wait().expect("it answers");
    let limits = Limits::new([Limit::resource("slots", 1)]).expect("they are valid");
    limiter.catalog().set_limits(Level::Resource("gpt"), &limits).wait().expect("it answers");
    let acquire = || limiter.acquire("user", "gpt", demand! { slots: 1 });
    let (held, board) = (acquire().wait().expect("it is free"), Board::new(2));
    let child = fork(|| {
        let refused = acquire().timeout(Duration::from_millis(20)).wait().expect_err("the parent holds it");
        assert!(refused.denial().is_some(), "{refused}");
        board[0].store(1, Ordering::SeqCst);
        // Ended before the process is: what a dropped lease gives back in the background may come too late for that.
        acquire().wait().expect("it is given back").commit().wait().expect("it answers");
    });
    while board[0].load(Ordering::SeqCst) == 0 {
        std::thread::yield_now();
    }
    held.commit().wait().expect("it answers");
    assert_eq!(child.end(), End::Code(0));
    drop(acquire().wait().expect("the child gave it back"));
}

fn check(store: Arc<dyn Backend>) {
    take_together(&store);
    make_ids(&store);
    wait_for_the_parent(&store);
    // A child that ends its handles leaves those of the parent alone.
    let mut handle = Some(store.clone());
    assert_eq!(fork_and_end(|| drop(handle.take())), End::Code(0));
    take_from_a_grandchild(&store);
}

fn take_from_a_grandchild(store: &Arc<dyn Backend>) {
    let limits = [Limit::per_day("it", CAPACITY)];
    let set = LimitSet::builder().limits(limits).store(store.clone()).name("grandchild").build();
    let set = set.expect("it is valid");
    let take = || drop(set.acquire(demand! { it: 1 }).wait().expect("there is enough"));
    let ended = fork_and_end(|| {
        take();
        assert_eq!(fork_and_end(take), End::Code(0));
    });
    take();
    assert_eq!(ended, End::Code(0));
    let status = set.peek().wait().expect("it answers");
    assert_eq!(status.limit("it").expect("it is a limit").available(), CAPACITY as i64 - 3);
}

#[test]
fn a_store_in_shared_memory_works_in_a_forked_process() {
    let (_alone, folder) = (one_at_a_time(), Folder::new());
    check(Arc::new(crate::support::open(folder.path())));
}

#[test]
fn a_store_on_redis_works_in_a_forked_process() {
    let _alone = one_at_a_time();
    check(Arc::new(stores::redis("opened")));
}

#[test]
fn a_store_on_dynamodb_works_in_a_forked_process() {
    let _alone = one_at_a_time();
    check(Arc::new(stores::dynamo("opened")));
}
