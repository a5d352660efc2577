//! Invalid limits, sets and demands are refused, and the error names the field, its value and the
//! valid values.

use std::time::Duration;

use tollgate_core::{
    AMOUNT_MAX, Algorithm, AsDemand, LIMITS_MAX, Limit, LimitBuilder, Limits, Resets, Span, UNBOUNDED, Unit,
    demand,
};

const MINUTE: Duration = Duration::from_secs(60);
const AMOUNTS: &str = "1 to 1000000000000000, or UNBOUNDED";
const SPANS: &str = "a whole number of microseconds, from 1 microsecond to 3660 days (ten years)";

#[track_caller]
fn refused(limit: LimitBuilder, field: &str, value: &str, valid: &str) {
    let error = limit.build().expect_err("the limit is not valid");
    assert_eq!((error.field(), error.value()), (field, value), "{error}");
    assert!(error.valid().contains(valid), "{error}");
    let expected = format!("limit {:?}: {field} is {value}, but must be {}", error.limit(), error.valid());
    assert_eq!(error.to_string(), expected);
}

#[test]
fn an_amount_of_zero_is_refused() {
    refused(Limit::per_minute("x", 0), "amount", "0", AMOUNTS);
    refused(Limit::resource("x", 0), "amount", "0", AMOUNTS);
    refused(Limit::calls(0, MINUTE), "amount", "0", AMOUNTS);
    refused(Limit::quota("x", 0, MINUTE), "amount", "0", AMOUNTS);
    refused(Limit::per_minute("x", 1).burst(0), "burst", "0", AMOUNTS);
}

#[test]
fn a_negative_amount_is_refused_and_not_wrapped() {
    refused(Limit::per_minute("x", -1), "amount", "-1", AMOUNTS);
    refused(Limit::per_minute("x", i64::MIN), "amount", "-9223372036854775808", AMOUNTS);
    refused(Limit::per_minute("x", 1).burst(-5i8), "burst", "-5", AMOUNTS);
    refused(Limit::per_minute("x", -1e300), "amount", &i128::MIN.to_string(), AMOUNTS);
}

#[test]
fn an_amount_that_is_too_large_is_refused() {
    refused(Limit::per_minute("x", AMOUNT_MAX + 1), "amount", "1000000000000001", AMOUNTS);
    refused(Limit::resource("x", u128::MAX), "amount", &u128::MAX.to_string(), AMOUNTS);
    refused(Limit::per_minute("x", UNBOUNDED - 1), "amount", "18446744073709551614", AMOUNTS);
    refused(Limit::per_minute("x", 1).burst(AMOUNT_MAX + 1), "burst", "1000000000000001", AMOUNTS);
}

#[test]
fn an_amount_with_a_fraction_is_refused() {
    for (value, shown) in
        [(f64::NAN, "NaN"), (f64::INFINITY, "inf"), (f64::NEG_INFINITY, "-inf"), (0.5, "0.5")]
    {
        refused(Limit::per_minute("x", value), "amount", shown, "a whole number");
    }
}

#[test]
fn an_invalid_name_is_refused() {
    for name in ["", "1x", "a b", "wcu", "é", "a:b", &"n".repeat(65)] {
        refused(Limit::per_minute(name, 1), "name", &format!("{name:?}"), "a letter followed by letters");
    }
}

#[test]
fn a_period_out_of_bounds_is_refused() {
    let ten_years = Duration::from_secs(3_660 * 86_400);
    assert!(Limit::rate("x", 1, ten_years).build().is_ok());
    assert!(Limit::rate("x", 1, Duration::from_micros(1)).build().is_ok());
    refused(Limit::rate("x", 1, Duration::ZERO), "period", "0ns", SPANS);
    refused(Limit::rate("x", 1, ten_years + Duration::from_micros(1)), "period", "316224000.000001s", SPANS);
    refused(Limit::rate("x", 1, Duration::from_nanos(999)), "period", "999ns", SPANS);
    refused(Limit::rate("x", 1, Duration::from_nanos(1_500)), "period", "1.5µs", SPANS);
    refused(Limit::fixed_window("x", 1, Duration::ZERO), "period", "0ns", SPANS);
    refused(Limit::sliding_window("x", 1, Duration::ZERO), "period", "0ns", SPANS);
    let longest = format!("{:?}", Duration::MAX);
    refused(Limit::calls(1, Duration::MAX), "period", &longest, SPANS);
}

#[test]
fn a_session_out_of_bounds_is_refused() {
    refused(Limit::quota("x", 1, Duration::ZERO), "duration", "0ns", SPANS);
    let after = Resets::AfterFirstUse(Span::from_secs(3_660 * 86_400 + 1));
    refused(Limit::quota("x", 1, after), "duration", "316224001s", SPANS);
}

#[test]
fn a_burst_without_a_bucket_is_refused() {
    let valid = "left out: only the bucket algorithms have one";
    refused(Limit::fixed_window("x", 10, MINUTE).burst(5), "burst", "5", valid);
    refused(Limit::sliding_window("x", 10, MINUTE).burst(5), "burst", "5", valid);
    refused(Limit::resource("x", 10).burst(5), "burst", "5", valid);
    refused(Limit::quota("x", 10, MINUTE).burst(5), "burst", "5", valid);
}

#[test]
fn an_invalid_resolution_is_refused() {
    let only = "left out: only a sliding window has one";
    let second = Duration::from_secs(1);
    refused(Limit::per_minute("x", 1).resolution(second), "resolution", "1s", only);
    refused(Limit::fixed_window("x", 1, MINUTE).resolution(second), "resolution", "1s", only);
    refused(Limit::resource("x", 1).resolution(second), "resolution", "1s", only);
    let sliding = || Limit::sliding_window("x", 1, MINUTE);
    refused(sliding().resolution(MINUTE * 2), "resolution", "120s", "at most the period");
    refused(
        sliding().resolution(Duration::from_micros(599)),
        "resolution",
        "599µs",
        "at least 1/100000 of it",
    );
    refused(sliding().resolution(Duration::ZERO), "resolution", "0ns", SPANS);
    assert!(sliding().resolution(MINUTE).build().is_ok());
    assert!(sliding().resolution(Duration::from_micros(600)).build().is_ok());
}

#[test]
fn an_algorithm_for_a_resource_or_quota_is_refused() {
    let valid = "left out: only rates and calls have one";
    refused(Limit::resource("x", 1).algorithm(Algorithm::Gcra), "algorithm", "GCRA", valid);
    refused(
        Limit::quota("x", 1, MINUTE).algorithm(Algorithm::FixedWindow),
        "algorithm",
        "fixed window",
        valid,
    );
}

#[test]
fn a_set_with_a_name_twice_is_refused() {
    let error = Limits::new([Limit::per_minute("x", 1), Limit::per_hour("x", 2)]).unwrap_err();
    assert_eq!(error.to_string(), "two limits are named \"x\"; names must be unique within a set");
}

#[test]
fn a_set_with_too_many_limits_is_refused() {
    let of = |count: usize| Limits::new((0..count).map(|n| Limit::per_minute(format!("l{n}"), 1)));
    assert!(of(LIMITS_MAX).is_ok());
    assert_eq!(
        of(LIMITS_MAX + 1).unwrap_err().to_string(),
        "33 limits are given, but at most 32 are allowed"
    );
}

#[test]
fn a_set_with_an_invalid_limit_returns_the_error_of_that_limit() {
    let error = Limits::new([Limit::per_minute("x", 0)]).unwrap_err();
    assert_eq!(error.to_string(), format!("limit \"x\": amount is 0, but must be {AMOUNTS}"));
}

#[test]
fn replacing_an_unknown_limit_is_refused() {
    let limits = Limits::new([Limit::per_minute("x", 1)]).unwrap();
    let error = limits.replacing(Limit::per_minute("y", 1).build().unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "there is no limit named \"y\" to replace or remove");
}

#[test]
fn an_invalid_demand_is_refused_with_the_reason() {
    let limits = Limits::new([Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 100)]).unwrap();
    let none = Limits::new(Vec::<Limit>::new()).unwrap();
    let message = |limits: &Limits, demand: Box<dyn AsDemand>| limits.costs(&demand).unwrap_err().to_string();
    let cases: [(Box<dyn AsDemand>, &str); 7] = [
        (
            Box::new(demand! { rps: 1 }),
            "the demand names \"rps\", which is no limit here; known limits: rpm, tpm",
        ),
        (Box::new(demand! {}), "the demand names no amount, but rpm requires one, such as rpm=1"),
        (Box::new(demand! { rpm: 11 }), "a demand of 11 can never fit rpm, whose capacity is 10"),
        (
            Box::new(demand! { rpm: 1, rpm: 1 }),
            "the demand names \"rpm\" twice; add the amounts up and name it once",
        ),
        (
            Box::new(demand! { tpm: -3 }),
            "the demand for tpm: -3 is negative; an amount is 0 to 1000000000000000",
        ),
        (
            Box::new(demand! { tpm: UNBOUNDED }),
            "the demand for tpm: 18446744073709551615 is too large; an amount is 0 to 1000000000000000",
        ),
        (
            Box::new(demand! { tpm: f64::NAN }),
            "the demand for tpm: NaN is not a whole number; scale fractions to a smaller unit, such as cents",
        ),
    ];
    for (demand, expected) in cases {
        assert_eq!(message(&limits, demand), expected);
    }
    let expected = "the demand names \"rps\", which is no limit here; known limits: none";
    assert_eq!(message(&none, Box::new(demand! { rps: 1 })), expected);
}

#[test]
fn a_demand_of_zero_is_valid() {
    let limits = Limits::new([Limit::per_minute("rpm", 10)]).unwrap();
    assert_eq!(limits.costs(&demand! { rpm: 0 }).unwrap().amounts(), [0]);
}

#[test]
fn an_invalid_unit_or_amount_is_refused_with_the_reason() {
    assert_eq!(Unit::new("USD", 13).unwrap_err().to_string(), "decimals is 13, but must be 0 to 12");
    let usd = Unit::new("USD", 2).unwrap();
    let message = |text: &str| usd.parse(text).unwrap_err().to_string();
    for text in ["-1", "NaN", "1e3", "", "0.001", "99999999999999999"] {
        let expected = format!("{text:?} is not an amount; write it like 12.5, with at most 2 decimals");
        assert_eq!(message(text), expected);
    }
}

#[test]
fn a_burst_on_an_unbounded_amount_is_refused() {
    let error = Limit::per_minute("x", UNBOUNDED).burst(5).build().unwrap_err();
    assert_eq!(error.to_string(), "limit \"x\": burst is 5, but must be left out: the amount is unbounded");
}
