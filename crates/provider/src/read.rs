//! Conversion of a reply to a hint.

use std::time::{Duration, SystemTime};

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};

use crate::body::{self, BodyFacts};
use crate::error_codes::{BodyError, Cause};
use crate::headers::Headers;
use crate::meters::{self, METERS_MAX};
use crate::{Class, Failure, FatalKind, Hint, Response, Tokens, Until, wait};

/// The zone whose midnight ends a day of Gemini's quotas.
const GOOGLE_DAYS: &str = "America/Los_Angeles";

/// The status of an error that follows a status of success and does not name its own.
const UNKNOWN: u16 = 0;

/// Reads a reply.
///
/// `now` is used for dates; no clock is read. If the reply has a date that is far from `now`, waits
/// until a date are relative to that date.
///
/// A body may contain more than the status: a call that was denied because the account ran out of
/// money has the same status as one that came too early, and a stream that started well may end in
/// an error. The most severe cause counts. `x-should-retry` decides if there is no more severe
/// cause.
///
/// ```
/// use std::time::{Duration, SystemTime};
/// use tollgate_provider::{Class, Response, read};
///
/// let reply = Response::new(429, &[("retry-after", "7")], b"");
/// let hint = read(&reply, SystemTime::UNIX_EPOCH);
/// assert_eq!((hint.class, hint.advice), (Class::Throttled, Some(Duration::from_secs(7))));
/// ```
#[must_use]
pub fn read(response: &Response<'_>, now: SystemTime) -> Hint {
    let headers = Headers::new(response.headers);
    let sent_at = headers.sent_at(now);
    let BodyFacts { error, text, usage } = body::read(response.body);
    let is_good = (200..300).contains(&response.status);
    // Text in a successful reply is not about an error.
    let error = error.or(text.filter(|_| !is_good));
    let error = match headers.get("x-amzn-errortype") {
        Some(name) => Some(error.unwrap_or_default().with_code(name)),
        None => error,
    };
    let status = match &error {
        Some(error) if is_good => error.status().unwrap_or(UNKNOWN),
        _ => response.status,
    };
    let advice = headers.advice(sent_at).or_else(|| error.as_ref()?.advice());
    let class = class(status, error.as_ref(), advice, sent_at);
    let class = headers.should_retry().map_or(class, |should| with_should_retry(class, should));
    let class = by_our_clock(class, sent_at, now);
    let mut meters = meters::read(headers, sent_at);
    meters.extend(error.iter().flat_map(BodyError::meters));
    meters.truncate(METERS_MAX);
    let reason = if class == Class::Ok { None } else { error.as_ref().and_then(BodyError::reason) };
    Hint {
        class,
        advice: advice.filter(|_| class != Class::Ok),
        meters,
        usage: usage.or(bedrock_usage(headers)),
        reason,
    }
}

/// Returns the hint for a call that got no reply.
///
/// ```
/// use tollgate_provider::{Class, Failure, read_failure};
///
/// assert_eq!(read_failure(Failure::Timeout).class, Class::Transient);
/// ```
#[must_use]
pub fn read_failure(kind: Failure) -> Hint {
    let class = match kind {
        Failure::Timeout | Failure::Connection => Class::Transient,
        Failure::Address | Failure::Request => Class::Fatal(FatalKind::Request),
    };
    Hint::of(class).with_reason(kind.as_str())
}

/// Returns the class of a status and an error.
fn class(status: u16, error: Option<&BodyError>, advice: Option<Duration>, sent_at: SystemTime) -> Class {
    let by_status = by_status(status, advice);
    let refusal = matches!(by_status, Class::Fatal(_)) || status == UNKNOWN;
    let Some(cause) = error.and_then(BodyError::cause) else { return by_status };
    match cause {
        Cause::ExhaustedThisMonth => Class::Exhausted { until: next_month(sent_at) },
        Cause::ExhaustedToday => Class::Exhausted { until: google_midnight(sent_at) },
        Cause::Exhausted => Class::Exhausted { until: regained_at(error, sent_at) },
        Cause::TooLarge => Class::Fatal(FatalKind::TooLarge),
        Cause::Overloaded => Class::Overloaded,
        Cause::Throttled => Class::Throttled,
        Cause::Transient if !matches!(status, 401 | 403 | 429) => Class::Transient,
        // The provider's own infrastructure may fail with an authentication error, which must not
        // end the scope.
        Cause::Auth if refusal => Class::Fatal(FatalKind::Auth),
        // A model that an account may not use has no meaning for others.
        Cause::Request if status == UNKNOWN || status == 403 => Class::Fatal(FatalKind::Request),
        Cause::Transient | Cause::Auth | Cause::Request => by_status,
    }
}

fn by_status(status: u16, advice: Option<Duration>) -> Class {
    match status {
        200..=299 => Class::Ok,
        401 | 403 => Class::Fatal(FatalKind::Auth),
        402 => Class::Exhausted { until: None },
        408 | 409 | 425 | 499 => Class::Transient,
        413 => Class::Fatal(FatalKind::TooLarge),
        429 => Class::Throttled,
        // The capacity of a tier is used up for the moment (Groq).
        498 | 529 => Class::Overloaded,
        501 | 505 => Class::Fatal(FatalKind::Request),
        503 if advice.is_some() => Class::Overloaded,
        300..=499 => Class::Fatal(FatalKind::Request),
        _ => Class::Transient,
    }
}

/// Adjusts a class if the provider reports whether it wants a retry.
fn with_should_retry(class: Class, should: bool) -> Class {
    match class {
        Class::Ok | Class::Exhausted { .. } | Class::Fatal(FatalKind::TooLarge) => class,
        Class::Fatal(_) if should => Class::Transient,
        Class::Throttled if !should => Class::Exhausted { until: None },
        Class::Overloaded | Class::Transient if !should => Class::Fatal(FatalKind::Request),
        _ => class,
    }
}

/// Converts times from the provider's clock to ours, if they differ.
fn by_our_clock(class: Class, sent_at: SystemTime, now: SystemTime) -> Class {
    match class {
        Class::Exhausted { until: Some(until) } if sent_at != now => {
            Class::Exhausted { until: now.checked_add(until.wait(sent_at)).map(Until::at) }
        }
        _ => class,
    }
}

/// Returns the usage in Bedrock's headers.
fn bedrock_usage(headers: Headers<'_>) -> Option<Tokens> {
    let count = |name: &str| headers.get(name).and_then(meters::count);
    let input = count("x-amzn-bedrock-input-token-count");
    let output = count("x-amzn-bedrock-output-token-count");
    input.or(output).map(|_| Tokens::new(input.unwrap_or(0), output.unwrap_or(0)))
}

fn regained_at(error: Option<&BodyError>, now: SystemTime) -> Option<Until> {
    let time = error?.access_again()?;
    wait::from(time, now).map(|_| Until::at(time))
}

fn next_month(now: SystemTime) -> Option<Until> {
    midnight(now, TimeZone::UTC, |today| today.first_of_month().checked_add(1.month()).ok())
}

fn google_midnight(now: SystemTime) -> Option<Until> {
    midnight(now, TimeZone::get(GOOGLE_DAYS).ok()?, |today| today.tomorrow().ok())
}

fn midnight(now: SystemTime, zone: TimeZone, day: impl Fn(Date) -> Option<Date>) -> Option<Until> {
    let today = Timestamp::try_from(now).ok()?.to_zoned(zone.clone()).date();
    let begins = day(today)?.to_zoned(zone).ok()?;
    Some(Until::at(SystemTime::from(begins.timestamp())))
}
