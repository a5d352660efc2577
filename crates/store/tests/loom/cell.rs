//! Taking and giving back without waiting.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use loom::thread;

use crate::gate::{Gate, OfCell};
use crate::toy::{Fault, Toy};
use crate::{check, must_fail};

/// Two threads take and give back, twice each; at no time have both.
fn never_two_at_once<G: Gate>(make: fn() -> G) -> impl Fn() + Send + Sync {
    move || {
        let gate = Arc::new(make());
        // Not one of loom's: it watches, and takes no part.
        let inside = Arc::new(AtomicUsize::new(0));
        let taken = Arc::new(AtomicUsize::new(0));
        let run = |gate: Arc<G>, inside: Arc<AtomicUsize>, taken: Arc<AtomicUsize>| {
            for _ in 0..2 {
                if gate.try_take() {
                    taken.fetch_add(1, Ordering::SeqCst);
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two have what there is one of");
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    gate.give_back();
                }
            }
        };
        let (other, its_inside, its_taken) = (Arc::clone(&gate), Arc::clone(&inside), Arc::clone(&taken));
        let thread = thread::spawn(move || run(other, its_inside, its_taken));
        run(Arc::clone(&gate), inside, Arc::clone(&taken));
        thread.join().unwrap();
        assert!(taken.load(Ordering::SeqCst) >= 2, "one of the two always finds it free");
        assert!(gate.is_full(), "something was lost");
    }
}

/// Two threads take and keep: exactly one succeeds.
fn exactly_one_takes<G: Gate>(make: fn() -> G) -> impl Fn() + Send + Sync {
    move || {
        let gate = Arc::new(make());
        let other = Arc::clone(&gate);
        let thread = thread::spawn(move || other.try_take());
        let mine = gate.try_take();
        let its = thread.join().unwrap();
        assert!(mine != its, "mine: {mine}, its: {its}");
        gate.give_back();
        assert!(gate.is_full());
    }
}

#[test]
fn two_threads_never_have_more_than_there_is() {
    check(never_two_at_once(OfCell::new));
    check(never_two_at_once(|| Toy::new(Fault::None)));
}

#[test]
fn of_two_threads_exactly_one_takes_the_last() {
    check(exactly_one_takes(OfCell::new));
    check(exactly_one_takes(|| Toy::new(Fault::None)));
}

#[test]
fn looking_and_taking_under_two_locks_is_noticed() {
    must_fail("over-admission", never_two_at_once(|| Toy::new(Fault::LooksThenTakes)));
    must_fail("over-admission", exactly_one_takes(|| Toy::new(Fault::LooksThenTakes)));
}
