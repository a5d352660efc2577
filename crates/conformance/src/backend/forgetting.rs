//! What was forgotten is gone, and a namespace that was closed stays empty.

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
        let desk = BackendFixture::open(open);
        for namespace in [NS, "other"] {
            for entity in entities {
                desk.take(BucketName(namespace, entity, "chat"), 100);
                desk.take(BucketName(namespace, entity, "embed"), 100);
            }
        }
        assert_eq!(desk.forget_all(NS, scope), count, "{scope:?}");
        for (entity, resource) in entities.iter().flat_map(|entity| [(*entity, "chat"), (*entity, "embed")]) {
            let expected = if scope.has(entity, resource) { [1_000, 4] } else { [900, 3] };
            assert_eq!(
                desk.left(BucketName(NS, entity, resource)),
                expected,
                "{scope:?}: {entity} {resource}"
            );
            assert_eq!(desk.left(BucketName("other", entity, resource)), [900, 3], "another namespace");
        }
    }
}

fn forget_reports_how_many_it_forgot<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let names: Vec<String> = (0..=FORGET_MAX).map(|number| format!("entity-{number}")).collect();
    for name in &names {
        desk.take(BucketName(NS, name, "api"), 1);
    }
    let first = desk.store.forget(NS, Scope::All).wait().expect("a store that is there answers");
    assert!((1..=FORGET_MAX).contains(&first), "{first} were forgotten at once");
    assert_eq!(first + desk.forget_all(NS, Scope::All), FORGET_MAX + 1);
    assert!(names.iter().all(|name| desk.left(BucketName(NS, name, "api")) == [1_000, 4]));
}

fn a_forgotten_bucket_has_no_version<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let who = BucketName(NS, "user", "api");
    let costs = desk.costs(1);
    let take = |version| {
        let limits = desk.limits.clone().at_version(version);
        desk.apply_under(&limits, who, Op::Take { costs: &costs, term: None }, &[])
    };
    assert!(is_done(&take(5)));
    assert_eq!(take(4), Ok(TxnOutcome::Stale(0)));
    assert_eq!(desk.forget_all(NS, Scope::Entity("user")), 1);
    assert!(is_done(&take(4)));
}

fn settling_after_the_bucket_was_forgotten_makes_nothing<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let who = BucketName(NS, "user", "api");
    let at = desk.take(who, 100);
    assert_eq!(desk.forget_all(NS, Scope::Entity("user")), 1);
    let before = desk.used(who, Window::Hour, START);
    desk.settle(who, at, 100, 700);
    assert_eq!(desk.left(who), [1_000, 4]);
    assert_eq!(desk.used(who, Window::Hour, START), before, "what was settled on nothing was counted");
    assert_eq!(desk.forget_all(NS, Scope::All), 0, "there is a bucket again");
    // A new bucket stands on its own: the old lease counts in it once, as it would have in the old one.
    desk.take(who, 100);
    assert_eq!(desk.left(who), [900, 3]);
}

/// A store may drop a bucket that is full and idle. What a lease on it settles counts all the same, in full.
fn a_lease_that_outlives_its_idle_bucket_is_charged_and_counted<B: Backend>(open: &impl Fn(Clock) -> B) {
    let mut desk = BackendFixture::open(open);
    desk.limits = Limits::new([Limit::per_day("tpm", 1_000)]).expect("these limits are valid");
    let (over, under) = (BucketName(NS, "over", "api"), BucketName(NS, "under", "api"));
    let taken = [over, under].map(|who| desk.take(who, 100));
    desk.hands.advance(Span::from_secs(3 * 86_400));
    // Each new bucket lets the store look at some of the others.
    for number in 0..200 {
        desk.take(BucketName(NS, &format!("other-{number}"), "api"), 1);
    }
    let (costs, now) = (desk.costs(100), desk.hands.now());
    for ((who, at), used) in [over, under].into_iter().zip(taken).zip([700, 30]) {
        let usage = Usage { at, reserved: &costs, used: &[used], holder: None };
        assert_eq!(desk.apply(who, Op::SettleExisting(usage)), TxnOutcome::Done(vec![StepOutcome::Settled]));
    }
    for (who, left, counted) in [(over, 400, 600), (under, 1_000, -70)] {
        let key = Key::new(&[who.1, who.2]);
        let place = BucketRef { namespace: NS, key: &key, limits: &desk.limits };
        let statuses = desk.store.peek(&place).wait().expect("a store that is there answers");
        assert_eq!(statuses[0].available(), left, "{who:?}");
        assert_eq!(desk.used(who, Window::Hour, now), Some((counted, 0)), "{who:?}");
    }
}

fn a_holder_of_a_forgotten_bucket_holds_nothing<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let who = BucketName(NS, "user", "api");
    let term = LeaseTerm { holder: 1, ttl: Span::from_secs(60) };
    let costs = desk.costs(10);
    assert!(matches!(desk.apply(who, Op::Take { costs: &costs, term: Some(term) }), TxnOutcome::Done(_)));
    assert_eq!(desk.apply(who, Op::Renew(term)), TxnOutcome::Done(vec![StepOutcome::Renewed(true)]));
    desk.forget_all(NS, Scope::All);
    assert_eq!(desk.apply(who, Op::Renew(term)), TxnOutcome::Done(vec![StepOutcome::Renewed(false)]));
    assert_eq!(desk.left(who), [1_000, 4]);
}

fn a_closed_namespace_makes_no_bucket<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let who = BucketName(NS, "user", "api");
    for _ in 0..2 {
        desk.store.close(NS).wait().expect("a store that is there answers");
    }
    let costs = desk.costs(10);
    let take = || Op::Take { costs: &costs, term: None };
    assert!(is_gone(&desk.apply_with(who, take(), &[])));
    let record = Item::new(ItemKey::new("forgetting/A", "1"));
    assert!(is_gone(&desk.apply_with(who, take(), &[Write::Put(record.clone(), vec![])])));
    assert_eq!(get(&desk.store, &record.key), None);
    let over = Usage { at: START, reserved: &costs, used: &[900, 0], holder: None };
    assert!(is_gone(&desk.apply_with(who, Op::Settle(over.clone()), &[])));
    assert!(is_done(&desk.apply_with(who, Op::SettleExisting(over), &[])), "what makes nothing is let pass");
    assert_eq!(desk.left(who), [1_000, 4]);
    assert_eq!(desk.used(who, Window::Month, START), None);
}

fn a_closed_namespace_keeps_its_buckets_until_they_are_forgotten<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let who = BucketName(NS, "user", "api");
    let at = desk.take(who, 100);
    desk.store.close(NS).wait().expect("a store that is there answers");
    desk.settle(who, at, 100, 30);
    assert_eq!(desk.left(who), [970, 4]);
    assert_eq!(desk.forget_all(NS, Scope::All), 1);
    assert!(is_gone(&desk.apply_with(who, Op::Take { costs: &desk.costs(10), term: None }, &[])));
    assert_eq!(desk.forget_all(NS, Scope::All), 0);
}

fn closing_one_namespace_closes_no_other<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    desk.store.close("forget").wait().expect("a store that is there answers");
    desk.take(BucketName(NS, "user", "api"), 10);
    assert_eq!(desk.left(BucketName(NS, "user", "api")), [990, 3]);
}
