//! What can go wrong, one enum for each operation. A denial is a value, not an error.

use std::time::Duration;

use tollgate_core::{DemandError, Denial, LimitsError, Name};
use tollgate_store::{QueueFull, StoreError, WaitError};

/// Why nothing was acquired.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// The demand does not fit the limits, whatever the time.
    #[error(transparent)]
    Demand(#[from] DemandError),
    /// Not admitted in time. Returned at once if it can be known at once.
    #[error("not admitted in time, after waiting {waited:?}: {denial}")]
    TimedOut {
        /// What refused, and how long it would have taken.
        denial: Box<Denial>,
        /// How long the caller waited.
        waited: Duration,
    },
    /// Too many wait already.
    #[error("{waiting} wait for this set already, and at most {max} may; slow down or raise waiters_max")]
    QueueFull {
        /// How many wait.
        waiting: usize,
        /// How many may.
        max: usize,
    },
    /// The limits of the set do not fit those of the programs that share it in its store.
    #[error(transparent)]
    Limits(LimitsError),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<QueueFull> for AcquireError {
    fn from(QueueFull { waiting, max }: QueueFull) -> AcquireError {
        AcquireError::QueueFull { waiting, max }
    }
}

impl From<WaitError> for AcquireError {
    fn from(error: WaitError) -> AcquireError {
        match error {
            WaitError::TimedOut { denial, waited } => AcquireError::TimedOut { denial, waited },
            WaitError::QueueFull { waiting, max } => AcquireError::QueueFull { waiting, max },
            WaitError::Impossible(why) => AcquireError::Demand(why),
            // The enum is open; a reason that is not known here is reported in its own words.
            other => AcquireError::Store(StoreError::BadCall(other.to_string())),
        }
    }
}

/// What was wrong with a report of usage. The lease has ended all the same: what is wrong stays charged as
/// reserved, everything else is settled, and resources are free.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SettleError {
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
    /// The store could not write it down.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What was missing when a lease was released. It has been released all the same.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// These limits wanted to know what was used, and stay charged as reserved.
    #[error("no usage was reported for {}; call settle with what was used", show(.0))]
    Unreported(Vec<Name>),
    /// The store could not write it down.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a limit was not replaced.
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

fn show(names: &[Name]) -> String {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(", ")
}

/// Why a check was not made.
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
    /// Not admitted within the longest wait that was allowed.
    #[error("not admitted in time, after waiting {waited:?}: {denial}")]
    TimedOut {
        /// What refused, and how long it would have taken.
        denial: Box<Denial>,
        /// How long the caller waited.
        waited: Duration,
    },
    /// The store could not answer, or too many wait.
    #[error(transparent)]
    Acquire(AcquireError),
}

impl From<AcquireError> for CheckError {
    fn from(error: AcquireError) -> CheckError {
        match error {
            AcquireError::Demand(why) => CheckError::Demand(why),
            AcquireError::TimedOut { denial, waited } => CheckError::TimedOut { denial, waited },
            other => CheckError::Acquire(other),
        }
    }
}

/// Why sets do not make a pool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PoolError {
    /// There is no set to choose from.
    #[error("the pool has no limit set; give it at least one")]
    Empty,
}
