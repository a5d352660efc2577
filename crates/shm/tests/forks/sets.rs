//! A set in memory in a process that was forked off: without waiters, without what is held, with a timer of its own.

use std::sync::Arc;
use std::time::Duration;

use tollgate::store::{Backend, Memory};
use tollgate::{AcquireError, Attempt, Level, Limit, LimitSet, Limiter, Limits, demand};

use crate::support::fork::{End, fork_and_end, one_at_a_time};

const SHORT: Duration = Duration::from_millis(50);

/// Calls `work` while a thread waits for 1 of the set, and `free` so that it is granted.
fn while_a_thread_waits(set: &LimitSet, work: impl FnOnce(), free: impl FnOnce()) {
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| drop(set.acquire(demand! { it: 1 }).wait().expect("it is granted")));
        while set.peek().wait().expect("it answers").waiting == 0 {
            std::thread::yield_now();
        }
        work();
        free();
        waiting.join().expect("it is granted");
    });
}

#[test]
fn an_acquire_in_a_forked_process_ends_though_a_thread_of_its_parent_waits_for_a_rate() {
    let _alone = one_at_a_time();
    let set = LimitSet::new([Limit::per_hour("it", 4).burst(1)]).expect("it is valid");
    set.acquire(demand! { it: 1 })
        .wait()
        .expect("it is free")
        .settle(demand! { it: 1 })
        .wait()
        .expect("it counts");
    let work = || {
        let ended = fork_and_end(|| {
            assert_eq!(set.peek().wait().expect("it answers").waiting, 0);
            assert!(
                matches!(set.try_acquire(demand! { it: 1 }).wait(), Ok(Attempt::Denied(_))),
                "it was used"
            );
            let waited = set.acquire(demand! { it: 1 }).timeout(SHORT).wait();
            assert!(matches!(waited, Err(AcquireError::TimedOut { .. })));
            // The timer has to start again for a wait that is not known at once to exceed its timeout.
            let held = LimitSet::new([Limit::resource("it", 1)]).expect("it is valid");
            let _lease = held.acquire(demand! { it: 1 }).wait().expect("it is free");
            let waited = held.acquire(demand! { it: 1 }).timeout(SHORT).wait();
            assert!(matches!(waited, Err(AcquireError::TimedOut { waited, .. }) if waited >= SHORT));
        });
        assert_eq!(ended, End::Code(0));
    };
    let faster = Limit::rate("it", 1_000, Duration::from_secs(1)).burst(1);
    while_a_thread_waits(&set, work, || set.replace(faster).wait().expect("it is valid"));
}

#[test]
fn a_forked_process_is_granted_what_comes_with_time() {
    let _alone = one_at_a_time();
    let limits = [Limit::rate("it", 1, SHORT).burst(1).build(), Limit::resource("slots", 1).build()];
    let set = LimitSet::new(limits.map(|limit| limit.expect("it is valid"))).expect("they are valid");
    let held = set.acquire(demand! { it: 1 }).wait().expect("it is free");
    let work = || {
        let ended = fork_and_end(|| {
            for _ in 0..3 {
                drop(set.acquire(demand! { it: 1 }).wait().expect("it comes with time"));
            }
        });
        assert_eq!(ended, End::Code(0));
    };
    while_a_thread_waits(&set, work, || drop(held));
}

#[test]
fn an_acquire_in_a_forked_process_does_not_wait_behind_a_thread_of_its_parent_for_a_resource() {
    let _alone = one_at_a_time();
    let set = LimitSet::new([Limit::resource("it", 1)]).expect("it is valid");
    let mut held = Some(set.acquire(demand! { it: 1 }).wait().expect("it is free"));
    let work = || {
        let ended = fork_and_end(|| {
            assert_eq!(set.peek().wait().expect("it answers").waiting, 0);
            let lease = set.acquire(demand! { it: 1 }).wait().expect("nothing is held in this process");
            drop(held.take());
            let waited = set.acquire(demand! { it: 1 }).timeout(SHORT).wait();
            assert!(
                matches!(waited, Err(AcquireError::TimedOut { .. })),
                "the copy of the parent frees nothing"
            );
            drop(lease);
            assert!(set.acquire(demand! { it: 1 }).wait().is_ok());
        });
        assert_eq!(ended, End::Code(0));
        assert!(matches!(set.try_acquire(demand! { it: 1 }).wait(), Ok(Attempt::Denied(_))), "it is held");
        drop(held);
    };
    while_a_thread_waits(&set, work, || ());
}

#[test]
fn a_limiter_in_memory_begins_in_a_forked_process_without_waiters_and_holders() {
    let _alone = one_at_a_time();
    let memory = Arc::new(Memory::default());
    let limiter = Limiter::open(memory.clone(), "default").wait().expect("it answers");
    let limits =
        Limits::new([Limit::per_hour("rpm", 2), Limit::resource("slots", 1)]).expect("they are valid");
    limiter.catalog().set_limits(Level::Resource("gpt"), &limits).wait().expect("it answers");
    let acquire = || limiter.acquire("user", "gpt", demand! { rpm: 1, slots: 1 });
    let held = acquire().wait().expect("it is free");
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| acquire().timeout(Duration::from_secs(600)).wait());
        while memory.wait_queues().waiting() == 0 {
            std::thread::yield_now();
        }
        let ended = fork_and_end(|| {
            assert_eq!(memory.wait_queues().waiting(), 0);
            let lease = acquire().timeout(SHORT).wait().expect("the slot is held by another process");
            let refused = acquire().timeout(SHORT).wait().expect_err("what was used stays used");
            assert!(refused.denial().is_some(), "{refused}");
            lease.cancel().wait().expect("it answers");
            assert_eq!(
                limiter.available("user", "gpt").wait().expect("it answers").available("rpm"),
                Some(1)
            );
        });
        assert_eq!(ended, End::Code(0));
        drop(held);
        drop(waiting.join().expect("it does not panic").expect("it was freed"));
    });
}
