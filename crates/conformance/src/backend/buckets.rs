//! Listing buckets.

use tollgate_core::{Limit, Limits, Status};
use tollgate_store::records::{Cursor, Page};
use tollgate_store::{Backend, BucketStatus, Clock, Op, Scope, StoreError};

use super::{BackendFixture, BucketName};
use crate::fixture::all_pages;

const NS: &str = "buckets";

pub(super) fn run<B: Backend>(open: &impl Fn(Clock) -> B) {
    buckets_are_listed_once_each_in_their_scope(open);
    buckets_are_listed_in_pages(open);
    buckets_made_or_forgotten_between_pages_move_no_other(open);
    a_bucket_is_listed_under_the_limits_it_was_last_used_under(open);
    an_invalid_cursor_is_refused(open);
}

fn page<B: Backend>(
    fixture: &BackendFixture<B>,
    scope: Scope<'_>,
    after: Option<Cursor>,
    limit: usize,
) -> Page<BucketStatus> {
    let page = fixture.store.buckets(NS, scope, after, limit).wait().expect("the store answers");
    assert!(page.items.len() <= limit, "a page of {limit} has {}", page.items.len());
    page
}

/// Returns their names, sorted: a store lists buckets in any order.
fn names(buckets: &[BucketStatus]) -> Vec<String> {
    let mut names: Vec<_> =
        buckets.iter().map(|bucket| format!("{} {}", bucket.entity, bucket.resource)).collect();
    names.sort_unstable();
    names
}

fn all<B: Backend>(fixture: &BackendFixture<B>, scope: Scope<'_>, limit: usize) -> Vec<BucketStatus> {
    all_pages(|after| page(fixture, scope, after, limit))
}

fn fill<B: Backend>(fixture: &BackendFixture<B>) {
    for (entity, resource) in [("b", "y"), ("a", "y"), ("b", "x"), ("a b", "x"), ("ab", "x"), ("ü", "x")] {
        fixture.take(BucketName(NS, entity, resource), 100);
    }
    fixture.take(BucketName("other", "a", "x"), 100);
}

fn buckets_are_listed_once_each_in_their_scope<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    fill(&fixture);
    let found = |scope| names(&all(&fixture, scope, 100));
    assert_eq!(found(Scope::All), ["a b x", "a y", "ab x", "b x", "b y", "ü x"]);
    assert_eq!(found(Scope::Entity("b")), ["b x", "b y"]);
    assert_eq!(found(Scope::Resource("x")), ["a b x", "ab x", "b x", "ü x"]);
    assert_eq!(found(Scope::Bucket("a", "y")), ["a y"]);
    assert_eq!(found(Scope::Bucket("a", "x")), [""; 0], "that is another namespace's");
    let tpm = |bucket: &BucketStatus| bucket.limits.iter().map(Status::available).collect::<Vec<_>>();
    assert!(all(&fixture, Scope::All, 100).iter().all(|bucket| tpm(bucket) == [900, 3]));
}

fn buckets_are_listed_in_pages<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    fill(&fixture);
    for limit in 1..=7 {
        for scope in [Scope::All, Scope::Resource("x"), Scope::Entity("b")] {
            assert_eq!(
                names(&all(&fixture, scope, limit)),
                names(&all(&fixture, scope, 100)),
                "in pages of {limit}"
            );
        }
    }
}

fn buckets_made_or_forgotten_between_pages_move_no_other<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    for entity in ["b", "d", "f", "h"] {
        fixture.take(BucketName(NS, entity, "x"), 100);
    }
    let first = page(&fixture, Scope::All, None, 2);
    // The last that was read is removed, and others are made before and after it.
    let last = first.items.last().expect("a page that is not the last has something").entity.clone();
    assert_eq!(fixture.forget_all(NS, Scope::Entity(&last)), 1);
    fixture.take(BucketName(NS, "a", "x"), 100);
    fixture.take(BucketName(NS, "i", "x"), 100);
    let (mut read, mut next) = (first.items, first.next);
    while let Some(after) = next {
        let page = page(&fixture, Scope::All, Some(after), 2);
        read.extend(page.items);
        next = page.next;
    }
    let stayed: Vec<String> =
        names(&read).into_iter().filter(|name| name != "a x" && name != "i x").collect();
    assert_eq!(stayed, ["b x", "d x", "f x", "h x"]);
}

fn a_bucket_is_listed_under_the_limits_it_was_last_used_under<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let name = BucketName(NS, "user", "api");
    fixture.take(name, 100);
    let limits = Limits::new([Limit::per_day("tpm", 500)]).expect("these limits are valid");
    let costs = super::costs(&limits, 50);
    assert!(super::is_done(&fixture.apply_under(&limits, name, Op::Take { costs: &costs, term: None }, &[])));
    let found = all(&fixture, Scope::Entity("user"), 10);
    let limit_of =
        |status: &Status| (status.limit().name().to_string(), status.limit().capacity(), status.available());
    let listed: Vec<_> = found.iter().flat_map(|bucket| &bucket.limits).map(limit_of).collect();
    assert_eq!(listed, [("tpm".to_string(), 500, 450)]);
}

fn an_invalid_cursor_is_refused<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    fill(&fixture);
    let refused = fixture.store.buckets(NS, Scope::All, Some(Cursor("made up".into())), 10).wait();
    assert!(matches!(refused, Err(StoreError::BadCall(_))), "{refused:?}");
}
