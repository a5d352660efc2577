//! Waiting, being granted, and leaving at the wrong moment.

use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};

use loom::thread;

use crate::block_on::block_on;
use crate::gate::{Gate, OfCell, START};
use crate::toy::{Fault, Toy};
use crate::{check, must_fail};
use tollgate_core::{Limit, Limits, Span, demand};
use tollgate_store::{BucketCell, Key, WaitRequest};

/// `waiters` wait for what one has, each giving it on. A waiter that is not woken is a deadlock, which loom finds.
fn every_waiter_is_woken<G: Gate>(waiters: usize, make: fn() -> G) -> impl Fn() + Send + Sync {
    move || {
        let gate = Arc::new(make());
        assert!(gate.try_take());
        let wait = |gate: Arc<G>| {
            block_on(Arc::clone(&gate).acquire());
            gate.give_back();
        };
        let threads: Vec<_> = (0..waiters).map(|_| Arc::clone(&gate)).collect();
        let threads: Vec<_> = threads.into_iter().map(|gate| thread::spawn(move || wait(gate))).collect();
        gate.give_back();
        threads.into_iter().for_each(|thread| thread.join().unwrap());
        assert_eq!(gate.waiting(), 0);
        assert!(gate.is_full(), "something was lost");
    }
}

/// One waiter looks `polls` times and leaves while what it waits for is given back; another waits to the end.
fn whoever_leaves_passes_it_on<G: Gate>(polls: usize, make: fn() -> G) -> impl Fn() + Send + Sync {
    move || {
        let gate = Arc::new(make());
        assert!(gate.try_take());
        let (leaving, staying) = (Arc::clone(&gate), Arc::clone(&gate));
        let leaver = thread::spawn(move || {
            let mut wait = Arc::clone(&leaving).acquire();
            let mut context = Context::from_waker(Waker::noop());
            let heard = (0..polls).any(|_| matches!(wait.as_mut().poll(&mut context), Poll::Ready(())));
            drop(wait);
            if heard {
                leaving.give_back();
            }
        });
        let stayer = thread::spawn(move || {
            block_on(Arc::clone(&staying).acquire());
            staying.give_back();
        });
        gate.give_back();
        leaver.join().unwrap();
        stayer.join().unwrap();
        assert_eq!(gate.waiting(), 0, "somebody is left in the queue");
        assert!(gate.is_full(), "something was lost");
    }
}

/// The same without another waiter: what was granted comes back.
fn whoever_leaves_alone_leaves_nothing<G: Gate>(make: fn() -> G) -> impl Fn() + Send + Sync {
    move || {
        let gate = Arc::new(make());
        assert!(gate.try_take());
        let leaving = Arc::clone(&gate);
        let leaver = thread::spawn(move || {
            let mut wait = Arc::clone(&leaving).acquire();
            let heard = wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready();
            drop(wait);
            if heard {
                leaving.give_back();
            }
        });
        gate.give_back();
        leaver.join().unwrap();
        assert_eq!(gate.waiting(), 0, "somebody is left in the queue");
        assert!(gate.is_full(), "something was lost");
    }
}

#[test]
fn a_waiter_is_always_woken() {
    check(every_waiter_is_woken(1, OfCell::new));
    check(every_waiter_is_woken(1, || Toy::new(Fault::None)));
}

#[test]
fn two_waiters_are_both_woken() {
    check(every_waiter_is_woken(2, OfCell::new));
    check(every_waiter_is_woken(2, || Toy::new(Fault::None)));
}

#[test]
fn a_waiter_that_leaves_at_any_point_passes_on_what_it_was_granted() {
    for polls in 1..=3 {
        check(whoever_leaves_passes_it_on(polls, OfCell::new));
        check(whoever_leaves_passes_it_on(polls, || Toy::new(Fault::None)));
    }
}

#[test]
fn a_waiter_that_leaves_alone_leaves_nothing() {
    check(whoever_leaves_alone_leaves_nothing(OfCell::new));
    check(whoever_leaves_alone_leaves_nothing(|| Toy::new(Fault::None)));
}

#[test]
fn a_waiter_is_woken_by_the_clock_whenever_that_is_turned() {
    check(|| {
        let gate = Arc::new(OfCell::new());
        let limits = Limits::new([Limit::per_second("rps", 1)]).unwrap();
        let cell = BucketCell::new(Key::new(&["clock"]), limits.clone(), START);
        let one = limits.costs(&demand! { rps: 1 }).unwrap();
        let request = WaitRequest::of(one);
        block_on(cell.acquire(&gate.clock, request.clone())).unwrap();
        let hands = gate.hands.clone();
        let turning = thread::spawn(move || hands.advance(Span::from_secs(1)));
        let granted = block_on(cell.acquire(&gate.clock, request)).unwrap();
        assert_eq!(granted.taken.at, START + Span::from_secs(1));
        turning.join().unwrap();
        assert_eq!(cell.waiting(), 0);
    });
}

#[test]
fn a_waker_left_too_late_is_noticed() {
    must_fail("a lost wake-up", every_waiter_is_woken(1, || Toy::new(Fault::LooksThenLeavesWaker)));
}

#[test]
fn giving_back_without_looking_at_the_queue_is_noticed() {
    must_fail("a waiter left asleep", every_waiter_is_woken(1, || Toy::new(Fault::WakesNobody)));
}

#[test]
fn a_grant_lost_with_its_waiter_is_noticed() {
    let lossy = || Toy::new(Fault::LosesCancelledGrant);
    must_fail("a lost grant", whoever_leaves_alone_leaves_nothing(lossy));
    must_fail("a lost grant", whoever_leaves_passes_it_on(1, lossy));
}

#[test]
fn a_waiter_left_in_the_queue_is_noticed() {
    let sticky = || Toy::new(Fault::LeavesCancelledWaiter);
    must_fail("a dead waiter", whoever_leaves_alone_leaves_nothing(sticky));
}

/// A waker that looks at the cell when it is dropped, as the last one of a task does that waits there, too.
struct Last(Arc<OfCell>);

impl Wake for Last {
    fn wake(self: Arc<Self>) {}
}

impl Drop for Last {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.0.cell.waiting();
        }
    }
}

#[test]
fn a_waker_is_dropped_with_no_lock_held() {
    check(|| {
        let gate = Arc::new(OfCell::new());
        assert!(gate.try_take());
        let last = || Waker::from(Arc::new(Last(Arc::clone(&gate))));
        let mut wait = Arc::clone(&gate).acquire();
        for _ in 0..2 {
            // The one of the first time is replaced by the one of the second.
            assert!(wait.as_mut().poll(&mut Context::from_waker(&last())).is_pending());
        }
        drop(wait);
        assert_eq!(gate.waiting(), 0);
        gate.give_back();
    });
}
