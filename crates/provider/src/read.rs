//! From a reply to a hint.

use std::time::SystemTime;

use crate::{Class, Failure, FatalKind, Hint, Response};

/// Reads a reply.
///
/// `now` is for dates; nothing else is read from a clock.
#[must_use]
pub fn read(response: &Response<'_>, _now: SystemTime) -> Hint {
    let class = match response.status {
        200..=299 => Class::Ok,
        429 => Class::Throttled,
        401 | 403 => Class::Fatal(FatalKind::Auth),
        413 => Class::Fatal(FatalKind::TooLarge),
        408 | 409 => Class::Transient,
        300..=499 => Class::Fatal(FatalKind::Request),
        529 => Class::Overloaded,
        _ => Class::Transient,
    };
    Hint::of(class)
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
