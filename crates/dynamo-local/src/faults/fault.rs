use std::time::Duration;

use crate::operation::{self, OperationKind};

/// A fault of a call.
///
/// ```
/// use tollgate_dynamo_local::{CallFault, Engine, Faults};
///
/// let faults = Faults::new(Engine::in_memory()?.http_client());
/// faults.next_of("UpdateItem", CallFault::LostAfter);
/// assert_eq!(faults.count(), 0); // no call was made yet
/// # Ok::<(), tollgate_dynamo_local::EngineError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallFault {
    /// The service is out of throughput. It reports this with three kinds of errors, in rotation.
    Throttle,
    /// Another transaction has the item: an answer to a write or a transaction.
    Conflict,
    /// Only a part of a batch is processed.
    Unprocessed,
    /// The service fails, with 500 and 503 in rotation.
    ServerError,
    /// The connection breaks before the request is executed.
    LostBefore,
    /// The request is executed and its answer is lost: the connection breaks or times out, in
    /// rotation.
    LostAfter,
    /// An eventually consistent read returns the answer to an earlier, identical request.
    StaleRead,
    /// The answer is delayed.
    Slow(Duration),
    /// The caller has no permission.
    AccessDenied,
    /// The table does not exist.
    MissingTable,
}

impl CallFault {
    /// Returns true if a request can have this fault.
    pub(crate) fn suits(self, operation: &str, body: &[u8]) -> bool {
        let is_of =
            |kind| operation::OPERATIONS.iter().any(|known| known.name == operation && known.kind == kind);
        match self {
            CallFault::Conflict => {
                is_of(OperationKind::Write) && operation != "BatchWriteItem"
                    || operation == "TransactGetItems"
            }
            CallFault::Unprocessed => matches!(operation, "BatchGetItem" | "BatchWriteItem"),
            CallFault::StaleRead => can_be_stale(operation, body),
            _ => is_of(OperationKind::Read) || is_of(OperationKind::Write) || is_about_table(operation),
        }
    }
}

/// Returns true for operations that open a table.
fn is_about_table(operation: &str) -> bool {
    matches!(operation, "CreateTable" | "DescribeTable" | "UpdateTimeToLive")
}

/// Returns true for reads that are eventually consistent.
pub(crate) fn can_be_stale(operation: &str, body: &[u8]) -> bool {
    const CONSISTENT: &[u8] = b"\"ConsistentRead\":true";
    let is_consistent = body.windows(CONSISTENT.len()).any(|window| window == CONSISTENT);
    matches!(operation, "GetItem" | "BatchGetItem" | "Query" | "Scan") && !is_consistent
}
