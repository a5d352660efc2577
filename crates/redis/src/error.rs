//! Why a store could not be opened.

use std::time::Duration;

use crate::{ServerError, UrlError};

/// Why a store could not be opened. It never shows a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedisOpenError {
    /// The address is not valid.
    #[error("the address of the store is not valid: {0}")]
    BadUrl(#[from] UrlError),
    /// A setting does not work.
    #[error("{0}")]
    BadSetting(String),
    /// The server forgets what it likes when its memory is full.
    #[error(
        "the server at {0} has maxmemory {1} and the policy {2}, so it may forget debts, leases and records; set \
         maxmemory-policy to noeviction, or accept it with evicting=accept"
    )]
    Evicting(String, String, String),
    /// The server is too old.
    #[error("the server at {0} is version {1}, and at least Redis 7 or Valkey 7 is needed")]
    TooOld(String, String),
    /// The server did not answer.
    #[error("{url} did not answer within {waited:?}: {trouble}")]
    Unavailable {
        /// Where, without a password.
        url: String,
        /// For how long was tried.
        waited: Duration,
        /// What was in the way.
        trouble: ServerError,
    },
    /// The server refuses.
    #[error("{0} refuses: {1}")]
    Refused(String, ServerError),
    /// This host has no threads left, or something like it.
    #[error("the store cannot be started here: {0}")]
    Host(String),
}
