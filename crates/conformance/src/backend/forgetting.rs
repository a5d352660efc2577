//! Forgotten buckets are gone, and a closed namespace stays empty.

use tollgate_core::{Limit, Limits, Span, Usage};
use tollgate_store::records::{Item, ItemKey, Write};
use tollgate_store::usage::Window;
use tollgate_store::{
    Backend, BucketRef, Clock, FORGET_MAX, Key, LeaseTerm, Op, Scope, StepOutcome, TxnOutcome,
};

use super::{BackendFixture, BucketName, START, get, is_done, is_gone};

pub(super) fn run<B: Backend>(open: &impl Fn(Clock) -> B) {
    a_forgotten_bucket_is_full_and_the_others_are_unchanged(open);
    forget_reports_how_many_it_forgot(open);
    a_forgotten_bucket_has_no_version(open);
    settling_after_the_bucket_was_forgotten_makes_nothing(open);
    a_lease_that_outlives_its_idle_bucket_is_charged_and_counted(open);
    a_holder_of_a_forgotten_bucket_holds_nothing(open);
    a_closed_namespace_makes_no_bucket(open);
    a_closed_namespace_keeps_its_buckets_until_they_are_forgotten(open);
    closing_one_namespace_closes_no_other(open);
}

const NS: &str = "forgetting";

fn a_forgotten_bucket_is_full_and_the_others_are_unchanged<B: Backend>(open: &impl Fn(Clock) -> B) {
    let scopes = [
        (Scope::Entity("one"), 2),
        (Scope::Resource("chat"), 3),
        (Scope::Bucket("one", "chat"), 1),
        (Scope::Bucket("one", "none"), 0),
        (Scope::Entity("on"), 0),
        (Scope::All, 6),
    ];
    let entities = ["one", "one#", "two"];
    for (scope, count) in scopes {
        let fixture = BackendFixture::open(open);
        for namespace in [NS, "other"] {
            for entity in entities {
                fixture.take(BucketName(namespace, entity, "chat"), 100);
                fixture.take(BucketName(namespace, entity, "embed"), 100);
            }
        }
        assert_eq!(fixture.forget_all(NS, scope), count, "{scope:?}");
        for (entity, resource) in entities.iter().flat_map(|entity| [(*entity, "chat"), (*entity, "embed")]) {
            let expected = if scope.has(entity, resource) { [1_000, 4] } else { [900, 3] };
            assert_eq!(
                fixture.left(BucketName(NS, entity, resource)),
                expected,
                "{scope:?}: {entity} {resource}"
            );
            assert_eq!(fixture.left(BucketName("other", entity, resource)), [900, 3], "another namespace");
        }
    }
}

fn forget_reports_how_many_it_forgot<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let names: Vec<String> = (0..=FORGET_MAX).map(|number| format!("entity-{number}")).collect();
    for name in &names {
        fixture.take(BucketName(NS, name, "api"), 1);
    }
    let first = fixture.store.forget(NS, Scope::All).wait().expect("the store answers");
    assert!((1..=FORGET_MAX).contains(&first), "{first} were forgotten at once");
    assert_eq!(first + fixture.forget_all(NS, Scope::All), FORGET_MAX + 1);
    assert!(names.iter().all(|name| fixture.left(BucketName(NS, name, "api")) == [1_000, 4]));
}

fn a_forgotten_bucket_has_no_version<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let name = BucketName(NS, "user", "api");
    let costs = fixture.costs(1);
    let take = |version| {
        let limits = fixture.limits.clone().at_version(version);
        fixture.apply_under(&limits, name, Op::Take { costs: &costs, term: None }, &[])
    };
    assert!(is_done(&take(5)));
    assert_eq!(take(4), Ok(TxnOutcome::Stale(0)));
    assert_eq!(fixture.forget_all(NS, Scope::Entity("user")), 1);
    assert!(is_done(&take(4)));
}

fn settling_after_the_bucket_was_forgotten_makes_nothing<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let name = BucketName(NS, "user", "api");
    let at = fixture.take(name, 100);
    assert_eq!(fixture.forget_all(NS, Scope::Entity("user")), 1);
    let before = fixture.used(name, Window::Hour, START);
    fixture.settle(name, at, 100, 700);
    assert_eq!(fixture.left(name), [1_000, 4]);
    assert_eq!(fixture.used(name, Window::Hour, START), before, "what was settled on nothing was counted");
    assert_eq!(fixture.forget_all(NS, Scope::All), 0, "there is a bucket again");
    // A new bucket owes nothing to the old one.
    fixture.take(name, 100);
    assert_eq!(fixture.left(name), [900, 3]);
}

/// A store may drop a bucket that is full and idle. A settlement of a lease on it counts all the same, in full.
fn a_lease_that_outlives_its_idle_bucket_is_charged_and_counted<B: Backend>(open: &impl Fn(Clock) -> B) {
    let mut fixture = BackendFixture::open(open);
    fixture.limits = Limits::new([Limit::per_day("tpm", 1_000)]).expect("these limits are valid");
    let (over, under) = (BucketName(NS, "over", "api"), BucketName(NS, "under", "api"));
    let taken = [over, under].map(|name| fixture.take(name, 100));
    fixture.clock.advance(Span::from_secs(3 * 86_400));
    // Each new bucket lets the store sweep some of the others.
    for number in 0..200 {
        fixture.take(BucketName(NS, &format!("other-{number}"), "api"), 1);
    }
    let (costs, now) = (fixture.costs(100), fixture.clock.now());
    for ((name, at), used) in [over, under].into_iter().zip(taken).zip([700, 30]) {
        let usage = Usage { at, reserved: &costs, used: &[used], holder: None };
        assert_eq!(
            fixture.apply(name, Op::SettleExisting(usage)),
            TxnOutcome::Done(vec![StepOutcome::Settled])
        );
    }
    for (name, left, counted) in [(over, 400, 600), (under, 1_000, -70)] {
        let key = Key::new(&[name.1, name.2]);
        let place = BucketRef { namespace: NS, key: &key, limits: &fixture.limits };
        let statuses = fixture.store.peek(&place).wait().expect("the store answers");
        assert_eq!(statuses[0].available(), left, "{name:?}");
        assert_eq!(fixture.used(name, Window::Hour, now), Some((counted, 0)), "{name:?}");
    }
}

fn a_holder_of_a_forgotten_bucket_holds_nothing<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let name = BucketName(NS, "user", "api");
    let term = LeaseTerm { holder: 1, ttl: Span::from_secs(60) };
    let costs = fixture.costs(10);
    assert!(matches!(fixture.apply(name, Op::Take { costs: &costs, term: Some(term) }), TxnOutcome::Done(_)));
    assert_eq!(fixture.apply(name, Op::Renew(term)), TxnOutcome::Done(vec![StepOutcome::Renewed(true)]));
    fixture.forget_all(NS, Scope::All);
    assert_eq!(fixture.apply(name, Op::Renew(term)), TxnOutcome::Done(vec![StepOutcome::Renewed(false)]));
    assert_eq!(fixture.left(name), [1_000, 4]);
}

fn a_closed_namespace_makes_no_bucket<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let name = BucketName(NS, "user", "api");
    for _ in 0..2 {
        fixture.store.close(NS).wait().expect("the store answers");
    }
    let costs = fixture.costs(10);
    let take = || Op::Take { costs: &costs, term: None };
    assert!(is_gone(&fixture.apply_with(name, take(), &[])));
    let record = Item::new(ItemKey::new("forgetting/A", "1"));
    assert!(is_gone(&fixture.apply_with(name, take(), &[Write::Put(record.clone(), vec![])])));
    assert_eq!(get(&fixture.store, &record.key), None);
    let over = Usage { at: START, reserved: &costs, used: &[900, 0], holder: None };
    assert!(is_gone(&fixture.apply_with(name, Op::Settle(over.clone()), &[])));
    assert!(
        is_done(&fixture.apply_with(name, Op::SettleExisting(over), &[])),
        "what makes nothing is let pass"
    );
    assert_eq!(fixture.left(name), [1_000, 4]);
    assert_eq!(fixture.used(name, Window::Month, START), None);
}

fn a_closed_namespace_keeps_its_buckets_until_they_are_forgotten<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let name = BucketName(NS, "user", "api");
    let at = fixture.take(name, 100);
    fixture.store.close(NS).wait().expect("the store answers");
    fixture.settle(name, at, 100, 30);
    assert_eq!(fixture.left(name), [970, 4]);
    assert_eq!(fixture.forget_all(NS, Scope::All), 1);
    assert!(is_gone(&fixture.apply_with(name, Op::Take { costs: &fixture.costs(10), term: None }, &[])));
    assert_eq!(fixture.forget_all(NS, Scope::All), 0);
}

fn closing_one_namespace_closes_no_other<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    fixture.store.close("forget").wait().expect("the store answers");
    fixture.take(BucketName(NS, "user", "api"), 10);
    assert_eq!(fixture.left(BucketName(NS, "user", "api")), [990, 3]);
}
