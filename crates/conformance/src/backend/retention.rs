//! The retention of usage records.

use tollgate_core::{Span, Tick, Usage};
use tollgate_store::usage::{UsageRetention, Window, iso, usage_key};
use tollgate_store::{Backend, Clock, Op, Scope};

use super::{BackendFixture, BucketName, START, get};

const NAME: BucketName<'_> = BucketName("usage", "user", "api");

/// Keeps hours for 10 days, days for 20 days and months for ever.
fn retention() -> UsageRetention {
    UsageRetention::new(days(10), days(20), None)
}

fn days(count: u64) -> Span {
    Span::from_secs(count * 86_400)
}

pub(super) fn run<B: Backend>(open: &impl Fn(Clock, UsageRetention) -> B) {
    let open = |clock| open(clock, retention());
    a_record_of_usage_is_gone_after_its_retention_and_not_before(&open);
    every_write_of_usage_gives_records_their_expiry(&open);
}

fn write<B: Backend>(fixture: &BackendFixture<B>) {
    fixture.store.write_usage("usage", Scope::All).wait().expect("the store answers");
}

fn a_record_of_usage_is_gone_after_its_retention_and_not_before<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    fixture.take(NAME, 10);
    write(&fixture);
    let BucketName(namespace, entity, resource) = NAME;
    let key = |window: Window| usage_key(namespace, entity, resource, window, &iso(START));
    // At the first instant of a month all three windows begin. The default would keep months for 3,660 days.
    for (day, there) in [
        (9, [true, true, true]),
        (11, [false, true, true]),
        (19, [false, true, true]),
        (21, [false, false, true]),
        (4_000, [false, false, true]),
    ] {
        fixture.clock.set(START + days(day));
        let found = Window::ALL.map(|window| get(&fixture.store, &key(window)).is_some());
        assert_eq!(found, there, "the records of the hour, the day and the month after {day} days");
    }
}

/// Usage is written when a new hour is noticed, when an idle bucket is swept, when a missing bucket is settled, and when a
/// caller asks for it.
fn every_write_of_usage_gives_records_their_expiry<B: Backend>(open: &impl Fn(Clock) -> B) {
    let fixture = BackendFixture::open(open);
    let check = |name: BucketName<'_>, at: Tick| {
        let BucketName(namespace, entity, resource) = name;
        for window in Window::ALL {
            let start = window.start(at);
            let item = get(&fixture.store, &usage_key(namespace, entity, resource, window, &iso(start)));
            let item = item.unwrap_or_else(|| panic!("{name:?} has no record of {window:?}"));
            assert_eq!(item.expires, retention().expiry(window, start), "{name:?}, {window:?}");
        }
    };
    fixture.take(NAME, 10);
    fixture.clock.advance(Span::from_secs(3_600));
    fixture.take(NAME, 10);
    let gone = BucketName("usage", "gone", "api");
    let costs = fixture.costs(10);
    fixture.apply(gone, Op::Settle(Usage { at: START, reserved: &costs, used: &[30, 0], holder: None }));
    write(&fixture);
    check(NAME, START);
    check(NAME, fixture.clock.now());
    check(gone, fixture.clock.now());
    let idle = BucketName("usage", "idle", "api");
    let at = fixture.take(idle, 10);
    fixture.settle(idle, at, 10, 10);
    fixture.clock.advance(days(2));
    for number in 0..60 {
        fixture.take(BucketName("usage", &format!("new-{number}"), "api"), 1);
    }
    write(&fixture);
    check(idle, at);
}
