//! Error replies in the format of each provider.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};
use tollgate::{Denial, SetStatus, Status, Tick};

use crate::Style;
use crate::builder::{CONCURRENCY, TOKENS};

/// The daily quota that an exhausted account reports in Gemini's format.
const DAILY_QUOTA: u64 = 250;

/// A reply before its conversion to HTTP.
///
/// ```
/// use tollgate_mock_provider::MockReply;
///
/// /// Returns the value of a header, whose name is in lower case.
/// fn header<'a>(reply: &'a MockReply, name: &str) -> Option<&'a str> {
///     reply.headers.iter().find(|(found, _)| *found == name).map(|(_, value)| value.as_str())
/// }
/// ```
#[derive(Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MockReply {
    /// The status code.
    pub status: u16,
    /// The headers, with names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: String,
}

impl MockReply {
    pub(crate) fn json(status: u16, body: &Value) -> MockReply {
        let headers = vec![("content-type", "application/json".to_owned())];
        MockReply { status, headers, body: body.to_string() }
    }

    pub(crate) fn text(status: u16, body: &str) -> MockReply {
        let headers = vec![("content-type", "text/plain; charset=utf-8".to_owned())];
        MockReply { status, headers, body: body.to_owned() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: impl ToString) -> MockReply {
        self.headers.push((name, value.to_string()));
        self
    }
}

/// What is wrong with a call itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallError {
    Key,
    Request,
    Path,
    Method,
    BodyTooLong,
    BodyTooSlow,
}

impl Style {
    /// Returns the reply for a call that a limit denies, with the wait if `advice` is set and the
    /// wait is known.
    pub(crate) fn throttled(self, denial: &Denial, advice: bool) -> MockReply {
        let wait = denial.wait().filter(|_| advice);
        let by = denial.limited_by();
        let unit = by.as_ref().map_or("requests", |status| status.limit().name().as_str());
        let capacity = by.as_ref().map_or(0, |status| status.limit().capacity());
        match self {
            Style::OpenAi => {
                let asked = by.as_ref().map_or(1, Status::requested);
                let used = by
                    .as_ref()
                    .map_or(0, |status| capacity.saturating_sub(status.available().max(0).unsigned_abs()));
                let again = wait.map(|wait| format!(" Please try again in {}.", go_duration(wait)));
                let message = format!(
                    "Rate limit reached for {unit}: Limit {capacity}, Used {used}, Requested {asked}.{}",
                    again.unwrap_or_default(),
                );
                advised(openai(429, &message, unit, "rate_limit_exceeded"), wait, true)
            }
            Style::Azure => {
                let again = wait.map(|wait| format!(" Please retry after {} seconds.", seconds(wait)));
                let message = format!(
                    "Calls have exceeded the {unit} rate limit of your pricing tier.{}",
                    again.unwrap_or_default()
                );
                advised(
                    MockReply::json(429, &json!({"error": {"code": "429", "message": message}})),
                    wait,
                    true,
                )
            }
            Style::Anthropic => {
                let message =
                    format!("This request would exceed your organization's rate limit of {capacity} {unit}.");
                advised(anthropic(429, "rate_limit_error", &message), wait, false)
            }
            Style::Gemini => gemini_quota(unit, "PerMinute", capacity, wait),
            Style::Bedrock => {
                let unit = if unit == TOKENS { "tokens" } else { "requests" };
                bedrock(
                    429,
                    "ThrottlingException",
                    &format!("Too many {unit}, please wait before trying again."),
                )
            }
            Style::Plain => {
                let detail = format!("the limit {unit} is exceeded");
                advised(problem(429, "Too Many Requests", &detail), wait, false)
            }
        }
    }

    /// Returns a 429 that no limit of the caller causes: the capacity that all callers share is
    /// used up.
    pub(crate) fn busy(self) -> MockReply {
        let message = "Too many calls are being made just now, please try again later.";
        match self {
            Style::OpenAi => openai(429, message, "requests", "rate_limit_exceeded"),
            Style::Azure => MockReply::json(429, &json!({"error": {"code": "429", "message": message}})),
            Style::Anthropic => anthropic(429, "rate_limit_error", message),
            Style::Gemini => gemini(429, "RESOURCE_EXHAUSTED", message),
            Style::Bedrock => bedrock(429, "ThrottlingException", message),
            Style::Plain => problem(429, "Too Many Requests", message),
        }
    }

    /// Returns the reply of an exhausted account.
    pub(crate) fn exhausted(self) -> MockReply {
        let message = "You exceeded your current quota, please check your plan and billing details.";
        match self {
            Style::OpenAi | Style::Azure => openai(429, message, "insufficient_quota", "insufficient_quota"),
            Style::Anthropic => {
                let body = json!({"type": "error", "error": {
                    "type": "rate_limit_error",
                    "message": "Your organization has reached its monthly spend limit.",
                    "details": {"error_code": "enforced_spend_limit_reached"},
                }});
                MockReply::json(429, &body)
            }
            Style::Gemini => gemini_quota("requests", "PerDay", DAILY_QUOTA, None),
            Style::Bedrock => {
                bedrock(400, "ServiceQuotaExceededException", "Your request exceeds the service quota.")
            }
            Style::Plain => problem(402, "Payment Required", "the account is exhausted"),
        }
    }

    /// Returns the reply for a request that asks for more than a limit can ever give.
    pub(crate) fn too_large(self, asked: u64, limit: u64) -> MockReply {
        match self {
            Style::OpenAi | Style::Azure => {
                let message = format!(
                    "Request too large for this model on tokens per min (TPM): Limit {limit}, Requested {asked}."
                );
                openai(429, &message, "tokens", "rate_limit_exceeded")
            }
            Style::Anthropic => anthropic(
                413,
                "request_too_large",
                &format!("The request has {asked} tokens, and {limit} are allowed."),
            ),
            Style::Gemini => {
                let message = format!(
                    "The input token count ({asked}) exceeds the maximum number of tokens allowed ({limit})."
                );
                gemini(400, "INVALID_ARGUMENT", &message)
            }
            Style::Bedrock => bedrock(400, "ValidationException", "Input is too long for requested model."),
            Style::Plain => {
                problem(413, "Content Too Large", &format!("{asked} tokens do not fit a limit of {limit}"))
            }
        }
    }

    /// Returns the reply of a provider that fails with `status`.
    pub(crate) fn failed(self, status: u16) -> MockReply {
        let overloaded = matches!(status, 503 | 529);
        let message =
            if overloaded { "Overloaded" } else { "The server had an error while processing your request." };
        match self {
            Style::OpenAi | Style::Azure => {
                let (kind, code) = if overloaded {
                    ("service_unavailable_error", "server_is_overloaded")
                } else {
                    ("server_error", "server_error")
                };
                openai(status, message, kind, code)
            }
            Style::Anthropic => {
                anthropic(status, if overloaded { "overloaded_error" } else { "api_error" }, message)
            }
            Style::Gemini => gemini(status, if overloaded { "UNAVAILABLE" } else { "INTERNAL" }, message),
            Style::Bedrock => {
                let name = if overloaded { "ServiceUnavailableException" } else { "InternalServerException" };
                bedrock(status, name, message)
            }
            Style::Plain => MockReply::text(status, message),
        }
    }

    /// Returns the reply for an invalid call.
    pub(crate) fn refused(self, error: CallError, message: &str) -> MockReply {
        let (status, names) = error.names();
        match self {
            Style::OpenAi | Style::Azure => openai(status, message, names.openai, names.openai_code),
            Style::Anthropic => anthropic(status, names.anthropic, message),
            Style::Gemini => gemini(status, names.google, message),
            Style::Bedrock => bedrock(status, names.aws, message),
            Style::Plain => problem(status, names.title, message),
        }
    }

    /// Returns the state of the limits as headers. Some styles have none.
    pub(crate) fn limit_headers(self, status: &SetStatus, now: Tick) -> Vec<(&'static str, String)> {
        let bounded = status
            .limits
            .iter()
            .filter(|status| !status.limit().is_unbounded() && status.limit().name() != CONCURRENCY);
        let mut headers = Vec::new();
        match self {
            Style::Gemini | Style::Bedrock => {}
            Style::Plain => {
                let (policies, states): (Vec<String>, Vec<String>) =
                    bounded.map(|status| fields(status, now)).unzip();
                if !policies.is_empty() {
                    headers.push(("ratelimit-policy", policies.join(", ")));
                    headers.push(("ratelimit", states.join(", ")));
                }
            }
            Style::OpenAi | Style::Azure | Style::Anthropic => {
                bounded.for_each(|status| headers.extend(self.numbers(status, now)));
            }
        }
        headers
    }

    fn numbers(self, status: &Status, now: Tick) -> [(&'static str, String); 3] {
        let full = status.full().wait(now).unwrap_or_default();
        let limit = status.limit().capacity();
        let remaining = left(status);
        let of_tokens = status.limit().name() == TOKENS;
        let (names, remaining, reset) = match (self, of_tokens) {
            (Style::Anthropic, true) => {
                (ANTHROPIC_TOKENS, (remaining + 500) / 1_000 * 1_000, rfc3339(now, full))
            }
            (Style::Anthropic, false) => (ANTHROPIC_REQUESTS, remaining, rfc3339(now, full)),
            (Style::Azure, true) => (TOKEN_NAMES, remaining, seconds(full).to_string()),
            (Style::Azure, false) => (REQUEST_NAMES, remaining, seconds(full).to_string()),
            (_, true) => (TOKEN_NAMES, remaining, go_duration(full)),
            (_, false) => (REQUEST_NAMES, remaining, go_duration(full)),
        };
        let [limit_name, remaining_name, reset_name] = names;
        [(limit_name, limit.to_string()), (remaining_name, remaining.to_string()), (reset_name, reset)]
    }
}

const REQUEST_NAMES: [&str; 3] =
    ["x-ratelimit-limit-requests", "x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"];
const TOKEN_NAMES: [&str; 3] =
    ["x-ratelimit-limit-tokens", "x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"];
const ANTHROPIC_REQUESTS: [&str; 3] = [
    "anthropic-ratelimit-requests-limit",
    "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-requests-reset",
];
const ANTHROPIC_TOKENS: [&str; 3] = [
    "anthropic-ratelimit-tokens-limit",
    "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-tokens-reset",
];

struct ErrorNames {
    openai: &'static str,
    openai_code: &'static str,
    anthropic: &'static str,
    google: &'static str,
    aws: &'static str,
    title: &'static str,
}

impl CallError {
    fn names(self) -> (u16, ErrorNames) {
        let names = |openai, openai_code, anthropic, google, aws, title| ErrorNames {
            openai,
            openai_code,
            anthropic,
            google,
            aws,
            title,
        };
        let request = "invalid_request_error";
        match self {
            CallError::Key => (
                401,
                names(
                    request,
                    "invalid_api_key",
                    "authentication_error",
                    "UNAUTHENTICATED",
                    "UnrecognizedClientException",
                    "Unauthorized",
                ),
            ),
            CallError::Request => (
                400,
                names(
                    request,
                    "invalid_json",
                    request,
                    "INVALID_ARGUMENT",
                    "ValidationException",
                    "Bad Request",
                ),
            ),
            CallError::Path => (
                404,
                names(
                    request,
                    "unknown_url",
                    "not_found_error",
                    "NOT_FOUND",
                    "ResourceNotFoundException",
                    "Not Found",
                ),
            ),
            CallError::Method => (
                405,
                names(
                    request,
                    "method_not_supported",
                    request,
                    "UNIMPLEMENTED",
                    "ValidationException",
                    "Method Not Allowed",
                ),
            ),
            CallError::BodyTooLong => (
                413,
                names(
                    request,
                    "request_too_large",
                    "request_too_large",
                    "INVALID_ARGUMENT",
                    "ValidationException",
                    "Content Too Large",
                ),
            ),
            CallError::BodyTooSlow => (
                408,
                names(
                    "server_error",
                    "timeout",
                    "timeout_error",
                    "DEADLINE_EXCEEDED",
                    "ModelTimeoutException",
                    "Request Timeout",
                ),
            ),
        }
    }
}

fn openai(status: u16, message: &str, kind: &str, code: &str) -> MockReply {
    MockReply::json(
        status,
        &json!({"error": {"message": message, "type": kind, "param": null, "code": code}}),
    )
}

fn anthropic(status: u16, kind: &str, message: &str) -> MockReply {
    MockReply::json(
        status,
        &json!({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_mock"}),
    )
}

fn gemini(status: u16, name: &str, message: &str) -> MockReply {
    MockReply::json(status, &json!({"error": {"code": status, "message": message, "status": name}}))
}

fn gemini_quota(unit: &str, period: &str, value: u64, wait: Option<Duration>) -> MockReply {
    let (metric, id) = match unit {
        TOKENS => ("generate_content_paid_tier_input_token_count", "GenerateContentInputTokens"),
        _ => ("generate_requests_per_model", "GenerateRequests"),
    };
    let mut details = vec![json!({
        "@type": "type.googleapis.com/google.rpc.QuotaFailure",
        "violations": [{
            "quotaMetric": format!("generativelanguage.googleapis.com/{metric}"),
            "quotaId": format!("{id}{period}PerProjectPerModel"),
            "quotaValue": value.to_string(),
        }],
    })];
    if let Some(wait) = wait {
        // Protobuf writes durations to the microsecond.
        let micros = wait.as_micros();
        let delay = format!("{}.{:06}s", micros / 1_000_000, micros % 1_000_000);
        details.push(json!({"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": delay}));
    }
    let message = "You exceeded your current quota, please check your plan and billing details.";
    let error = json!({"code": 429, "message": message, "status": "RESOURCE_EXHAUSTED", "details": details});
    MockReply::json(429, &json!({"error": error}))
}

fn bedrock(status: u16, name: &str, message: &str) -> MockReply {
    MockReply::json(status, &json!({"message": message})).with("x-amzn-errortype", name)
}

fn problem(status: u16, title: &str, detail: &str) -> MockReply {
    let body = json!({"type": "about:blank", "title": title, "status": status, "detail": detail});
    let headers = vec![("content-type", "application/problem+json".to_owned())];
    MockReply { status, headers, body: body.to_string() }
}

/// Adds the wait, rounded up, so that a call after it is not denied.
fn advised(reply: MockReply, wait: Option<Duration>, in_ms: bool) -> MockReply {
    let Some(wait) = wait else { return reply };
    let reply = reply.with("retry-after", seconds(wait));
    if in_ms { reply.with("retry-after-ms", milliseconds(wait)) } else { reply }
}

fn fields(status: &Status, now: Tick) -> (String, String) {
    let limit = status.limit();
    let window = limit.period().map_or(0, |period| period.as_micros().div_ceil(1_000_000));
    let reset = seconds(status.full().wait(now).unwrap_or_default());
    let name = limit.name();
    (
        format!("\"{name}\";q={};w={window}", limit.capacity()),
        format!("\"{name}\";r={};t={reset}", left(status)),
    )
}

fn left(status: &Status) -> u64 {
    status.available().max(0).unsigned_abs()
}

fn seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

fn milliseconds(wait: Duration) -> u128 {
    wait.as_nanos().div_ceil(1_000_000)
}

/// Formats a duration like Go, to the millisecond: `6m0s`, `2m59.56s`, `12ms`.
fn go_duration(wait: Duration) -> String {
    let ms = milliseconds(wait);
    let (hours, minutes, rest) = (ms / 3_600_000, ms / 60_000 % 60, ms % 60_000);
    let decimals = format!(".{:03}", rest % 1_000);
    let seconds = format!("{}{}s", rest / 1_000, decimals.trim_end_matches('0').trim_end_matches('.'));
    match (hours, minutes) {
        (0, 0) if ms < 1_000 && ms > 0 => format!("{ms}ms"),
        (0, 0) => seconds,
        (0, _) => format!("{minutes}m{seconds}"),
        _ => format!("{hours}h{minutes}m{seconds}"),
    }
}

/// Formats a wall-clock time in whole seconds, rounded up.
fn rfc3339(now: Tick, after: Duration) -> String {
    let micros = u128::from(now.as_micros()) + after.as_micros();
    let second = i64::try_from(micros.div_ceil(1_000_000)).unwrap_or(i64::MAX);
    Timestamp::from_second(second).unwrap_or(Timestamp::MAX).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_the_format_of_go() {
        let table = [
            (0, "0s"),
            (12, "12ms"),
            (1_000, "1s"),
            (360_000, "6m0s"),
            (179_560, "2m59.56s"),
            (3_600_001, "1h0m0.001s"),
        ];
        for (ms, text) in table {
            assert_eq!(go_duration(Duration::from_millis(ms)), text);
        }
        assert_eq!(go_duration(Duration::from_micros(1)), "1ms", "never too short");
    }

    #[test]
    fn dates_are_whole_seconds_and_never_too_early() {
        let noon = Tick::from_secs(1_794_744_000);
        assert_eq!(rfc3339(noon, Duration::from_millis(12_001)), "2026-11-15T12:00:13Z");
        assert_eq!(rfc3339(noon, Duration::ZERO), "2026-11-15T12:00:00Z");
    }
}
