//! Leases: what they charge, give back and say, however they end.

mod support;

use std::time::Duration;

use support::{advance_ms, available, builder, count, hands, set, spend, try_take};
use tollgate::{AMOUNT_MAX, Demand, DemandError, LeaseError, Limit, LimitSet, demand};

const MINUTE: Duration = Duration::from_secs(60);

fn api() -> LimitSet {
    let limits = [
        Limit::per_minute("rpm", 10),
        Limit::per_minute("tpm", 1_000),
        Limit::calls(10, MINUTE),
        Limit::resource("connections", 4),
    ];
    set(&hands(), limits)
}

#[test]
fn less_than_taken_is_given_back_equal_changes_nothing_and_more_becomes_debt() {
    for (used, left) in [(150, 850), (0, 1_000), (400, 600), (1_000, 0), (1_700, -700)] {
        let set = api();
        let lease = try_take(&set, demand! { tpm: 400 }).unwrap();
        assert_eq!(available(&set, "tpm"), 600);
        lease.settle(demand! { tpm: used }).wait().unwrap();
        assert_eq!(available(&set, "tpm"), left, "used {used}");
        assert_eq!((available(&set, "connections"), available(&set, "call_count")), (4, 9));
    }
}

#[test]
fn debt_is_repaid_by_time_before_anybody_is_admitted() {
    let hands = hands();
    let set = set(&hands, [Limit::per_minute("tpm", 60)]);
    try_take(&set, demand! { tpm: 60 }).unwrap().settle(demand! { tpm: 90 }).wait().unwrap();
    assert_eq!(available(&set, "tpm"), -30);
    let denial = set.try_acquire(demand! { tpm: 1 }).wait().unwrap().denied().unwrap();
    assert_eq!(denial.wait(), Some(Duration::from_secs(31)));
    advance_ms(&hands, 30_999);
    assert_eq!(count(&set, demand! { tpm: 1 }), 0);
    advance_ms(&hands, 1);
    assert_eq!(count(&set, demand! { tpm: 1 }), 1);
}

#[test]
fn a_commit_without_a_report_charges_what_was_reserved_and_a_lease_names_what_is_unreported() {
    let set = api();
    let lease = try_take(&set, demand! { rpm: 1, tpm: 400, connections: 2 }).unwrap();
    assert_eq!(lease.unreported(), ["rpm", "tpm"]);
    lease.commit().wait().unwrap();
    assert_eq!(available(&set, "connections"), 4);
    assert_eq!((available(&set, "rpm"), available(&set, "tpm")), (9, 600), "charged as reserved");
}

#[test]
fn what_was_reported_counts_at_the_commit_and_only_the_rest_is_unreported() {
    let set = api();
    let mut lease = try_take(&set, demand! { rpm: 1, tpm: 400 }).unwrap();
    lease.report(demand! { tpm: 900 }).unwrap();
    lease.report(demand! { tpm: 100 }).unwrap();
    assert_eq!(available(&set, "tpm"), 600, "a report counts when the lease ends");
    assert_eq!(lease.unreported(), ["rpm"]);
    lease.commit().wait().unwrap();
    assert_eq!(available(&set, "tpm"), 900, "the last report counts");

    let mut lease = try_take(&set, demand! { rpm: 1, tpm: 400 }).unwrap();
    lease.report(demand! { tpm: 100 }).unwrap();
    lease.report(demand! { rpm: 1 }).unwrap();
    lease.commit().wait().unwrap();
    assert_eq!(available(&set, "tpm"), 800);
}

#[test]
fn a_report_counts_also_when_the_lease_is_dropped_or_settled_with_the_rest() {
    let set = api();
    let mut lease = try_take(&set, demand! { rpm: 1, tpm: 400 }).unwrap();
    lease.report(demand! { tpm: 100 }).unwrap();
    drop(lease);
    assert_eq!(available(&set, "tpm"), 900);
    let mut lease = try_take(&set, demand! { rpm: 1, tpm: 400 }).unwrap();
    lease.report(demand! { tpm: 100 }).unwrap();
    lease.settle(demand! { rpm: 0 }).wait().unwrap();
    assert_eq!((available(&set, "tpm"), available(&set, "rpm")), (800, 9));
}

#[test]
fn calls_taken_without_a_word_want_no_report_and_calls_that_were_named_want_0_to_what_was_taken() {
    let set = api();
    let lease = try_take(&set, demand! { connections: 1 }).unwrap();
    assert!(lease.unreported().is_empty());
    lease.commit().wait().unwrap();
    assert_eq!(available(&set, "call_count"), 9);

    let named = || try_take(&set, demand! { call_count: 3 }).unwrap();
    let lease = named();
    assert_eq!(lease.unreported(), ["call_count"]);
    lease.commit().wait().unwrap();
    assert_eq!(available(&set, "call_count"), 6);
    named().settle(demand! { call_count: 0 }).wait().unwrap();
    named().settle(demand! { call_count: 2 }).wait().unwrap();
    assert_eq!(available(&set, "call_count"), 4);
    let error = named().settle(demand! { call_count: 4 }).wait().unwrap_err();
    assert!(matches!(error, LeaseError::TooManyCalls { used: 4, reserved: 3, .. }), "{error}");
    assert_eq!(available(&set, "call_count"), 1, "charged as reserved");
    assert_eq!(available(&set, "connections"), 4, "and ended all the same");
}

#[test]
fn resources_want_no_report_and_come_back_whatever_is_reported() {
    let set = api();
    try_take(&set, demand! { connections: 3 }).unwrap().commit().wait().unwrap();
    assert_eq!(available(&set, "connections"), 4);
    for used in [0, 1, 3, 100] {
        let lease = try_take(&set, demand! { connections: 3, call_count: 0 }).unwrap();
        assert_eq!(available(&set, "connections"), 1);
        lease.settle(demand! { connections: used }).wait().unwrap();
        assert_eq!(available(&set, "connections"), 4);
    }
}

#[test]
fn what_is_wrong_in_a_report_stays_charged_as_reserved_and_the_rest_is_settled() {
    let take = demand! { rpm: 4, tpm: 400 };
    let reports = [
        Demand::new().with("tpm", -5).with("rpm", 1),
        Demand::new().with("rpm", 1).with("tpm", f64::NAN),
        Demand::new().with("rpm", 1).with("tpm", AMOUNT_MAX + 1),
    ];
    for report in reports {
        let set = api();
        let error = try_take(&set, &take).unwrap().settle(&report).wait().unwrap_err();
        assert!(matches!(&error, LeaseError::Usage(DemandError::BadAmount { name, .. }) if &**name == "tpm"));
        assert_eq!((available(&set, "rpm"), available(&set, "tpm")), (9, 600), "{error}");
        assert_eq!(available(&set, "connections"), 4);

        let mut lease = try_take(&set, &take).unwrap();
        assert!(lease.report(&report).is_err());
        drop(lease);
        assert_eq!((available(&set, "rpm"), available(&set, "tpm")), (8, 200), "{error}");
    }
    let set = api();
    let both = Demand::new().with("rpm", -1).with("tpm", -1);
    assert!(try_take(&set, &take).unwrap().settle(both).wait().is_err());
    assert_eq!((available(&set, "rpm"), available(&set, "tpm")), (6, 600), "every bad amount stays charged");
}

#[test]
fn a_report_that_names_what_is_no_limit_is_an_error_unless_the_set_skips_it() {
    let rate = || [Limit::per_minute("tpm", 1_000)];
    let set = builder(&hands(), rate()).skip_unknown().build().unwrap();
    try_take(&set, demand! { tpm: 400 }).unwrap().settle(demand! { gpu: 1, tpm: 100 }).wait().unwrap();
    assert_eq!(available(&set, "tpm"), 900);
    let strict = builder(&hands(), rate()).build().unwrap();
    let lease = try_take(&strict, demand! { tpm: 400 }).unwrap();
    assert!(lease.settle(demand! { gpu: 1, tpm: 100 }).wait().is_err());
    assert_eq!(available(&strict, "tpm"), 900, "the rest is settled all the same");
}

#[test]
fn cancel_gives_everything_back() {
    let set = api();
    try_take(&set, demand! { rpm: 3, tpm: 400, connections: 2 }).unwrap().cancel().wait().unwrap();
    let left = ["rpm", "tpm", "call_count", "connections"].map(|name| available(&set, name));
    assert_eq!(left, [10, 1_000, 10, 4]);
}

#[test]
fn every_way_to_end_a_lease_gives_its_connection_back_once() {
    let set = api();
    let other = try_take(&set, demand! { connections: 2, call_count: 0 }).unwrap();
    for way in 0..6 {
        let mut lease = try_take(&set, demand! { tpm: 10, call_count: 0 }).unwrap();
        assert_eq!(available(&set, "connections"), 1);
        match way {
            0 => drop(lease),
            1 => drop(lease.settle(demand! { tpm: 10 })),
            2 => drop(lease.commit()),
            3 => drop(lease.cancel()),
            4 => drop(lease.into_owned().into_owned()),
            _ => {
                lease.report(demand! { tpm: 10 }).unwrap();
                lease.into_owned().settle(demand! {}).wait().unwrap();
            }
        }
        assert_eq!(available(&set, "connections"), 2, "way {way}");
    }
    drop(other);
    assert_eq!(available(&set, "connections"), 4);
}

#[test]
fn a_try_that_failed_releases_nothing() {
    let set = api();
    let held = try_take(&set, demand! { connections: 4 }).unwrap();
    for _ in 0..10 {
        drop(set.try_acquire(demand! { connections: 1 }).wait().unwrap());
        drop(set.try_acquire(demand! { connections: 5 }).wait().unwrap_err());
        drop(set.acquire(demand! { connections: 1 }).timeout(Duration::ZERO).wait().unwrap_err());
    }
    assert_eq!(available(&set, "connections"), 0);
    drop(held);
    assert_eq!(available(&set, "connections"), 4);
}

#[test]
fn amounts_above_what_is_packed_settle_the_same() {
    for amount in [u64::from(u32::MAX), 1 << 32, (1 << 32) + 1, 1 << 40, AMOUNT_MAX / 2] {
        let limits = [Limit::per_day("tokens", AMOUNT_MAX), Limit::resource("bytes", AMOUNT_MAX)];
        let set = set(&hands(), limits);
        let full = AMOUNT_MAX as i64;
        let lease = try_take(&set, demand! { tokens: amount, bytes: amount }).unwrap();
        assert_eq!(lease.reserved("tokens"), Some(amount));
        assert_eq!(available(&set, "bytes"), full - amount as i64);
        lease.into_owned().settle(demand! { tokens: amount - 1 }).wait().unwrap();
        assert_eq!((available(&set, "tokens"), available(&set, "bytes")), (full - amount as i64 + 1, full));

        let lease = try_take(&set, demand! { tokens: 1, bytes: amount }).unwrap();
        lease.settle(demand! { tokens: amount }).wait().unwrap();
        assert_eq!(available(&set, "tokens"), full - 2 * amount as i64 + 1);
        drop(try_take(&set, demand! { bytes: amount }).unwrap());
        assert_eq!(available(&set, "bytes"), full);
    }
}

#[test]
fn sets_of_more_limits_than_are_packed_settle_the_same() {
    for size in [7, 8, 9, 16, 31] {
        let names: Vec<String> = (0..size).map(|index| format!("limit-{index}")).collect();
        let rates = names.iter().map(|name| Limit::per_minute(name, 1_000));
        let limits = rates.chain([Limit::resource("slots", 5)]);
        let set = LimitSet::builder().limits(limits).clock(hands().clock()).build().unwrap();
        let demand: Demand = names.iter().map(|name| (name.as_str(), 100)).collect();
        let last = names.last().unwrap();
        let mut lease = try_take(&set, &demand).unwrap();
        lease.report(Demand::new().with(last, 30)).unwrap();
        assert_eq!(lease.unreported().len(), size - 1);
        lease.commit().wait().unwrap();
        assert_eq!((available(&set, last), available(&set, &names[0])), (970, 900));

        try_take(&set, &demand).unwrap().into_owned().settle(Demand::new().with(last, 0)).wait().unwrap();
        spend(&set, &demand);
        assert_eq!((available(&set, last), available(&set, &names[0])), (870, 700));
        assert_eq!(available(&set, "slots"), 5);
    }
}
