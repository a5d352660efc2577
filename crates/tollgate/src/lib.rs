//! Tollgate is a rate limiter for LLM providers and other expensive APIs: requests, tokens, money and concurrency, all of them together
//! or none, for the threads of one process or a fleet of hosts.
//!
//! ```
//! use tollgate::{demand, Limit, LimitSet};
//!
//! let limits = LimitSet::new([
//!     Limit::per_minute("rpm", 500),
//!     Limit::per_minute("tpm", 200_000),
//!     Limit::resource("connections", 16),
//! ])?;
//!
//! // Waits its turn, then holds a connection, a request and an estimate of the tokens.
//! let lease = limits.acquire(demand! { rpm: 1, tpm: 1_500 }).wait()?;
//! // ... call the API; an early return or a panic frees the connection ...
//! let tokens_used = 1_180;
//! lease.settle(demand! { tpm: tokens_used }).wait()?; // unused tokens are refunded, over-use becomes debt
//! # Ok::<(), tollgate::Error>(())
//! ```
//!
//! In a task write `.await` where a thread writes `.wait()`: both wait in the same queue, and no runtime is needed.
//!
//! # Which one
//!
//! | you have | use |
//! |---|---|
//! | limits that the program knows, shared by its threads and tasks; or by processes and hosts, through a [store](LimitSetBuilder::store) | [`LimitSet`] |
//! | several such sets to spread over: accounts, regions, keys | [`LimitPool`] |
//! | many users, keys or projects, with stored limits that an operator changes | [`Limiter`] |
//! | limits that come with each call | [`Checker`] |
//! | jobs to run in threads, tasks or processes under limits | `workers::WorkerPool` (feature `workers`) |
//! | many requests to a provider that answers 429 | `Batch` in the crate `tollgate-batch` |
//!
//! All of them have [`try_acquire`](LimitSet::try_acquire), which answers at once, and [`acquire`](LimitSet::acquire), which waits, with one
//! builder ([`Acquire`]). A denial is a value, [`Attempt::Denied`], with the status of every limit and the time to retry; every error
//! becomes an [`Error`]. What is admitted holds a [`Lease`] or a [`LimiterLease`], which is settled, committed, cancelled or dropped, and
//! counts once. Events go to an [`Observer`], and to `tracing`.
//!
//! # Limits
//!
//! [`Limit::per_minute`], [`Limit::rate`] (token bucket, also as leaky bucket and GCRA: [`Algorithm`]), [`Limit::fixed_window`],
//! [`Limit::sliding_window`], [`Limit::calls`], [`Limit::resource`] (a concurrency limit), [`Limit::quota`] (until a time of a calendar, or
//! for a session), [`Limit::custom`]. Amounts are integers, in a [`Unit`] if there is one.
//!
//! # Stores
//!
//! | store | feature | shared by |
//! |---|---|---|
//! | [`Memory`] | | the threads and tasks of one process |
//! | `file::FileStore` | `file` | the processes of one host; limits survive a restart |
//! | `shm::ShmStore` | `shm` | the processes of one host, on Linux |
//! | `redis::RedisStore` | `redis` | hosts, through Redis or Valkey |
//! | `dynamo::DynamoStore` | `dynamodb` | hosts, through a DynamoDB table |
//!
//! # Features
//!
//! | feature | adds |
//! |---|---|
//! | `calendar` (default) | quotas that reset by a cron expression in a time zone |
//! | `tracing` (default) | events through the crate `tracing` |
//! | `file`, `shm`, `redis`, `dynamodb` | the stores above |
//! | `workers` | pools of workers in threads |
//! | `tokio` | the same in tasks of a tokio runtime |
//! | `processes` | workers in separate processes |
//! | `serde` | values of any type in the config of a limit set |
//! | `tower` | a layer for tower services |
//!
//! The [`guide`] names the pages of the book.

#[cfg(any(doc, doctest))]
pub mod guide;

mod acquire;
mod admission;
mod attempt;
mod checker;
#[cfg(feature = "serde")]
mod config;
mod error;
mod fallback;
mod heartbeat;
pub(crate) mod lease;
pub mod limiter;
mod observe;
mod pool;
mod process_flag;
mod reservation;
mod run;
pub mod set;
mod store_client;
mod timeout;
#[cfg(feature = "tower")]
pub mod tower;
#[cfg(feature = "workers")]
pub mod workers;

pub use acquire::{Acquire, TryAcquire};
pub use attempt::Attempt;
pub use checker::{Check, Checker};
#[cfg(feature = "serde")]
pub use config::ConfigError;
pub use error::{AcquireError, CheckError, Error, LeaseError, PoolError, ReplaceError};
pub use lease::{Config, Lease, OnDrop};
pub use limiter::{Limiter, LimiterError, LimiterLease};
pub use observe::{CheckInfo, Event, Observer};
pub use pool::{ChooseSet, LimitPool, Spread};
pub use set::{Acquiring, LimitSet, LimitSetBuilder, SETS_NAMESPACE, SetStatus, StoredSet, StoredSets};

#[cfg(feature = "calendar")]
pub use tollgate_calendar as calendar;
pub use tollgate_catalog as catalog;
pub use tollgate_catalog::{Access, Cascade, Catalog, Level, NewEntity, OnUnavailable, Registry};
pub use tollgate_core::{
    AMOUNT_MAX, Algorithm, AsDemand, BadAmount, Calendar, Costs, CustomLimit, Demand, DemandArray,
    DemandError, Denial, IntoAmount, Kind, Limit, LimitBuilder, LimitError, Limits, LimitsError, Name, Ready,
    Resets, Span, Status, Tick, UNBOUNDED, Unit, UnitError, demand,
};
#[cfg(feature = "dynamodb")]
pub use tollgate_dynamo as dynamo;
#[cfg(feature = "file")]
pub use tollgate_file as file;
#[cfg(feature = "redis")]
pub use tollgate_redis as redis;
#[cfg(all(feature = "shm", target_os = "linux"))]
pub use tollgate_shm as shm;
pub use tollgate_store as store;
pub use tollgate_store::{Backoff, Clock, Jitter, ManualClock, Memory, Priority, Reach, Reply, Retry};
