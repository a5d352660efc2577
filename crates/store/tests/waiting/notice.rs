//! Whatever may let the head pass looks at it at once.

use std::future::Future;
use std::task::{Context, Waker};
use std::time::Duration;

use tollgate_core::{DemandError, Limit, Limits, Span, demand};
use tollgate_store::{
    BucketRef, Key, ManualClock, Memory, Op, Priority, Step, Store, Transaction, TxnOutcome, WaitError,
    WaitRequest,
};

use crate::fixture::{Desk, START, Wait};

#[test]
fn a_refund_lets_the_head_pass_at_once() {
    let desk = Desk::with_spent_rate(10);
    let waits = [3, 3, 3].map(|amount| desk.wait_for(desk.rps(amount)));
    // 10 were taken and 3 were used, so two pass and one is left over.
    desk.settle(&desk.rps(10), &[3]);
    let [first, second, third] = waits;
    assert_eq!([first.granted().taken.at, second.granted().taken.at], [START, START]);
    assert_eq!((third.woken(), desk.available()), (0, vec![1]));
    desk.turn_to(199_999);
    assert_eq!(third.woken(), 0);
    desk.turn_to(200_000);
    third.granted();
}

#[test]
fn a_release_lets_the_head_pass_at_once() {
    let desk = Desk::with_taken_slots(3);
    let mut waits: Vec<Wait<'_>> = (0..3).map(|_| desk.wait_for(desk.slots(1))).collect();
    for left in (0..3).rev() {
        desk.release(&desk.slots(1));
        waits.remove(0).granted();
        assert!(waits.iter().all(|wait| wait.woken() == 0));
        assert_eq!(desk.cell.waiting(), left);
    }
}

#[test]
fn use_beyond_what_was_taken_makes_the_head_wait_longer() {
    let desk = Desk::with_spent_rate(10);
    let wait = desk.wait_for(desk.rps(1));
    desk.settle(&desk.rps(10), &[15]);
    desk.turn_to(599_999);
    assert_eq!(wait.woken(), 0);
    desk.turn_to(600_000);
    assert_eq!(wait.granted().taken.at, START + Span::from_millis(600));
}

#[test]
fn a_raised_limit_lets_the_head_pass_at_once() {
    let desk = Desk::with_taken_slots(1);
    let waits = [1, 1, 1].map(|amount| desk.wait_for(desk.slots(amount)));
    desk.cell.replace_limits(&desk.clock, Limits::new([Limit::resource("slots", 3)]).unwrap());
    let [first, second, third] = waits;
    first.granted();
    second.granted();
    assert_eq!(third.woken(), 0);
}

#[test]
fn a_faster_rate_brings_the_grant_forward_and_a_slower_one_puts_it_off() {
    for (per_second, micros) in [(100, 10_000), (1, 1_000_000)] {
        let desk = Desk::with_spent_rate(10);
        let wait = desk.wait_for(desk.rps(1));
        desk.cell.replace_limits(&desk.clock, Limits::new([Limit::per_second("rps", per_second)]).unwrap());
        desk.turn_to(micros - 1);
        assert_eq!(wait.woken(), 0, "{per_second} a second");
        desk.turn_to(micros);
        wait.granted();
    }
}

#[test]
fn a_limit_lowered_below_a_demand_tells_its_waiter_at_once_and_lets_the_next_pass() {
    let desk = Desk::new([Limit::resource("slots", 10)]);
    desk.take_slots(4);
    let large = desk.wait_for(desk.slots(8));
    let small = desk.wait_for(desk.slots(1));
    desk.cell.replace_limits(&desk.clock, Limits::new([Limit::resource("slots", 5)]).unwrap());
    match large.heard() {
        Err(WaitError::Impossible(DemandError::Impossible { limit, asked: 8, capacity: 5 })) => {
            assert_eq!(limit, "slots");
        }
        other => panic!("{other:?}"),
    }
    small.granted();
    assert_eq!((desk.cell.waiting(), desk.available()), (0, vec![0]));
}

#[test]
fn a_demand_that_can_never_fit_does_not_wait() {
    let desk = Desk::new([Limit::resource("slots", 10)]);
    let all = desk.slots(10);
    desk.cell.replace_limits(&desk.clock, Limits::new([Limit::resource("slots", 9)]).unwrap());
    let mut wait = desk.enter(WaitRequest::of(all));
    assert!(matches!(wait.poll(), std::task::Poll::Ready(Err(WaitError::Impossible(_)))));
    assert_eq!(desk.cell.waiting(), 0);
}

#[test]
fn waiters_move_along_when_limits_change_places() {
    let desk = Desk::new([Limit::resource("slots", 2), Limit::per_second("rps", 10)]);
    let costs = desk.limits.costs(&demand! { slots: 2, rps: 3 }).unwrap();
    desk.try_take(&costs, Priority::default()).unwrap();
    let wait = desk.wait_for(costs.clone());
    let swapped = [Limit::per_second("rps", 10), Limit::per_minute("new", 5), Limit::resource("slots", 2)];
    desk.cell.replace_limits(&desk.clock, Limits::new(swapped).unwrap());
    desk.release(&costs);
    let granted = wait.granted();
    assert_eq!(granted.costs.amounts(), [3, 0, 2]);
    assert_eq!(desk.available(), [7, 5, 0]);
}

/// A cell of a memory store with all slots taken.
struct Shop {
    memory: Memory,
    desk: Desk,
    key: Key,
}

impl Shop {
    fn new(capacity: u64) -> Shop {
        let hands = ManualClock::at(START);
        let memory = Memory::builder().clock(hands.clock()).build();
        let limits = Limits::new([Limit::resource("slots", capacity)]).unwrap();
        let key = Key::new(&["k"]);
        let cell = memory.cell(&BucketRef { namespace: "n", key: &key, limits: &limits }).unwrap();
        let desk = Desk { clock: hands.clock(), hands, cell, limits };
        desk.take_slots(capacity);
        Shop { memory, desk, key }
    }

    /// Takes nothing by way of the store, which puts these limits in force.
    fn adopt(&self, capacity: u64) {
        let limits = Limits::new([Limit::resource("slots", capacity)]).unwrap();
        let nothing = limits.costs(&demand! { slots: 0 }).unwrap();
        let place = BucketRef { namespace: "n", key: &self.key, limits: &limits };
        let steps = [Step { place, op: Op::Take { costs: &nothing, term: None } }];
        let _ = self.memory.apply(&Transaction { id: None, steps: &steps, metered: false }).wait().unwrap();
    }
}

#[test]
fn limits_raised_by_a_call_to_the_store_let_the_head_pass_at_once() {
    let shop = Shop::new(2);
    let wait = shop.desk.wait_for(shop.desk.slots(1));
    let limits = Limits::new([Limit::resource("slots", 3)]).unwrap();
    let one = limits.costs(&demand! {}).unwrap();
    let taken = shop
        .memory
        .namespace("n")
        .try_take(&shop.desk.clock, &["k"], &limits, &one, Priority::default())
        .unwrap();
    assert!(taken.is_err(), "the waiter was first");
    wait.granted();
}

#[test]
fn limits_lowered_by_a_call_to_the_store_tell_a_waiter_who_can_never_pass() {
    let shop = Shop::new(4);
    let patient =
        |amount| WaitRequest { priority: Priority::Batch, ..WaitRequest::of(shop.desk.slots(amount)) };
    let wait = shop.desk.wait(patient(3));
    shop.adopt(2);
    assert!(matches!(wait.heard(), Err(WaitError::Impossible(_))));
    let wait = shop.desk.wait(patient(2));
    let limits = Limits::new([Limit::resource("slots", 1)]).unwrap();
    let one = limits.costs(&demand! {}).unwrap();
    let taken = shop
        .memory
        .namespace("n")
        .try_take(&shop.desk.clock, &["k"], &limits, &one, Priority::default())
        .unwrap();
    assert!(taken.is_err());
    assert!(matches!(wait.heard(), Err(WaitError::Impossible(_))));
}

#[test]
fn a_call_to_the_store_is_told_the_wait_of_those_ahead_of_it() {
    let hands = ManualClock::at(START);
    let memory = Memory::builder().clock(hands.clock()).build();
    let limits = Limits::new([Limit::per_second("rps", 10)]).unwrap();
    let key = Key::new(&["k"]);
    let place = BucketRef { namespace: "n", key: &key, limits: &limits };
    let cell = memory.cell(&place).unwrap();
    let desk = Desk { clock: hands.clock(), hands, cell, limits: limits.clone() };
    desk.try_take(&desk.rps(5), Priority::default()).unwrap();
    let _wait = desk.wait_for(desk.rps(10));
    let one = desk.rps(1);
    let steps = [Step { place, op: Op::Take { costs: &one, term: None } }];
    match memory.apply(&Transaction { id: None, steps: &steps, metered: false }).wait().unwrap() {
        TxnOutcome::Denied(denials) => {
            assert_eq!(denials[0].wait(), Some(Duration::from_millis(600)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wait_under_its_own_limits_puts_them_in_force_when_it_begins() {
    let desk = Desk::new([Limit::per_second("rps", 1)]);
    let other = Limits::new([Limit::per_day("rpd", 10), Limit::per_second("rps", 1)]).unwrap();
    let costs = other.costs(&demand! { rps: 1 }).unwrap();
    let wait = || desk.cell.acquire(&desk.clock, WaitRequest::of(costs.clone())).under(other.clone());
    // Whatever others do before it begins is nothing to it.
    let waits = (wait(), wait());
    desk.cell.replace_limits(&desk.clock, desk.limits.clone());
    assert_eq!(waits.0.wait().unwrap().taken.at, START);
    // Those of the cell first: a name that did not come with the wait keeps its count.
    assert_eq!(desk.available(), [0, 10]);
    desk.cell.replace_limits(&desk.clock, desk.limits.clone());
    let mut second = Box::pin(waits.1);
    let mut context = Context::from_waker(Waker::noop());
    assert!(second.as_mut().poll(&mut context).is_pending());
    desk.turn_to(1_000_000);
    assert!(second.as_mut().poll(&mut context).is_ready());
    assert_eq!(desk.available(), [0, 10]);
}

#[test]
fn a_wait_that_brings_higher_limits_lets_those_before_it_pass_first() {
    let desk = Desk::with_taken_slots(1);
    let first = desk.wait_for(desk.slots(1));
    let higher = Limits::new([Limit::resource("slots", 2)]).unwrap();
    let mut second = Box::pin(desk.cell.acquire(&desk.clock, WaitRequest::of(desk.slots(1))).under(higher));
    assert!(second.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    first.granted();
    assert_eq!(desk.cell.waiting(), 1);
}
