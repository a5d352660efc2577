//! Errors of calls to the service.

use std::time::Duration;

use tollgate_store::StoreError;

/// Why a call to the service failed.
///
/// ```
/// use tollgate_dynamo::ServiceError;
///
/// assert!(ServiceError::Throttled.is_passing());
/// assert!(!ServiceError::NoCredentials.is_passing());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServiceError {
    /// The table, its partition or the account has no throughput left.
    #[error("DynamoDB throttled the call; give the table more throughput, or call less often")]
    Throttled,
    /// Another transaction had the same items.
    #[error("another transaction was writing the same items; it is over in a moment, try again")]
    Conflict,
    /// The first attempt of the same transaction is still running.
    #[error("an earlier try of the same transaction is still running; try again")]
    InProgress,
    /// A part of a batch was not processed.
    #[error("DynamoDB left a part of the batch undone; ask again for the rest")]
    Unprocessed,
    /// The service failed, or could not serve.
    #[error("DynamoDB failed with status {0}; it is at its side, try again")]
    Server(u16),
    /// No reply came in time.
    #[error("DynamoDB did not answer in time; check the network and the endpoint, or wait longer")]
    Timeout,
    /// The connection broke, or was never made.
    #[error("the connection to DynamoDB broke ({0}); check the network and the endpoint")]
    Lost(String),
    /// The clock of this host is off by so much that the signature was not accepted.
    #[error("the clock of this host is off, and DynamoDB did not accept the signature; set the clock")]
    Skewed,
    /// The table is being created, changed or deleted.
    #[error("table {0:?} is being changed just now; wait until it is active")]
    TableBusy(String),
    /// There is no such table, or no such index.
    #[error("there is no table {0:?}, or it lacks an index; create it, or name the right table and region")]
    NoTable(String),
    /// The caller lacks a permission.
    #[error("no permission: {0}; give the caller the policy that the table's documentation names")]
    AccessDenied(String),
    /// There are no credentials.
    #[error(
        "no credentials for AWS were found: neither in the environment (AWS_ACCESS_KEY_ID), nor in a profile \
         (AWS_PROFILE), nor by the role of the instance or container"
    )]
    NoCredentials,
    /// The call is not valid.
    #[error("DynamoDB does not accept the call: {0}")]
    Invalid(String),
    /// Any other error of the service.
    #[error("DynamoDB refused the call: {0}")]
    Other(String),
}

impl ServiceError {
    /// Returns whether it may be over in a moment, so that a retry is worth it.
    pub fn is_passing(&self) -> bool {
        match self {
            ServiceError::Throttled
            | ServiceError::Conflict
            | ServiceError::InProgress
            | ServiceError::Unprocessed
            | ServiceError::Server(_)
            | ServiceError::Timeout
            | ServiceError::Lost(_)
            | ServiceError::Skewed
            | ServiceError::TableBusy(_) => true,
            ServiceError::NoTable(_)
            | ServiceError::AccessDenied(_)
            | ServiceError::NoCredentials
            | ServiceError::Invalid(_)
            | ServiceError::Other(_) => false,
        }
    }

    /// Returns whether the call may have been applied all the same.
    pub fn may_be_applied(&self) -> bool {
        matches!(
            self,
            ServiceError::InProgress
                | ServiceError::Server(_)
                | ServiceError::Timeout
                | ServiceError::Lost(_)
        )
    }

    /// Converts it for callers that waited this long: to an outage if it may pass, to a refusal if not.
    pub fn store_error(&self, waited: Duration) -> StoreError {
        if self.is_passing() {
            StoreError::Unavailable(waited, self.to_string())
        } else {
            StoreError::Refused(self.to_string())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all() -> [ServiceError; 14] {
        let text = || "x".to_owned();
        [
            ServiceError::Throttled,
            ServiceError::Conflict,
            ServiceError::InProgress,
            ServiceError::Unprocessed,
            ServiceError::Server(500),
            ServiceError::Timeout,
            ServiceError::Lost(text()),
            ServiceError::Skewed,
            ServiceError::TableBusy(text()),
            ServiceError::NoTable(text()),
            ServiceError::AccessDenied(text()),
            ServiceError::NoCredentials,
            ServiceError::Invalid(text()),
            ServiceError::Other(text()),
        ]
    }

    #[test]
    fn what_passes_is_an_outage_and_the_rest_a_refusal() {
        for error in all() {
            let is_outage = matches!(error.store_error(Duration::from_secs(1)), StoreError::Unavailable(..));
            assert_eq!(is_outage, error.is_passing(), "{error}");
            assert!(!error.may_be_applied() || error.is_passing(), "{error}");
        }
    }

    #[test]
    fn a_missing_permission_is_never_an_outage() {
        for error in [ServiceError::AccessDenied("no".into()), ServiceError::NoCredentials] {
            assert!(matches!(error.store_error(Duration::ZERO), StoreError::Refused(_)));
        }
    }

    #[test]
    fn every_error_says_more_than_its_name() {
        for error in all() {
            assert!(error.to_string().len() > 25, "{error}");
        }
    }
}
