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
use crate::poll::{block_on, until};
use crate::random::{Random, replayed_seed};

/// A panic restores what was taken, also of the parents.
pub fn a_panic_in_the_block_leaves_everything_as_before_it(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    bench.create("parent", None);
    bench.create("user", Some("parent"));
    bench.set(Level::Resource(RESOURCE), [Limit::per_hour("tpm", 100), Limit::resource("slots", 2)]);
    let block = || {
        let call = bench.limiter.acquire("user", RESOURCE, demand! { tpm: 40 });
        block_on(call.run::<(), tollgate::Error, _>(async |lease| {
            lease.adjust([("tpm", 5)])?;
            panic!("planted by the suite");
        }))
    };
    assert!(catch_unwind(AssertUnwindSafe(block)).is_err());
    for entity in ["user", "parent"] {
        assert_eq!((bench.available(entity, "tpm"), bench.available(entity, "slots")), (100, 2), "{entity}");
    }
}

/// Whichever entity of the chain denies, no entity of it is charged.
pub fn a_denied_chain_of_1_to_8_entities_changes_nothing_at_any_level(open: OpenBackend<'_>) {
    for length in 1..=CHAIN_MAX {
        let bench = LimiterFixture::new(open);
        let names: Vec<String> = (0..length).map(|level| format!("level-{level}")).collect();
        for (level, name) in names.iter().enumerate() {
            bench.create(name, level.checked_sub(1).map(|parent| names[parent].as_str()));
        }
        bench.set(Level::Resource(RESOURCE), [Limit::per_hour("tpm", 100), Limit::resource("slots", 3)]);
        let leaf = names.last().expect("there is one");
        let lease = bench.take(leaf, demand! { tpm: 10 }).expect("a chain of 8 is allowed");
        for tight in &names {
            bench.set(Level::Entity(tight), [Limit::per_hour("tpm", 100), Limit::resource("slots", 1)]);
            let before: Vec<_> = names.iter().map(|name| statuses(&bench, name)).collect();
            let refusal = bench.refusal(leaf, demand! { tpm: 15 });
            assert_eq!(refusal.parts.len(), length);
            let after: Vec<_> = names.iter().map(|name| statuses(&bench, name)).collect();
            assert_eq!(after, before, "a chain of {length}, denied by {tight}");
            bench.catalog().delete_limits(Level::Entity(tight)).wait().expect("it is there");
        }
        lease.cancel().wait().expect("a store that is there answers");
        let slots: Vec<i64> = names.iter().map(|name| bench.available(name, "slots")).collect();
        assert_eq!(slots, vec![3; length]);
    }
    let bench = LimiterFixture::new(open);
    let names: Vec<String> = (0..=CHAIN_MAX).map(|level| format!("level-{level}")).collect();
    let deep = names.iter().enumerate().try_for_each(|(level, name)| {
        let new = tollgate_catalog::NewEntity::new(name.as_str());
        let new = level
            .checked_sub(1)
            .map_or(new.clone(), |above| new.parent(names[above].as_str()).cascades(true));
        bench.catalog().create_entity(new).wait().map(|_| ())
    });
    bench.set(Level::System, [Limit::per_hour("tpm", 100)]);
    let deepest = names.last().expect("there is one");
    let taken = bench.limiter.acquire(deepest, RESOURCE, demand! { tpm: 1 }).wait();
    assert!(deep.is_err() || taken.is_err(), "a chain of {} was charged", CHAIN_MAX + 1);
}

fn statuses(bench: &LimiterFixture, entity: &str) -> Vec<(i64, i64)> {
    vec![(bench.available(entity, "tpm"), bench.available(entity, "slots"))]
}

/// While limits change, what is admitted under each version keeps to the bound of that version.
pub fn changed_limits_keep_the_bound_of_each_version(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    let mut debt_free = 0;
    for (round, capacity) in [50_u64, 5, 500, 20, 1, 80, 80, 3].into_iter().enumerate() {
        let before = if round == 0 { capacity as i64 } else { bench.available("user", "rpm") };
        bench.set(Level::Resource(RESOURCE), [Limit::per_minute("rpm", capacity)]);
        let left = bench.available("user", "rpm");
        assert!(left <= capacity as i64, "lowering clamps at once");
        assert!(left <= before, "raising mints nothing: {before} became {left} in round {round}");
        bench.advance_ms(7_000);
        let earned = capacity * 7 / 60 + 1;
        let admitted =
            std::iter::from_fn(|| bench.take("user", demand! { rpm: 1 })).take(1_000).map(commit).count();
        assert!(admitted as u64 <= capacity + earned, "{admitted} of {capacity} + {earned} in round {round}");
        debt_free += admitted;
    }
    assert!(debt_free > 0, "the law would hold if nothing were ever admitted");
}

fn commit(lease: LimiterLease<'_>) {
    lease.commit().wait().expect("a store that is there answers");
}

/// A holder that sends no heartbeat loses what it holds, once; one that does keeps it.
pub fn an_expired_holder_gives_back_once_and_heartbeats_keep(open: OpenBackend<'_>) {
    let bench = LimiterFixture::with(open, |builder| {
        builder.lease_ttl(Duration::from_secs(10)).heartbeats(Heartbeats::Manual)
    });
    bench.set(Level::Resource(RESOURCE), [Limit::resource("slots", 2)]);
    let silent = bench.take("user", demand! {}).expect("there is room");
    let heard = bench.take("user", demand! {}).expect("there is room");
    bench.refusal("user", demand! {});
    bench.advance_ms(9_000);
    assert!(heard.heartbeat().wait().expect("a store that is there answers"));
    bench.advance_ms(1_000);
    assert_eq!(bench.available("user", "slots"), 1);
    let third = bench.take("user", demand! {}).expect("the silent one has lost its own");
    assert!(!silent.heartbeat().wait().expect("a store that is there answers"));
    drop(silent);
    bench.refusal("user", demand! {});
    drop(heard);
    assert_eq!(bench.available("user", "slots"), 1);
    drop(third);
    assert_eq!(bench.available("user", "slots"), 2);

    let bench = LimiterFixture::with(open, |builder| builder.lease_ttl(Duration::from_secs(10)));
    bench.set(Level::Resource(RESOURCE), [Limit::resource("slots", 1)]);
    let lease = bench.take("user", demand! {}).expect("there is room");
    for _ in 0..20 {
        bench.advance_ms(3_000);
        bench.refusal("user", demand! {});
    }
    drop(lease);
    assert_eq!(bench.available("user", "slots"), 1);
}

/// By its next heartbeat, whether the limiter or the holder sends it; one that has ended has lost nothing.
pub fn a_holder_that_lost_its_resources_learns_of_it_once(open: OpenBackend<'_>) {
    let told = Arc::new(AtomicUsize::new(0));
    for heartbeats in [Heartbeats::Automatic, Heartbeats::Manual] {
        let count = Arc::clone(&told);
        let bench = LimiterFixture::with(open, |builder| {
            let builder = builder.lease_ttl(Duration::from_secs(9)).heartbeats(heartbeats);
            builder.observer(move |event: &Event<'_>| {
                count.fetch_add(usize::from(matches!(event, Event::ExpiredLease)), Ordering::SeqCst);
            })
        });
        bench.set(Level::Resource(RESOURCE), [Limit::resource("slots", 2)]);
        let ended = bench.take("user", demand! {}).expect("there is room");
        let lease = bench.take("user", demand! {}).expect("there is room");
        ended.cancel().wait().expect("a store that is there answers");
        bench.advance_ms(3_000);
        assert!(lease.heartbeat().wait().expect("a store that is there answers") && !lease.lost());
        bench.catalog().reset("user", RESOURCE, None).wait().expect("a store that is there answers");
        bench.advance_ms(3_000);
        match heartbeats {
            Heartbeats::Automatic => until(|| lease.lost()),
            Heartbeats::Manual => {
                assert!(!lease.lost(), "nobody has asked");
                assert!(!lease.heartbeat().wait().expect("a store that is there answers"));
            }
        }
        assert!(lease.lost() && !lease.heartbeat().wait().expect("a store that is there answers"));
        assert_eq!(told.swap(0, Ordering::SeqCst), 1);
        commit(lease);
        assert_eq!(bench.available("user", "slots"), 2);
    }
}

/// A quota of a day in Berlin is full again at midnight there, on days of 24, 23 and 25 hours.
pub fn quotas_reset_at_local_midnight_also_on_days_of_23_and_25_hours(open: OpenBackend<'_>) {
    // Midnights in Berlin, and how many hours the day has that begins then.
    let days = [(1_774_652_400, 24), (1_774_738_800, 23), (1_792_879_200, 25), (1_792_969_200, 24)];
    let bench = LimiterFixture::new(open);
    let berlin = tollgate_calendar::daily("Europe/Berlin").expect("the zone is known");
    bench.set(Level::Resource(RESOURCE), [Limit::quota("spend", 100, berlin)]);
    for (midnight, hours) in days {
        let (start, end) = (Tick::from_secs(midnight), Tick::from_secs(midnight + hours * 3_600));
        bench.hands.set(start);
        bench.spend("user", demand! { spend: 100 });
        bench.hands.set(start + Span::from_secs(12 * 3_600));
        let refusal = bench.refusal("user", demand! { spend: 1 });
        let wait = end.since(bench.hands.now()).to_duration();
        assert_eq!(refusal.retry_after(), Some(wait));
        bench.hands.set(Tick::from_micros(end.as_micros() - 1));
        bench.refusal("user", demand! { spend: 1 });
        bench.hands.set(end);
        assert_eq!(bench.available("user", "spend"), 100);
    }
}

/// What is reported of usage is what a recount of all events says, over a month in which Europe turns its clocks.
pub fn usage_agrees_with_a_recount_over_a_month_with_a_change_of_clocks(open: OpenBackend<'_>) {
    // 2026-03-01T00:00:00Z.
    const MARCH: u64 = 1_772_323_200;
    let bench = LimiterFixture::new(open);
    bench.hands.set(Tick::from_secs(MARCH - 7_200));
    bench.set(
        Level::Resource(RESOURCE),
        [Limit::per_second("tpm", 1_000_000), Limit::resource("slots", 1_000)],
    );
    bench.set(
        Level::Entity("b"),
        [
            Limit::per_second("tpm", 1_000_000),
            Limit::quota("spend", 1_000_000_000, Duration::from_secs(3_600)),
        ],
    );
    bench.create("parent", None);
    bench.create("a", Some("parent"));
    let mut random = Random::new(replayed_seed().unwrap_or(1));
    let mut recount: BTreeMap<(&str, &str, u64), (i64, u64)> = BTreeMap::new();
    let mut open_leases: Vec<(&str, u64, LimiterLease<'static>)> = Vec::new();
    let mut count = |entity: &'static str, limit: &'static str, at: Tick, amount: i64, events: u64| {
        let sum = recount.entry((entity, limit, at.as_micros() / 3_600_000_000)).or_default();
        *sum = (sum.0 + amount, sum.1 + events);
    };
    while bench.hands.now() < Tick::from_secs(MARCH + 31 * 86_400 + 7_200) {
        bench.hands.advance(Span::from_secs(random.below(4 * 3_600)));
        let now = bench.hands.now();
        let amount = random.below(1_000) + 1;
        let entity = if random.below(2) == 0 { "a" } else { "b" };
        let lease = match entity {
            "a" => bench.take("a", demand! { tpm: amount }),
            _ => bench.take("b", demand! { tpm: amount, spend: 1 }),
        };
        open_leases.push((entity, amount, lease.expect("there is room")));
        let charged: &[&str] = if entity == "a" { &["a", "parent"] } else { &["b"] };
        charged.iter().for_each(|whose| count(whose, "tpm", now, amount as i64, 1));
        if entity == "b" {
            count("b", "spend", now, 1, 0);
        }
        if open_leases.len() > 5 {
            let (entity, reserved, lease) = open_leases.remove(random.below(5) as usize);
            let used = random.below(2_000);
            lease.settle(demand! { tpm: used }).wait().expect("a store that is there answers");
            let charged: &[&str] = if entity == "a" { &["a", "parent"] } else { &["b"] };
            charged.iter().for_each(|whose| count(whose, "tpm", now, used as i64 - reserved as i64, 0));
        }
        if random.below(10) == 0 {
            let id = bench.catalog().namespace_id();
            bench.backend.write_usage(id, Scope::All).wait().expect("a store that is there answers");
        }
    }
    for (_, _, lease) in open_leases {
        lease.commit().wait().expect("a store that is there answers");
    }
    for entity in ["a", "b", "parent"] {
        for window in [Window::Hour, Window::Day, Window::Month] {
            assert_eq!(
                told(&bench, entity, window),
                expected(&recount, entity, window),
                "{entity} {window:?}"
            );
        }
    }
}

type PromisedSums = BTreeMap<(u64, String), (i64, u64)>;

/// By window and limit: the amount, and the events of the window.
fn told(bench: &LimiterFixture, entity: &str, window: Window) -> PromisedSums {
    let (mut sums, mut page_request) = (PromisedSums::new(), PageRequest::of(100));
    loop {
        let query = UsageQuery::of_entity(entity, window).resource(RESOURCE).page(page_request.clone());
        let page = bench.catalog().usage(query).wait().expect("a store that is there answers");
        for row in page.items {
            let start = row.start.as_micros() / 3_600_000_000;
            let used = row.amounts.iter().filter(|(_, sum)| **sum != 0);
            sums.extend(used.map(|(limit, sum)| ((start, limit.clone()), (*sum, row.events))));
        }
        match page.next {
            Some(next) => page_request = page_request.after(next),
            None => return sums,
        }
    }
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
    for ((_, limit, hour), (amount, count)) in recount.iter().filter(|((whose, ..), _)| *whose == entity) {
        *amounts.entry((start(*hour), (*limit).to_string())).or_default() += amount;
        *events.entry(start(*hour)).or_default() += count;
    }
    let used = amounts.into_iter().filter(|(_, sum)| *sum != 0);
    used.map(|((start, limit), sum)| ((start, limit), (sum, events[&start]))).collect()
}

/// Names, amounts and demands that are wrong are reported, before anything is written.
pub fn bad_input_is_refused_with_what_is_wrong_and_writes_nothing(open: OpenBackend<'_>) {
    let bench = LimiterFixture::new(open);
    bench.set(Level::System, [Limit::per_hour("rpm", 10)]);
    let long = "x".repeat(257);
    let ask = |entity: &str, resource: &str, demand: tollgate_core::Demand| {
        let taken = bench.limiter.acquire(entity, resource, demand).wait();
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
    for (said, part) in cases {
        assert!(said.contains(part), "{said:?} does not show {part:?}");
    }
    let twice = bench.limiter.acquire("user", RESOURCE, one()).also(RESOURCE, one()).wait();
    assert!(twice.expect_err("it is refused").to_string().contains(RESOURCE));
    let buckets = bench.backend.buckets(bench.catalog().namespace_id(), Scope::All, None, 10).wait();
    let used = buckets.expect("a store that is there answers").items;
    assert!(used.iter().flat_map(|bucket| &bucket.limits).all(|limit| limit.available() == 10), "{used:?}");
}
