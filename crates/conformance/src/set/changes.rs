//! Cooldowns and limits that change.

use std::time::Duration;

use tollgate::{LimitSet, ReplaceError};
use tollgate_core::{Limit, LimitBuilder, LimitsError, Ready, Span, demand};

use super::fixture::{available, count, denial, spend, take};
use super::{OpenSetStore, SetFixture};
use crate::fixture::UNEVEN_START;

const SECOND: Duration = Duration::from_secs(1);

fn cooling(set: &LimitSet) -> Option<u64> {
    let status = set.peek().wait().expect("the store answers");
    status.cooling_until.map(|until| until.since(UNEVEN_START).as_micros())
}

fn cool_down(set: &LimitSet, duration: Duration) {
    set.cool_down(duration).wait().expect("the store answers");
}

pub fn a_cooldown_stops_all_callers_to_the_microsecond(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_minute("rpm", 100), Limit::resource("slots", 5)]);
    let held = take(&set, demand! { rpm: 1 }).expect("none lasts");
    cool_down(&set, 10 * SECOND);
    let denied = denial(&set, demand! { rpm: 1 });
    assert_eq!((denied.wait(), denied.limited_by()), (Some(10 * SECOND), None));
    assert_eq!(set.ready(demand! { rpm: 1 }).wait(), Ok(Ready::At(UNEVEN_START + Span::from_secs(10))));
    assert_eq!(cooling(&set), Some(10_000_000));
    held.settle(demand! { rpm: 0 }).wait().expect("leases end as ever");
    assert_eq!((available(&set, "rpm"), available(&set, "slots")), (100, 5));
    assert!(set.acquire(demand! { rpm: 1 }).timeout(9 * SECOND).wait().is_err(), "it fails at once");
    fixture.clock.set(UNEVEN_START + Span::from_micros(9_999_999));
    assert!(take(&set, demand! { rpm: 1 }).is_none());
    fixture.clock.set(UNEVEN_START + Span::from_secs(10));
    assert!(take(&set, demand! { rpm: 1 }).is_some());
    assert_eq!(cooling(&set), None);
}

/// A caller that later asks for less does not override the longer cooldown.
pub fn a_cooldown_is_extended_and_never_shortened_and_can_be_ended(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_minute("rpm", 100)]);
    cool_down(&set, 10 * SECOND);
    fixture.advance_ms(2_000);
    cool_down(&set, SECOND);
    assert_eq!(cooling(&set), Some(10_000_000));
    cool_down(&set, 20 * SECOND);
    assert_eq!(cooling(&set), Some(22_000_000));
    cool_down(&set, Duration::ZERO);
    assert_eq!(cooling(&set), Some(22_000_000));
    set.end_cool_down().wait().expect("the store answers");
    assert_eq!((cooling(&set), count(&set, demand! { rpm: 100 })), (None, 1));
}

/// A cooldown that is ended early admits waiters at once.
pub fn a_waiter_is_admitted_when_the_cooldown_is_over(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_minute("rpm", 100)]);
    cool_down(&set, 10 * SECOND);
    let mut first = fixture.wait_for(&set, demand! { rpm: 1 });
    let mut second = fixture.wait_for(&set, demand! { rpm: 1 });
    fixture.advance_ms(9_999);
    first.still_waits();
    fixture.advance_ms(1);
    assert!(first.answer().is_ok() && second.answer().is_ok());
    cool_down(&set, 10 * SECOND);
    let mut third = fixture.wait_for(&set, demand! { rpm: 1 });
    set.end_cool_down().wait().expect("the store answers");
    assert!(third.answer().is_ok());
}

/// The usage is carried over.
pub fn lowered_limits_clamp_and_raised_ones_mint_nothing(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_minute("rpm", 1_000)]);
    spend(&set, demand! { rpm: 1 });
    set.replace(Limit::per_minute("rpm", 10)).wait().expect("it fits the set");
    assert_eq!((available(&set, "rpm"), set.limits()[0].capacity()), (10, 10));
    assert!(set.try_acquire(demand! { rpm: 50 }).wait().is_err(), "it can never fit");
    set.replace(Limit::per_minute("rpm", 1_000)).wait().expect("it fits the set");
    assert_eq!(available(&set, "rpm"), 10);
    fixture.advance_ms(600);
    assert_eq!(available(&set, "rpm"), 20, "it refills at the new rate");
}

pub fn raised_limits_admit_waiters(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_hour("rph", 10), Limit::resource("slots", 1)]);
    let _held = take(&set, demand! { rph: 1 }).expect("it fits");
    let mut waiting = fixture.wait_for(&set, demand! { rph: 1 });
    set.replace(Limit::resource("slots", 2)).wait().expect("it fits the set");
    assert!(waiting.answer().is_ok());
}

pub fn a_limit_that_does_not_fit_is_not_replaced(open: OpenSetStore<'_>) {
    let set = SetFixture::new(open).set([Limit::per_minute("rpm", 10)]);
    let why = |limit: LimitBuilder| match set.replace(limit).wait() {
        Err(ReplaceError::Limits(why)) => why,
        other => panic!("{other:?}"),
    };
    assert!(matches!(why(Limit::resource("rpm", 10)), LimitsError::OtherKind(_)));
    assert!(matches!(why(Limit::per_minute("tpm", 10)), LimitsError::Unknown(_)));
    assert!(matches!(why(Limit::per_minute("rpm", 0)), LimitsError::Limit(_)));
    assert_eq!(available(&set, "rpm"), 10);
}

/// No hidden limit is in a status, a denial, or the limits.
pub fn a_peek_shows_the_limits_of_the_set_and_no_others(open: OpenSetStore<'_>) {
    let set = SetFixture::new(open).set([Limit::per_minute("rpm", 10), Limit::resource("slots", 2)]);
    spend(&set, demand! { rpm: 10 });
    let status = set.peek().wait().expect("the store answers");
    let shown: Vec<_> = status.limits.iter().map(|it| (it.limit().name().as_str(), it.available())).collect();
    assert_eq!((shown, status.waiting), (vec![("rpm", 0), ("slots", 2)], 0));
    assert_eq!(denial(&set, demand! { rpm: 1 }).statuses().count(), 2);
    assert_eq!(set.limits().iter().map(|limit| limit.name().as_str()).collect::<Vec<_>>(), ["rpm", "slots"]);
}

/// A waiter that was short of it is admitted, and what is held of it does not matter.
pub fn a_removed_limit_refuses_nothing_any_more(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let quota = Limit::quota("spend", 1, Duration::from_secs(86_400));
    let set =
        fixture.set([Limit::per_day("rpd", 1), quota, Limit::resource("slots", 1), Limit::per_day("tpd", 9)]);
    let held = take(&set, demand! { rpd: 1, spend: 1, tpd: 1 }).expect("it fits");
    let mut waiting = fixture.wait_for(&set, demand! { rpd: 1, spend: 1, tpd: 1 });
    for name in ["rpd", "spend", "slots"] {
        waiting.still_waits();
        set.remove(name).wait().expect("the limit is there");
    }
    drop(waiting.answer().expect("only tpd is left"));
    held.settle(demand! { rpd: 5, tpd: 3 }).wait().expect("leases end as ever");
    assert_eq!((available(&set, "tpd"), count(&set, demand! { rpd: 1, tpd: 1 })), (5, 5));
    let unknown = set.remove("other").wait();
    assert!(matches!(unknown, Err(ReplaceError::Limits(LimitsError::Unknown(_)))), "{unknown:?}");
}
