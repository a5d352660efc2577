use std::time::Duration;

use tollgate_catalog::CatalogError;
use tollgate_core::DemandError;
use tollgate_store::{QueueFull, StoreError};

use super::ChainStatus;

/// Why a limiter gave no lease.
///
/// ```
/// use tollgate::{demand, Level, Limit, Limiter, LimiterError, Limits};
///
/// let limiter = Limiter::in_memory()?;
/// limiter.catalog().set_limits(Level::System, &Limits::new([Limit::per_minute("rpm", 10)])?).wait()?;
/// let error = limiter.acquire("user-1", "gpt-4", demand! { rpm: 11 }).wait().unwrap_err();
/// assert!(error.is_impossible(), "it is refused at once, and does not wait");
/// let error = limiter.acquire("user-1", "gpt-4", demand! { tpm: 1 }).wait().unwrap_err();
/// assert!(matches!(error, LimiterError::Demand { .. }) && error.to_string().contains("known limits: rpm"));
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LimiterError {
    /// A limit denies it, now. Nothing was taken from any entity.
    #[error("denied: {0}")]
    Denied(Box<ChainStatus>),
    /// Not admitted in time. Returned at once if it can be known at once.
    #[error("not admitted in time, after waiting {waited:?}: {status}")]
    TimedOut {
        /// The denial, with the wait that it would have taken.
        status: Box<ChainStatus>,
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

impl LimiterError {
    /// Returns the denial, if the demand was denied.
    pub fn denial(&self) -> Option<&ChainStatus> {
        match self {
            LimiterError::Denied(status) | LimiterError::TimedOut { status, .. } => Some(status),
            _ => None,
        }
    }

    /// Returns whether the demand can never fit the stored limits, however long the caller waits.
    pub fn is_impossible(&self) -> bool {
        matches!(self, LimiterError::Demand { why: DemandError::Impossible { .. }, .. })
    }

    /// Returns whether the store was unavailable, rather than denying the call.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, LimiterError::Store(StoreError::Unavailable(..)))
    }
}

impl From<StoreError> for LimiterError {
    fn from(error: StoreError) -> LimiterError {
        LimiterError::Store(error)
    }
}

/// Maps store errors from the catalog and from buckets to the same variant.
impl From<CatalogError> for LimiterError {
    fn from(error: CatalogError) -> LimiterError {
        match error {
            CatalogError::Store(error) => LimiterError::Store(error),
            other => LimiterError::Catalog(other),
        }
    }
}
