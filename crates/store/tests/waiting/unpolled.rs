//! Waiters that are granted what they wait for and are not polled: others have it after a while, and nothing is lost.

use std::task::Poll;

use tollgate_core::{Costs, Limit, Limits, Span, demand};
use tollgate_store::{Clock, Granted, Priority, WaitError, WaitRequest};

use crate::fixture::{Desk, START, Wait};

/// How long a test waits for what is to come within a second, on a machine with other work to do.
const PATIENCE: Span = Span::from_secs(300);

/// Reactions go by the clock of the system, so this waits for it.
fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let real = Clock::system();
    let given_up = real.now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(real.now() < given_up, "it did not come within {:?}", PATIENCE.to_duration());
        std::thread::yield_now();
    }
}

fn answer(wait: &mut Wait<'_>) -> Result<Granted, WaitError> {
    eventually(|| match wait.poll() {
        Poll::Ready(outcome) => Some(outcome),
        Poll::Pending => None,
    })
}

/// A [`Desk`] with one slot and a budget, of both of which one is taken.
fn desk() -> Desk {
    let desk = Desk::new([Limit::resource("slots", 1), Limit::per_day("rpd", 100)]);
    desk.try_take(&one(&desk), Priority::default()).unwrap();
    desk
}

fn one(desk: &Desk) -> Costs {
    desk.limits.costs(&demand! { slots: 1, rpd: 1 }).unwrap()
}

/// Waits until the grant of the one waiter was taken back.
fn is_passed_over(desk: &Desk) {
    eventually(|| {
        desk.cell.peek(&desk.clock);
        (desk.cell.waiting() == 1).then_some(())
    });
}

#[test]
fn the_next_waiter_has_what_one_that_is_not_polled_was_granted() {
    let desk = desk();
    let mut left = desk.wait_for(one(&desk));
    let mut next = desk.wait_for(one(&desk));
    desk.release(&one(&desk));
    assert_eq!((left.woken(), desk.available()), (1, vec![0, 99]), "it is granted, and does not collect");
    answer(&mut next).unwrap();
    assert!(left.poll().is_pending(), "what it was granted is the next waiter's");
    assert_eq!((desk.cell.waiting(), desk.available()), (1, vec![0, 99]));
    desk.release(&one(&desk));
    answer(&mut left).unwrap();
    desk.release(&one(&desk));
    assert_eq!((desk.cell.waiting(), desk.available()), (0, vec![1, 100]));
}

#[test]
fn a_waiter_that_was_passed_over_keeps_its_rank() {
    let desk = desk();
    let mut left = desk.wait_for(one(&desk));
    let mut next = desk.wait_for(one(&desk));
    let mut last = desk.wait_for(one(&desk));
    desk.release(&one(&desk));
    answer(&mut next).unwrap();
    assert!(left.poll().is_pending() && last.poll().is_pending());
    let before = (left.woken(), last.woken());
    desk.release(&one(&desk));
    assert_eq!((left.woken(), last.woken()), (before.0 + 1, before.1), "it came before the last");
    answer(&mut left).unwrap();
    desk.release(&one(&desk));
    answer(&mut last).unwrap();
}

#[test]
fn a_caller_that_does_not_wait_has_what_is_not_collected() {
    let desk = desk();
    let mut left = desk.wait_for(one(&desk));
    desk.release(&one(&desk));
    eventually(|| desk.try_take(&one(&desk), Priority::default()).ok());
    assert!(left.poll().is_pending());
    desk.release(&one(&desk));
    answer(&mut left).unwrap();
}

#[test]
fn a_waiter_that_was_passed_over_has_what_is_free_when_it_is_polled() {
    let desk = desk();
    let mut left = desk.wait_for(one(&desk));
    desk.release(&one(&desk));
    is_passed_over(&desk);
    assert_eq!(desk.available(), [1, 100], "all of it is back");
    assert!(left.poll().is_ready());
    assert_eq!((desk.cell.waiting(), desk.available()), (0, vec![0, 99]));
}

#[test]
fn a_waiter_dropped_after_it_was_passed_over_leaves_nothing() {
    let desk = desk();
    let left = desk.wait_for(one(&desk));
    desk.release(&one(&desk));
    is_passed_over(&desk);
    drop(left);
    assert_eq!((desk.cell.waiting(), desk.available()), (0, vec![1, 100]));
}

#[test]
fn a_waiter_that_was_passed_over_is_held_to_its_deadline() {
    let desk = desk();
    let deadline = Some(START + Span::from_secs(5));
    let mut left = desk.wait(WaitRequest { deadline, ..WaitRequest::of(one(&desk)) });
    desk.release(&one(&desk));
    eventually(|| desk.try_take(&one(&desk), Priority::default()).ok());
    desk.turn_to(5_000_000);
    assert!(matches!(left.poll(), Poll::Ready(Err(WaitError::TimedOut { .. }))));
    assert_eq!((desk.cell.waiting(), desk.available()), (0, vec![0, 99]));
}

#[test]
fn limits_that_were_lowered_refuse_a_waiter_that_was_passed_over() {
    let desk = Desk::with_taken_slots(2);
    let mut left = desk.wait_for(desk.slots(2));
    desk.release(&desk.slots(2));
    desk.cell.replace_limits(&desk.clock, Limits::new([Limit::resource("slots", 1)]).unwrap());
    eventually(|| desk.try_take(&desk.slots(1), Priority::default()).ok());
    assert!(matches!(left.poll(), Poll::Ready(Err(WaitError::Impossible(_)))));
}
