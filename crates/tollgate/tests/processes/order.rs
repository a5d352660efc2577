//! Processes that share a file wait in one queue.

use tollgate::{Limit, demand};

use crate::child::{RESOURCE, What};
use crate::family::Kin;
use crate::tests::{fresh_file, with_limits};

/// How often a process that waits may be too slow to react, so that those behind it pass.
const TRIES: usize = 5;

const WAITERS: usize = 6;

pub(crate) fn of_arrival() {
    let is_in_order = (0..TRIES).any(|_| are_served_in_order());
    assert!(is_in_order, "{WAITERS} processes were served in another order than they came, {TRIES} times");
}

fn are_served_in_order() -> bool {
    let path = fresh_file("order");
    let parent = with_limits(&path, [Limit::resource("slots", 1)]);
    let held = parent.acquire("user", RESOURCE, demand! { slots: 1 }).wait().expect("it is free");
    let waiters: Vec<Kin> = (0..WAITERS).map(|_| waiter(1, &path)).collect();
    held.commit().wait().expect("the store answers");
    let served: Vec<u64> = waiters.into_iter().map(|waiter| served_at(&waiter.finish())).collect();
    served.is_sorted()
}

/// A process that stands in the queue.
fn waiter(slots: u32, path: &std::path::Path) -> Kin {
    let kin = Kin::start(What::Wait(slots), path);
    assert_eq!(kin.hear(), "waits");
    kin
}

fn served_at(lines: &[String]) -> u64 {
    let [line] = lines else { panic!("it is served once: {lines:?}") };
    let at = line.strip_prefix("served ").and_then(|at| at.parse().ok());
    at.expect("it says when")
}

pub(crate) fn large_beside_small() {
    /// More than are admitted while the large one is too slow to react.
    const SMALL_MAX: usize = 5_000;
    let path = fresh_file("large");
    let parent = with_limits(&path, [Limit::resource("slots", 10)]);
    let take = || {
        let attempt = parent.try_acquire("user", RESOURCE, demand! { slots: 1 }).wait();
        attempt.expect("the store answers").admitted()
    };
    let mut held = take();
    assert!(held.is_some(), "it is free");
    let large = waiter(10, &path);
    let (mut admitted, mut served) = (0, None);
    while served.is_none() && admitted < SMALL_MAX {
        // One is always held, unless the store refuses the next.
        held = take();
        admitted += usize::from(held.is_some());
        served = large.heard();
    }
    drop(held);
    assert!(served.is_some(), "the large demand waits behind {admitted} small ones that came later");
    large.finish();
}
