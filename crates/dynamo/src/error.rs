//! Errors of opening a table.

use std::time::Duration;

use crate::ServiceError;
use crate::service::CallFailure;

/// Why a table could not be opened as a store. A table that is not ours was left as it was.
///
/// ```no_run
/// # async fn open() {
/// use tollgate_dynamo::{DynamoOpenError, DynamoStore};
///
/// match DynamoStore::builder("limits").build().await {
///     Ok(store) => println!("{store:?}"),
///     Err(DynamoOpenError::NoTable(table, ..)) => println!("create {table} first"),
///     Err(error) => println!("{error}"),
/// }
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DynamoOpenError {
    /// There is no such table.
    #[error(
        "there is no table {0:?} in {1}; create it, with `create_table(true)` or the stack, or name another one"
    )]
    NoTable(String, String),
    /// The table exists, and lacks keys or indexes of ours.
    #[error("table {table:?} cannot be used: {}; it was left as it is", .faults.join("; "))]
    Unfit {
        /// The table.
        table: String,
        /// What is missing or different.
        faults: Vec<String>,
    },
    /// The table did not become active in time.
    #[error("table {table:?} is {status} and did not become active within {waited:?}; try again later")]
    NotActive {
        /// The table.
        table: String,
        /// Its last known status.
        status: String,
        /// For how long the store waited.
        waited: Duration,
    },
    /// A setting is not valid.
    #[error("{0}")]
    BadSetting(String),
    /// The service did not answer.
    #[error("DynamoDB could not be reached for table {table:?} within {waited:?}: {error}")]
    Unavailable {
        /// The table.
        table: String,
        /// For how long the call was retried.
        waited: Duration,
        /// The error of the last attempt.
        error: ServiceError,
    },
    /// The service refuses: no permission, no credentials, an impossible name.
    #[error("table {0:?} cannot be opened: {1}")]
    Refused(String, ServiceError),
    /// This host has no threads left, or something like it.
    #[error("the store cannot be started here: {0}")]
    Host(String),
}

impl DynamoOpenError {
    pub(crate) fn of(failure: CallFailure, table: &str, location: &str) -> DynamoOpenError {
        let table = table.to_owned();
        match failure {
            CallFailure::Service(ServiceError::NoTable(_), _) => {
                DynamoOpenError::NoTable(table, location.into())
            }
            CallFailure::Service(error, waited) if error.is_passing() => {
                DynamoOpenError::Unavailable { table, waited, error }
            }
            CallFailure::Service(error, _) => DynamoOpenError::Refused(table, error),
            CallFailure::Condition(_) | CallFailure::Canceled(_) => {
                let odd = ServiceError::Other("a condition failed where none was".into());
                DynamoOpenError::Refused(table, odd)
            }
        }
    }
}
