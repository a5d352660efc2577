//! Leaving the queue: at any point, and without a trace.

use tollgate_core::{Costs, Limit, Limits, Span, demand};
use tollgate_store::{BucketRef, Key, LeaseTerm, ManualClock, Memory, Priority, WaitRequest};

use crate::fixture::{Desk, START, Wait};

/// A place and a rate: both must come back.
fn desk() -> Desk {
    let desk = Desk::new([Limit::resource("slots", 1), Limit::per_day("rpd", 100)]);
    desk.try_take(&one(&desk), Priority::default()).unwrap();
    desk
}

fn one(desk: &Desk) -> Costs {
    desk.limits.costs(&demand! { slots: 1, rpd: 1 }).unwrap()
}

#[test]
fn dropped_after_any_number_of_polls_it_leaves_nothing_and_the_next_passes() {
    for others in 1..=3 {
        for place in 0..=others {
            for polls in 1..6 {
                for granted in 1..=polls + 1 {
                    let desk = desk();
                    leave(&desk, others, place, polls, granted);
                    let case = format!("{others} others, place {place}, {polls} polls, granted {granted}");
                    assert_eq!((desk.cell.waiting(), desk.available()), (0, vec![1, 100]), "{case}");
                }
            }
        }
    }
}

/// One of the waiters, with `place` of the others before it, polls `polls` times and leaves. It is granted what it
/// waits for after its poll number `granted`, if it has not left by then.
fn leave(desk: &Desk, others: usize, place: usize, polls: usize, granted: usize) {
    let mut ahead: Vec<Wait<'_>> = (0..place).map(|_| desk.wait_for(one(desk))).collect();
    let mut leaver = desk.wait_for(one(desk));
    let behind: Vec<Wait<'_>> = (place..others).map(|_| desk.wait_for(one(desk))).collect();
    let mut heard = false;
    for poll in 1..=polls {
        heard = heard || (poll > 1 && leaver.poll().is_ready());
        if poll == granted {
            ahead.drain(..).for_each(|wait| pass(desk, wait));
            desk.release(&one(desk));
            assert_eq!((leaver.woken(), desk.available()), (1, vec![0, 99]), "granted, and not heard yet");
        }
        if heard {
            break;
        }
    }
    drop(leaver);
    // The holder of the place before, or the leaver that collected its grant, gives it to the next waiter; if the
    // leaver was granted it and left without collecting it, the next waiter has it already.
    let next = behind.iter().chain(&ahead).map(Wait::woken).max();
    let passed_on = granted <= polls && !heard;
    assert!(next.is_none_or(|woken| (woken == 1) == passed_on));
    if !passed_on {
        desk.release(&one(desk));
    }
    for wait in ahead.into_iter().chain(behind) {
        wait.granted();
        desk.release(&one(desk));
    }
}

/// The place is given back, and the first waiter takes it.
fn pass(desk: &Desk, wait: Wait<'_>) {
    desk.release(&one(desk));
    wait.granted();
}

#[test]
fn a_waiter_that_was_granted_and_has_not_heard_gives_place_and_rate_back() {
    let desk = desk();
    let waiter = desk.wait_for(one(&desk));
    desk.release(&one(&desk));
    assert_eq!((waiter.woken(), desk.available()), (1, vec![0, 99]), "granted, though it has not heard");
    drop(waiter);
    assert_eq!(desk.available(), [1, 100]);
}

#[test]
fn what_a_dropped_waiter_was_granted_goes_to_the_next_at_once() {
    let desk = desk();
    let first = desk.wait_for(one(&desk));
    let second = desk.wait_for(one(&desk));
    desk.release(&one(&desk));
    assert_eq!((first.woken(), second.woken()), (1, 0));
    drop(first);
    second.granted();
    assert_eq!(desk.available(), [0, 99]);
}

#[test]
fn a_large_waiter_that_leaves_lets_the_small_ones_behind_it_pass() {
    let desk = Desk::with_taken_slots(4);
    let large = desk.wait_for(desk.slots(4));
    let small: Vec<Wait<'_>> = (0..3).map(|_| desk.wait_for(desk.slots(1))).collect();
    desk.release(&desk.slots(3));
    assert!(small.iter().all(|wait| wait.woken() == 0));
    drop(large);
    small.into_iter().for_each(|wait| drop(wait.granted()));
    assert_eq!((desk.cell.waiting(), desk.available()), (0, vec![0]));
}

#[test]
fn what_a_holder_was_granted_and_has_not_heard_of_is_no_longer_held() {
    let desk = Desk::with_taken_slots(1);
    let term = Some(LeaseTerm { holder: 7, ttl: Span::from_secs(60) });
    let waiter = desk.wait(WaitRequest { term, ..WaitRequest::of(desk.slots(1)) });
    desk.release(&desk.slots(1));
    assert_eq!((waiter.woken(), desk.available()), (1, vec![0]));
    drop(waiter);
    assert_eq!(desk.available(), [1]);
}

#[test]
fn after_it_was_heard_nothing_is_given_back_by_dropping_it() {
    let desk = desk();
    let waiter = desk.wait_for(one(&desk));
    desk.release(&one(&desk));
    drop(waiter.granted());
    assert_eq!(desk.available(), [0, 99]);
}

#[test]
fn ten_thousand_cancellations_leave_a_queue_of_none_and_a_cell_that_can_be_dropped() {
    let hands = ManualClock::at(START);
    let memory = Memory::builder().clock(hands.clock()).build();
    let limits = Limits::new([Limit::per_second("rps", 1)]).unwrap();
    let place = BucketRef { namespace: "n", key: &Key::new(&["many"]), limits: &limits };
    let desk =
        Desk { cell: memory.cell(&place).unwrap(), clock: hands.clock(), hands, limits: limits.clone() };
    desk.try_take(&desk.rps(1), Priority::default()).unwrap();
    let mut waits: Vec<Wait<'_>> = (0..10_000).map(|_| desk.wait_for(desk.rps(1))).collect();
    assert_eq!(desk.cell.waiting(), 10_000);
    while !waits.is_empty() {
        // Now from the middle, now from the end.
        drop(waits.swap_remove(waits.len() / 2));
    }
    assert_eq!(desk.cell.waiting(), 0);
    drop(waits);
    drop(desk);
    let space = memory.namespace("n");
    assert_eq!(space.sweep(START), 0, "what was taken is not forgotten");
    assert_eq!(
        space.sweep(START + Span::from_secs(1)),
        1,
        "nothing is left but the bucket, and that is full"
    );
}

#[test]
fn waiters_who_come_and_go_set_one_alarm_and_not_one_each() {
    let desk = Desk::with_spent_rate(1);
    for _ in 0..10_000 {
        drop(desk.wait_for(desk.rps(1)));
    }
    assert_eq!((desk.cell.waiting(), desk.hands.alarms()), (0, 1));
    let waiter = desk.wait_for(desk.rps(1));
    desk.turn_to(1_000_000);
    waiter.granted();
    assert_eq!(desk.hands.alarms(), 0);
}
