//! Usage by hour, day and month.

use tollgate_core::{Limit, Limits, Span, Tick, Usage, demand};
use tollgate_store::records::{Index, Item, Query};
use tollgate_store::usage::{UsageRetention, Window, iso, usage_key};
use tollgate_store::{
    Activity, Backend, BucketRef, Clock, Key, Op, OpId, Scope, Step, Transaction, TxnOutcome,
};

use super::{BackendFixture, BucketName, START, get};
use crate::fixture::all_pages;
use crate::records::find_all;

const NAME: BucketName<'_> = BucketName("usage", "user", "api");

pub(super) fn run<B: Backend>(open: &impl Fn(Clock) -> B) {
    usage_counts_in_its_hour_its_day_and_its_month(open);
    a_settlement_counts_when_it_is_settled(open);
    only_what_was_taken_is_counted(open);
    a_call_that_is_sent_again_is_counted_once(open);
    limits_that_change_within_the_hour_are_counted_by_name(open);
    a_limit_may_be_named_like_a_field(open);
    usage_records_name_their_window_and_expire(open);
    usage_of_buckets_is_kept_apart(open);
    reading_usage_writes_nothing(open);
    a_new_hour_is_written_bucket_by_bucket(open);
    concurrent_calls_are_counted_exactly(open);
}

fn hours(count: u64) -> Span {
    Span::from_secs(count * 3_600)
}

/// Returns the usage of tpm and the events in the hour, the day and the month of `at`.
fn used<B: Backend>(fixture: &BackendFixture<B>, at: Tick) -> [Option<(i64, i64)>; 3] {
    [Window::Hour, Window::Day, Window::Month].map(|window| fixture.used(NAME, window, at))
}

fn usage_counts_in_its_hour_its_day_and_its_month<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    fixture.take(NAME, 10);
    fixture.clock.advance(hours(14));
    let afternoon = fixture.clock.now();
    fixture.take(NAME, 4);
    fixture.take(NAME, 6);
    assert_eq!(used(&fixture, START), [Some((10, 1)), Some((20, 3)), Some((20, 3))]);
    assert_eq!(used(&fixture, afternoon), [Some((10, 2)), Some((20, 3)), Some((20, 3))]);
    assert_eq!(used(&fixture, afternoon)[0], Some((10, 2)), "bringing it up to date counts nothing twice");
    assert_eq!(fixture.used(NAME, Window::Hour, START + hours(5)), None, "nothing happened then");
    fixture.clock.set(START + hours(24 * 31));
    fixture.take(NAME, 7);
    let next_month = fixture.clock.now();
    assert_eq!(used(&fixture, next_month), [Some((7, 1)); 3]);
    assert_eq!(used(&fixture, START), [Some((10, 1)), Some((20, 3)), Some((20, 3))]);
}

fn a_settlement_counts_when_it_is_settled<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let less = fixture.take(NAME, 100);
    let more = fixture.take(NAME, 50);
    fixture.clock.advance(hours(1));
    let then = fixture.clock.now();
    fixture.settle(NAME, less, 100, 20);
    assert_eq!(fixture.used(NAME, Window::Hour, then), Some((-80, 0)));
    fixture.settle(NAME, more, 50, 400);
    assert_eq!(used(&fixture, START), [Some((150, 2)), Some((420, 2)), Some((420, 2))]);
    assert_eq!(used(&fixture, then), [Some((270, 0)), Some((420, 2)), Some((420, 2))]);
}

fn only_what_was_taken_is_counted<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    fixture.take(NAME, 700);
    let costs = fixture.costs(600);
    let take = || Op::Take { costs: &costs, term: None };
    assert!(matches!(fixture.apply(NAME, take()), TxnOutcome::Denied(_)));
    let (later, earlier) = (fixture.limits.clone().at_version(2), fixture.limits.clone().at_version(1));
    let small = fixture.costs(1);
    let take = || Op::Take { costs: &small, term: None };
    assert!(super::is_done(&fixture.apply_under(&later, NAME, take(), &[])));
    assert_eq!(fixture.apply_under(&earlier, NAME, take(), &[]), Ok(TxnOutcome::Stale(0)));
    let (key, place) = (Key::new(&["user", "api"]), ("usage", &fixture.limits));
    let steps = [Step { place: BucketRef { namespace: place.0, key: &key, limits: place.1 }, op: take() }];
    let unmetered = fixture.store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait();
    assert!(matches!(unmetered, Ok(TxnOutcome::Done(_))));
    fixture.apply(NAME, Op::TopUp(&small));
    fixture.apply(NAME, Op::Reset);
    assert_eq!(used(&fixture, START), [Some((701, 2)); 3]);
    let item = get(&fixture.store, &usage_key("usage", "user", "api", Window::Hour, &iso(START)));
    assert_eq!(item.and_then(|item| item.int("slots")), None, "a resource is not used up");
}

fn a_call_that_is_sent_again_is_counted_once<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let (key, costs) = (Key::new(&["user", "api"]), fixture.costs(10));
    let place = BucketRef { namespace: "usage", key: &key, limits: &fixture.limits };
    let take = [Step { place, op: Op::Take { costs: &costs, term: None } }];
    let usage = Usage { at: START, reserved: &costs, used: &[3, 0], holder: None };
    let settle = [Step { place, op: Op::SettleExisting(usage) }];
    for (id, steps) in [(501, &take), (501, &take), (502, &settle), (502, &settle)] {
        let call = Transaction { id: Some(OpId(id)), steps, metered: true };
        fixture.store.apply(&call).wait().expect("the store answers");
    }
    assert_eq!(used(&fixture, START), [Some((3, 1)); 3]);
}

fn limits_that_change_within_the_hour_are_counted_by_name<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let at = fixture.take(NAME, 100);
    let others = [Limit::per_day("rpm", 50), Limit::per_day("tpm", 2_000)];
    let others = Limits::new(others).expect("these limits are valid");
    let costs = others.costs(&demand! { rpm: 1, tpm: 30 }).expect("it fits");
    let took = fixture.apply_under(&others, NAME, Op::Take { costs: &costs, term: None }, &[]);
    assert!(super::is_done(&took));
    fixture.settle(NAME, at, 100, 60);
    assert_eq!(used(&fixture, START), [Some((90, 2)); 3]);
    let item = get(&fixture.store, &usage_key("usage", "user", "api", Window::Day, &iso(START)));
    assert_eq!(item.and_then(|item| item.int("rpm")), Some(1));
}

fn a_limit_may_be_named_like_a_field<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let limits = Limits::new([Limit::per_day("window", 50), Limit::per_day("u_window", 50)]);
    let limits = limits.expect("these limits are valid");
    let costs = limits.costs(&demand! { window: 5, u_window: 7 }).expect("it fits");
    assert!(super::is_done(&fixture.apply_under(&limits, NAME, Op::Take { costs: &costs, term: None }, &[])));
    fixture.store.write_usage("usage", Scope::All).wait().expect("the store answers");
    let item = get(&fixture.store, &usage_key("usage", "user", "api", Window::Hour, &iso(START)));
    let item = item.expect("it was used");
    assert_eq!((item.int("u_window"), item.int("u_u_window")), (Some(5), Some(7)));
    assert_eq!(item.text("window"), Some("hourly"));
}

fn usage_records_name_their_window_and_expire<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    fixture.clock.advance(hours(30));
    fixture.take(NAME, 10);
    let now = fixture.clock.now();
    fixture.store.write_usage("usage", Scope::Entity("user")).wait().expect("the store answers");
    for window in Window::ALL {
        let start = window.start(now);
        let key = usage_key("usage", "user", "api", window, &iso(start));
        let item = get(&fixture.store, &key).expect("it was used");
        let texts = ["entity_id", "resource", "window", "window_start"].map(|field| item.text(field));
        assert_eq!(texts, [Some("user"), Some("api"), Some(window.name()), Some(iso(start).as_str())]);
        assert_eq!(item.expires, UsageRetention::default().expiry(window, start));
        let prefix = format!("USAGE#{}#", window.name());
        let found = find_all(&fixture.store, Index::Resource, &Query::prefix("usage/RESOURCE#api", prefix));
        assert_eq!(found, [key]);
    }
}

fn usage_of_buckets_is_kept_apart<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let all = [
        ("usage", "user", "api"),
        ("usage", "user", "ap"),
        ("usage", "use", "rapi"),
        ("usag", "user", "api"),
    ];
    for (amount, (namespace, entity, resource)) in (1..).zip(all) {
        fixture.take(BucketName(namespace, entity, resource), amount);
    }
    for (amount, (namespace, entity, resource)) in (1..).zip(all) {
        let used = fixture.used(BucketName(namespace, entity, resource), Window::Hour, START);
        assert_eq!(used, Some((amount, 1)), "{namespace} {entity} {resource}");
    }
}

/// Returns the activity of all buckets, sorted by entity and resource.
fn activity<B: Backend>(fixture: &BackendFixture<B>) -> Vec<Activity> {
    let page = |after| fixture.store.activity("usage", Scope::All, after).wait();
    let mut all = all_pages(|after| page(after).expect("the store answers"));
    all.sort_by(|one, two| (&one.entity, &one.resource).cmp(&(&two.entity, &two.resource)));
    all
}

fn records<B: Backend>(fixture: &BackendFixture<B>) -> usize {
    find_all(&fixture.store, Index::Namespace, &Query::all("usage")).len()
}

fn reading_usage_writes_nothing<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let names: Vec<String> = (0..50).map(|number| format!("user-{number:02}")).collect();
    for name in &names {
        fixture.take(BucketName("usage", name, "api"), 100);
    }
    fixture.take(BucketName("usage", "user-07", "api"), 300);
    fixture.take(BucketName("other", "user-07", "api"), 1);
    let before = records(&fixture);
    let active = activity(&fixture);
    let keys = [Window::Hour, Window::Day, Window::Month]
        .map(|window| usage_key("usage", "user-07", "api", window, &iso(window.start(START))));
    let items = fixture.store.usage_at(&keys).wait().expect("the store answers");
    let counted =
        |item: &Item| (item.int("tpm"), item.int("total_events"), item.text("resource") == Some("api"));
    let counted: Vec<_> = items.iter().flatten().map(counted).collect();
    assert_eq!(counted, [(Some(400), Some(2), true); 3]);
    assert_eq!(records(&fixture), before, "the question has written");
    assert_eq!(active.iter().map(|it| it.entity.clone()).collect::<Vec<_>>(), names);
    let hour = Window::Hour.start(START);
    assert!(active.iter().all(|it| it.hour == Some((hour, 1 + u64::from(it.entity == "user-07")))));
    assert!(active.iter().all(|it| it.in_use >= 250_000), "a slot of four is held of each");
    // Other limits within the hour: usage under the former limits goes to the records, and the events are still counted together.
    let others = Limits::new([Limit::per_day("rpm", 50)]).expect("these limits are valid");
    let costs = others.costs(&demand! { rpm: 1 }).expect("it fits");
    let take = Op::Take { costs: &costs, term: None };
    assert!(super::is_done(&fixture.apply_under(&others, BucketName("usage", "user-07", "api"), take, &[])));
    let active = activity(&fixture);
    assert!(active.iter().any(|it| it.entity == "user-07" && it.hour == Some((hour, 3))));
    let items = fixture.store.usage_at(&keys).wait().expect("the store answers");
    let counted = |item: &Item| (item.int("tpm"), item.int("rpm"), item.int("total_events"));
    let counted: Vec<_> = items.iter().flatten().map(counted).collect();
    assert_eq!(counted, [(Some(400), Some(1), Some(3)); 3]);
}

fn a_new_hour_is_written_bucket_by_bucket<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    for number in 0..500 {
        fixture.take(BucketName("usage", &format!("user-{number}"), "api"), 1);
    }
    let before = records(&fixture);
    fixture.clock.advance(hours(1));
    fixture.take(BucketName("usage", "user-7", "api"), 1);
    // The hour, the day and the month, and a record in which a store may note that they are written.
    let written = records(&fixture) - before;
    assert!(written <= 4, "one call writes the hour of its own bucket: {written} records");
    let before = records(&fixture);
    fixture.take(BucketName("usage", "newcomer", "api"), 1);
    assert!(records(&fixture) - before <= 50, "a new bucket sweeps a few");
    assert_eq!(fixture.used(BucketName("usage", "user-7", "api"), Window::Day, START), Some((2, 2)));
}

fn concurrent_calls_are_counted_exactly<B: Backend>(open: &impl Fn(Clock) -> B) {
    const THREADS: i64 = 8;
    const ROUNDS: i64 = 25;
    let fixture = BackendFixture::open(open);
    let (store, limits) = (&fixture.store, &fixture.limits);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                let (key, costs) = (Key::new(&["user", "api"]), super::costs(limits, 3));
                let place = BucketRef { namespace: "usage", key: &key, limits };
                for round in 0..ROUNDS {
                    let take = [Step { place, op: Op::Take { costs: &costs, term: None } }];
                    let call = Transaction { id: None, steps: &take, metered: true };
                    while !matches!(store.apply(&call).wait(), Ok(TxnOutcome::Done(_))) {
                        std::thread::yield_now();
                    }
                    let usage = Usage { at: START, reserved: &costs, used: &[1, 0], holder: None };
                    let settle = [Step { place, op: Op::SettleExisting(usage) }];
                    let call = Transaction { id: None, steps: &settle, metered: true };
                    store.apply(&call).wait().expect("the store answers");
                    if (thread + round) % 5 == 0 {
                        store.write_usage("usage", Scope::All).wait().expect("the store answers");
                    }
                }
            });
        }
    });
    assert_eq!(used(&fixture, START), [Some((THREADS * ROUNDS, THREADS * ROUNDS)); 3]);
}
