//! The numbers that must hold, for a limit set in one process.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use support::{Ears, START, advance_ms, answer, available, builder, count, hands, poll, set, spend, until};
use tollgate::{Limit, Ready, Span, demand};

const DAY: u64 = 86_400;

#[test]
fn of_100_a_minute_the_101st_is_told_600_ms_and_admitted_then_and_not_a_millisecond_earlier() {
    let hands = hands();
    let set = set(&hands, [Limit::per_minute("rpm", 100)]);
    assert_eq!(count(&set, demand! { rpm: 1 }), 100);

    let denial = set.try_acquire(demand! { rpm: 1 }).wait().unwrap().denied().unwrap();
    assert_eq!(denial.wait(), Some(Duration::from_millis(600)));
    assert_eq!(denial.limited_by().unwrap().limit().name(), "rpm");

    advance_ms(&hands, 599);
    assert_eq!(count(&set, demand! { rpm: 1 }), 0);
    hands.set(START + Span::from_micros(599_999));
    assert_eq!(count(&set, demand! { rpm: 1 }), 0);
    hands.set(START + Span::from_millis(600));
    assert_eq!(count(&set, demand! { rpm: 1 }), 1);

    hands.advance(Span::from_secs(3_600));
    assert_eq!(count(&set, demand! { rpm: 1 }), 100);
}

#[test]
fn of_100_demands_of_1_and_400_at_once_2_are_admitted_and_the_others_are_told_tpm_and_12_s() {
    let hands = hands();
    let set = set(&hands, [Limit::per_minute("rpm", 100), Limit::per_minute("tpm", 1_000)]);
    let attempts: Vec<_> =
        (0..100).map(|_| set.try_acquire(demand! { rpm: 1, tpm: 400 }).wait().unwrap()).collect();
    let denials: Vec<_> = attempts.into_iter().filter_map(|attempt| attempt.denied()).collect();
    assert_eq!(denials.len(), 98);
    for denial in denials {
        assert_eq!(denial.limited_by().unwrap().limit().name(), "tpm");
        assert_eq!(denial.wait(), Some(Duration::from_secs(12)));
        assert_eq!(denial.to_string(), "tpm has 200 of the 400 asked; retry in 12s");
    }
    assert_eq!(available(&set, "rpm"), 98);
    assert_eq!(available(&set, "tpm"), 200);
}

#[test]
fn a_slow_limit_beside_one_touched_every_4_s_for_24_h_has_regained_its_10() {
    let hands = hands();
    let set = set(&hands, [Limit::per_day("slow", 10), Limit::per_second("fast", 1)]);
    spend(&set, demand! { slow: 10 });
    for _ in 0..DAY / 4 {
        spend(&set, demand! { fast: 1 });
        hands.advance(Span::from_secs(4));
    }
    assert_eq!(count(&set, demand! { slow: 1 }), 10);
    let ready = set.ready(demand! { slow: 1 }).wait().unwrap();
    assert_eq!(ready, Ready::At(hands.now() + Span::from_secs(DAY / 10)));
}

#[test]
fn of_7_per_3_s_taken_one_every_100_ms_for_an_hour_there_are_7_and_8400() {
    let hands = hands();
    let set = set(&hands, [Limit::rate("odd", 7, Duration::from_secs(3))]);
    let mut admitted = count(&set, demand! { odd: 1 });
    for _ in 0..36_000 {
        advance_ms(&hands, 100);
        admitted += usize::from(support::try_take(&set, demand! { odd: 1 }).is_some());
    }
    assert_eq!(admitted, 7 + 8_400);
    // 8,400 is what an hour refills, so at its end nothing is left over that was not counted.
    assert_eq!(available(&set, "odd"), 0);
}

#[test]
fn a_clock_5_s_back_mints_nothing_and_leaves_nothing_stuck() {
    let hands = hands();
    let set = set(&hands, [Limit::per_minute("rpm", 100)]);
    assert_eq!(count(&set, demand! { rpm: 1 }), 100);
    hands.set(START - Span::from_secs(5));
    assert_eq!(count(&set, demand! { rpm: 1 }), 0);
    hands.set(START);
    assert_eq!(count(&set, demand! { rpm: 1 }), 0);
    advance_ms(&hands, 600);
    assert_eq!(count(&set, demand! { rpm: 1 }), 1);

    // Back and forth a hundred times is worth the time that has passed, and no more.
    for _ in 0..100 {
        hands.set(START - Span::from_secs(5));
        assert_eq!(count(&set, demand! { rpm: 1 }), 0);
        hands.set(START + Span::from_millis(600));
    }
    hands.set(START + Span::from_millis(1_200));
    assert_eq!(count(&set, demand! { rpm: 1 }), 1);
}

#[test]
fn a_clock_an_hour_forward_fills_and_no_more_also_when_it_comes_back() {
    let hands = hands();
    let set = set(&hands, [Limit::per_minute("rpm", 100)]);
    assert_eq!(count(&set, demand! { rpm: 1 }), 100);
    hands.advance(Span::from_secs(3_600));
    assert_eq!(count(&set, demand! { rpm: 1 }), 100);
    hands.set(START);
    assert_eq!(count(&set, demand! { rpm: 1 }), 0);
    hands.set(START + Span::from_secs(3_601));
    assert_eq!(count(&set, demand! { rpm: 1 }), 1);
}

#[test]
fn a_waiter_is_granted_in_time_although_the_clock_went_back_while_it_waited() {
    let hands = hands();
    let set = set(&hands, [Limit::per_minute("rpm", 100)]);
    count(&set, demand! { rpm: 1 });
    let mut waiting = set.acquire(demand! { rpm: 1 }).into_future();
    assert!(poll(&mut waiting).is_pending());
    hands.set(START - Span::from_secs(5));
    assert!(poll(&mut waiting).is_pending());
    hands.set(START + Span::from_millis(600));
    assert!(answer(&mut waiting).is_ok());
}

#[test]
fn of_100_threads_on_10_a_minute_never_more_than_10_and_10_t_over_60_are_admitted_in_arrival_order() {
    let hands = hands();
    let set = set(&hands, [Limit::per_minute("rpm", 10)]);
    let admitted: Arc<Mutex<Vec<(usize, Duration)>>> = Arc::default();
    let so_far = || admitted.lock().unwrap().len();
    let mut threads = Vec::new();
    for index in 0..100 {
        let (shared, admitted) = (set.clone(), Arc::clone(&admitted));
        threads.push(thread::spawn(move || {
            let lease = shared.acquire(demand! { rpm: 1 }).wait().unwrap();
            admitted.lock().unwrap().push((index, lease.waited().unwrap_or_default()));
        }));
        // The next comes when this one has been admitted or stands in the queue, so the order is known.
        until("a thread is admitted or queued", || so_far() + set_waiting(&set) == index + 1);
    }
    assert_eq!((so_far(), set_waiting(&set)), (10, 90));
    for second in 1..=540 {
        hands.advance(Span::from_secs(1));
        let granted = 100 - set_waiting(&set);
        assert!(granted <= 10 + 10 * second / 60, "{granted} by {second} s");
        until("those who were granted have heard of it", || so_far() == granted);
    }
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    let wait = |index: u64| Duration::from_secs(6 * index.saturating_sub(9));
    let expected: Vec<_> = (0..100).map(|index| (index as usize, wait(index))).collect();
    assert_eq!(*admitted.lock().unwrap(), expected);
}

fn set_waiting(set: &tollgate::LimitSet) -> usize {
    set.peek().wait().expect("memory answers").waiting
}

#[test]
fn where_rpm_needs_3_s_and_tpm_7_s_the_waiter_is_granted_at_7_s_with_one_event_limited_by_tpm() {
    let (hands, ears) = (hands(), Ears::default());
    let limits =
        [Limit::rate("rpm", 1, Duration::from_secs(3)), Limit::rate("tpm", 100, Duration::from_secs(7))];
    let set = builder(&hands, limits).observer(ears.observer()).build().unwrap();
    spend(&set, demand! { rpm: 1, tpm: 100 });
    ears.take();

    let mut waiting = set.acquire(demand! { rpm: 1, tpm: 100 }).into_future();
    for second in 0..7 {
        hands.set(START + Span::from_secs(second));
        assert!(poll(&mut waiting).is_pending(), "at {second} s");
    }
    hands.set(START + Span::from_micros(6_999_999));
    assert!(poll(&mut waiting).is_pending());
    hands.set(START + Span::from_secs(7));
    let lease = answer(&mut waiting).unwrap();
    assert_eq!(lease.waited(), Some(Duration::from_secs(7)));
    assert_eq!(ears.take(), [r#"Waited { limit: Some("tpm"), duration: 7s }"#, "Allowed"]);
}

#[test]
fn of_64_threads_with_100_000_tries_each_on_1_000_000_without_refill_exactly_1_000_000_are_admitted() {
    const TRIES: u64 = 100_000;
    const CAPACITY: u64 = 10 * TRIES;
    let hands = hands();
    let set = set(&hands, [Limit::quota("all", CAPACITY, Duration::from_secs(DAY))]);
    let admitted = AtomicU64::new(0);
    thread::scope(|scope| {
        for _ in 0..64 {
            scope.spawn(|| {
                let tries = (0..TRIES).filter(|_| support::try_take(&set, demand! { all: 1 }).is_some());
                admitted.fetch_add(tries.count() as u64, Ordering::Relaxed);
            });
        }
    });
    assert_eq!(admitted.into_inner(), CAPACITY);
    assert_eq!(available(&set, "all"), 0);
    assert_eq!(set.peek().wait().unwrap().waiting, 0);
}
