//! Errors of opening a store.

use std::time::Duration;

use crate::{ServerError, UrlError};

/// Why a store could not be opened. It never shows a password.
///
/// ```no_run
/// # async fn open() {
/// use tollgate_redis::{RedisOpenError, RedisStore};
///
/// match RedisStore::builder("redis://127.0.0.1:6379").build().await {
///     Ok(store) => println!("{store:?}"),
///     Err(RedisOpenError::Unavailable { waited, .. }) => println!("no reply for {waited:?}"),
///     Err(error) => println!("{error}"),
/// }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RedisOpenError {
    /// The address is not valid.
    #[error("the address of the store is not valid: {0}")]
    BadUrl(#[from] UrlError),
    /// A setting is not valid.
    #[error("{0}")]
    BadSetting(String),
    /// The server evicts keys when its memory is full.
    #[error(
        "the server at {0} has maxmemory {1} and the policy {2}, so it may forget debts, leases and records; set \
         maxmemory-policy to noeviction, or accept it with evicting=accept"
    )]
    Evicting(String, String, String),
    /// The server is too old.
    #[error("the server at {0} is version {1}, and at least Redis 7 or Valkey 7 is needed")]
    TooOld(String, String),
    /// The server did not answer.
    #[error("{url} did not answer within {waited:?}: {error}")]
    Unavailable {
        /// The address, without its password.
        url: String,
        /// For how long opening was retried.
        waited: Duration,
        /// The error of the last attempt.
        error: ServerError,
    },
    /// The server refused a call.
    #[error("{0} refuses: {1}")]
    Refused(String, ServerError),
    /// This host has no threads left, or something like it.
    #[error("the store cannot be started here: {0}")]
    Host(String),
}
