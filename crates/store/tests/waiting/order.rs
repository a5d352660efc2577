//! Who goes first.

use tollgate_core::{Limit, Span, demand};
use tollgate_store::{PRIORITY_OFFSET, Priority, WaitRequest};

use crate::fixture::{Desk, START, Wait};

fn of_priority<'a>(desk: &'a Desk, priority: Priority) -> Wait<'a> {
    desk.wait(WaitRequest { priority, ..WaitRequest::of(desk.rps(1)) })
}

#[test]
fn waiters_pass_in_the_order_they_came() {
    let desk = Desk::with_spent_rate(1);
    let mut waits: Vec<Wait<'_>> = (0..50).map(|_| desk.wait_for(desk.rps(1))).collect();
    for second in 1..=50 {
        desk.turn_to(second * 1_000_000 - 1);
        assert!(waits.iter_mut().all(Wait::sleeps), "nobody passes before {second} s");
        desk.turn_to(second * 1_000_000);
        let first = waits.remove(0).granted();
        assert_eq!(first.taken.at, START + Span::from_secs(second));
        assert_eq!(first.waited, Some(Span::from_secs(second).to_duration()));
    }
    assert_eq!(desk.cell.waiting(), 0);
}

#[test]
fn a_jump_of_the_clock_grants_each_waiter_at_its_own_instant() {
    let desk = Desk::with_spent_rate(2);
    let waits: Vec<Wait<'_>> = (0..5).map(|_| desk.wait_for(desk.rps(1))).collect();
    desk.turn_to(60_000_000);
    let at: Vec<_> = waits.into_iter().map(|wait| wait.granted().taken.at).collect();
    let half_seconds = [500, 1_000, 1_500, 2_000, 2_500].map(|millis| START + Span::from_millis(millis));
    assert_eq!(at, half_seconds);
}

#[test]
fn a_large_demand_is_not_starved_by_a_thousand_small_ones() {
    let desk = Desk::with_spent_rate(1_000);
    let mut before: Vec<Wait<'_>> = (0..500).map(|_| desk.wait_for(desk.rps(1))).collect();
    let large = desk.wait_for(desk.rps(500));
    let mut after: Vec<Wait<'_>> = (0..500).map(|_| desk.wait_for(desk.rps(1))).collect();
    // 500 before it take half a second, and then it saves up half a second more.
    desk.turn_to(500_000);
    assert!(before.drain(..).all(|wait| wait.granted().taken.at <= START + Span::from_millis(500)));
    desk.turn_to(999_999);
    assert!(large.woken() == 0 && after.iter_mut().all(Wait::sleeps), "nobody passes the large one");
    desk.turn_to(1_000_000);
    assert_eq!(large.granted().taken.at, START + Span::from_secs(1));
    desk.turn_to(1_500_000);
    assert!(after.into_iter().all(|wait| wait.heard().is_ok()));
    assert_eq!(desk.cell.waiting(), 0);
}

#[test]
fn a_large_demand_for_places_is_not_starved_either() {
    let desk = Desk::with_taken_slots(10);
    let large = desk.wait_for(desk.slots(5));
    let mut small = desk.wait_for(desk.slots(1));
    for _ in 0..4 {
        desk.release(&desk.slots(1));
        assert!(large.woken() == 0 && small.sleeps());
        assert!(desk.try_take(&desk.slots(1), Priority::default()).is_err());
    }
    desk.release(&desk.slots(1));
    large.granted();
    assert!(small.sleeps());
    desk.release(&desk.slots(1));
    small.granted();
}

#[test]
fn a_newcomer_never_overtakes_those_who_wait() {
    let desk = Desk::with_spent_rate(10);
    let waiter = desk.wait_for(desk.rps(10));
    desk.turn_to(500_000);
    assert_eq!(desk.available(), [5]);
    let denied = desk.try_take(&desk.rps(1), Priority::default()).unwrap_err();
    // The waiter passes after another half second, and the newcomer a tenth later.
    assert_eq!(denied, "no limit denies, but a waiter is ahead or a cooldown is active; retry in 600ms");
    desk.turn_to(1_000_000);
    waiter.granted();
    assert!(desk.try_take(&desk.rps(1), Priority::default()).is_err());
    desk.turn_to(1_100_000);
    desk.try_take(&desk.rps(1), Priority::default()).unwrap();
}

/// A [`Desk`] with a budget that is spent for the day, and a rate.
fn with_spent_budget() -> Desk {
    let desk = Desk::new([Limit::per_day("budget", 1), Limit::per_second("rps", 1_000)]);
    let all = desk.limits.costs(&demand! { budget: 1 }).unwrap();
    desk.try_take(&all, Priority::default()).unwrap();
    desk
}

#[test]
fn a_waiter_holds_back_no_demand_that_takes_from_other_limits() {
    let desk = with_spent_budget();
    let mut budget = desk.wait_for(desk.limits.costs(&demand! { budget: 1, rps: 1 }).unwrap());
    let rps = desk.limits.costs(&demand! { rps: 1 }).unwrap();
    for _ in 0..1_000 {
        desk.try_take(&rps, Priority::default()).unwrap();
    }
    // A waiter for the rate passes as soon as there is one left, also behind the one that waits for the day.
    let next = desk.wait_for(rps);
    desk.turn_to(1_000);
    assert_eq!(next.granted().taken.at, START + Span::from_millis(1));
    assert!(budget.sleeps());
    let both = desk.limits.costs(&demand! { budget: 1, rps: 1 }).unwrap();
    assert!(desk.try_take(&both, Priority::default()).is_err(), "the budget is claimed");
}

#[test]
fn a_waiter_claims_what_it_will_wait_longest_for_and_more_only_when_it_has_that() {
    let desk = Desk::new([Limit::per_second("slow", 1), Limit::per_second("fast", 10)]);
    let costs = |slow: u64, fast: u64| desk.limits.costs(&demand! { slow: slow, fast: fast }).unwrap();
    desk.try_take(&costs(1, 10), Priority::default()).unwrap();
    // Short of both: the fast one is left to others while the slow one is missing.
    let large = desk.wait_for(costs(1, 5));
    desk.turn_to(200_000);
    desk.try_take(&costs(0, 2), Priority::default()).unwrap();
    desk.turn_to(1_000_000);
    // It has the slow one now, or would: the fast one has 8 of the 5 it needs.
    large.granted();
    // Now one finds the fast one taken from under it when the slow one is there, and claims both.
    desk.turn_to(1_300_000);
    desk.try_take(&costs(0, 6), Priority::default()).unwrap();
    let waiter = desk.wait_for(costs(1, 5));
    desk.turn_to(1_999_999);
    desk.try_take(&costs(0, 6), Priority::default()).unwrap();
    desk.turn_to(2_000_000);
    assert!(desk.try_take(&costs(0, 1), Priority::default()).is_err(), "the fast one is claimed as well");
    assert!(desk.try_take(&costs(1, 0), Priority::default()).is_err(), "the slow one is still claimed");
    desk.turn_to(2_399_999);
    assert!(waiter.woken() == 0);
    desk.turn_to(2_400_000);
    waiter.granted();
}

#[test]
fn a_newcomer_is_told_of_all_waiters_that_are_sure_to_pass_before_it() {
    let desk = Desk::new([Limit::per_second("one", 1), Limit::per_second("two", 1)]);
    let costs = |one: u64, two: u64| desk.limits.costs(&demand! { one: one, two: two }).unwrap();
    desk.try_take(&costs(1, 0), Priority::default()).unwrap();
    let first = desk.wait_for(costs(1, 0));
    let second = desk.wait_for(costs(1, 1));
    let denied = desk.try_take(&costs(1, 0), Priority::default()).unwrap_err();
    assert!(denied.ends_with("retry in 2s"), "the second may be passed if two runs out: {denied}");
    let denied = desk.try_take(&costs(1, 1), Priority::default()).unwrap_err();
    assert!(denied.ends_with("retry in 3s"), "{denied}");
    desk.try_take(&costs(0, 1), Priority::default()).unwrap();
    drop((first, second));
    assert_eq!(desk.cell.waiting(), 0);
}

#[test]
fn the_end_of_a_cooldown_finds_waiters_in_the_order_they_came() {
    let desk = with_spent_budget();
    desk.cell.cool_down(&desk.clock, START + Span::from_secs(1));
    let rps = desk.limits.costs(&demand! { rps: 1_000 }).unwrap();
    let (first, mut second) = (desk.wait_for(rps.clone()), desk.wait_for(rps));
    desk.turn_to(1_000_000);
    assert_eq!(first.granted().taken.at, START + Span::from_secs(1));
    assert!(second.sleeps());
    desk.turn_to(2_000_000);
    second.granted();
}

#[test]
fn the_interactive_pass_before_the_normal_and_those_before_the_batch() {
    let desk = Desk::with_spent_rate(1);
    let mut batch = of_priority(&desk, Priority::Batch);
    let mut normal = of_priority(&desk, Priority::Normal);
    let interactive = of_priority(&desk, Priority::Interactive);
    desk.turn_to(1_000_000);
    interactive.granted();
    assert!(normal.sleeps() && batch.sleeps());
    desk.turn_to(2_000_000);
    normal.granted();
    assert!(batch.sleeps());
    desk.turn_to(3_000_000);
    batch.granted();
}

#[test]
fn a_newcomer_of_a_higher_priority_may_take_while_lower_ones_wait() {
    let desk = Desk::with_taken_slots(2);
    let mut batch = desk.wait(WaitRequest { priority: Priority::Batch, ..WaitRequest::of(desk.slots(2)) });
    desk.release(&desk.slots(1));
    assert!(desk.try_take(&desk.slots(1), Priority::Batch).is_err());
    desk.try_take(&desk.slots(1), Priority::Interactive).unwrap();
    assert!(batch.sleeps());
    desk.release(&desk.slots(2));
    batch.granted();
}

#[test]
fn a_lower_priority_is_passed_over_for_its_patience_and_no_longer() {
    for (priority, offset) in [Priority::Normal, Priority::Batch].into_iter().zip(&PRIORITY_OFFSET[1..]) {
        let desk = Desk::with_spent_rate(1);
        let patient = of_priority(&desk, priority);
        let offset = offset.as_secs();
        // One comes and one passes each second; those that came within the offset go first.
        let mut queue = Vec::new();
        for second in 0..=offset + 2 {
            desk.turn_to(second * 1_000_000);
            let late = second > offset;
            assert_eq!(patient.woken() == 1, late, "{priority:?} after {second} s");
            queue.push(of_priority(&desk, Priority::Interactive));
        }
        let granted = patient.granted();
        assert_eq!(granted.waited.unwrap().as_secs(), offset + 1);
        let passed = queue.iter().filter(|wait| wait.woken() == 1).count() as u64;
        assert_eq!(passed, offset + 1, "everybody else who passed came in time");
    }
}
