//! Forgetting a bucket never changes a later verdict, and only what says nothing is forgotten.

use std::panic::catch_unwind;
use std::time::Duration;

use tollgate_core::{Limit, LimitBuilder, Limits, Ready, Span, Tick, Usage};
use tollgate_store::{
    Key, LeaseTerm, Memory, Op, SplitMix64, Step, StepOutcome, Store, Transaction, TxnOutcome,
};

use crate::fixture::{Outcome, START, apply, each, give_back, hold, is_denied, is_taken, left};
use crate::fixture::{limits, memory, place, take};

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// One of each machine.
fn machines() -> Vec<LimitBuilder> {
    vec![
        Limit::rate("bucket", 7, seconds(3)),
        Limit::fixed_window("fixed", 5, seconds(10)),
        Limit::sliding_window("sliding", 4, seconds(7)),
        Limit::resource("slots", 3),
        Limit::quota("quota", 9, seconds(20)),
    ]
}

/// Two stores that get the same calls: one is swept after every step, and the other can forget nothing.
struct Twins {
    hands: tollgate_store::ManualClock,
    swept: Memory,
    kept: Memory,
    /// How much too early buckets are taken for full: not at all, but for a planted fault.
    ahead: Span,
    forgotten: usize,
}

impl Twins {
    fn apply(&mut self, call: &Transaction<'_>, context: &str) -> Outcome {
        let swept = self.swept.apply(call).wait();
        let kept = self.kept.apply(call).wait();
        assert_eq!(swept, kept, "{context}: {call:?}");
        for step in call.steps {
            let peeks = [&self.swept, &self.kept].map(|store| store.peek(&step.place).wait());
            assert_eq!(peeks[0], peeks[1], "{context}: {call:?}");
        }
        self.forgotten += self.swept.namespace("test").sweep(self.hands.now() + self.ahead);
        swept
    }
}

#[test]
fn a_sweep_after_every_step_changes_no_later_verdict() {
    let forgotten: usize = (0..150).map(|seed| trace(seed, Span::ZERO)).sum();
    assert!(forgotten > 1_000, "only {forgotten} were forgotten, so little was shown");
}

#[test]
fn a_sweep_that_forgets_a_moment_too_early_is_noticed() {
    let ahead = Span::from_millis(100);
    let noticed = (0..150).filter(|seed| catch_unwind(|| trace(*seed, ahead)).is_err()).count();
    assert!(noticed > 0);
}

fn trace(seed: u64, ahead: Span) -> usize {
    let mut random = SplitMix64::new(seed);
    let (hands, swept) = memory();
    let kept = Memory::builder().clock(hands.clock()).build();
    let mut twins = Twins { hands, swept, kept, ahead, forgotten: 0 };
    let sets: Vec<Limits> = machines().into_iter().map(|limit| limits([limit])).collect();
    let both = limits([Limit::rate("bucket", 2, seconds(1)), Limit::resource("slots", 2)]);
    let sets: Vec<Limits> = sets.into_iter().chain([both]).collect();
    let keys: Vec<Key> = (0..sets.len()).map(|key| Key::new(&[key.to_string()])).collect();
    let pins: Vec<_> =
        keys.iter().zip(&sets).map(|(key, limits)| twins.kept.cell(&place(key, limits)).unwrap()).collect();
    let mut open = Vec::new();
    for step in 0..100 {
        let index = random.below(sets.len() as u64) as usize;
        let (place, limits) = (place(&keys[index], &sets[index]), &sets[index]);
        let context = format!("TOLLGATE_SEED={seed}, step {step}");
        let mut retry = None;
        if random.below(3) == 0 && !open.is_empty() {
            let (index, at, costs): (usize, Tick, _) =
                open.swap_remove(random.below(open.len() as u64) as usize);
            let used: Vec<u64> = sets[index].iter().map(|_| random.below(8)).collect();
            let op = Op::Settle(Usage { at, reserved: &costs, used: &used, holder: None });
            let place = crate::fixture::place(&keys[index], &sets[index]);
            twins
                .apply(&Transaction { id: None, steps: &[Step { place, op }], metered: false }, &context)
                .unwrap();
        } else {
            let costs = each(limits, 1 + random.below(2));
            let op = Op::Take { costs: &costs, term: None };
            match twins
                .apply(&Transaction { id: None, steps: &[Step { place, op }], metered: false }, &context)
                .unwrap()
            {
                TxnOutcome::Done(done) => match done[0] {
                    StepOutcome::Taken(taken) => open.push((index, taken.at, costs)),
                    _ => panic!("{context}: {done:?}"),
                },
                TxnOutcome::Denied(denials) => retry = Some(denials[0].ready()),
                other => panic!("{context}: {other:?}"),
            }
        }
        turn(&twins.hands, &mut random, retry);
    }
    drop(pins);
    twins.forgotten
}

/// Half of the time to where a denial said it would pass, or a tick before.
fn turn(hands: &tollgate_store::ManualClock, random: &mut SplitMix64, retry: Option<Ready>) {
    let now = hands.now();
    hands.set(match (random.below(6), retry) {
        (0 | 1, Some(Ready::At(tick))) => tick,
        (2, Some(Ready::At(tick))) => tick - Span::from_micros(1),
        (3, _) => now + Span::from_secs(random.below(30)),
        (4, _) => now + Span::from_millis(random.below(3_000)),
        _ => now,
    });
}

#[test]
fn a_bucket_is_forgotten_at_the_tick_it_is_full_and_not_before() {
    for limit in machines() {
        let (hands, memory) = memory();
        let limits = limits([limit]);
        let (key, space) = (Key::new(&["k"]), memory.namespace("test"));
        let place = place(&key, &limits);
        take(&memory, None, place, &each(&limits, 2)).unwrap();
        let full = memory.peek(&place).wait().unwrap()[0].full();
        if let Ready::At(full) = full {
            for tick in [START, START + Span::from_micros(1), full - Span::from_micros(1)] {
                hands.set(tick);
                assert_eq!((space.sweep(tick), space.len()), (0, 1), "{limits:?} at {tick:?}");
            }
            hands.set(full);
        } else {
            let (resource, next_year) = (limits[0].is_resource(), START + Span::from_secs(366 * 86_400));
            assert!(resource, "only of a resource nobody can say");
            assert_eq!(space.sweep(next_year), 0, "what is in use is not forgotten");
            give_back(&memory, None, place, &each(&limits, 2)).unwrap();
        }
        assert_eq!((space.sweep(hands.now()), space.len()), (1, 0), "{limits:?}");
        assert!(is_taken(&take(&memory, None, place, &each(&limits, 1))));
    }
}

#[test]
fn debt_is_not_forgotten_before_it_is_repaid() {
    let (hands, memory) = memory();
    let limits = limits([Limit::per_second("tokens", 10)]);
    let (key, space, ten) = (Key::new(&["k"]), memory.namespace("test"), each(&limits, 10));
    let place = place(&key, &limits);
    take(&memory, None, place, &ten).unwrap();
    let usage = Usage { at: START, reserved: &ten, used: &[40], holder: None };
    apply(&memory, None, place, Op::Settle(usage)).unwrap();
    assert_eq!(left(&memory, place), -30);
    hands.set(START + Span::from_micros(3_999_999));
    assert_eq!(space.sweep(hands.now()), 0);
    hands.set(START + Span::from_secs(4));
    assert_eq!(space.sweep(hands.now()), 1);
}

#[test]
fn a_holder_is_not_forgotten_before_its_term_is_over() {
    let (hands, memory) = memory();
    let limits = limits([Limit::resource("slots", 1)]);
    let (key, space, one) = (Key::new(&["k"]), memory.namespace("test"), each(&limits, 1));
    let place = place(&key, &limits);
    hold(&memory, place, &one, LeaseTerm { holder: 1, ttl: Span::from_secs(5) }).unwrap();
    hands.set(START + Span::from_micros(4_999_999));
    assert_eq!(space.sweep(hands.now()), 0);
    assert!(is_denied(&take(&memory, None, place, &one)));
    hands.set(START + Span::from_secs(5));
    assert_eq!(space.sweep(hands.now()), 1);
    assert!(is_taken(&take(&memory, None, place, &one)));
}

#[test]
fn a_clock_that_goes_back_after_a_sweep_mints_nothing() {
    let (hands, memory) = memory();
    let limits = limits([Limit::per_second("calls", 5)]);
    let (key, space, five) = (Key::new(&["k"]), memory.namespace("test"), each(&limits, 5));
    let place = place(&key, &limits);
    assert!(is_taken(&take(&memory, None, place, &five)));
    hands.advance(Span::from_secs(1));
    assert_eq!(space.sweep(hands.now()), 1);
    hands.set(START);
    assert!(is_taken(&take(&memory, None, place, &five)), "it was full when it was forgotten");
    hands.advance(Span::from_secs(1));
    assert!(is_denied(&take(&memory, None, place, &five)), "that second was paid out before");
    hands.advance(Span::from_secs(1));
    assert!(is_taken(&take(&memory, None, place, &five)));
}

#[test]
fn a_denied_call_leaves_no_bucket_behind() {
    let (_hands, memory) = memory();
    let limits = limits([Limit::per_second("calls", 5)]);
    let (full, fresh) = (Key::new(&["full"]), Key::new(&["fresh"]));
    let five = each(&limits, 5);
    take(&memory, None, place(&full, &limits), &five).unwrap();
    let op = || Op::Take { costs: &five, term: None };
    let steps = [&fresh, &full].map(|key| Step { place: place(key, &limits), op: op() });
    assert!(is_denied(&memory.apply(&Transaction { id: None, steps: &steps, metered: false }).wait()));
    assert_eq!(memory.namespace("test").len(), 1);
}
