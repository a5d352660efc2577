//! Usage by hour, day and month.

use tollgate_core::{Limit, Limits, Span, Tick, Usage, demand};
use tollgate_store::records::{Index, Item, Query};
use tollgate_store::usage::{UsageRetention, Window, iso, usage_key};
use tollgate_store::{
    Activity, Backend, BucketRef, Clock, Key, Op, OpId, Scope, Step, Transaction, TxnOutcome,
};

use super::{BackendFixture, BucketName, START, get};
use crate::records::find_all;

const WHO: BucketName<'_> = BucketName("usage", "user", "api");

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

/// The numbers of tpm and of events by hour, day and month of `at`.
fn used<B: Backend>(desk: &BackendFixture<B>, at: Tick) -> [Option<(i64, i64)>; 3] {
    [Window::Hour, Window::Day, Window::Month].map(|window| desk.used(WHO, window, at))
}

fn usage_counts_in_its_hour_its_day_and_its_month<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    desk.take(WHO, 10);
    desk.hands.advance(hours(14));
    let afternoon = desk.hands.now();
    desk.take(WHO, 4);
    desk.take(WHO, 6);
    assert_eq!(used(&desk, START), [Some((10, 1)), Some((20, 3)), Some((20, 3))]);
    assert_eq!(used(&desk, afternoon), [Some((10, 2)), Some((20, 3)), Some((20, 3))]);
    assert_eq!(used(&desk, afternoon)[0], Some((10, 2)), "bringing it up to date counts nothing twice");
    assert_eq!(desk.used(WHO, Window::Hour, START + hours(5)), None, "nothing happened then");
    desk.hands.set(START + hours(24 * 31));
    desk.take(WHO, 7);
    let next_month = desk.hands.now();
    assert_eq!(used(&desk, next_month), [Some((7, 1)); 3]);
    assert_eq!(used(&desk, START), [Some((10, 1)), Some((20, 3)), Some((20, 3))]);
}

fn a_settlement_counts_when_it_is_settled<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let less = desk.take(WHO, 100);
    let more = desk.take(WHO, 50);
    desk.hands.advance(hours(1));
    let then = desk.hands.now();
    desk.settle(WHO, less, 100, 20);
    assert_eq!(desk.used(WHO, Window::Hour, then), Some((-80, 0)));
    desk.settle(WHO, more, 50, 400);
    assert_eq!(used(&desk, START), [Some((150, 2)), Some((420, 2)), Some((420, 2))]);
    assert_eq!(used(&desk, then), [Some((270, 0)), Some((420, 2)), Some((420, 2))]);
}

fn only_what_was_taken_is_counted<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    desk.take(WHO, 700);
    let costs = desk.costs(600);
    let take = || Op::Take { costs: &costs, term: None };
    assert!(matches!(desk.apply(WHO, take()), TxnOutcome::Denied(_)));
    let (later, earlier) = (desk.limits.clone().at_version(2), desk.limits.clone().at_version(1));
    let small = desk.costs(1);
    let take = || Op::Take { costs: &small, term: None };
    assert!(super::is_done(&desk.apply_under(&later, WHO, take(), &[])));
    assert_eq!(desk.apply_under(&earlier, WHO, take(), &[]), Ok(TxnOutcome::Stale(0)));
    let (key, place) = (Key::new(&["user", "api"]), ("usage", &desk.limits));
    let steps = [Step { place: BucketRef { namespace: place.0, key: &key, limits: place.1 }, op: take() }];
    let unmetered = desk.store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait();
    assert!(matches!(unmetered, Ok(TxnOutcome::Done(_))));
    desk.apply(WHO, Op::TopUp(&small));
    desk.apply(WHO, Op::Reset);
    assert_eq!(used(&desk, START), [Some((701, 2)); 3]);
    let item = get(&desk.store, &usage_key("usage", "user", "api", Window::Hour, &iso(START)));
    assert_eq!(item.and_then(|item| item.int("slots")), None, "a resource is not used up");
}

fn a_call_that_is_sent_again_is_counted_once<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let (key, costs) = (Key::new(&["user", "api"]), desk.costs(10));
    let place = BucketRef { namespace: "usage", key: &key, limits: &desk.limits };
    let take = [Step { place, op: Op::Take { costs: &costs, term: None } }];
    let usage = Usage { at: START, reserved: &costs, used: &[3, 0], holder: None };
    let settle = [Step { place, op: Op::SettleExisting(usage) }];
    for (id, steps) in [(501, &take), (501, &take), (502, &settle), (502, &settle)] {
        let call = Transaction { id: Some(OpId(id)), steps, metered: true };
        desk.store.apply(&call).wait().expect("a store that is there answers");
    }
    assert_eq!(used(&desk, START), [Some((3, 1)); 3]);
}

fn limits_that_change_within_the_hour_are_counted_by_name<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let at = desk.take(WHO, 100);
    let others = [Limit::per_day("rpm", 50), Limit::per_day("tpm", 2_000)];
    let others = Limits::new(others).expect("these limits are valid");
    let costs = others.costs(&demand! { rpm: 1, tpm: 30 }).expect("it fits");
    let took = desk.apply_under(&others, WHO, Op::Take { costs: &costs, term: None }, &[]);
    assert!(super::is_done(&took));
    desk.settle(WHO, at, 100, 60);
    assert_eq!(used(&desk, START), [Some((90, 2)); 3]);
    let item = get(&desk.store, &usage_key("usage", "user", "api", Window::Day, &iso(START)));
    assert_eq!(item.and_then(|item| item.int("rpm")), Some(1));
}

fn a_limit_may_be_named_like_a_field<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let limits = Limits::new([Limit::per_day("window", 50), Limit::per_day("u_window", 50)]);
    let limits = limits.expect("these limits are valid");
    let costs = limits.costs(&demand! { window: 5, u_window: 7 }).expect("it fits");
    assert!(super::is_done(&desk.apply_under(&limits, WHO, Op::Take { costs: &costs, term: None }, &[])));
    desk.store.write_usage("usage", Scope::All).wait().expect("a store that is there answers");
    let item = get(&desk.store, &usage_key("usage", "user", "api", Window::Hour, &iso(START)));
    let item = item.expect("it was used");
    assert_eq!((item.int("u_window"), item.int("u_u_window")), (Some(5), Some(7)));
    assert_eq!(item.text("window"), Some("hourly"));
}

fn usage_records_name_their_window_and_expire<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    desk.hands.advance(hours(30));
    desk.take(WHO, 10);
    let now = desk.hands.now();
    desk.store.write_usage("usage", Scope::Entity("user")).wait().expect("a store that is there answers");
    for window in Window::ALL {
        let start = window.start(now);
        let key = usage_key("usage", "user", "api", window, &iso(start));
        let item = get(&desk.store, &key).expect("it was used");
        let texts = ["entity_id", "resource", "window", "window_start"].map(|field| item.text(field));
        assert_eq!(texts, [Some("user"), Some("api"), Some(window.name()), Some(iso(start).as_str())]);
        assert_eq!(item.expires, UsageRetention::default().expiry(window, start));
        let prefix = format!("USAGE#{}#", window.name());
        let found = find_all(&desk.store, Index::Resource, &Query::prefix("usage/RESOURCE#api", prefix));
        assert_eq!(found, [key]);
    }
}

fn usage_of_buckets_is_kept_apart<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let all = [
        ("usage", "user", "api"),
        ("usage", "user", "ap"),
        ("usage", "use", "rapi"),
        ("usag", "user", "api"),
    ];
    for (amount, (namespace, entity, resource)) in (1..).zip(all) {
        desk.take(BucketName(namespace, entity, resource), amount);
    }
    for (amount, (namespace, entity, resource)) in (1..).zip(all) {
        let used = desk.used(BucketName(namespace, entity, resource), Window::Hour, START);
        assert_eq!(used, Some((amount, 1)), "{namespace} {entity} {resource}");
    }
}

/// What is in use of all buckets, and what is in no record yet.
fn activity<B: Backend>(desk: &BackendFixture<B>) -> Vec<Activity> {
    let (mut all, mut after) = (Vec::new(), None);
    loop {
        let page = desk.store.activity("usage", Scope::All, after).wait();
        let page = page.expect("a store that is there answers");
        all.extend(page.items);
        after = page.next;
        if after.is_none() {
            all.sort_by(|one, two| (&one.entity, &one.resource).cmp(&(&two.entity, &two.resource)));
            return all;
        }
    }
}

fn records<B: Backend>(desk: &BackendFixture<B>) -> usize {
    find_all(&desk.store, Index::Namespace, &Query::all("usage")).len()
}

fn reading_usage_writes_nothing<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let names: Vec<String> = (0..50).map(|number| format!("user-{number:02}")).collect();
    for name in &names {
        desk.take(BucketName("usage", name, "api"), 100);
    }
    desk.take(BucketName("usage", "user-07", "api"), 300);
    desk.take(BucketName("other", "user-07", "api"), 1);
    let before = records(&desk);
    let told = activity(&desk);
    let keys = [Window::Hour, Window::Day, Window::Month]
        .map(|window| usage_key("usage", "user-07", "api", window, &iso(window.start(START))));
    let items = desk.store.usage_at(&keys).wait().expect("a store that is there answers");
    let said =
        |item: &Item| (item.int("tpm"), item.int("total_events"), item.text("resource") == Some("api"));
    let said: Vec<_> = items.iter().flatten().map(said).collect();
    assert_eq!(said, [(Some(400), Some(2), true); 3]);
    assert_eq!(records(&desk), before, "the question has written");
    assert_eq!(told.iter().map(|it| it.entity.clone()).collect::<Vec<_>>(), names);
    let hour = Window::Hour.start(START);
    assert!(told.iter().all(|it| it.hour == Some((hour, 1 + u64::from(it.entity == "user-07")))));
    assert!(told.iter().all(|it| it.in_use >= 250_000), "a slot of four is held of each");
    // Other limits within the hour: what was counted under the former goes to the records, and the calls stay together.
    let others = Limits::new([Limit::per_day("rpm", 50)]).expect("these limits are valid");
    let costs = others.costs(&demand! { rpm: 1 }).expect("it fits");
    let take = Op::Take { costs: &costs, term: None };
    assert!(super::is_done(&desk.apply_under(&others, BucketName("usage", "user-07", "api"), take, &[])));
    let told = activity(&desk);
    assert!(told.iter().any(|it| it.entity == "user-07" && it.hour == Some((hour, 3))));
    let items = desk.store.usage_at(&keys).wait().expect("a store that is there answers");
    let said = |item: &Item| (item.int("tpm"), item.int("rpm"), item.int("total_events"));
    let said: Vec<_> = items.iter().flatten().map(said).collect();
    assert_eq!(said, [(Some(400), Some(1), Some(3)); 3]);
}

fn a_new_hour_is_written_bucket_by_bucket<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    for number in 0..500 {
        desk.take(BucketName("usage", &format!("user-{number}"), "api"), 1);
    }
    let before = records(&desk);
    desk.hands.advance(hours(1));
    desk.take(BucketName("usage", "user-7", "api"), 1);
    // The hour, the day and the month, and one in which a store may note that they are written.
    let written = records(&desk) - before;
    assert!(written <= 4, "one call writes the hour of its own bucket: {written} records");
    let before = records(&desk);
    desk.take(BucketName("usage", "newcomer", "api"), 1);
    assert!(records(&desk) - before <= 50, "a new bucket sweeps a few");
    assert_eq!(desk.used(BucketName("usage", "user-7", "api"), Window::Day, START), Some((2, 2)));
}

fn concurrent_calls_are_counted_exactly<B: Backend>(open: &impl Fn(Clock) -> B) {
    const THREADS: i64 = 8;
    const ROUNDS: i64 = 25;
    let desk = BackendFixture::open(open);
    let (store, limits) = (&desk.store, &desk.limits);
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
                    store.apply(&call).wait().expect("a store that is there answers");
                    if (thread + round) % 5 == 0 {
                        store.write_usage("usage", Scope::All).wait().expect("a store that is there answers");
                    }
                }
            });
        }
    });
    assert_eq!(used(&desk, START), [Some((THREADS * ROUNDS, THREADS * ROUNDS)); 3]);
}
