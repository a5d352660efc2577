//! Promises that are more than one number.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tollgate::Event;
use tollgate::limiter::{Heartbeats, LimiterLease};
use tollgate_catalog::{Level, PageRequest, UsageQuery};
use tollgate_core::{Limit, Span, Tick, demand};
use tollgate_store::usage::Window;
use tollgate_store::{CHAIN_MAX, Scope};

use super::LimiterFixture;
use super::fixture::RESOURCE;
use crate::OpenBackend;
use crate::fixture::all_pages;
use crate::poll::{block_on, until};
use crate::random::{replayed_seed, seeded};

/// The lease is refunded, also by the parents.
pub fn a_panic_in_the_block_leaves_everything_as_before_it(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.create("parent", None);
    fixture.create("user", Some("parent"));
    fixture.set(Level::Resource(RESOURCE), [Limit::per_hour("tpm", 100), Limit::resource("slots", 2)]);
    let block = || {
        let call = fixture.limiter.acquire("user", RESOURCE, demand! { tpm: 40 });
        block_on(call.run::<(), tollgate::Error, _>(async |lease| {
            lease.adjust([("tpm", 5)])?;
            panic!("planted by the suite");
        }))
    };
    assert!(catch_unwind(AssertUnwindSafe(block)).is_err());
    for entity in ["user", "parent"] {
        assert_eq!(
            (fixture.available(entity, "tpm"), fixture.available(entity, "slots")),
            (100, 2),
            "{entity}"
        );
    }
}

/// Whichever entity of the chain denies, none is charged.
pub fn a_denied_chain_of_1_to_8_entities_changes_nothing_at_any_level(open: OpenBackend<'_>) {
    for length in 1..=CHAIN_MAX {
        let fixture = LimiterFixture::new(open);
        let names: Vec<String> = (0..length).map(|level| format!("level-{level}")).collect();
        for (level, name) in names.iter().enumerate() {
            fixture.create(name, level.checked_sub(1).map(|parent| names[parent].as_str()));
        }
        fixture.set(Level::Resource(RESOURCE), [Limit::per_hour("tpm", 100), Limit::resource("slots", 3)]);
        let leaf = names.last().expect("there is one");
        let lease = fixture.take(leaf, demand! { tpm: 10 }).expect("a chain of 8 is allowed");
        for tight in &names {
            fixture.set(Level::Entity(tight), [Limit::per_hour("tpm", 100), Limit::resource("slots", 1)]);
            let before: Vec<_> = names.iter().map(|name| statuses(&fixture, name)).collect();
            let refusal = fixture.refusal(leaf, demand! { tpm: 15 });
            assert_eq!(refusal.parts.len(), length);
            let after: Vec<_> = names.iter().map(|name| statuses(&fixture, name)).collect();
            assert_eq!(after, before, "a chain of {length}, denied by {tight}");
            fixture.catalog().delete_limits(Level::Entity(tight)).wait().expect("it is there");
        }
        lease.cancel().wait().expect("the store answers");
        let slots: Vec<i64> = names.iter().map(|name| fixture.available(name, "slots")).collect();
        assert_eq!(slots, vec![3; length]);
    }
    let fixture = LimiterFixture::new(open);
    let names: Vec<String> = (0..=CHAIN_MAX).map(|level| format!("level-{level}")).collect();
    let deep = names.iter().enumerate().try_for_each(|(level, name)| {
        let new = tollgate_catalog::NewEntity::new(name.as_str());
        let new = level
            .checked_sub(1)
            .map_or(new.clone(), |above| new.parent(names[above].as_str()).cascades(true));
        fixture.catalog().create_entity(new).wait().map(|_| ())
    });
    fixture.set(Level::System, [Limit::per_hour("tpm", 100)]);
    let deepest = names.last().expect("there is one");
    let taken = fixture.limiter.acquire(deepest, RESOURCE, demand! { tpm: 1 }).wait();
    assert!(deep.is_err() || taken.is_err(), "a chain of {} was charged", CHAIN_MAX + 1);
}

fn statuses(fixture: &LimiterFixture, entity: &str) -> Vec<(i64, i64)> {
    vec![(fixture.available(entity, "tpm"), fixture.available(entity, "slots"))]
}

/// While limits change, the calls that are admitted under each version keep to its bound.
pub fn changed_limits_keep_the_bound_of_each_version(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    let mut debt_free = 0;
    for (round, capacity) in [50_u64, 5, 500, 20, 1, 80, 80, 3].into_iter().enumerate() {
        let before = if round == 0 { capacity as i64 } else { fixture.available("user", "rpm") };
        fixture.set(Level::Resource(RESOURCE), [Limit::per_minute("rpm", capacity)]);
        let left = fixture.available("user", "rpm");
        assert!(left <= capacity as i64, "lowering clamps at once");
        assert!(left <= before, "raising mints nothing: {before} became {left} in round {round}");
        fixture.advance_ms(7_000);
        let earned = capacity * 7 / 60 + 1;
        let admitted =
            std::iter::from_fn(|| fixture.take("user", demand! { rpm: 1 })).take(1_000).map(commit).count();
        assert!(admitted as u64 <= capacity + earned, "{admitted} of {capacity} + {earned} in round {round}");
        debt_free += admitted;
    }
    assert!(debt_free > 0, "the law would hold if nothing were ever admitted");
}

fn commit(lease: LimiterLease<'_>) {
    lease.commit().wait().expect("the store answers");
}

/// A holder that sends no heartbeat loses its resources, once; a holder that does keeps them.
pub fn an_expired_holder_gives_back_once_and_heartbeats_keep(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::with(open, |builder| {
        builder.lease_ttl(Duration::from_secs(10)).heartbeats(Heartbeats::Manual)
    });
    fixture.set(Level::Resource(RESOURCE), [Limit::resource("slots", 2)]);
    let silent = fixture.take("user", demand! {}).expect("there is room");
    let alive = fixture.take("user", demand! {}).expect("there is room");
    fixture.refusal("user", demand! {});
    fixture.advance_ms(9_000);
    assert!(alive.heartbeat().wait().expect("the store answers"));
    fixture.advance_ms(1_000);
    assert_eq!(fixture.available("user", "slots"), 1);
    let third = fixture.take("user", demand! {}).expect("the silent one has lost its own");
    assert!(!silent.heartbeat().wait().expect("the store answers"));
    drop(silent);
    fixture.refusal("user", demand! {});
    drop(alive);
    assert_eq!(fixture.available("user", "slots"), 1);
    drop(third);
    assert_eq!(fixture.available("user", "slots"), 2);

    let fixture = LimiterFixture::with(open, |builder| builder.lease_ttl(Duration::from_secs(10)));
    fixture.set(Level::Resource(RESOURCE), [Limit::resource("slots", 1)]);
    let lease = fixture.take("user", demand! {}).expect("there is room");
    for _ in 0..20 {
        fixture.advance_ms(3_000);
        fixture.refusal("user", demand! {});
    }
    drop(lease);
    assert_eq!(fixture.available("user", "slots"), 1);
}

/// Its next heartbeat reports it, whether the limiter or the holder sends it. A lease that has ended has lost nothing.
pub fn a_holder_that_lost_its_resources_learns_of_it_once(open: OpenBackend<'_>) {
    let lost = Arc::new(AtomicUsize::new(0));
    for heartbeats in [Heartbeats::Automatic, Heartbeats::Manual] {
        let count = Arc::clone(&lost);
        let fixture = LimiterFixture::with(open, |builder| {
            let builder = builder.lease_ttl(Duration::from_secs(9)).heartbeats(heartbeats);
            builder.observer(move |event: &Event<'_>| {
                count.fetch_add(usize::from(matches!(event, Event::ExpiredLease)), Ordering::SeqCst);
            })
        });
        fixture.set(Level::Resource(RESOURCE), [Limit::resource("slots", 2)]);
        let ended = fixture.take("user", demand! {}).expect("there is room");
        let lease = fixture.take("user", demand! {}).expect("there is room");
        ended.cancel().wait().expect("the store answers");
        fixture.advance_ms(3_000);
        assert!(lease.heartbeat().wait().expect("the store answers") && !lease.lost());
        fixture.catalog().reset("user", RESOURCE, None).wait().expect("the store answers");
        fixture.advance_ms(3_000);
        match heartbeats {
            Heartbeats::Automatic => until(|| lease.lost()),
            Heartbeats::Manual => {
                assert!(!lease.lost(), "no heartbeat was sent");
                assert!(!lease.heartbeat().wait().expect("the store answers"));
            }
        }
        assert!(lease.lost() && !lease.heartbeat().wait().expect("the store answers"));
        assert_eq!(lost.swap(0, Ordering::SeqCst), 1);
        commit(lease);
        assert_eq!(fixture.available("user", "slots"), 2);
    }
}

/// A quota of a day in Berlin is full again at midnight there, on days of 24, 23 and 25 hours.
pub fn quotas_reset_at_local_midnight_also_on_days_of_23_and_25_hours(open: OpenBackend<'_>) {
    // Midnights in Berlin, and how many hours the day has that begins then.
    let days = [(1_774_652_400, 24), (1_774_738_800, 23), (1_792_879_200, 25), (1_792_969_200, 24)];
    let fixture = LimiterFixture::new(open);
    let berlin = tollgate_calendar::daily("Europe/Berlin").expect("the zone is known");
    fixture.set(Level::Resource(RESOURCE), [Limit::quota("spend", 100, berlin)]);
    for (midnight, hours) in days {
        let (start, end) = (Tick::from_secs(midnight), Tick::from_secs(midnight + hours * 3_600));
        fixture.clock.set(start);
        fixture.spend("user", demand! { spend: 100 });
        fixture.clock.set(start + Span::from_secs(12 * 3_600));
        let refusal = fixture.refusal("user", demand! { spend: 1 });
        let wait = end.since(fixture.clock.now()).to_duration();
        assert_eq!(refusal.retry_after(), Some(wait));
        fixture.clock.set(Tick::from_micros(end.as_micros() - 1));
        fixture.refusal("user", demand! { spend: 1 });
        fixture.clock.set(end);
        assert_eq!(fixture.available("user", "spend"), 100);
    }
}

/// The catalog reports the usage that a recount of all events gives, over a month in which Europe changes its clocks.
pub fn usage_agrees_with_a_recount_over_a_month_with_a_change_of_clocks(open: OpenBackend<'_>) {
    // 2026-03-01T00:00:00Z.
    const MARCH: u64 = 1_772_323_200;
    let fixture = LimiterFixture::new(open);
    fixture.clock.set(Tick::from_secs(MARCH - 7_200));
    fixture.set(
        Level::Resource(RESOURCE),
        [Limit::per_second("tpm", 1_000_000), Limit::resource("slots", 1_000)],
    );
    fixture.set(
        Level::Entity("b"),
        [
            Limit::per_second("tpm", 1_000_000),
            Limit::quota("spend", 1_000_000_000, Duration::from_secs(3_600)),
        ],
    );
    fixture.create("parent", None);
    fixture.create("a", Some("parent"));
    let seed = replayed_seed().unwrap_or(1);
    let mut random = seeded(seed);
    let mut recount: BTreeMap<(&str, &str, u64), (i64, u64)> = BTreeMap::new();
    let mut open_leases: Vec<(&str, u64, LimiterLease<'static>)> = Vec::new();
    let mut count = |entity: &'static str, limit: &'static str, at: Tick, amount: i64, events: u64| {
        let sum = recount.entry((entity, limit, at.as_micros() / 3_600_000_000)).or_default();
        *sum = (sum.0 + amount, sum.1 + events);
    };
    while fixture.clock.now() < Tick::from_secs(MARCH + 31 * 86_400 + 7_200) {
        fixture.clock.advance(Span::from_secs(random.below(4 * 3_600)));
        let now = fixture.clock.now();
        let amount = random.below(1_000) + 1;
        let entity = if random.below(2) == 0 { "a" } else { "b" };
        let lease = match entity {
            "a" => fixture.take("a", demand! { tpm: amount }),
            _ => fixture.take("b", demand! { tpm: amount, spend: 1 }),
        };
        open_leases.push((entity, amount, lease.expect("there is room")));
        let charged: &[&str] = if entity == "a" { &["a", "parent"] } else { &["b"] };
        charged.iter().for_each(|charged| count(charged, "tpm", now, amount as i64, 1));
        if entity == "b" {
            count("b", "spend", now, 1, 0);
        }
        if open_leases.len() > 5 {
            let (entity, reserved, lease) = open_leases.remove(random.below(5) as usize);
            let used = random.below(2_000);
            lease.settle(demand! { tpm: used }).wait().expect("the store answers");
            let charged: &[&str] = if entity == "a" { &["a", "parent"] } else { &["b"] };
            charged.iter().for_each(|charged| count(charged, "tpm", now, used as i64 - reserved as i64, 0));
        }
        if random.below(10) == 0 {
            let id = fixture.catalog().namespace_id();
            fixture.backend.write_usage(id, Scope::All).wait().expect("the store answers");
        }
    }
    for (_, _, lease) in open_leases {
        lease.commit().wait().expect("the store answers");
    }
    for entity in ["a", "b", "parent"] {
        for window in [Window::Hour, Window::Day, Window::Month] {
            assert_eq!(
                reported(&fixture, entity, window),
                expected(&recount, entity, window),
                "{entity} {window:?}, TOLLGATE_SEED={seed}"
            );
        }
    }
}

type PromisedSums = BTreeMap<(u64, String), (i64, u64)>;

/// Returns the amount and the events of each window and limit.
fn reported(fixture: &LimiterFixture, entity: &str, window: Window) -> PromisedSums {
    let rows = all_pages(|after| {
        let page = after.into_iter().fold(PageRequest::of(100), PageRequest::after);
        let query = UsageQuery::of_entity(entity, window).resource(RESOURCE).page(page);
        fixture.catalog().usage(query).wait().expect("the store answers")
    });
    let mut sums = PromisedSums::new();
    for row in rows {
        let start = row.start.as_micros() / 3_600_000_000;
        let used = row.amounts.iter().filter(|(_, sum)| **sum != 0);
        sums.extend(used.map(|(limit, sum)| ((start, limit.clone()), (*sum, row.events))));
    }
    sums
}

fn expected(recount: &BTreeMap<(&str, &str, u64), (i64, u64)>, entity: &str, window: Window) -> PromisedSums {
    // Hours since the epoch at which February, March and April of 2026 begin.
    let months = [491_640, 492_312, 493_056];
    let start = |hour: u64| match window {
        Window::Hour => hour,
        Window::Day => hour / 24 * 24,
        Window::Month => months.into_iter().rev().find(|month| *month <= hour).expect("it is one of them"),
    };
    let mut amounts: BTreeMap<(u64, String), i64> = BTreeMap::new();
    let mut events: BTreeMap<u64, u64> = BTreeMap::new();
    for ((_, limit, hour), (amount, count)) in recount.iter().filter(|((charged, ..), _)| *charged == entity)
    {
        *amounts.entry((start(*hour), (*limit).to_string())).or_default() += amount;
        *events.entry(start(*hour)).or_default() += count;
    }
    let used = amounts.into_iter().filter(|(_, sum)| *sum != 0);
    used.map(|((start, limit), sum)| ((start, limit), (sum, events[&start]))).collect()
}

/// The error names what is wrong, and nothing is written.
pub fn bad_input_is_refused_with_what_is_wrong_and_writes_nothing(open: OpenBackend<'_>) {
    let fixture = LimiterFixture::new(open);
    fixture.set(Level::System, [Limit::per_hour("rpm", 10)]);
    let long = "x".repeat(257);
    let ask = |entity: &str, resource: &str, demand: tollgate_core::Demand| {
        let taken = fixture.limiter.acquire(entity, resource, demand).wait();
        taken.expect_err("it is refused").to_string()
    };
    let one = || tollgate_core::Demand::new().with("rpm", 1);
    let cases = [
        (ask("", RESOURCE, one()), ""),
        (ask(&long, RESOURCE, one()), "256"),
        (ask("us#er", RESOURCE, one()), "us#er"),
        (ask("user", "4gpt", one()), "4gpt"),
        (ask("user", "_default_", one()), "_default_"),
        (ask("user", "a b", one()), "a b"),
        (ask("user", RESOURCE, one().with("tmp", 1)), "tmp"),
        (ask("user", RESOURCE, tollgate_core::Demand::new().with("rpm", 11)), "11"),
        (ask("user", RESOURCE, tollgate_core::Demand::new().with("rpm", -1)), "-1"),
        (ask("user", RESOURCE, one().with("rpm", 1)), "twice"),
        (ask("user", RESOURCE, tollgate_core::Demand::new()), "rpm"),
    ];
    for (error, part) in cases {
        assert!(error.contains(part), "{error:?} does not show {part:?}");
    }
    let twice = fixture.limiter.acquire("user", RESOURCE, one()).also(RESOURCE, one()).wait();
    assert!(twice.expect_err("it is refused").to_string().contains(RESOURCE));
    let buckets = fixture.backend.buckets(fixture.catalog().namespace_id(), Scope::All, None, 10).wait();
    let used = buckets.expect("the store answers").items;
    assert!(used.iter().flat_map(|bucket| &bucket.limits).all(|limit| limit.available() == 10), "{used:?}");
}
