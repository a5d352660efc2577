//! From a reply to a hint.

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

/// The status of an error that came after a good one and does not tell its own.
const UNKNOWN: u16 = 0;

/// Reads a reply.
///
/// `now` is for dates; nothing else is read from a clock. Where the reply has a date of its own that is far from
/// `now`, waits until a date are counted from that.
///
/// A body may say more than the status: a call that was refused because money ran out comes with the same status as
/// one that came too early, and a stream that began well may end in an error. Of all that is said the gravest counts.
/// `x-should-retry` decides where nothing graver is said.
#[must_use]
pub fn read(response: &Response<'_>, now: SystemTime) -> Hint {
    let headers = Headers::new(response.headers);
    let sent_at = headers.sent_at(now);
    let BodyFacts { fault, words, usage } = body::read(response.body);
    let is_good = (200..300).contains(&response.status);
    // Words in a good reply are no words about the call.
    let fault = fault.or(words.filter(|_| !is_good));
    let fault = match headers.get("x-amzn-errortype") {
        Some(name) => Some(fault.unwrap_or_default().called(name)),
        None => fault,
    };
    let status = match &fault {
        Some(fault) if is_good => fault.status().unwrap_or(UNKNOWN),
        _ => response.status,
    };
    let advice = headers.advice(sent_at).or_else(|| fault.as_ref()?.advice());
    let class = class(status, fault.as_ref(), advice, sent_at);
    let class = headers.should_retry().map_or(class, |should| retried(class, should));
    let class = by_our_clock(class, sent_at, now);
    let mut meters = meters::read(headers, sent_at);
    meters.extend(fault.iter().flat_map(BodyError::meters));
    meters.truncate(METERS_MAX);
    let reason = if class == Class::Ok { None } else { fault.as_ref().and_then(BodyError::reason) };
    Hint {
        class,
        advice: advice.filter(|_| class != Class::Ok),
        meters,
        usage: usage.or(counted(headers)),
        reason,
    }
}

/// As [`read`], for a call that got no reply.
#[must_use]
pub fn read_failure(kind: Failure) -> Hint {
    let class = match kind {
        Failure::Timeout | Failure::Connection => Class::Transient,
        Failure::Address | Failure::Request => Class::Fatal(FatalKind::Request),
    };
    Hint::of(class).with_reason(kind.as_str())
}

/// What a status and the names of an error amount to.
fn class(status: u16, fault: Option<&BodyError>, advice: Option<Duration>, sent_at: SystemTime) -> Class {
    let by_status = by_status(status, advice);
    let refusal = matches!(by_status, Class::Fatal(_)) || status == UNKNOWN;
    let Some(cause) = fault.and_then(BodyError::cause) else { return by_status };
    match cause {
        Cause::ExhaustedThisMonth => Class::Exhausted { until: next_month(sent_at) },
        Cause::ExhaustedToday => Class::Exhausted { until: google_midnight(sent_at) },
        Cause::Exhausted => Class::Exhausted { until: said_until(fault, sent_at) },
        Cause::TooLarge => Class::Fatal(FatalKind::TooLarge),
        Cause::Overloaded => Class::Overloaded,
        Cause::Throttled => Class::Throttled,
        Cause::Transient if !matches!(status, 401 | 403 | 429) => Class::Transient,
        // A failure of the provider's may be about a key of its own, and that must not end the scope.
        Cause::Auth if refusal => Class::Fatal(FatalKind::Auth),
        // A model that an account may not use says nothing about others.
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
        // Capacity of a tier is gone for the moment, as Groq has it.
        498 | 529 => Class::Overloaded,
        501 | 505 => Class::Fatal(FatalKind::Request),
        503 if advice.is_some() => Class::Overloaded,
        300..=499 => Class::Fatal(FatalKind::Request),
        _ => Class::Transient,
    }
}

/// What becomes of a class where the provider says whether it wants to see the call again.
fn retried(class: Class, should: bool) -> Class {
    match class {
        Class::Ok | Class::Exhausted { .. } | Class::Fatal(FatalKind::TooLarge) => class,
        Class::Fatal(_) if should => Class::Transient,
        Class::Throttled if !should => Class::Exhausted { until: None },
        Class::Overloaded | Class::Transient if !should => Class::Fatal(FatalKind::Request),
        _ => class,
    }
}

/// The same with times by our clock, where that of the provider is another.
fn by_our_clock(class: Class, sent_at: SystemTime, now: SystemTime) -> Class {
    match class {
        Class::Exhausted { until: Some(until) } if sent_at != now => {
            Class::Exhausted { until: now.checked_add(until.wait(sent_at)).map(Until::at) }
        }
        _ => class,
    }
}

/// What Bedrock says in headers that the call used.
fn counted(headers: Headers<'_>) -> Option<Tokens> {
    let count = |name: &str| headers.get(name).and_then(meters::count);
    let input = count("x-amzn-bedrock-input-token-count");
    let output = count("x-amzn-bedrock-output-token-count");
    input.or(output).map(|_| Tokens::new(input.unwrap_or(0), output.unwrap_or(0)))
}

fn said_until(fault: Option<&BodyError>, now: SystemTime) -> Option<Until> {
    let time = fault?.access_again()?;
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
