//! Tollgate decides who may call an expensive API now, who waits and who is refused: requests, tokens, money
//! and concurrency, taken together or not at all.
//!
//! ```
//! use tollgate::{demand, Limit, LimitSet};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let limits = LimitSet::new([
//!     Limit::per_minute("rpm", 500),
//!     Limit::per_minute("tpm", 200_000),
//!     Limit::resource("connections", 16),
//! ])?;
//!
//! // Waits its turn, then holds a connection, a request and an estimate of the tokens.
//! let lease = limits.acquire(demand! { rpm: 1, tpm: 1_500 }).await?;
//! // ... call the API; an early return or a panic frees the connection ...
//! let tokens_used = 1_180;
//! lease.settle(demand! { rpm: 1, tpm: tokens_used }).await?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! In a thread, with no runtime, write `.wait()` where a task writes `.await`: both wait in the same queue.
//!
//! Which one:
//!
//! | you have | use |
//! |---|---|
//! | limits that the program knows, shared by its threads and tasks; or by processes and hosts, through a [store](LimitSetBuilder::store) | [`LimitSet`] |
//! | several such sets to spread over: accounts, regions, keys | [`LimitPool`] |
//! | many users, keys or projects, with stored limits that an operator changes | [`Limiter`] |
//! | limits that come with each call | [`Checker`] |
//! | jobs to run in threads, tasks or processes under limits | `workers` (feature `workers`) |
//! | many requests to a provider that answers 429 | the crate `tollgate-batch` |
//!
//! All of them have [`try_acquire`](LimitSet::try_acquire), which answers now, and [`acquire`](LimitSet::acquire), which waits, with one
//! builder ([`Acquire`]). A denial is a value, [`Attempt::Denied`]; every error becomes an [`Error`]. What happens is reported to an
//! [`Observer`], and to `tracing`.
//!
//! Features: `file`, `shm`, `redis`, `dynamodb` for stores, `calendar`, `serde`, `tower`, `workers`, `tokio`, `processes`.

#[cfg(doctest)]
mod guide;

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
