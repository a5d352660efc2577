//! Many threads on one bucket: exactly as many pass as there is room for.

use std::sync::atomic::{AtomicU64, Ordering};

use tollgate_core::{Limit, Usage, demand};
use tollgate_store::{Key, Priority, SplitMix64, WaitRequest};

use crate::fixture::{START, each, limits, memory, place, together};

#[test]
fn sixty_four_threads_with_a_hundred_thousand_tries_each_get_exactly_a_million() {
    let (hands, memory) = memory();
    // The clock stands still, so nothing comes back.
    let limits = limits([Limit::per_day("calls", 1_000_000)]);
    let one = each(&limits, 1);
    let cell = memory.cell(&place(&Key::new(&["hot"]), &limits)).unwrap();
    let clock = hands.clock();
    let admitted = together(64, |_| {
        let tries = (0..100_000).map(|_| cell.try_take(&clock, &one, None, Priority::default()));
        tries.filter(Result::is_ok).count()
    });
    assert_eq!(admitted.iter().sum::<usize>(), 1_000_000);
    assert_eq!(cell.waiting(), 0);
    assert_eq!(cell.peek(&clock)[0].available(), 0);
}

#[test]
fn eight_threads_that_take_and_settle_never_have_more_than_there_is() {
    const SLOTS: u64 = 5;
    let (hands, memory) = memory();
    let limits = limits([Limit::resource("slots", SLOTS), Limit::per_day("tokens", 10_000_000)]);
    let cell = memory.cell(&place(&Key::new(&["mixed"]), &limits)).unwrap();
    let clock = hands.clock();
    let inside = AtomicU64::new(0);
    let used: u64 = together(8, |number| {
        let mut random = SplitMix64::new(number as u64);
        let mut total = 0;
        for _ in 0..5_000 {
            let (slots, tokens) = (1 + random.below(3), random.below(10));
            let costs = limits.costs(&demand! { slots: slots, tokens: tokens }).unwrap();
            if cell.try_take(&clock, &costs, None, Priority::default()).is_err() {
                continue;
            }
            let now_inside = inside.fetch_add(slots, Ordering::SeqCst) + slots;
            assert!(now_inside <= SLOTS, "{now_inside} of {SLOTS} are in use");
            let used = random.below(20);
            inside.fetch_sub(slots, Ordering::SeqCst);
            let usage = Usage { at: START, reserved: &costs, used: &[0, used], holder: None };
            cell.settle(&clock, &limits, &usage);
            total += used;
        }
        total
    })
    .into_iter()
    .sum();
    let left: Vec<i64> = cell.peek(&clock).iter().map(|status| status.available()).collect();
    assert_eq!(left, [SLOTS as i64, 10_000_000 - used as i64]);
}

#[test]
fn eight_threads_that_wait_for_their_turn_never_have_more_than_there_is() {
    const SLOTS: u64 = 2;
    let (hands, memory) = memory();
    let limits = limits([Limit::resource("slots", SLOTS)]);
    let one = each(&limits, 1);
    let cell = memory.cell(&place(&Key::new(&["turns"]), &limits)).unwrap();
    let clock = hands.clock();
    let inside = AtomicU64::new(0);
    together(8, |_| {
        for _ in 0..500 {
            let granted = cell.acquire(&clock, WaitRequest::of(one.clone())).wait().unwrap();
            assert!(inside.fetch_add(1, Ordering::SeqCst) < SLOTS);
            inside.fetch_sub(1, Ordering::SeqCst);
            let usage = Usage { at: granted.taken.at, reserved: &one, used: &[0], holder: None };
            cell.settle(&clock, &limits, &usage);
        }
    });
    assert_eq!((cell.waiting(), cell.peek(&clock)[0].available()), (0, SLOTS as i64));
}

#[test]
fn one_key_made_by_many_threads_at_once_is_one_bucket() {
    let (hands, memory) = memory();
    let limits = limits([Limit::per_day("calls", 3)]);
    let one = each(&limits, 1);
    let (space, clock) = (memory.namespace("test"), hands.clock());
    for round in 0..200 {
        let key = ["round".to_string(), round.to_string()];
        let admitted = together(4, |number| {
            let tries = (0..2)
                .map(|_| space.try_take(&clock, &key, &limits, &one, Priority::default()).unwrap().is_ok());
            let cell = space.cell(&Key::new(&key), &limits, START).unwrap();
            (tries.filter(|taken| *taken).count(), std::sync::Arc::as_ptr(&cell).addr(), number)
        });
        assert_eq!(admitted.iter().map(|(count, ..)| count).sum::<usize>(), 3);
        assert!(admitted.iter().all(|(_, address, _)| *address == admitted[0].1));
    }
    assert_eq!(space.len(), 200);
}
