use std::time::Duration;

use tollgate_catalog::CatalogError;
use tollgate_core::DemandError;
use tollgate_store::{QueueFull, StoreError};

use super::ChainStatus;

/// Why a limiter gave no lease.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum AcquireError {
    /// A limit refuses, now. Nothing was taken from any entity.
    #[error("refused: {0}")]
    Refused(Box<ChainStatus>),
    /// Not admitted in time. Returned at once if it can be known at once.
    #[error("not admitted in time, after waiting {waited:?}: {standing}")]
    TimedOut {
        /// What refuses, and how long it would have taken.
        standing: Box<ChainStatus>,
        /// How long the caller waited.
        waited: Duration,
    },
    /// The demand does not fit the limits, whatever the time.
    #[error("{entity} on {resource}: {why}")]
    Demand {
        /// Whose limits.
        entity: String,
        /// For what.
        resource: String,
        /// What is wrong with it.
        why: DemandError,
    },
    /// The call names a resource twice.
    #[error("the call names resource {0:?} twice; add the amounts up and name it once")]
    ResourceTwice(String),
    /// The call names too many resources.
    #[error("the call names {0} resources, but at most {max} are allowed", max = super::RESOURCES_MAX)]
    TooManyResources(usize),
    /// Too many wait already.
    #[error(transparent)]
    QueueFull(#[from] QueueFull),
    /// There are no limits, something is disabled, a name is not valid, and the like.
    #[error(transparent)]
    Catalog(CatalogError),
    /// The store could not answer, and the policy is to block then.
    #[error(transparent)]
    Store(StoreError),
}

impl AcquireError {
    /// Why it was refused, if it was.
    pub fn refusal(&self) -> Option<&ChainStatus> {
        match self {
            AcquireError::Refused(standing) | AcquireError::TimedOut { standing, .. } => Some(standing),
            _ => None,
        }
    }

    /// Whether the demand can never be met under the limits that are stored, however long the caller waits.
    pub fn is_impossible(&self) -> bool {
        matches!(self, AcquireError::Demand { why: DemandError::Impossible { .. }, .. })
    }

    /// Whether the store was away, rather than saying no.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, AcquireError::Store(StoreError::Unavailable(..)))
    }
}

impl From<StoreError> for AcquireError {
    fn from(error: StoreError) -> AcquireError {
        AcquireError::Store(error)
    }
}

/// That the store is away is one thing, wherever it was noticed.
impl From<CatalogError> for AcquireError {
    fn from(error: CatalogError) -> AcquireError {
        match error {
            CatalogError::Store(error) => AcquireError::Store(error),
            other => AcquireError::Catalog(other),
        }
    }
}

/// What was wrong with a report of usage, or why it could not be written.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LeaseError {
    /// The report is not valid. Nothing of it was noted.
    #[error(transparent)]
    Usage(#[from] DemandError),
    /// The lease is for other resources.
    #[error("the lease is not for resource {0:?}, but for {1}")]
    OtherResource(String, String),
    /// The store could not write it down. The lease has ended all the same.
    #[error(transparent)]
    Store(#[from] StoreError),
}
