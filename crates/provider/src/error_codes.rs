//! Errors by the codes that providers use for them.

use std::time::{Duration, SystemTime};

use serde_json::Value;

use crate::meters;
use crate::{LimitReading, reason, wait};

/// The maximum number of codes, and of details, of an error that are parsed.
const NAMES_MAX: usize = 16;
const DETAILS_MAX: usize = 32;

/// An error as a body describes it.
#[derive(Debug, Default)]
pub(crate) struct BodyError {
    /// The codes, types and reasons; the most severe one counts.
    names: Vec<String>,
    /// The HTTP status that the error names.
    status: Option<u16>,
    /// The provider's message.
    message: Option<String>,
    /// The delay that Google asks for.
    retry_delay: Option<Duration>,
    /// The ids of Google's quotas that were exceeded, with their limits.
    quotas: Vec<(String, Option<LimitReading>)>,
    /// True if one of the quotas is 0: then the plan does not include the model, and waiting does
    /// not help.
    no_quota: bool,
}

impl BodyError {
    /// Parses the value of `error`: an object, or text.
    pub(crate) fn of_error(value: &Value) -> BodyError {
        let mut error = BodyError::default();
        match value {
            Value::Object(fields) => {
                for key in ["code", "type", "status", "reason"] {
                    error.name(fields.get(key));
                }
                error.status = fields.get("code").and_then(status);
                error.message = fields.get("message").and_then(Value::as_str).map(str::to_owned);
                match fields.get("details") {
                    Some(Value::Array(details)) => {
                        details.iter().take(DETAILS_MAX).for_each(|detail| error.detail(detail))
                    }
                    Some(details) => error.name(details.get("error_code")),
                    None => {}
                }
            }
            Value::String(text) => {
                error.name(Some(value));
                error.message = Some(text.clone());
            }
            _ => {}
        }
        error
    }

    /// Creates an error of codes and a message that are fields of the body itself.
    pub(crate) fn of_parts(names: &[Value], message: Option<&Value>) -> Option<BodyError> {
        let mut error = BodyError::default();
        names.iter().for_each(|name| error.name(Some(name)));
        error.message = message.and_then(Value::as_str).map(str::to_owned);
        (error.message.is_some() || error.cause().is_some()).then_some(error)
    }

    /// Creates an error of a plain text body. HTML pages are ignored.
    pub(crate) fn of_text(body: &[u8]) -> Option<BodyError> {
        let head = &body[..body.len().min(4 * crate::REASON_MAX)];
        let text = String::from_utf8_lossy(head);
        let plain = !text.is_empty() && !text.starts_with(['<', '{', '[']);
        plain.then(|| BodyError { message: Some(text.into_owned()), ..BodyError::default() })
    }

    /// Adds the code of a header: `ThrottlingException:http://internal.amazon.com/..`.
    pub(crate) fn with_code(mut self, name: &str) -> BodyError {
        self.add_name(name);
        self
    }

    /// Returns the most severe cause among the known codes and messages.
    pub(crate) fn cause(&self) -> Option<Cause> {
        let of_code = self.names.iter().filter_map(|name| Cause::of_code(name));
        let daily = self.quotas.iter().any(|(id, _)| is_daily(id)).then_some(Cause::ExhaustedToday);
        let none = self.no_quota.then_some(Cause::Exhausted);
        let of_message = self.message.as_deref().and_then(Cause::of_message);
        of_code.chain(daily).chain(none).chain(of_message).max()
    }

    /// Returns the status that the error names, for a reply that started with a status of success.
    pub(crate) fn status(&self) -> Option<u16> {
        self.status
    }

    /// Returns how long the provider asks to wait.
    pub(crate) fn advice(&self) -> Option<Duration> {
        self.retry_delay.or_else(|| wait::in_sentence(self.message.as_deref()?))
    }

    /// Returns when the message promises access again: "You will regain access on 2026-12-01 at
    /// 00:00 UTC."
    pub(crate) fn access_again(&self) -> Option<SystemTime> {
        let (_, after) = self.message.as_deref()?.split_once("regain access on ")?;
        let mut words = after.split_whitespace();
        let (day, time) = (words.next()?, words.nth(1).unwrap_or("00:00"));
        wait::date(&format!("{}T{}:00Z", day.get(..10)?, time.get(..5)?))
    }

    /// Returns the limits of the quotas that were exceeded.
    pub(crate) fn meters(&self) -> impl Iterator<Item = LimitReading> {
        self.quotas.iter().filter_map(|(_, meter)| *meter)
    }

    /// Returns the message for users, or else the first code.
    pub(crate) fn reason(&self) -> Option<String> {
        let message = self.message.as_deref().filter(|message| !message.trim().is_empty());
        message.or(self.names.first().map(String::as_str)).and_then(reason::shown)
    }

    fn name(&mut self, name: Option<&Value>) {
        if let Some(name) = name.and_then(Value::as_str) {
            self.add_name(name);
        }
    }

    fn add_name(&mut self, name: &str) {
        // AWS writes `com.amazon.coral.service#ThrottlingException:http://..`.
        let name = name.split(':').next().unwrap_or(name);
        let name = name.rsplit('#').next().unwrap_or(name).trim();
        if self.names.len() < NAMES_MAX && !name.is_empty() && name.len() <= 100 {
            self.names.push(name.to_owned());
        }
    }

    /// Parses one of the details of Google's errors.
    fn detail(&mut self, detail: &Value) {
        self.name(detail.get("reason"));
        if let Some(delay) = detail.get("retryDelay").and_then(Value::as_str) {
            // An absolute time is not expected here, so the clock does not matter.
            self.retry_delay = wait::parse(delay, SystemTime::UNIX_EPOCH).max(self.retry_delay);
        }
        if let Some(limit) = detail.pointer("/metadata/quota_limit").and_then(Value::as_str) {
            self.quotas.push((limit.to_owned(), None));
        }
        let violations = detail.get("violations").and_then(Value::as_array);
        for violation in violations.into_iter().flatten().take(DETAILS_MAX) {
            let text = |key: &str| violation.get(key).and_then(Value::as_str);
            let Some(id) = text("quotaId") else { continue };
            let unit = text("quotaMetric").and_then(|metric| meters::unit(&metric.to_ascii_lowercase()));
            let value = text("quotaValue").and_then(meters::count);
            self.no_quota |= value == Some(0);
            let meter = unit.zip(value.filter(|value| *value > 0));
            self.quotas
                .push((id.to_owned(), meter.map(|(unit, limit)| LimitReading::new(unit).with_limit(limit))));
        }
    }
}

fn status(code: &Value) -> Option<u16> {
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    u16::try_from(number).ok().filter(|status| (400..600).contains(status))
}

fn is_daily(quota_id: &str) -> bool {
    quota_id.contains("PerDay")
}

/// The cause of an error, from the mildest to the most severe. Of several causes the most severe is
/// right, because the others are more general names for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Cause {
    Request,
    Transient,
    Throttled,
    Overloaded,
    Auth,
    TooLarge,
    /// Until the end of Google's day.
    ExhaustedToday,
    Exhausted,
    /// Until the end of the month.
    ExhaustedThisMonth,
}

impl Cause {
    /// Maps the codes, types and reasons of the providers.
    fn of_code(name: &str) -> Option<Cause> {
        Some(match name {
            "enforced_spend_limit_reached" => Cause::ExhaustedThisMonth,
            "insufficient_quota"
            | "credit_balance_exhausted"
            | "organization_spend_limit_exceeded"
            | "project_spend_limit_exceeded"
            | "organization_usage_limit_exceeded"
            | "billing_hard_limit_reached"
            | "billing_not_active"
            | "billing_error"
            | "insufficient_balance"
            | "exceeded_current_quota_error"
            | "ServiceQuotaExceededException" => Cause::Exhausted,
            "context_length_exceeded" | "request_too_large" | "string_above_max_length" => Cause::TooLarge,
            "authentication_error"
            | "permission_error"
            | "invalid_api_key"
            | "invalid_authentication"
            | "account_deactivated"
            | "UNAUTHENTICATED"
            | "PERMISSION_DENIED"
            | "API_KEY_INVALID"
            | "API_KEY_SERVICE_BLOCKED"
            | "AccessDeniedException"
            | "UnrecognizedClientException"
            | "InvalidSignatureException"
            | "IncompleteSignatureException"
            | "MissingAuthenticationTokenException"
            | "ExpiredTokenException" => Cause::Auth,
            "overloaded_error"
            | "overloaded"
            | "server_is_overloaded"
            | "engine_overloaded"
            | "engine_overloaded_error"
            | "capacity_exceeded"
            | "UNAVAILABLE"
            | "service_unavailable_error"
            | "ServiceUnavailableException"
            | "serviceUnavailableException" => Cause::Overloaded,
            "rate_limit_exceeded"
            | "rate_limit_error"
            | "rate_limit_reached_error"
            | "too_many_requests"
            | "slow_down"
            | "RateLimitReached"
            | "rateLimitExceeded"
            | "RATE_LIMIT_EXCEEDED"
            | "RESOURCE_EXHAUSTED"
            | "ThrottlingException"
            | "throttlingException"
            | "TooManyRequestsException" => Cause::Throttled,
            "api_error"
            | "server_error"
            | "internal_error"
            | "internal_server_error"
            | "timeout_error"
            | "conflict_error"
            | "INTERNAL"
            | "UNKNOWN"
            | "ABORTED"
            | "CANCELLED"
            | "DEADLINE_EXCEEDED"
            | "InternalServerException"
            | "internalServerException"
            | "ModelTimeoutException"
            | "ModelErrorException"
            | "ModelNotReadyException"
            | "ModelStreamErrorException"
            | "modelStreamErrorException" => Cause::Transient,
            "invalid_request_error"
            | "not_found_error"
            | "model_not_found"
            | "content_filter"
            | "content_policy_violation"
            | "INVALID_ARGUMENT"
            | "FAILED_PRECONDITION"
            | "OUT_OF_RANGE"
            | "NOT_FOUND"
            | "UNIMPLEMENTED"
            | "ValidationException"
            | "validationException"
            | "ResourceNotFoundException" => Cause::Request,
            _ => return None,
        })
    }

    /// Maps messages that have no code.
    fn of_message(message: &str) -> Option<Cause> {
        let has = |words: &str| message.contains(words);
        Some(match () {
            () if has("credit balance is too low") => Cause::Exhausted,
            () if has("You have reached your specified") && has("usage limits") => Cause::Exhausted,
            () if has("Request too large for") || asks_more_than_limit(message) => Cause::TooLarge,
            () if has("prompt is too long") || has("Input is too long") => Cause::TooLarge,
            () if has("exceeds the maximum number of tokens allowed") => Cause::TooLarge,
            () => return None,
        })
    }
}

/// Returns true for "Limit 10000, Requested 20000": no wait makes that fit.
fn asks_more_than_limit(message: &str) -> bool {
    let number = |mark: &str| -> Option<u64> {
        let (_, after) = message.split_once(mark)?;
        let digits = after.split(|c: char| !c.is_ascii_digit()).next()?;
        digits.parse().ok()
    };
    number("Limit ").zip(number("Requested ")).is_some_and(|(limit, asked)| asked > limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_severe_code_counts() {
        let value = serde_json::json!({"type": "insufficient_quota", "code": "credit_balance_exhausted"});
        assert_eq!(BodyError::of_error(&value).cause(), Some(Cause::Exhausted));
        let value = serde_json::json!({"type": "invalid_request_error", "code": "context_length_exceeded"});
        assert_eq!(BodyError::of_error(&value).cause(), Some(Cause::TooLarge));
    }

    #[test]
    fn a_request_above_the_limit_differs_from_one_that_comes_too_early() {
        assert!(asks_more_than_limit("on tokens per min (TPM): Limit 10000, Requested 20000."));
        assert!(!asks_more_than_limit("on tokens per min (TPM): Limit 10000, Used 9990, Requested 20."));
        assert!(!asks_more_than_limit("Limit 10000, Requested 99999999999999999999999"));
    }

    #[test]
    fn a_message_contains_when_access_is_back() {
        let message = "You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC.";
        let error =
            BodyError::of_error(&serde_json::json!({"type": "invalid_request_error", "message": message}));
        assert_eq!(error.cause(), Some(Cause::Exhausted));
        assert_eq!(error.access_again(), wait::date("2026-12-01T00:00:00Z"));
        let error = BodyError::of_error(&serde_json::json!("regain access on ünïcödé-day at x"));
        assert_eq!(error.access_again(), None);
    }
}
