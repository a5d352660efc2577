//! Sets that several programs open in one store.

use std::sync::Arc;
use std::time::Duration;

use tollgate::limiter::Heartbeats;
use tollgate::{AcquireError, Checker, LimitSet, LimitSetBuilder, SETS_NAMESPACE, StoredSets};
use tollgate_catalog::OnUnavailable;
use tollgate_core::{Limit, LimitBuilder, Limits, LimitsError, Span, demand};
use tollgate_store::{Backend, ManualClock, Scope, StoreError};

use super::fixture::{available, count, denial, spend, take};
use super::{OpenSetStore, SetFixture};
use crate::fixture::{FOREVER, UNEVEN_START, all_pages, open_at};
use crate::outage::StoreOutage;
use crate::poll::until;

const SECOND: Duration = Duration::from_secs(1);

fn rpm(amount: u64) -> [LimitBuilder; 1] {
    [Limit::per_minute("rpm", amount)]
}

/// A set is identified by its store, namespace and name.
pub fn openers_of_one_name_share_its_counts_and_others_do_not(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let (one, same) = (fixture.set(rpm(10)), fixture.set(rpm(10)));
    let name = fixture.builder("other", rpm(10)).build().expect("it is valid");
    let space = fixture.builder("law", rpm(10)).namespace("other").build().expect("it is valid");
    let lease = take(&one, demand! { rpm: 4 }).expect("it fits");
    let left = || [&one, &same, &name, &space].map(|set| available(set, "rpm"));
    assert_eq!(left(), [6, 6, 10, 10]);
    lease.settle(demand! { rpm: 1 }).wait().expect("the report is valid");
    assert_eq!(left(), [9, 9, 10, 10]);
    assert_eq!((count(&same, demand! { rpm: 1 }), count(&one, demand! { rpm: 1 })), (9, 0));
    assert!(matches!(fixture.builder("", rpm(10)).build(), Err(LimitsError::Unnamed)));
    assert_eq!(one.name(), Some("law"));
    assert_eq!(one.reach(), fixture.backend.as_ref().expect("there is a store").reach());
}

pub fn a_cooldown_by_one_opener_stops_the_others(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let (one, other) = (fixture.set(rpm(100)), fixture.set(rpm(100)));
    one.cool_down(10 * SECOND).wait().expect("the store answers");
    let denied = denial(&other, demand! { rpm: 1 });
    assert_eq!((denied.wait(), denied.limited_by()), (Some(10 * SECOND), None));
    other.cool_down(SECOND).wait().expect("the store answers");
    assert!(take(&one, demand! { rpm: 1 }).is_none());
    fixture.advance_ms(9_999);
    assert!(take(&other, demand! { rpm: 1 }).is_none());
    fixture.advance_ms(1);
    assert!(take(&other, demand! { rpm: 1 }).is_some());
    one.cool_down(10 * SECOND).wait().expect("the store answers");
    other.end_cool_down().wait().expect("the store answers");
    assert!(take(&one, demand! { rpm: 1 }).is_some());
}

fn sets_of(fixture: &SetFixture) -> StoredSets {
    let backend = fixture.backend.as_ref().expect("there is a store");
    StoredSets::new(Arc::clone(backend)).store_timeout(FOREVER)
}

/// An operator lists sets, cools one down, resumes it and replaces a limit.
pub fn sets_in_use_are_listed_by_name_and_opened_without_knowing_their_limits(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let sets = sets_of(&fixture);
    let names = || {
        let page = sets.list(None, 100).wait().expect("the store answers");
        page.items.into_iter().map(|set| set.name).collect::<Vec<_>>()
    };
    assert_eq!(names(), Vec::<String>::new());
    assert!(sets.open("openai/blue").wait().expect("the store answers").is_none());
    let blue = fixture.builder("openai/blue", rpm(100)).version(3).build().expect("it is valid");
    let green = fixture.builder("openai/green", rpm(10)).build().expect("it is valid");
    let other = fixture.builder("other", rpm(10)).namespace("others").build().expect("it is valid");
    for set in [&blue, &green, &other] {
        spend(set, demand! { rpm: 4 });
    }
    assert_eq!(names(), ["openai/blue", "openai/green"]);
    let first = sets.list(None, 1).wait().expect("the store answers");
    assert_eq!((first.items.len(), first.next.is_some()), (1, true));
    let seen = sets.get("openai/blue").wait().expect("the store answers").expect("it is in use");
    let available_of_each = seen.limits.iter().map(|it| (it.limit().name().as_str(), it.available()));
    assert_eq!((available_of_each.collect::<Vec<_>>(), seen.cooling_until), (vec![("rpm", 96)], None));

    let opened = sets.open("openai/blue").wait().expect("the store answers");
    let opened = opened.expect("it is in use");
    opened.cool_down(10 * SECOND).wait().expect("the store answers");
    assert!(take(&blue, demand! { rpm: 1 }).is_none());
    let cooling = sets.get("openai/blue").wait().expect("the store answers").expect("in use");
    assert_eq!(cooling.cooling_until, Some(UNEVEN_START + Span::from_secs(10)));
    opened.end_cool_down().wait().expect("the store answers");
    assert_eq!(available(&blue, "rpm"), 96, "limits of a later version stayed");
    opened.replace(Limit::per_minute("rpm", 50)).wait().expect("it counts the same");
    assert_eq!(available(&blue, "rpm"), 50);
}

/// The provider suspends an account before any caller has used it.
pub fn a_cooldown_can_wait_for_a_set_that_is_not_in_use(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let sets = sets_of(&fixture);
    let idle = sets.open_idle("openai/blue").expect("it has a name");
    idle.cool_down(10 * SECOND).wait().expect("the store answers");
    let listed = sets.list(None, 100).wait().expect("the store answers").items;
    assert_eq!((listed.len(), listed[0].limits.len()), (1, 0));
    let blue = fixture.builder("openai/blue", rpm(100)).build().expect("it is valid");
    assert_eq!(denial(&blue, demand! { rpm: 1 }).wait(), Some(10 * SECOND));
    fixture.advance_ms(10_000);
    spend(&blue, demand! { rpm: 1 });
    let seen = sets.get("openai/blue").wait().expect("the store answers").expect("it is in use");
    assert_eq!((seen.limits.len(), seen.cooling_until), (1, None));
    assert!(matches!(sets.open_idle(""), Err(LimitsError::Unnamed)));
}

/// Stores forget buckets that are full. The record of a set stays, and with it the limits of the set.
pub fn a_set_whose_bucket_was_forgotten_is_idle_and_keeps_its_limits(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let (sets, backend) = (sets_of(&fixture), fixture.backend.as_ref().expect("there is a store"));
    let names = ["openai/a", "openai/b", "openai/c"];
    for name in names {
        let set = fixture.builder(name, [Limit::per_minute("rpm", 100), Limit::resource("slots", 2)]);
        spend(&set.build().expect("it is valid"), demand! { rpm: 4 });
    }
    let get = |name: &str| sets.get(name).wait().expect("the store answers");
    assert!(!get("openai/b").expect("it is in use").is_idle());
    while backend.forget(SETS_NAMESPACE, Scope::All).wait().expect("the store answers") > 0 {}
    // Limits are unknown to a cooldown that comes after the bucket was forgotten.
    sets.open_idle("openai/c").expect("it has a name").cool_down(10 * SECOND).wait().expect("it answers");
    sets.open_idle("aside").expect("it has a name").cool_down(10 * SECOND).wait().expect("it answers");

    let listed = all_pages(|after| sets.list(after, 1).wait().expect("the store answers"));
    let all = sets.list(None, 100).wait().expect("the store answers");
    assert_eq!((&all.items, all.next), (&listed, None), "one page or many");
    let shown = listed.iter().map(|set| (set.name.as_str(), set.limits.len(), set.is_idle()));
    let expected =
        [("openai/a", 2, true), ("openai/b", 2, true), ("openai/c", 2, false), ("aside", 0, false)];
    assert_eq!(shown.collect::<Vec<_>>(), expected);

    let seen = get("openai/b").expect("it is stored");
    let available_of_each = seen.limits.iter().map(|it| (it.limit().name().as_str(), it.available()));
    assert_eq!(available_of_each.collect::<Vec<_>>(), [("rpm", 100), ("slots", 2)]);
    let opened = sets.open("openai/b").wait().expect("the store answers").expect("it is stored");
    opened.replace(Limit::per_minute("rpm", 50)).wait().expect("it counts the same");
    let replaced = get("openai/b").expect("it is stored");
    assert_eq!(replaced.limits[0].limit().amount(), 50);
    assert!(get("openai/d").is_none());
}

/// An opener that has not cached it yet does not undo it.
pub fn a_replaced_limit_reaches_the_others_with_their_next_call(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let (one, other) = (fixture.set(rpm(100)), fixture.set(rpm(100)));
    spend(&other, demand! { rpm: 1 });
    one.replace(Limit::per_minute("rpm", 10)).wait().expect("it fits the set");
    assert_eq!(count(&other, demand! { rpm: 1 }), 10);
    assert_eq!(other.limits()[0].capacity(), 10);
    // A later opener gets it, too, and a replacement of limits that are not in force any more succeeds.
    let late = fixture.set(rpm(100));
    assert_eq!(count(&late, demand! { rpm: 1 }), 0);
    other.replace(Limit::per_minute("rpm", 20)).wait().expect("it fits the set");
    one.replace(Limit::per_minute("rpm", 30)).wait().expect("it fits the set");
    assert!(take(&late, demand! { rpm: 5 }).is_none());
    fixture.advance_ms(60_000);
    assert_eq!(count(&late, demand! { rpm: 1 }), 30);
    assert_eq!([&one, &other, &late].map(|set| available(set, "rpm")), [0, 0, 0]);
}

/// No call of the other set gets to the bucket, which would say that the limits are past.
pub fn a_demand_that_only_a_raised_limit_fits_is_admitted_by_the_others(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let (one, other) = (fixture.set(rpm(10)), fixture.set(rpm(10)));
    spend(&other, demand! { rpm: 1 });
    assert!(other.try_acquire(demand! { rpm: 50 }).wait().is_err(), "it can never fit");
    one.replace(Limit::per_minute("rpm", 100)).wait().expect("it fits the set");
    fixture.advance_ms(60_000);
    assert!(take(&other, demand! { rpm: 50 }).is_some());
    one.replace(Limit::per_minute("rpm", 200)).wait().expect("it fits the set");
    assert!(other.ready(demand! { rpm: 150 }).wait().is_ok());
}

/// While a new version of a program is rolled out, the old one still runs.
pub fn limits_of_a_later_version_stay_and_of_equal_ones_the_last_to_open_decides(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let of =
        |version, amount| fixture.builder("law", rpm(amount)).version(version).build().expect("it is valid");
    let (old, new) = (of(1, 100), of(2, 10));
    spend(&old, demand! { rpm: 1 });
    assert_eq!(count(&new, demand! { rpm: 1 }), 10);
    assert_eq!((count(&old, demand! { rpm: 1 }), old.limits()[0].capacity()), (0, 10));
    fixture.advance_ms(60_000);
    assert_eq!(count(&old, demand! { rpm: 1 }), 10);
    // Replaced limits give way to a later version.
    old.replace(Limit::per_minute("rpm", 5)).wait().expect("it fits the set");
    let next = of(3, 7);
    spend(&next, demand! { rpm: 0 });
    spend(&old, demand! { rpm: 0 });
    assert_eq!([&next, &old].map(|set| set.limits()[0].capacity()), [7, 7]);
    fixture.advance_ms(60_000);
    let same = of(3, 2);
    assert_eq!(count(&same, demand! { rpm: 1 }), 2, "the last to open decides");
    let beyond = fixture.builder("law", rpm(1)).version(LimitSetBuilder::VERSION_MAX + 1).build();
    assert!(matches!(beyond, Err(LimitsError::BadVersion(..))));
}

/// There are never two holders of one.
pub fn resources_of_a_silent_holder_return_to_the_others_once(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let build = |heartbeats| {
        let builder = fixture.builder("law", [Limit::resource("slots", 1)]).heartbeats(heartbeats);
        builder.lease_ttl(9 * SECOND).build().expect("it is valid")
    };
    let (beating, silent) = (build(Heartbeats::Automatic), build(Heartbeats::Manual));
    let held = take(&beating, demand! {}).expect("it fits");
    let expires = || {
        let status = silent.peek().wait().expect("the store answers");
        status.limits[0].full()
    };
    for _ in 0..10 {
        let before = expires();
        fixture.advance_ms(3_000);
        // The heartbeat is sent in the background, which may take a moment.
        until(|| expires() != before);
    }
    assert!(take(&silent, demand! {}).is_none(), "its holder sends heartbeats");
    drop(held);
    until(|| available(&silent, "slots") == 1);
    let lost = take(&silent, demand! {}).expect("it is free");
    fixture.advance_ms(9_000);
    let found = take(&beating, demand! {}).expect("its holder was silent");
    assert_eq!(lost.heartbeat().wait(), Ok(false));
    drop(lost);
    assert!(take(&silent, demand! {}).is_none());
    found.commit().wait().expect("nothing is missing");
}

/// Opens a store that can be made unavailable.
fn unreliable(open: OpenSetStore<'_>) -> (ManualClock, StoreOutage, Arc<dyn Backend>) {
    let (clock, store) = open_at(UNEVEN_START, open);
    let (outage, backend) = StoreOutage::of(store.expect("there is a store"));
    (clock, outage, backend)
}

fn set_on(backend: &Arc<dyn Backend>, policy: OnUnavailable) -> LimitSet {
    let limits = [Limit::per_hour("rph", 10), Limit::resource("slots", 4)];
    let builder = LimitSet::builder().limits(limits).store(Arc::clone(backend)).name("law");
    builder.on_unavailable(policy).local_share(30).build().expect("it is valid")
}

pub fn while_the_store_is_unavailable_a_set_blocks_allows_or_keeps_to_its_share(open: OpenSetStore<'_>) {
    let (_, outage, backend) = unreliable(open);
    let [blocks, allows, local] = [OnUnavailable::Block, OnUnavailable::Allow, OnUnavailable::Local]
        .map(|policy| set_on(&backend, policy));
    outage.begin();
    let error = blocks.try_acquire(demand! { rph: 1 }).wait().expect_err("the store is unavailable");
    assert!(matches!(error, AcquireError::Store(StoreError::Unavailable(..))), "{error}");
    assert!(blocks.acquire(demand! { rph: 1 }).wait().is_err());
    assert!(blocks.peek().wait().is_err() && blocks.cool_down(SECOND).wait().is_err());
    for _ in 0..20 {
        let lease = allows.acquire(demand! { rph: 1 }).wait().expect("the policy is to allow");
        assert!(lease.is_degraded());
        lease.settle(demand! { rph: 5 }).wait().expect("there is nothing to write");
    }
    assert!(allows.acquire(demand! { rph: -1 }).wait().is_err(), "what is wrong is wrong");
    let lease = local.acquire(demand! { rph: 2 }).wait().expect("there are 3 of its own");
    assert!(lease.is_degraded());
    lease.settle(demand! { rph: 1 }).wait().expect("memory answers");
    let mine = || local.try_acquire(demand! { rph: 1 }).wait();
    assert!(mine().is_ok() && mine().is_ok() && mine().is_err(), "two are left");
}

/// The set asks the store again after a second.
pub fn a_store_that_comes_back_is_used_again(open: OpenSetStore<'_>) {
    let (clock, outage, backend) = unreliable(open);
    let set = set_on(&backend, OnUnavailable::Allow);
    outage.begin();
    assert!(set.acquire(demand! { rph: 1 }).wait().expect("the policy is to allow").is_degraded());
    outage.end();
    clock.advance(Span::from_secs(1));
    let lease = set.acquire(demand! { rph: 1 }).wait().expect("the store is there");
    assert!(!lease.is_degraded());
    assert_eq!(available(&set, "rph"), 9);
    outage.begin();
    assert!(lease.settle(demand! { rph: 0 }).wait().is_err(), "it could not be written down");
}

/// The limits of calls are joined.
pub fn checkers_of_one_namespace_share_counts_and_limits_of_other_names_keep_theirs(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let (one, other) = (fixture.checker(), fixture.checker());
    let of = |limit: LimitBuilder| Limits::new([limit]).expect("it is valid");
    let (requests, tokens) = (of(Limit::per_minute("rpm", 2)), of(Limit::per_minute("tpm", 100)));
    let check = |checker: &Checker| {
        let costs = demand! { rpm: 1 };
        checker.try_acquire("key", "chat", &costs, &requests).wait().expect("it is valid").is_admitted()
    };
    assert!(check(&one));
    let all = other.try_acquire("key", "chat", &demand! { tpm: 100 }, &tokens).wait().expect("it is valid");
    assert!(all.is_admitted());
    assert!(check(&other) && !check(&one), "rpm is remembered though a call brought tpm alone");
    let none = one.try_acquire("key", "chat", &demand! { tpm: 1 }, &tokens).wait().expect("it is valid");
    assert!(!none.is_admitted());
}
