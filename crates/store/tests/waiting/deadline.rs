//! Giving up: at once if the wait cannot fit, otherwise when the time has come.

use std::time::Duration;

use tollgate_core::{Limit, Span, Tick};
use tollgate_store::{Priority, WaitError, WaitRequest};

use crate::fixture::{Desk, START};

fn until(desk: &Desk, amount: u64, deadline: Tick) -> WaitRequest {
    WaitRequest { deadline: Some(deadline), ..WaitRequest::of(desk.rps(amount)) }
}

/// The wait it would have taken, and how long was waited.
fn timed_out(error: WaitError) -> (Option<Duration>, Duration) {
    match error {
        WaitError::TimedOut { denial, waited } => (denial.wait(), waited),
        other => panic!("{other}"),
    }
}

fn refused_at_once(desk: &Desk, request: WaitRequest) -> WaitError {
    match desk.enter(request).poll() {
        std::task::Poll::Ready(Err(error)) => error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_wait_that_cannot_fit_is_refused_at_once_with_the_wait_it_would_have_taken() {
    let desk = Desk::with_spent_rate(10);
    let just_short = START + Span::from_micros(299_999);
    let error = refused_at_once(&desk, until(&desk, 3, just_short));
    assert_eq!(timed_out(error), (Some(Duration::from_millis(300)), Duration::ZERO));
    assert_eq!((desk.cell.waiting(), desk.available()), (0, vec![0]));
}

#[test]
fn those_ahead_count_towards_the_wait() {
    let desk = Desk::with_spent_rate(10);
    let ahead = desk.wait_for(desk.rps(5));
    let error = refused_at_once(&desk, until(&desk, 1, START + Span::from_micros(599_999)));
    assert_eq!(timed_out(error), (Some(Duration::from_millis(600)), Duration::ZERO));
    let fits = desk.wait(until(&desk, 1, START + Span::from_millis(600)));
    desk.turn_to(600_000);
    ahead.granted();
    assert_eq!(fits.granted().taken.at, START + Span::from_millis(600));
}

#[test]
fn those_whom_it_may_pass_do_not_count_towards_the_wait() {
    let desk = Desk::with_spent_rate(10);
    let batch = desk.wait(WaitRequest { priority: Priority::Batch, ..WaitRequest::of(desk.rps(10)) });
    let interactive =
        WaitRequest { priority: Priority::Interactive, ..until(&desk, 1, START + Span::from_millis(100)) };
    let interactive = desk.wait(interactive);
    desk.turn_to(100_000);
    interactive.granted();
    desk.turn_to(1_100_000);
    batch.granted();
}

#[test]
fn a_deadline_that_has_come_refuses_what_would_have_to_wait_and_nothing_else() {
    let desk = Desk::new([Limit::per_second("rps", 1)]);
    let deadline_now = || until(&desk, 1, START);
    assert!(matches!(desk.enter(deadline_now()).poll(), std::task::Poll::Ready(Ok(_))));
    let error = refused_at_once(&desk, deadline_now());
    assert_eq!(timed_out(error), (Some(Duration::from_secs(1)), Duration::ZERO));
}

#[test]
fn a_grant_at_the_very_tick_of_the_deadline_is_a_grant() {
    let desk = Desk::with_spent_rate(1);
    let waits = [1, 2, 3].map(|second| desk.wait(until(&desk, 1, START + Span::from_secs(second))));
    desk.turn_to(10_000_000);
    let at = waits.map(|wait| wait.granted().taken.at);
    assert_eq!(at, [1, 2, 3].map(|second| START + Span::from_secs(second)));
}

#[test]
fn whoever_waits_in_vain_is_told_at_the_deadline_and_not_before() {
    // It is unknown when a place is given back, so the wait may fit.
    let desk = Desk::with_taken_slots(1);
    let deadline = Some(START + Span::from_millis(250));
    let mut wait = desk.wait(WaitRequest { deadline, ..WaitRequest::of(desk.slots(1)) });
    desk.turn_to(249_999);
    assert!(wait.sleeps());
    desk.turn_to(250_000);
    let error = wait.heard().unwrap_err();
    assert_eq!(timed_out(error), (None, Duration::from_millis(250)));
    assert_eq!(desk.cell.waiting(), 0);
    desk.release(&desk.slots(1));
    assert_eq!(desk.available(), [1], "what comes back later is not given to one who left");
}

#[test]
fn a_place_given_back_at_the_very_tick_of_the_deadline_is_too_late_if_the_clock_was_first() {
    let desk = Desk::with_taken_slots(1);
    let deadline = Some(START + Span::from_secs(1));
    let wait = desk.wait(WaitRequest { deadline, ..WaitRequest::of(desk.slots(1)) });
    desk.turn_to(1_000_000);
    desk.release(&desk.slots(1));
    assert!(wait.heard().is_err());
    assert_eq!(desk.available(), [1]);
}

#[test]
fn a_large_waiter_that_gives_up_lets_those_behind_it_pass_at_that_tick() {
    let desk = Desk::with_taken_slots(2);
    let deadline = Some(START + Span::from_secs(1));
    let large = desk.wait(WaitRequest { deadline, ..WaitRequest::of(desk.slots(2)) });
    let small = desk.wait(WaitRequest { deadline, ..WaitRequest::of(desk.slots(1)) });
    desk.release(&desk.slots(1));
    assert_eq!(small.woken(), 0);
    desk.turn_to(1_000_000);
    assert!(large.heard().is_err());
    assert_eq!(small.granted().taken.at, START + Span::from_secs(1));
}

#[test]
fn deadlines_come_in_their_own_order_whatever_the_order_of_the_queue() {
    let desk = Desk::with_taken_slots(1);
    let wait = |second| {
        let deadline = Some(START + Span::from_secs(second));
        desk.wait(WaitRequest { deadline, ..WaitRequest::of(desk.slots(1)) })
    };
    let mut waits: Vec<_> = [3, 1, 2].map(|second| (second, wait(second))).into();
    for now in 1..=3 {
        desk.turn_to(now * 1_000_000);
        let (over, left): (Vec<_>, Vec<_>) = waits.into_iter().partition(|(second, _)| *second == now);
        assert!(over.into_iter().all(|(_, wait)| wait.heard().is_err()));
        assert!(left.iter().all(|(_, wait)| wait.woken() == 0), "after {now} s");
        waits = left;
    }
    assert_eq!(desk.cell.waiting(), 0);
}

#[test]
fn a_full_queue_turns_the_next_one_away_and_has_room_again_when_one_leaves() {
    let desk = Desk::with_taken_slots(1);
    let request = || WaitRequest { waiters_max: 2, ..WaitRequest::of(desk.slots(1)) };
    let first = desk.wait(request());
    let _second = desk.wait(request());
    let error = refused_at_once(&desk, request());
    assert_eq!(error, WaitError::QueueFull { waiting: 2, max: 2 });
    drop(first);
    let _third = desk.wait(request());
    assert_eq!(desk.cell.waiting(), 2);
}

#[test]
fn the_wait_told_to_one_who_gave_up_in_a_cooldown_reaches_to_its_end() {
    let desk = Desk::with_spent_rate(1);
    let wait = desk.wait(until(&desk, 1, START + Span::from_secs(2)));
    desk.cell.cool_down(&desk.clock, START + Span::from_secs(10));
    desk.turn_to(2_000_000);
    let error = wait.heard().unwrap_err();
    assert_eq!(timed_out(error), (Some(Duration::from_secs(8)), Duration::from_secs(2)));
}

#[test]
fn the_wait_told_to_one_who_gave_up_behind_another_is_not_shorter_than_for_both() {
    let desk = Desk::with_spent_rate(10);
    let large = desk.wait_for(desk.rps(2));
    let small = desk.wait(until(&desk, 1, START + Span::from_millis(300)));
    // Something else is charged beyond what it took, so neither passes in time.
    desk.settle(&desk.rps(10), &[12]);
    desk.turn_to(300_000);
    let error = small.heard().unwrap_err();
    assert_eq!(timed_out(error), (Some(Duration::from_millis(200)), Duration::from_millis(300)));
    desk.turn_to(400_000);
    large.granted();
}
