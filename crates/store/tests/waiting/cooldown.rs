//! A provider said "not now": no caller starts before the end of it.

use tollgate_core::{Limit, Ready, Span, Tick};
use tollgate_store::{Priority, WaitRequest};

use crate::fixture::{Desk, START, Wait};

fn second(count: u64) -> Tick {
    START + Span::from_secs(count)
}

fn cooling(until: u64) -> Desk {
    let desk = Desk::new([Limit::per_second("rps", 10)]);
    desk.cell.cool_down(&desk.clock, second(until));
    desk
}

#[test]
fn nobody_is_admitted_before_its_end_and_everybody_at_it() {
    let desk = cooling(3);
    for micros in [0, 1, 2_999_999] {
        desk.turn_to(micros);
        for priority in [Priority::Interactive, Priority::Normal, Priority::Batch] {
            assert!(desk.try_take(&desk.rps(1), priority).is_err());
        }
    }
    desk.turn_to(3_000_000);
    desk.try_take(&desk.rps(10), Priority::Batch).unwrap();
}

#[test]
fn the_denial_says_how_long_it_lasts() {
    let desk = cooling(3);
    let denied = desk.try_take(&desk.rps(1), Priority::default()).unwrap_err();
    assert_eq!(denied, "no limit denies, but a waiter is ahead or a cooldown is active; retry in 3s");
    assert_eq!(desk.cell.ready(&desk.clock, &desk.rps(1), Priority::default()), Ready::At(second(3)));
    assert_eq!(desk.cell.cooling_until(&desk.clock), Some(second(3)));
}

#[test]
fn waiters_pass_in_order_when_it_ends() {
    let desk = cooling(3);
    let mut waits: Vec<Wait<'_>> = [4, 4, 4].map(|amount| desk.wait_for(desk.rps(amount))).into();
    desk.turn_to(2_999_999);
    assert!(waits.iter_mut().all(Wait::sleeps));
    desk.turn_to(3_000_000);
    let third = waits.pop().unwrap();
    assert!(waits.into_iter().all(|wait| wait.granted().taken.at == second(3)));
    assert_eq!(third.woken(), 0);
    desk.turn_to(3_200_000);
    third.granted();
}

#[test]
fn a_later_end_extends_it_and_an_earlier_one_does_not_shorten_it() {
    let desk = cooling(3);
    let mut wait = desk.wait_for(desk.rps(1));
    desk.cell.cool_down(&desk.clock, second(1));
    assert_eq!(desk.cell.cooling_until(&desk.clock), Some(second(3)));
    desk.turn_to(2_000_000);
    assert!(wait.sleeps());
    desk.cell.cool_down(&desk.clock, second(5));
    desk.turn_to(4_999_999);
    assert!(wait.sleeps(), "the alarm of the first end rings for nothing");
    desk.turn_to(5_000_000);
    assert_eq!(wait.granted().taken.at, second(5));
    assert_eq!(desk.cell.cooling_until(&desk.clock), None);
}

#[test]
fn it_holds_up_those_who_wait_already() {
    let desk = Desk::with_spent_rate(1);
    let mut wait = desk.wait_for(desk.rps(1));
    desk.cell.cool_down(&desk.clock, second(4));
    desk.turn_to(3_999_999);
    assert!(wait.sleeps());
    desk.turn_to(4_000_000);
    wait.granted();
}

#[test]
fn a_release_in_a_cooldown_lets_nobody_pass() {
    let desk = Desk::with_taken_slots(1);
    let mut wait = desk.wait_for(desk.slots(1));
    desk.cell.cool_down(&desk.clock, second(2));
    desk.release(&desk.slots(1));
    assert!(wait.sleeps());
    desk.turn_to(2_000_000);
    wait.granted();
}

#[test]
fn a_deadline_before_its_end_is_told_at_once() {
    let desk = cooling(3);
    let request = |deadline| WaitRequest { deadline: Some(deadline), ..WaitRequest::of(desk.rps(1)) };
    let just_short = second(3) - Span::from_micros(1);
    assert!(matches!(desk.enter(request(just_short)).poll(), std::task::Poll::Ready(Err(_))));
    let fits = desk.wait(request(second(3)));
    desk.turn_to(3_000_000);
    fits.granted();
}

#[test]
fn one_that_has_ended_leaves_no_trace() {
    let desk = cooling(3);
    desk.turn_to(3_000_000);
    assert_eq!((desk.cell.cooling_until(&desk.clock), desk.cell.waiting()), (None, 0));
    desk.cell.cool_down(&desk.clock, second(2));
    desk.try_take(&desk.rps(10), Priority::default()).unwrap();
}
