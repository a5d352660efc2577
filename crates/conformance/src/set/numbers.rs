//! The numbers that must hold.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use tollgate_core::{Demand, LIMITS_MAX, Limit, LimitsError, Ready, Span, demand};

use super::fixture::{RecordingObserver, available, count, denial, spend, take};
use super::{OpenSetStore, SetFixture};
use crate::fixture::UNEVEN_START;

/// rpm 100/min: 100 admitted at T, the 101st denied with a wait of 0.6 s; idle for an hour: 100, not 101.
pub fn of_100_a_minute_the_101st_has_a_wait_of_600_ms_and_is_admitted_then(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_minute("rpm", 100)]);
    assert_eq!(count(&set, demand! { rpm: 1 }), 100);
    let denied = denial(&set, demand! { rpm: 1 });
    assert_eq!(denied.wait(), Some(Duration::from_millis(600)));
    assert_eq!(denied.limited_by().expect("a limit refuses").limit().name(), "rpm");
    fixture.clock.set(UNEVEN_START + Span::from_micros(599_999));
    assert_eq!(count(&set, demand! { rpm: 1 }), 0);
    fixture.clock.set(UNEVEN_START + Span::from_millis(600));
    assert_eq!(count(&set, demand! { rpm: 1 }), 1);
    fixture.clock.advance(Span::from_secs(3_600));
    assert_eq!(count(&set, demand! { rpm: 1 }), 100);
}

/// rpm 100, tpm 1000, 100 demands of {1, 400} at once.
pub fn of_100_demands_of_1_and_400_2_are_admitted_and_the_others_denied_by_tpm_for_12_s(
    open: OpenSetStore<'_>,
) {
    let set = SetFixture::new(open).set([Limit::per_minute("rpm", 100), Limit::per_minute("tpm", 1_000)]);
    let attempt = |_| set.try_acquire(demand! { rpm: 1, tpm: 400 }).wait().expect("it is valid");
    let denials: Vec<_> = (0..100).map(attempt).filter_map(|attempt| attempt.denied()).collect();
    assert_eq!(denials.len(), 98);
    for denial in denials {
        assert_eq!(denial.to_string(), "tpm has 200 of the 400 asked; retry in 12s");
        assert_eq!(denial.wait(), Some(Duration::from_secs(12)));
    }
    assert_eq!((available(&set, "rpm"), available(&set, "tpm")), (98, 200));
}

/// A 10/day limit beside a 1/s limit that is touched for 24 h: the slow one has regained its 10.
pub fn a_slow_limit_beside_one_that_is_used_all_day_has_regained_its_10(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_day("slow", 10), Limit::per_second("fast", 1)]);
    spend(&set, demand! { slow: 10 });
    for _ in 0..86_400 / 80 {
        spend(&set, demand! { fast: 1 });
        fixture.clock.advance(Span::from_secs(80));
    }
    assert_eq!(count(&set, demand! { slow: 1 }), 10);
    let ready = set.ready(demand! { slow: 1 }).wait();
    assert_eq!(ready, Ok(Ready::At(fixture.clock.now() + Span::from_secs(8_640))));
}

/// 7 tokens per 3 s, 1 taken every 100 ms: no drift.
pub fn of_7_per_3_s_taken_one_every_100_ms_for_ten_minutes_there_are_7_and_1400(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::rate("odd", 7, Duration::from_secs(3))]);
    let mut admitted = count(&set, demand! { odd: 1 });
    for _ in 0..6_000 {
        fixture.advance_ms(100);
        admitted += usize::from(take(&set, demand! { odd: 1 }).is_some());
    }
    assert_eq!((admitted, available(&set, "odd")), (7 + 1_400, 0));
}

/// Clock 5 s back: nothing minted, nothing stuck; clock an hour forward: full, not more.
pub fn a_clock_5_s_back_mints_nothing_and_an_hour_forward_fills_and_no_more(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let set = fixture.set([Limit::per_minute("rpm", 100)]);
    assert_eq!(count(&set, demand! { rpm: 1 }), 100);
    for _ in 0..10 {
        fixture.clock.set(UNEVEN_START - Span::from_secs(5));
        assert_eq!(count(&set, demand! { rpm: 1 }), 0);
        fixture.clock.set(UNEVEN_START);
        assert_eq!(count(&set, demand! { rpm: 1 }), 0);
    }
    fixture.advance_ms(600);
    assert_eq!(count(&set, demand! { rpm: 1 }), 1);
    fixture.clock.advance(Span::from_secs(3_600));
    assert_eq!(count(&set, demand! { rpm: 1 }), 100);
    fixture.clock.set(UNEVEN_START);
    assert_eq!(count(&set, demand! { rpm: 1 }), 0);
}

/// rpm needs 3 s and tpm needs 7 s: granted at 7 s, one wait event, limited by tpm.
pub fn where_rpm_needs_3_s_and_tpm_7_s_the_waiter_is_granted_at_7_s_with_one_event_limited_by_tpm(
    open: OpenSetStore<'_>,
) {
    let (fixture, events) = (SetFixture::new(open), RecordingObserver::default());
    let limits =
        [Limit::rate("rpm", 1, Duration::from_secs(3)), Limit::rate("tpm", 100, Duration::from_secs(7))];
    let set = fixture.builder("law", limits).observer(events.observer()).build().expect("it is valid");
    spend(&set, demand! { rpm: 1, tpm: 100 });
    let mut waiting = fixture.wait_for(&set, demand! { rpm: 1, tpm: 100 });
    events.take();
    for micros in [3_000_000, 5_000_000, 6_999_999] {
        fixture.clock.set(UNEVEN_START + Span::from_micros(micros));
        waiting.still_waits();
    }
    fixture.clock.set(UNEVEN_START + Span::from_secs(7));
    let lease = waiting.answer().expect("it fits");
    assert_eq!(lease.waited(), Some(Duration::from_secs(7)));
    assert_eq!(events.take(), [r#"Waited { limit: Some("tpm"), duration: 7s }"#, "Allowed"]);
}

/// Nothing is admitted twice, whichever threads try.
pub fn of_200_tries_from_8_threads_on_100_exactly_100_are_admitted(open: OpenSetStore<'_>) {
    let set = SetFixture::new(open).set([Limit::quota("all", 100, Duration::from_secs(86_400))]);
    let admitted = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let tries = (0..25).filter(|_| take(&set, demand! { all: 1 }).is_some()).count();
                admitted.fetch_add(tries, Ordering::Relaxed);
            });
        }
    });
    assert_eq!((admitted.into_inner(), available(&set, "all")), (100, 0));
}

/// Limits that a set adds itself, such as the cooldown, do not count.
pub fn a_set_has_32_limits_and_no_more(open: OpenSetStore<'_>) {
    let fixture = SetFixture::new(open);
    let limits = |count: u64| (0..count).map(|index| Limit::per_minute(format!("limit-{index}"), index + 1));
    let build = |count: u64| fixture.builder("law", []).limits(limits(count)).build();
    let set = build(LIMITS_MAX as u64).expect("so many may be given");
    assert!(matches!(build(LIMITS_MAX as u64 + 1), Err(LimitsError::TooMany(33))));
    let names: Vec<String> = (0..LIMITS_MAX).map(|index| format!("limit-{index}")).collect();
    let all: Demand = names.iter().map(|name| (name.as_str(), 1_u64)).collect();
    assert_eq!(count(&set, &all), 1, "the first has 1");
    let last: Demand = names[31..].iter().map(|name| (name.as_str(), 1_u64)).collect();
    assert_eq!(available(&set, "limit-31"), 31);
    set.cool_down(Duration::from_secs(1)).wait().expect("the store answers");
    assert!(take(&set, &last).is_none());
    fixture.advance_ms(1_000);
    assert_eq!(count(&set, &last), 31);
}
