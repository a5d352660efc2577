//! What providers of language models say about their limits.
//!
//! [`read`] turns a reply (status, headers, body) into a [`Hint`]: whether the call may be made again and when, how the
//! provider's limits stand, what the call used. It goes by syntax and not by who sends: the same header carries `1s`,
//! `6m0s`, `12ms`, a number or a date, depending on whom one asks, and proxies answer for all of them.
//!
//! ```
//! use std::time::{Duration, SystemTime};
//! use tollgate_provider::{Class, Response, read};
//!
//! let headers = [("x-ratelimit-remaining-requests", "0"), ("retry-after-ms", "1500")];
//! let hint = read(&Response::new(429, &headers, b"{}"), SystemTime::UNIX_EPOCH);
//! assert_eq!(hint.class, Class::Throttled);
//! assert_eq!(hint.advice, Some(Duration::from_millis(1_500)));
//! assert_eq!(hint.meters[0].remaining, Some(0));
//! ```
//!
//! An [`Estimator`] says what a request will cost before it is sent, and learns from what it did cost.
//!
//! Nothing here does I/O or reads a clock. No input makes it panic, and none makes it ask for a wait beyond
//! [`WAIT_MAX`].

#[cfg(doctest)]
mod guide;

mod body;
mod error_codes;
mod estimate;
mod fields;
mod headers;
mod hint;
mod meters;
mod read;
mod reason;
mod response;
mod usage;
mod wait;

pub use estimate::{Accuracy, Estimate, Estimator, MODELS_MAX};
pub use hint::{Class, FatalKind, Hint, LimitReading, LimitUnit, REASON_MAX, Tokens, Until, WAIT_MAX};
pub use read::{read, read_failure};
pub use response::{Failure, Response};
