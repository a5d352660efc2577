//! The fast path of a limiter in memory does what the general path does, for entities that are charged with their parents.

#![allow(clippy::unwrap_used, reason = "the helpers of a test fail it")]

use std::collections::VecDeque;
use std::sync::Arc;

use tollgate::catalog::{UsageQuery, UsageRow, Window};
use tollgate::store::{Memory, SplitMix64};
use tollgate::{
    Demand, Event, Level, Limit, Limiter, LimiterLease, Limits, ManualClock, NewEntity, Span, Tick,
};

const ENTITIES: [&str; 3] = ["key", "team", "company"];

const RESOURCE: &str = "gpt-4";

/// A limiter on memory whose clock is `clock`. With an observer, every call takes the general path.
fn limiter(clock: &ManualClock, is_observed: bool) -> Limiter {
    let memory = Memory::builder().clock(clock.clock()).build();
    let limiter = Limiter::open(Arc::new(memory), "default").wait().unwrap();
    let catalog = limiter.catalog().clone();
    catalog.create_entity(NewEntity::new("company")).wait().unwrap();
    catalog.create_entity(NewEntity::new("team").parent("company").cascades(true)).wait().unwrap();
    catalog.create_entity(NewEntity::new("key").parent("team").cascades(true)).wait().unwrap();
    // Each level has other limits, in another order: what is used is carried over by name.
    let levels = [
        (
            "key",
            vec![Limit::per_minute("rpm", 60), Limit::per_minute("tpm", 6_000), Limit::resource("slots", 3)],
        ),
        ("team", vec![Limit::per_minute("tpm", 5_000), Limit::calls(90, std::time::Duration::from_secs(60))]),
        ("company", vec![Limit::resource("slots", 4), Limit::per_hour("rpm", 1_000)]),
    ];
    for (entity, limits) in levels {
        catalog.set_limits(Level::Entity(entity), &Limits::new(limits).unwrap()).wait().unwrap();
    }
    let builder = Limiter::builder(catalog);
    if is_observed { builder.observer(|_: &Event<'_>| {}).build() } else { builder.build() }
}

fn usage(limiter: &Limiter, entity: &str) -> Vec<UsageRow> {
    limiter.catalog().usage(UsageQuery::of_entity(entity, Window::Hour)).wait().unwrap().items
}

fn end(lease: LimiterLease<'_>, how: u64, tokens: u64) {
    match how {
        0 => lease.commit().wait().unwrap(),
        1 => lease.cancel().wait().unwrap(),
        2 => drop(lease),
        // More than was taken is settled now and then.
        _ => lease.settle(Demand::new().with("tpm", tokens)).wait().unwrap(),
    }
}

#[test]
fn a_chain_in_memory_is_charged_settled_and_metered_as_by_the_general_path() {
    let clock = ManualClock::at(Tick::from_secs(3_600 * 1_000 + 1));
    let sides = [limiter(&clock, false), limiter(&clock, true)];
    let mut random = SplitMix64::new(17);
    let mut held: VecDeque<[LimiterLease<'_>; 2]> = VecDeque::new();
    for round in 0..4_000 {
        clock.advance(Span::from_millis(random.below(2_000)));
        let demand = Demand::new().with("rpm", 1).with("tpm", random.below(600));
        let attempts =
            sides.each_ref().map(|side| side.try_acquire("key", RESOURCE, demand.clone()).wait().unwrap());
        let [fast, general] = attempts;
        assert_eq!(fast.is_admitted(), general.is_admitted(), "round {round}");
        if let (Some(fast), Some(general)) = (fast.admitted(), general.admitted()) {
            held.push_back([fast, general]);
        }
        if held.len() > 2 || random.below(3) == 0 {
            let (how, tokens) = (random.below(6), random.below(650));
            held.pop_front().into_iter().flatten().for_each(|lease| end(lease, how, tokens));
        }
        for entity in ENTITIES {
            let [fast, general] =
                sides.each_ref().map(|side| side.available(entity, RESOURCE).wait().unwrap());
            assert_eq!(fast, general, "{entity} in round {round}");
        }
    }
    held.into_iter().flatten().for_each(drop);
    for entity in ENTITIES {
        let [fast, general] = sides.each_ref().map(|side| usage(side, entity));
        assert!(!fast.is_empty());
        assert_eq!(fast, general, "usage of {entity}");
    }
}
