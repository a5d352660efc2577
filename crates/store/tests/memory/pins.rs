//! A caller that has a pinned bucket takes from it and counts it with nothing in between, until it is forgotten.

use std::sync::Arc;

use tollgate_core::{Limit, Limits, Span, Tick, Usage};
use tollgate_store::records::Records;
use tollgate_store::usage::{Caller, Window, iso, usage_key};
use tollgate_store::{
    Backend, BucketRef, Key, LocalBucket, ManualClock, Memory, Op, Priority, Scope, Step, Store, StoreError,
    Transaction, TxnOutcome,
};

use crate::fixture::{each, limits, memory, together};

/// A memory, a bucket in it that was taken from and counted once, and its limits.
struct Desk {
    hands: ManualClock,
    memory: Memory,
    limits: Limits,
    key: Key,
}

impl Desk {
    fn new() -> Desk {
        let (hands, memory) = memory();
        hands.set(Tick::from_secs(1_772_323_200));
        let limits = limits([Limit::per_day("rpm", 1_000_000), Limit::per_day("tpm", 1_000_000)]);
        Desk { hands, memory, limits, key: Key::new(&["user", "api"]) }
    }

    fn place(&self) -> BucketRef<'_> {
        BucketRef { namespace: "test", key: &self.key, limits: &self.limits }
    }

    fn take(&self) -> Result<TxnOutcome, StoreError> {
        let costs = each(&self.limits, 1);
        let steps = [Step { place: self.place(), op: Op::Take { costs: &costs, term: None } }];
        self.memory.apply(&Transaction { id: None, steps: &steps, metered: true }).wait()
    }

    fn pin(&self) -> LocalBucket {
        self.memory.pin(&self.place()).unwrap()
    }

    fn forget(&self) -> usize {
        self.memory.forget("test", Scope::Entity("user")).wait().unwrap()
    }

    /// What was used of tpm in the window of `at`.
    fn used(&self, window: Window, at: Tick) -> Option<i64> {
        self.memory.write_usage("test", Scope::Bucket("user", "api")).wait().unwrap();
        let key = usage_key("test", "user", "api", window, &iso(window.start(at)));
        self.memory.get_many(&[key]).wait().unwrap()[0].as_ref().and_then(|item| item.int("tpm"))
    }
}

#[test]
fn only_a_bucket_that_is_there_can_be_pinned() {
    let desk = Desk::new();
    assert!(desk.memory.pin(&desk.place()).is_none());
    assert_eq!(desk.memory.namespace("test").len(), 0, "and none is made");
    desk.take().unwrap();
    assert!(Arc::ptr_eq(&desk.pin().cell, &desk.memory.namespace("test").find(&desk.key).unwrap()));
    assert_eq!(*desk.pin().key(), desk.key);
}

#[test]
fn what_is_taken_at_hand_counts_like_what_is_taken_by_a_call() {
    let desk = Desk::new();
    desk.take().unwrap();
    let (pin, clock, start) = (desk.pin(), desk.hands.clock(), desk.hands.now());
    let costs = each(&desk.limits, 10);
    let at = pin.cell.take_plain(&clock, &costs.small().unwrap()).unwrap();
    pin.count_take(at, &desk.limits, Caller::Own, costs.amounts());
    desk.hands.advance(Span::from_secs(3_600));
    let usage = Usage { at, reserved: &costs, used: &[1, 3], holder: None };
    pin.cell.settle(&clock, &desk.limits, &usage);
    pin.count_settlement(clock.now(), &desk.limits, Caller::Own, usage.reserved.amounts(), usage.used);
    assert_eq!(desk.used(Window::Hour, start), Some(11));
    assert_eq!(desk.used(Window::Hour, clock.now()), Some(-7));
    assert_eq!(desk.used(Window::Day, start), Some(4));
}

#[test]
fn limits_of_the_same_names_go_on_in_the_same_sums_and_others_are_added_by_name() {
    let desk = Desk::new();
    desk.take().unwrap();
    let (pin, now) = (desk.pin(), desk.hands.now());
    let lowered = limits([Limit::per_day("rpm", 5), Limit::per_day("tpm", 50)]);
    let swapped = limits([Limit::per_day("tpm", 50), Limit::per_day("slow", 5)]);
    for other in [&lowered, &swapped, &desk.limits, &swapped, &lowered] {
        pin.count_take(now, other, Caller::Own, each(other, 2).amounts());
    }
    assert_eq!(desk.used(Window::Hour, now), Some(11));
}

#[test]
fn a_clock_that_steps_back_over_the_hour_loses_nothing() {
    let desk = Desk::new();
    desk.take().unwrap();
    let (pin, then) = (desk.pin(), desk.hands.now());
    let before = then - Span::from_secs(1);
    for at in [before, then, before, then, then, before] {
        pin.count_take(at, &desk.limits, Caller::Own, each(&desk.limits, 5).amounts());
    }
    assert_eq!((desk.used(Window::Hour, before), desk.used(Window::Hour, then)), (Some(15), Some(16)));
    assert_eq!((desk.used(Window::Month, before), desk.used(Window::Month, then)), (Some(15), Some(16)));
}

#[test]
fn nothing_is_taken_from_a_bucket_that_was_forgotten() {
    let desk = Desk::new();
    desk.take().unwrap();
    let (pin, clock, costs) = (desk.pin(), desk.hands.clock(), each(&desk.limits, 1));
    assert!(!pin.cell.is_removed());
    assert_eq!(desk.forget(), 1);
    assert!(pin.cell.is_removed());
    assert!(pin.cell.take_plain(&clock, &costs.small().unwrap()).is_none());
    let denial = pin.cell.try_take(&clock, &costs, None, Priority::default()).unwrap_err();
    assert_eq!(denial.wait(), None, "it never will be");
    assert!(!pin.cell.settle_packed(&desk.limits, &costs.pack().unwrap(), &[0; 4]));
    pin.cell.settle(
        &clock,
        &desk.limits,
        &Usage { at: clock.now(), reserved: &costs, used: &[9, 9], holder: None },
    );
    assert!(pin.cell.is_removed(), "for good");
    desk.take().unwrap();
    assert!(!Arc::ptr_eq(&desk.pin().cell, &pin.cell));
    assert_eq!(desk.memory.peek(&desk.place()).wait().unwrap()[0].available(), 999_999);
}

#[test]
fn what_is_counted_after_a_bucket_was_forgotten_is_counted_nowhere() {
    let desk = Desk::new();
    desk.take().unwrap();
    let (pin, now, costs) = (desk.pin(), desk.hands.now(), each(&desk.limits, 7));
    desk.forget();
    pin.count_take(now, &desk.limits, Caller::Own, costs.amounts());
    pin.count_take(now + Span::from_secs(7_200), &desk.limits, Caller::Own, costs.amounts());
    assert_eq!(desk.used(Window::Month, now), None);
    desk.take().unwrap();
    pin.count_take(now, &desk.limits, Caller::Own, costs.amounts());
    assert_eq!(desk.used(Window::Month, now), Some(1), "the new bucket has a count of its own");
}

#[test]
fn a_refund_to_a_bucket_that_was_dropped_because_it_was_full_is_counted() {
    let (hands, memory) = memory();
    let limits = limits([Limit::per_second("tpm", 10)]);
    let (key, costs, at) = (Key::new(&["user", "api"]), each(&limits, 10), hands.now());
    let place = BucketRef { namespace: "test", key: &key, limits: &limits };
    let apply = |op| {
        let steps = [Step { place, op }];
        memory.apply(&Transaction { id: None, steps: &steps, metered: true }).wait().unwrap();
    };
    apply(Op::Take { costs: &costs, term: None });
    hands.advance(Span::from_secs(2 * 3_600));
    assert_eq!(
        memory.namespace("test").sweep(hands.now()),
        1,
        "the count of that hour is written down and dropped"
    );
    apply(Op::Settle(Usage { at, reserved: &costs, used: &[4], holder: None }));
    memory.write_usage("test", Scope::All).wait().unwrap();
    let used = |window: Window, at| {
        let key = usage_key("test", "user", "api", window, &iso(window.start(at)));
        memory.get_many(&[key]).wait().unwrap()[0].as_ref().and_then(|item| item.int("tpm"))
    };
    let hours = (used(Window::Hour, at), used(Window::Hour, hands.now()), used(Window::Day, at));
    assert_eq!(hours, (Some(10), Some(-6), Some(4)));
}

#[test]
fn a_counted_bucket_makes_room_in_a_full_namespace_and_its_count_is_written_down() {
    let hands = ManualClock::at(Tick::from_secs(1_772_323_200));
    let memory = Memory::builder().clock(hands.clock()).keys_max(1).build();
    let limits = limits([Limit::per_second("tpm", 10)]);
    let (one, start) = (each(&limits, 1), hands.now());
    let take = |entity: &str| {
        let key = Key::new(&[entity, "api"]);
        let place = BucketRef { namespace: "test", key: &key, limits: &limits };
        let steps = [Step { place, op: Op::Take { costs: &one, term: None } }];
        memory.apply(&Transaction { id: None, steps: &steps, metered: true }).wait()
    };
    take("first").unwrap();
    assert!(take("second").is_err(), "the first is in use");
    hands.advance(Span::from_secs(1));
    take("second").unwrap();
    assert_eq!(memory.namespace("test").len(), 1);
    let written = |entity: &str| {
        let key = usage_key("test", entity, "api", Window::Hour, &iso(start));
        memory.get_many(&[key]).wait().unwrap()[0].as_ref().and_then(|item| item.int("tpm"))
    };
    assert_eq!((written("first"), written("second")), (Some(1), None));
}

#[test]
fn counts_of_earlier_hours_are_written_down_as_others_come_in() {
    let (hands, memory) = memory();
    let limits = limits([Limit::per_day("tpm", 100)]);
    let one = each(&limits, 1);
    let take = |number: u64| {
        let key = Key::new(&[format!("user-{number}"), "api".into()]);
        let steps = [Step {
            place: BucketRef { namespace: "test", key: &key, limits: &limits },
            op: Op::Take { costs: &one, term: None },
        }];
        memory.apply(&Transaction { id: None, steps: &steps, metered: true }).wait().unwrap();
    };
    let first = hands.now();
    (0..1_000).for_each(take);
    hands.advance(Span::from_secs(3_600));
    (1_000..9_000).for_each(take);
    let written = |number: u64| {
        let entity = format!("user-{number}");
        let key = usage_key("test", &entity, "api", Window::Hour, &iso(Window::Hour.start(first)));
        memory.get_many(&[key]).wait().unwrap()[0].is_some()
    };
    let count = (0..1_000).filter(|number| written(*number)).count();
    assert!(count > 900, "only {count} of 1000 were written down without being asked for");
}

#[test]
fn threads_that_take_at_hand_while_the_hours_turn_are_counted_exactly() {
    const ROUNDS: i64 = 20_000;
    let desk = Desk::new();
    desk.take().unwrap();
    let (pin, start) = (desk.pin(), desk.hands.now());
    together(4, |thread| {
        let costs = each(&desk.limits, 1);
        for round in 0..ROUNDS {
            // Each hour is met by some threads sooner than by others.
            let at = start + Span::from_secs((round as u64 / 5_000) * 3_600);
            pin.count_take(at, &desk.limits, Caller::Own, costs.amounts());
            if thread == 0 && round % 1_000 == 0 {
                desk.memory.write_usage("test", Scope::All).wait().unwrap();
            }
        }
    });
    assert_eq!(desk.used(Window::Day, start), Some(4 * ROUNDS + 1));
    for hour in 0..4 {
        let used = desk.used(Window::Hour, start + Span::from_secs(hour * 3_600));
        assert_eq!(used, Some(4 * 5_000 + i64::from(hour == 0)));
    }
}

#[test]
fn a_take_and_a_forgetting_at_once_leave_a_bucket_or_none_but_no_count_of_nobody() {
    for _ in 0..200 {
        let desk = Desk::new();
        let outcomes = together(3, |thread| match thread {
            0 => desk.forget(),
            _ => {
                assert!(matches!(desk.take(), Ok(TxnOutcome::Done(_))));
                0
            }
        });
        let left = 1_000_000 - desk.memory.peek(&desk.place()).wait().unwrap()[1].available();
        let counted = desk.used(Window::Hour, desk.hands.now()).unwrap_or(0);
        assert_eq!(left, counted, "{outcomes:?}: what the bucket says is what is counted");
        assert_eq!(desk.memory.namespace("test").len(), usize::from(left > 0));
    }
}
