//! Replies in the formats that providers document, and their hints.

use std::time::{Duration, SystemTime};

use tollgate_provider::{
    Class, Failure, FatalKind, Hint, LimitReading, LimitUnit, REASON_MAX, Response, Tokens, Until, read,
    read_failure,
};

/// 2026-11-15T12:00:00Z.
const NOON: u64 = 1_794_744_000;

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn hint(status: u16, headers: &[(&str, &str)], body: &str) -> Hint {
    read(&Response::new(status, headers, body.as_bytes()), at(NOON))
}

fn class(status: u16, body: &str) -> Class {
    hint(status, &[], body).class
}

const AUTH: Class = Class::Fatal(FatalKind::Auth);
const REQUEST: Class = Class::Fatal(FatalKind::Request);
const TOO_LARGE: Class = Class::Fatal(FatalKind::TooLarge);
const EXHAUSTED: Class = Class::Exhausted { until: None };

#[test]
fn every_reply_of_openai_has_the_state_of_its_limits() {
    let headers = [
        ("x-ratelimit-limit-requests", "5000"),
        ("x-ratelimit-remaining-requests", "4999"),
        ("x-ratelimit-reset-requests", "12ms"),
        ("x-ratelimit-limit-tokens", "160000"),
        ("x-ratelimit-remaining-tokens", "159976"),
        ("x-ratelimit-reset-tokens", "9ms"),
    ];
    let body = r#"{"id":"chatcmpl-1","choices":[{"message":{"content":"Hello","role":"assistant"}}],
        "usage":{"prompt_tokens":19,"completion_tokens":10,"total_tokens":29}}"#;
    let hint = hint(200, &headers, body);
    assert_eq!((hint.class, hint.advice, hint.reason), (Class::Ok, None, None));
    assert_eq!(hint.usage, Some(Tokens::new(19, 10)));
    let requests = LimitReading::new(LimitUnit::Requests).with_limit(5_000).with_remaining(4_999);
    assert_eq!(hint.meters[0], requests.with_reset(Duration::from_millis(12)));
    assert_eq!(hint.meters[1].unit, LimitUnit::Tokens);
}

#[test]
fn openai_throttles_in_headers_or_in_the_message() {
    let body = r#"{"error":{"message":"Rate limit reached for gpt-4o in organization org-a1B2c3D4e5F6g7H8i9J0k1 on requests per min (RPM): Limit 3, Used 3, Requested 1. Please try again in 20s.","type":"requests","param":null,"code":"rate_limit_exceeded"}}"#;
    let by_header = hint(429, &[("retry-after-ms", "1500"), ("retry-after", "2")], body);
    assert_eq!(by_header.class, Class::Throttled);
    assert_eq!(by_header.advice, Some(Duration::from_millis(1_500)));
    let by_message = hint(429, &[], body);
    assert_eq!(by_message.advice, Some(Duration::from_secs(20)));
    let reason = by_message.reason.unwrap();
    assert!(reason.starts_with("Rate limit reached for gpt-4o") && !reason.contains("a1B2"), "{reason}");
}

#[test]
fn an_exhausted_account_differs_from_a_call_that_came_too_early() {
    let codes = [
        "insufficient_quota",
        "credit_balance_exhausted",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
        "billing_hard_limit_reached",
    ];
    for code in codes {
        let body = format!(r#"{{"error":{{"message":"No.","type":"insufficient_quota","code":"{code}"}}}}"#);
        assert_eq!(class(429, &body), EXHAUSTED, "{code}");
        let retry = [("x-should-retry", "true"), ("retry-after", "1")];
        assert_eq!(hint(429, &retry, &body).class, EXHAUSTED, "{code}");
    }
    assert_eq!(class(402, "{}"), EXHAUSTED);
    let balance = r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API."}}"#;
    assert_eq!(class(400, balance), EXHAUSTED);
}

#[test]
fn a_request_larger_than_its_limit_is_not_retried() {
    let openai = r#"{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.","type":"tokens","code":"rate_limit_exceeded"}}"#;
    let unnamed = r#"{"error":{"message":"on tokens per min (TPM): Limit 30000, Requested 40000.","code":"rate_limit_exceeded"}}"#;
    let context = r#"{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}"#;
    let anthropic = r#"{"type":"error","error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}"#;
    let prompt = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
    for (status, body) in
        [(429, openai), (429, unnamed), (400, context), (413, anthropic), (413, ""), (400, prompt)]
    {
        assert_eq!(class(status, body), TOO_LARGE, "{body}");
    }
}

#[test]
fn azure_throttles_with_whole_seconds_and_something_left() {
    let headers = [
        ("retry-after", "7"),
        ("retry-after-ms", "6700"),
        ("x-ratelimit-remaining-requests", "3"),
        ("x-ratelimit-reset-requests", "1"),
    ];
    let body = r#"{"error":{"code":"429","message":"Requests to the ChatCompletions_Create Operation have exceeded the call rate limit. Please retry after 7 seconds."}}"#;
    let hint = hint(429, &headers, body);
    assert_eq!((hint.class, hint.advice), (Class::Throttled, Some(Duration::from_millis(6_700))));
    let requests =
        LimitReading::new(LimitUnit::Requests).with_remaining(3).with_reset(Duration::from_secs(1));
    assert_eq!(hint.meters, [requests]);
}

#[test]
fn anthropic_throttles_and_overloads() {
    let headers = [
        ("retry-after", "13"),
        ("anthropic-ratelimit-tokens-limit", "80000"),
        ("anthropic-ratelimit-tokens-remaining", "0"),
        ("anthropic-ratelimit-tokens-reset", "2026-11-15T12:00:13Z"),
    ];
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"This request would exceed your organization's rate limit of 80,000 tokens per minute"},"request_id":"req_1"}"#;
    let throttled = hint(429, &headers, body);
    assert_eq!((throttled.class, throttled.advice), (Class::Throttled, Some(Duration::from_secs(13))));
    let tokens = LimitReading::new(LimitUnit::Tokens).with_limit(80_000).with_remaining(0);
    assert_eq!(throttled.meters, [tokens.with_reset(Duration::from_secs(13))]);
    let overloaded = r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#;
    for status in [529, 503, 500, 200] {
        assert_eq!(class(status, overloaded), Class::Overloaded, "{status}");
    }
    assert_eq!(class(529, ""), Class::Overloaded);
}

#[test]
fn anthropic_s_spend_cap_ends_with_the_month() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"Spend limit reached.","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
    let december = Until::at(at(1_796_083_200)); // 2026-12-01T00:00:00Z
    assert_eq!(class(429, body), Class::Exhausted { until: Some(december) });
    let own = r#"{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}"#;
    assert_eq!(class(400, own), Class::Exhausted { until: Some(december) });
}

#[test]
fn the_end_of_a_quota_is_converted_to_our_clock() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
    // The reply was sent an hour before midnight by the provider's clock.
    let hint = hint(429, &[("date", "Mon, 30 Nov 2026 23:00:00 GMT")], body);
    assert_eq!(hint.class, Class::Exhausted { until: Some(Until::at(at(NOON + 3_600))) });
}

#[test]
fn an_error_inside_a_successful_stream_counts() {
    let anthropic = "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\nevent: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"Overloaded\"}}\n\n";
    let read = hint(200, &[("content-type", "text/event-stream")], anthropic);
    assert_eq!((read.class, read.usage), (Class::Overloaded, Some(Tokens::new(25, 1))));
    assert_eq!(read.reason.as_deref(), Some("Overloaded"));
    let table = [
        (
            "data: {\"choices\":[]}\n\ndata: {\"error\":{\"message\":\"The server had an error\",\"type\":\"server_error\"}}\n\n",
            Class::Transient,
        ),
        (
            "event: error\ndata: {\"type\":\"error\",\"code\":\"rate_limit_exceeded\",\"message\":\"Slow\",\"param\":null}\n\n",
            Class::Throttled,
        ),
        (
            "data: {\"type\":\"response.failed\",\"response\":{\"error\":{\"code\":\"server_error\",\"message\":\"x\"}}}\n\n",
            Class::Transient,
        ),
        (
            "[{\"candidates\":[]},{\"error\":{\"code\":503,\"message\":\"The model is overloaded.\",\"status\":\"UNAVAILABLE\"}}]",
            Class::Overloaded,
        ),
        ("{\"error\":{\"code\":429,\"message\":\"Provider returned error\"}}", Class::Throttled),
        ("{\"error\":{\"code\":401,\"message\":\"User not found\"}}", AUTH),
        ("{\"error\":{\"type\":\"invalid_request_error\",\"message\":\"x\"}}", REQUEST),
        ("{\"error\":{\"message\":\"who knows\"}}", Class::Transient),
        ("{\"status\":\"completed\",\"error\":null,\"output\":[]}", Class::Ok),
        ("{\"error\":{},\"message\":\"fine\"}", Class::Ok),
        (
            "event: content\ndata: {\"delta\":{\"text\":\"{\\\"error\\\":{\\\"type\\\":\\\"overloaded_error\\\"}}\"}}\n\n",
            Class::Ok,
        ),
        ("Please retry after 7 seconds.", Class::Ok),
    ];
    for (body, expected) in table {
        assert_eq!(class(200, body), expected, "{body}");
    }
}

#[test]
fn the_wait_of_gemini_is_in_the_body() {
    let body = |quota: &str, delay: &str| {
        format!(
            r#"{{"error":{{"code":429,"message":"You exceeded your current quota.","status":"RESOURCE_EXHAUSTED","details":[
            {{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"{quota}","quotaValue":"15"}}]}},
            {{"@type":"type.googleapis.com/google.rpc.Help","links":[]}},
            {{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{delay}"}}]}}}}"#
        )
    };
    let minute = "GenerateRequestsPerMinutePerProjectPerModel-FreeTier";
    let table = [
        ("38s", Some(38_000)),
        ("0s", Some(0)),
        ("36.429760048s", Some(36_429)),
        ("-1s", None),
        ("soon", None),
    ];
    for (delay, ms) in table {
        let hint = hint(429, &[], &body(minute, delay));
        assert_eq!(hint.class, Class::Throttled);
        assert_eq!(hint.advice.map(|wait| wait.as_millis()), ms, "{delay}");
        assert_eq!(hint.meters, [LimitReading::new(LimitUnit::Requests).with_limit(15)]);
    }
    // Google's day ends at midnight in California, which is 08:00 UTC.
    let tomorrow = Class::Exhausted { until: Some(Until::at(at(NOON + 20 * 3_600))) };
    assert_eq!(class(429, &body("GenerateRequestsPerDayPerProjectPerModel-FreeTier", "38s")), tomorrow);
    let by_info = r#"{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","details":[{"reason":"RATE_LIMIT_EXCEEDED","metadata":{"quota_limit":"Gemini25ProRequestsPerDay"}}]}}"#;
    assert_eq!(class(429, by_info), tomorrow);
    let no_plan = body(minute, "38s").replace(r#""quotaValue":"15""#, r#""quotaValue":"0""#);
    assert_eq!(class(429, &no_plan), EXHAUSTED);
    let vertex = r#"{"error":{"code":429,"message":"Resource exhausted. Please try again later.","status":"RESOURCE_EXHAUSTED"}}"#;
    assert_eq!(hint(429, &[], vertex).advice, None);
    assert_eq!(class(429, vertex), Class::Throttled);
}

#[test]
fn the_error_of_bedrock_is_in_a_header_or_in_the_body() {
    let named = |name: &str| {
        hint(
            400,
            &[("x-amzn-ErrorType", name)],
            r#"{"message":"Too many tokens, please wait before trying again."}"#,
        )
    };
    assert_eq!(named("ThrottlingException:http://internal.amazon.com/coral/").class, Class::Throttled);
    assert_eq!(named("ServiceQuotaExceededException").class, EXHAUSTED);
    assert_eq!(named("ValidationException").class, REQUEST);
    assert_eq!(named("UnrecognizedClientException").class, AUTH);
    assert_eq!(
        named("Anything").reason.as_deref(),
        Some("Too many tokens, please wait before trying again.")
    );
    let typed = r#"{"__type":"com.amazon.coral.service#ThrottlingException","message":"Rate exceeded"}"#;
    assert_eq!(class(400, typed), Class::Throttled);
    assert_eq!(class(424, r#"{"__type":"ModelErrorException"}"#), Class::Transient);
    let counts = [("X-Amzn-Bedrock-Input-Token-Count", "12"), ("X-Amzn-Bedrock-Output-Token-Count", "30")];
    assert_eq!(hint(200, &counts, "{}").usage, Some(Tokens::new(12, 30)));
}

#[test]
fn the_status_decides_if_nothing_else_does() {
    let table = [
        (200, Class::Ok),
        (201, Class::Ok),
        (301, REQUEST),
        (400, REQUEST),
        (401, AUTH),
        (403, AUTH),
        (404, REQUEST),
        (408, Class::Transient),
        (409, Class::Transient),
        (422, REQUEST),
        (425, Class::Transient),
        (429, Class::Throttled),
        (498, Class::Overloaded),
        (500, Class::Transient),
        (501, REQUEST),
        (502, Class::Transient),
        (503, Class::Transient),
        (504, Class::Transient),
        (520, Class::Transient),
        (529, Class::Overloaded),
        (0, Class::Transient),
        (999, Class::Transient),
    ];
    for (status, expected) in table {
        assert_eq!(class(status, "<html>Bad Gateway</html>"), expected, "{status}");
    }
    assert_eq!(hint(503, &[("retry-after", "5")], "").class, Class::Overloaded);
    assert_eq!(hint(502, &[], "<html>Bad Gateway</html>").reason, None);
    assert_eq!(hint(502, &[], "upstream connect error").reason.as_deref(), Some("upstream connect error"));
    assert_eq!(
        class(400, r#"{"error":{"details":[{"reason":"API_KEY_INVALID"}],"status":"INVALID_ARGUMENT"}}"#),
        AUTH
    );
    assert_eq!(class(403, r#"{"error":{"code":"model_not_found","type":"invalid_request_error"}}"#), REQUEST);
}

#[test]
fn x_should_retry_decides_whether_to_retry() {
    let class_of = |status, should| hint(status, &[("x-should-retry", should)], "").class;
    assert_eq!(class_of(409, "false"), REQUEST);
    assert_eq!(class_of(500, "false"), REQUEST);
    assert_eq!(class_of(429, "false"), EXHAUSTED);
    assert_eq!(class_of(400, "true"), Class::Transient);
    assert_eq!(class_of(429, "true"), Class::Throttled);
    assert_eq!(class_of(200, "false"), Class::Ok);
    assert_eq!(class_of(413, "true"), TOO_LARGE);
    assert_eq!(class_of(500, "perhaps"), Class::Transient);
}

#[test]
fn the_fields_of_the_ietf_are_parsed_beside_a_problem() {
    let headers = [
        ("retry-after", "1"),
        ("ratelimit-policy", r#""rpm";q=1000;w=60, "tpm";q=100000;w=60"#),
        ("ratelimit", r#""rpm";r=0;t=1"#),
    ];
    let problem =
        r#"{"type":"about:blank","title":"Too many requests","detail":"rpm is exceeded","status":429}"#;
    let hint = hint(429, &headers, problem);
    assert_eq!((hint.class, hint.advice), (Class::Throttled, Some(Duration::from_secs(1))));
    assert_eq!(hint.reason.as_deref(), Some("rpm is exceeded"));
    let rpm = LimitReading::new(LimitUnit::Requests)
        .with_limit(1_000)
        .with_remaining(0)
        .with_reset(Duration::from_secs(1));
    assert_eq!(hint.meters, [rpm, LimitReading::new(LimitUnit::Tokens).with_limit(100_000)]);
}

#[test]
fn a_call_without_a_reply_is_retried_unless_it_can_never_succeed() {
    assert_eq!(read_failure(Failure::Timeout).class, Class::Transient);
    assert_eq!(read_failure(Failure::Connection).class, Class::Transient);
    assert_eq!(read_failure(Failure::Address).class, REQUEST);
    assert_eq!(read_failure(Failure::Request).class, REQUEST);
    assert!(read_failure(Failure::Timeout).reason.is_some_and(|text| text.chars().count() <= REASON_MAX));
}
