//! Errors, one enum for each operation. A denial is a value, not an error.

use std::time::Duration;

use tollgate_catalog::CatalogError;
use tollgate_core::{DemandError, Denial, LimitsError, Name};
use tollgate_store::{QueueFull, StoreError, WaitError};

use crate::limiter::{ChainStatus, LimiterError, TicketError};

/// Anything that can go wrong, for callers that return one error: each of the others becomes one by `?`.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{demand, Limit, LimitSet};
///
/// fn call(set: &LimitSet) -> Result<(), tollgate::Error> {
///     let lease = set.acquire(demand! { rpm: 1 }).timeout(Duration::ZERO).wait()?;
///     Ok(lease.commit().wait()?)
/// }
///
/// let set = LimitSet::new([Limit::per_minute("rpm", 1)])?;
/// call(&set)?;
/// let error = call(&set).unwrap_err();
/// assert!(error.is_denied() && !error.is_unavailable());
/// assert!(error.retry_after().unwrap() <= Duration::from_secs(60));
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// From a [`LimitSet`](crate::LimitSet) or a [`LimitPool`](crate::LimitPool).
    #[error(transparent)]
    Acquire(#[from] AcquireError),
    /// From a [`Limiter`](crate::Limiter).
    #[error(transparent)]
    Limiter(#[from] LimiterError),
    /// From a [`Checker`](crate::Checker).
    #[error(transparent)]
    Check(#[from] CheckError),
    /// From a lease of either kind.
    #[error(transparent)]
    Lease(#[from] LeaseError),
    /// From a ticket.
    #[error(transparent)]
    Ticket(#[from] TicketError),
    /// From the limits of a set.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// From a change of a set.
    #[error(transparent)]
    Replace(#[from] ReplaceError),
    /// From the sets of a pool.
    #[error(transparent)]
    Pool(#[from] PoolError),
    /// From a catalog: entities, stored limits, namespaces.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// From a store.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Error {
    /// Returns whether a limit denied it, at once or for as long as the caller was willing to wait.
    pub fn is_denied(&self) -> bool {
        match self {
            Error::Acquire(error) => error.denial().is_some(),
            Error::Limiter(error) => error.denial().is_some(),
            Error::Check(error) => error.denial().is_some(),
            _ => false,
        }
    }

    /// Returns whether the store was unavailable, rather than denying the call.
    pub fn is_unavailable(&self) -> bool {
        let store = match self {
            Error::Acquire(AcquireError::Store(error))
            | Error::Limiter(LimiterError::Store(error))
            | Error::Check(CheckError::Store(error))
            | Error::Lease(LeaseError::Store(error))
            | Error::Ticket(TicketError::Catalog(CatalogError::Store(error)))
            | Error::Replace(ReplaceError::Store(error))
            | Error::Catalog(CatalogError::Store(error))
            | Error::Store(error) => error,
            _ => return false,
        };
        matches!(store, StoreError::Unavailable(..))
    }

    /// How long until the limits would admit what they denied, if that is known and no other caller takes it.
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Error::Acquire(error) => error.denial()?.wait(),
            Error::Limiter(error) => error.denial()?.retry_after(),
            Error::Check(error) => error.denial()?.wait(),
            _ => None,
        }
    }
}

impl From<Box<Denial>> for Error {
    fn from(denial: Box<Denial>) -> Error {
        AcquireError::Denied(denial).into()
    }
}

impl From<Box<ChainStatus>> for Error {
    fn from(status: Box<ChainStatus>) -> Error {
        LimiterError::Denied(status).into()
    }
}

/// Why nothing was acquired.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{demand, AcquireError, Limit, LimitSet};
///
/// let set = LimitSet::new([Limit::per_minute("rpm", 10)])?;
/// let error = set.acquire(demand! { rpm: 11 }).wait().unwrap_err();
/// assert_eq!(error.to_string(), "a demand of 11 can never fit rpm, whose capacity is 10");
/// set.acquire(demand! { rpm: 10 }).wait()?.commit().wait()?;
/// let error = set.acquire(demand! { rpm: 10 }).timeout(Duration::from_secs(1)).wait().unwrap_err();
/// assert!(matches!(error, AcquireError::TimedOut { .. }) && error.denial().is_some());
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The demand does not fit the limits, whatever the time.
    #[error(transparent)]
    Demand(#[from] DemandError),
    /// A limit denies it, now. Nothing was taken.
    #[error("denied: {0}")]
    Denied(Box<Denial>),
    /// Not admitted in time. Returned at once if it can be known at once.
    #[error("not admitted in time, after waiting {waited:?}: {denial}")]
    TimedOut {
        /// The denial, with the wait that it would have taken.
        denial: Box<Denial>,
        /// How long the caller waited.
        waited: Duration,
    },
    /// Too many wait already.
    #[error(transparent)]
    QueueFull(#[from] QueueFull),
    /// The limits of the set do not fit those of the programs that share it in its store.
    #[error(transparent)]
    Limits(LimitsError),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl AcquireError {
    /// Returns the denial, if the demand was denied.
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            AcquireError::Denied(denial) | AcquireError::TimedOut { denial, .. } => Some(denial),
            _ => None,
        }
    }
}

impl From<WaitError> for AcquireError {
    fn from(error: WaitError) -> AcquireError {
        match error {
            WaitError::TimedOut { denial, waited } => AcquireError::TimedOut { denial, waited },
            WaitError::QueueFull { waiting, max } => QueueFull { waiting, max }.into(),
            WaitError::Impossible(why) => AcquireError::Demand(why),
            // The enum is open; a reason that is not known here is reported in its own words.
            other => AcquireError::Store(StoreError::BadCall(other.to_string())),
        }
    }
}

/// A report of usage was not valid, or the end of a lease could not be written. The lease has ended all the
/// same: what is wrong stays charged as reserved, the rest is settled, and resources are free.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{demand, LeaseError, Limit, LimitSet};
///
/// let set = LimitSet::new([Limit::calls(10, Duration::from_secs(60))])?;
/// let lease = set.acquire(demand! { call_count: 2 }).wait()?;
/// let error = lease.settle(demand! { call_count: 3 }).wait().unwrap_err();
/// assert!(matches!(error, LeaseError::TooManyCalls { used: 3, reserved: 2, .. }));
/// assert_eq!(set.peek().wait()?.limits[0].available(), 8, "charged as reserved");
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// More calls were reported than were taken.
    #[error("{used} of {limit} were reported, but {reserved} were taken; calls are 0 to what was taken")]
    TooManyCalls {
        /// The limit.
        limit: Name,
        /// What was reported.
        used: u64,
        /// What was taken.
        reserved: u64,
    },
    /// The report is not valid.
    #[error(transparent)]
    Usage(#[from] DemandError),
    /// The lease is for other resources.
    #[error("the lease is not for resource {0:?}, but for {1}")]
    OtherResource(String, String),
    /// The store could not write it down.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a limit was not replaced.
///
/// ```
/// use tollgate::{Limit, LimitSet, ReplaceError};
///
/// let set = LimitSet::new([Limit::per_minute("rpm", 10)])?;
/// set.replace(Limit::per_minute("rpm", 20)).wait()?;
/// let error = set.replace(Limit::per_minute("tpm", 20)).wait().unwrap_err();
/// assert!(matches!(error, ReplaceError::Limits(_)), "there is no tpm to replace");
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReplaceError {
    /// The limit does not fit the set.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a check was not made.
///
/// ```
/// use tollgate::{demand, CheckError, Checker, Limit, Limits};
///
/// let (checker, limits) = (Checker::new(), Limits::new([Limit::resource("slots", 2)])?);
/// let error = checker.try_acquire("my_key", "chat", demand! { slots: 1 }, &limits).wait().unwrap_err();
/// assert!(matches!(error, CheckError::Resource(_)), "a check holds nothing that could be given back");
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// The costs do not fit the limits, whatever the time.
    #[error(transparent)]
    Demand(#[from] DemandError),
    /// A resource must be given back, and a check holds nothing that could.
    #[error("{0} is a resource, which a check cannot give back; use a LimitSet and its lease for it")]
    Resource(Name),
    /// A limit is custom, which only a [`LimitSet`](crate::LimitSet) in this process can have.
    #[error(transparent)]
    Limits(LimitsError),
    /// Not admitted in time. Returned at once if it can be known at once.
    #[error("not admitted in time, after waiting {waited:?}: {denial}")]
    TimedOut {
        /// The denial, with the wait that it would have taken.
        denial: Box<Denial>,
        /// How long the caller waited.
        waited: Duration,
    },
    /// Too many wait already.
    #[error(transparent)]
    QueueFull(#[from] QueueFull),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl CheckError {
    /// Returns the denial, if the demand was denied.
    pub fn denial(&self) -> Option<&Denial> {
        match self {
            CheckError::TimedOut { denial, .. } => Some(denial),
            _ => None,
        }
    }
}

impl From<WaitError> for CheckError {
    fn from(error: WaitError) -> CheckError {
        match error {
            WaitError::TimedOut { denial, waited } => CheckError::TimedOut { denial, waited },
            WaitError::QueueFull { waiting, max } => QueueFull { waiting, max }.into(),
            WaitError::Impossible(why) => CheckError::Demand(why),
            // The enum is open; a reason that is not known here is reported in its own words.
            other => StoreError::BadCall(other.to_string()).into(),
        }
    }
}

/// Why sets do not make a pool.
///
/// ```
/// use tollgate::{LimitPool, PoolError};
///
/// assert_eq!(LimitPool::new([]).unwrap_err(), PoolError::Empty);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// There is no set to choose from.
    #[error("the pool has no limit set; give it at least one")]
    Empty,
}
