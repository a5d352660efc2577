//! LLM providers: what their replies mean for rate limiting, and what a request will use.
//!
//! [`read`] turns a reply (status, headers, body) into a [`Hint`]: whether and when to retry the
//! call, the state of the provider's limits, and the usage of the call. It goes by syntax and not
//! by provider: the same header holds `1s`, `6m0s`, `12ms`, a number or a date, depending on the
//! provider, and proxies answer for all of them.
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
//! An [`Estimator`] estimates the tokens of a request before it is sent, and learns from the usage.
//!
//! The crate does no I/O and reads no clock. No input makes it panic or return a wait beyond
//! [`WAIT_MAX`].

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
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
