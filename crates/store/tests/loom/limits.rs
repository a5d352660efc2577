//! Limits that change while a caller waits.

use std::sync::Arc;
use std::task::{Context, Waker};

use loom::thread;
use tollgate_core::{DemandError, Limit, Limits, demand};
use tollgate_store::{WaitError, WaitRequest};

use crate::block_on::block_on;
use crate::check;
use crate::gate::{Gate, OfCell};

fn slots(capacity: u64) -> Limits {
    Limits::new([Limit::resource("slots", capacity), Limit::per_day("rpd", 100)]).unwrap()
}

#[test]
fn a_raised_limit_lets_the_waiter_pass() {
    check(|| {
        let gate = Arc::new(OfCell::new());
        assert!(gate.try_take());
        let raising = Arc::clone(&gate);
        let thread = thread::spawn(move || raising.cell.replace_limits(&raising.clock, slots(2)));
        block_on(Arc::clone(&gate).acquire());
        thread.join().unwrap();
        assert_eq!(gate.cell.waiting(), 0);
        assert_eq!(gate.available(), [0, 94]);
    });
}

#[test]
fn a_waiter_that_can_never_pass_any_more_is_told_whatever_else_happens() {
    check(|| {
        let gate = Arc::new(OfCell::new());
        gate.cell.replace_limits(&gate.clock, slots(2));
        let both = slots(2).costs(&demand! { slots: 2, rpd: 2 }).unwrap();
        gate.cell.try_take(&gate.clock, &both, None, Default::default()).unwrap();
        let (lowering, releasing) = (Arc::clone(&gate), Arc::clone(&gate));
        let held = both.clone();
        let lower = thread::spawn(move || lowering.cell.replace_limits(&lowering.clock, slots(1)));
        let release = thread::spawn(move || releasing.give_back_costs(&held));
        match block_on(gate.cell.acquire(&gate.clock, WaitRequest::of(both.clone()))) {
            Ok(_) => gate.give_back_costs(&both),
            Err(error) => {
                let impossible = matches!(error, WaitError::Impossible(DemandError::Impossible { .. }));
                assert!(impossible, "{error}");
            }
        }
        lower.join().unwrap();
        release.join().unwrap();
        assert_eq!(gate.cell.waiting(), 0);
        assert_eq!(gate.available(), [1, 100]);
    });
}

#[test]
fn what_was_granted_comes_back_to_the_right_limits_whenever_those_change_places() {
    check(|| {
        let gate = Arc::new(OfCell::new());
        assert!(gate.try_take());
        let mut wait = Arc::clone(&gate).acquire();
        assert!(wait.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        let moving = Arc::clone(&gate);
        let swapped = || Limits::new([Limit::per_day("rpd", 100), Limit::resource("slots", 1)]).unwrap();
        let mover = thread::spawn(move || moving.cell.replace_limits(&moving.clock, swapped()));
        let leaver = thread::spawn(move || drop(wait));
        gate.give_back();
        leaver.join().unwrap();
        mover.join().unwrap();
        assert_eq!(gate.cell.waiting(), 0);
        assert_eq!(gate.available(), [100, 1]);
    });
}
