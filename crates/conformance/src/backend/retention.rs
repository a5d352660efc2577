//! How long records of usage are kept.

use tollgate_core::{Span, Tick, Usage};
use tollgate_store::usage::{UsageRetention, Window, iso, usage_key};
use tollgate_store::{Backend, Clock, Op, Scope};

use super::{BackendFixture, BucketName, START, get};

const WHO: BucketName<'_> = BucketName("usage", "user", "api");

/// Hours for 10 days, days for 20 days and months for ever.
fn kept() -> UsageRetention {
    UsageRetention::new(days(10), days(20), None)
}

fn days(count: u64) -> Span {
    Span::from_secs(count * 86_400)
}

pub(super) fn run<B: Backend>(open: &impl Fn(Clock, UsageRetention) -> B) {
    let open = |clock| open(clock, kept());
    a_record_of_usage_is_gone_after_its_retention_and_not_before(&open);
    every_write_of_usage_gives_records_their_expiry(&open);
}

fn write<B: Backend>(desk: &BackendFixture<B>) {
    desk.store.write_usage("usage", Scope::All).wait().expect("a store that is there answers");
}

fn a_record_of_usage_is_gone_after_its_retention_and_not_before<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    desk.take(WHO, 10);
    write(&desk);
    let BucketName(namespace, entity, resource) = WHO;
    let key = |window: Window| usage_key(namespace, entity, resource, window, &iso(START));
    // At the first instant of a month all three windows begin. The default would keep months for 3,660 days.
    for (day, there) in [
        (9, [true, true, true]),
        (11, [false, true, true]),
        (19, [false, true, true]),
        (21, [false, false, true]),
        (4_000, [false, false, true]),
    ] {
        desk.hands.set(START + days(day));
        let found = Window::ALL.map(|window| get(&desk.store, &key(window)).is_some());
        assert_eq!(found, there, "the records of the hour, the day and the month after {day} days");
    }
}

/// When the turn of the hour is noticed, when an idle bucket is swept, when a bucket is settled that is not there, and when a
/// caller asks for it.
fn every_write_of_usage_gives_records_their_expiry<B: Backend>(open: &impl Fn(Clock) -> B) {
    let desk = BackendFixture::open(open);
    let check = |whose: BucketName<'_>, at: Tick| {
        let BucketName(namespace, entity, resource) = whose;
        for window in Window::ALL {
            let start = window.start(at);
            let item = get(&desk.store, &usage_key(namespace, entity, resource, window, &iso(start)));
            let item = item.unwrap_or_else(|| panic!("{whose:?} has no record of {window:?}"));
            assert_eq!(item.expires, kept().expiry(window, start), "{whose:?}, {window:?}");
        }
    };
    desk.take(WHO, 10);
    desk.hands.advance(Span::from_secs(3_600));
    desk.take(WHO, 10);
    let gone = BucketName("usage", "gone", "api");
    let costs = desk.costs(10);
    desk.apply(gone, Op::Settle(Usage { at: START, reserved: &costs, used: &[30, 0], holder: None }));
    write(&desk);
    check(WHO, START);
    check(WHO, desk.hands.now());
    check(gone, desk.hands.now());
    let idle = BucketName("usage", "idle", "api");
    let at = desk.take(idle, 10);
    desk.settle(idle, at, 10, 10);
    desk.hands.advance(days(2));
    for number in 0..60 {
        desk.take(BucketName("usage", &format!("new-{number}"), "api"), 1);
    }
    write(&desk);
    check(idle, at);
}
