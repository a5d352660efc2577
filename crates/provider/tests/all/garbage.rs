//! Arbitrary input: no panic, no absurd wait, nothing without a bound.

use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use tollgate_provider::{Class, Hint, REASON_MAX, Response, WAIT_MAX, read};

fn check(hint: &Hint, now: SystemTime) {
    assert!(hint.advice.is_none_or(|wait| wait <= WAIT_MAX), "{hint:?}");
    assert!(
        hint.meters.len() <= 16
            && hint.meters.iter().all(|reading| reading.reset.is_none_or(|wait| wait <= WAIT_MAX))
    );
    assert!(
        hint.reason.as_ref().is_none_or(|text| text.chars().count() <= REASON_MAX && !text.contains('\n'))
    );
    if let Class::Exhausted { until: Some(until) } = hint.class {
        assert!(until.wait(now) <= WAIT_MAX);
    }
}

fn names() -> impl Strategy<Value = String> {
    let known = [
        "retry-after",
        "retry-after-ms",
        "x-should-retry",
        "date",
        "ratelimit",
        "ratelimit-policy",
        "x-amzn-errortype",
        "x-ratelimit-limit-requests",
        "x-ratelimit-reset-tokens",
        "anthropic-ratelimit-tokens-reset",
        "x-ratelimit-reset",
    ];
    prop_oneof![
        4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned),
        1 => "[a-zA-Z_-]{0,40}",
        1 => "x-ratelimit-[a-z-]{0,30}",
    ]
}

fn values() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        any::<i128>().prop_map(|number| number.to_string()),
        any::<f64>().prop_map(|number| number.to_string()),
        "[0-9]{1,25}(ns|us|ms|s|m|h|d){0,2}",
        "([0-9]{1,22}(\\.[0-9]{0,22})?[a-zµ]{1,2}){1,4}",
        "[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(Z|[+-][0-9]{2}:[0-9]{2})",
        "(Mon|Sun), [0-9]{2} (Jan|Nov) [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT",
        "(\"[a-z\\\\\"]{0,5}\"(;[a-z]{1,2}=[0-9]{1,21}){0,3},? ?){0,4}",
    ]
}

fn bodies() -> impl Strategy<Value = Vec<u8>> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        any::<i64>().prop_map(|number| number.to_string()),
        any::<f32>().prop_map(|number| number.to_string()),
        any::<String>().prop_map(|text| serde_json::Value::String(text).to_string()),
        Just("\"insufficient_quota\"".to_owned()),
        Just("\"Please try again in 99999999999999999999s\"".to_owned()),
        Just("\"You will regain access on 9999-99-99 at 99:99\"".to_owned()),
    ];
    let keys = [
        "error",
        "type",
        "code",
        "message",
        "details",
        "usage",
        "input_tokens",
        "violations",
        "quotaId",
        "retryDelay",
        "response",
    ];
    let json = leaf.prop_recursive(6, 40, 6, move |inner| {
        let pair = (prop::sample::select(keys.to_vec()), inner.clone());
        prop_oneof![
            prop::collection::vec(pair, 0..6).prop_map(|pairs| format!(
                "{{{}}}",
                pairs.iter().map(|(k, v)| format!("\"{k}\":{v}")).collect::<Vec<_>>().join(",")
            )),
            prop::collection::vec(inner, 0..4).prop_map(|values| format!("[{}]", values.join(","))),
        ]
    });
    prop_oneof![
        prop::collection::vec(any::<u8>(), 0..300),
        json.clone().prop_map(String::into_bytes),
        json.prop_map(|json| format!("event: error\ndata: {json}\n\n").into_bytes()),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_reply_yields_a_bounded_hint(
        status in prop_oneof![any::<u16>(), Just(200), Just(429), Just(503)],
        headers in prop::collection::vec((names(), values()), 0..12),
        body in bodies(),
        seconds in prop_oneof![Just(0), Just(1_794_744_000), 0..4_000_000_000_u64],
    ) {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let headers: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let hint = read(&Response::new(status, &headers, &body), now);
        check(&hint, now);
    }

    #[test]
    fn a_wait_is_parsed_as_it_was_formatted(ms in 0..2_678_400_000_u64) {
        let whole = Duration::from_millis(ms);
        let (seconds, rest) = (ms / 1_000, ms % 1_000);
        let forms = [
            ("retry-after-ms", ms.to_string()),
            ("retry-after", format!("{seconds}.{rest:03}")),
            ("retry-after", format!("{}m{}.{rest:03}s", seconds / 60, seconds % 60)),
            ("retry-after", format!("{}h{}m{}s{rest}ms", seconds / 3_600, seconds / 60 % 60, seconds % 60)),
        ];
        for (name, value) in &forms {
            let headers = [(*name, value.as_str())];
            let hint = read(&Response::new(429, &headers, b""), SystemTime::UNIX_EPOCH);
            prop_assert_eq!(hint.advice, Some(whole), "{}: {}", name, value);
        }
    }
}

#[test]
fn oversized_input_is_cut_off() {
    let many: Vec<(String, String)> =
        (0..100_000).map(|n| (format!("x-ratelimit-limit-{n}-tokens"), n.to_string())).collect();
    let headers: Vec<(&str, &str)> =
        many.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let hint = read(&Response::new(429, &headers, &vec![b'['; 40 << 20]), SystemTime::UNIX_EPOCH);
    assert_eq!(hint.meters.len(), 16);
    check(&hint, SystemTime::UNIX_EPOCH);
}
