//! Holders that vanish without a word, and those who wait for what they held.

use tollgate_core::{Span, Usage};
use tollgate_store::{LeaseTerm, WaitRequest};

use crate::fixture::{Desk, START};

fn term(holder: u128, secs: u64) -> LeaseTerm {
    LeaseTerm { holder, ttl: Span::from_secs(secs) }
}

fn desk_held_for(secs: u64) -> Desk {
    let desk = Desk::new([tollgate_core::Limit::resource("slots", 2)]);
    desk.hold_slots(1, term(1, secs));
    desk.hold_slots(1, term(2, secs + 1));
    desk
}

#[test]
fn waiters_pass_exactly_when_a_silent_holder_expires() {
    let desk = desk_held_for(5);
    let first = desk.wait_for(desk.slots(1));
    let second = desk.wait_for(desk.slots(1));
    desk.turn_to(4_999_999);
    assert_eq!((first.woken(), second.woken()), (0, 0));
    desk.turn_to(5_000_000);
    assert_eq!(first.granted().taken.at, START + Span::from_secs(5));
    assert_eq!(second.woken(), 0);
    desk.turn_to(6_000_000);
    assert_eq!(second.granted().taken.at, START + Span::from_secs(6));
}

#[test]
fn a_waiter_for_what_several_hold_passes_when_the_last_of_them_expires() {
    let desk = desk_held_for(5);
    let both = desk.wait_for(desk.slots(2));
    desk.turn_to(5_999_999);
    assert_eq!(both.woken(), 0);
    desk.turn_to(6_000_000);
    both.granted();
}

#[test]
fn a_holder_that_is_heard_of_keeps_what_it_has() {
    let desk = desk_held_for(5);
    let waiter = desk.wait_for(desk.slots(1));
    for second in [4, 8, 12] {
        desk.turn_to(second * 1_000_000);
        assert!(desk.cell.renew(&desk.clock, term(1, 5)));
        assert!(desk.cell.renew(&desk.clock, term(2, 5)));
    }
    desk.turn_to(16_999_999);
    assert_eq!(waiter.woken(), 0);
    desk.turn_to(17_000_000);
    waiter.granted();
}

#[test]
fn a_holder_that_has_expired_cannot_renew_nor_give_back_what_is_another_s() {
    let desk = desk_held_for(5);
    let waiter = desk.wait(WaitRequest { term: Some(term(3, 60)), ..WaitRequest::of(desk.slots(1)) });
    desk.turn_to(5_000_000);
    waiter.granted();
    assert!(!desk.cell.renew(&desk.clock, term(1, 5)));
    let next = desk.wait_for(desk.slots(2));
    let usage = Usage { at: START, reserved: &desk.slots(1), used: &[0], holder: Some(1) };
    desk.cell.settle(&desk.clock, &desk.limits, &usage);
    assert_eq!(next.woken(), 0, "it gave back what it no longer had");
    desk.turn_to(65_000_000);
    next.granted();
}

#[test]
fn the_term_of_a_waiter_starts_with_its_grant() {
    let desk = desk_held_for(5);
    let waiter = desk.wait(WaitRequest { term: Some(term(3, 10)), ..WaitRequest::of(desk.slots(2)) });
    desk.turn_to(6_000_000);
    waiter.granted();
    let next = desk.wait_for(desk.slots(1));
    desk.turn_to(15_999_999);
    assert_eq!(next.woken(), 0);
    desk.turn_to(16_000_000);
    next.granted();
}

#[test]
fn those_who_have_expired_are_counted_once() {
    let desk = desk_held_for(5);
    assert_eq!(desk.cell.expire(&desk.clock), 0);
    desk.turn_to(6_000_000);
    assert_eq!(desk.cell.expire(&desk.clock), 2);
    assert_eq!((desk.cell.expire(&desk.clock), desk.available()), (0, vec![2]));
}
