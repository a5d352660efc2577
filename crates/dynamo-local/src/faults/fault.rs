use std::time::Duration;

use crate::operation::{self, OperationKind};

/// Something that goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallFault {
    /// The service has no throughput left. It says so in one of three ways, in turn.
    Throttle,
    /// Another transaction has the item: the answer to a write or a transaction.
    Conflict,
    /// A batch is done in part only.
    Unprocessed,
    /// The service fails, with 500 or 503 in turn.
    ServerError,
    /// The connection breaks before anything was done.
    LostBefore,
    /// The request is done, and its answer is lost: the connection breaks or is too slow, in turn.
    LostAfter,
    /// A read that need not be consistent answers what the same request was answered before.
    StaleRead,
    /// The answer takes longer.
    Slow(Duration),
    /// The caller may not do this.
    AccessDenied,
    /// There is no such table.
    MissingTable,
}

impl CallFault {
    /// Whether a request can have it.
    pub(crate) fn suits(self, operation: &str, body: &[u8]) -> bool {
        let is_of = |kind| operation::OPERATIONS.iter().any(|it| it.name == operation && it.kind == kind);
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

/// Whether it is one of those that open a table.
fn is_about_table(operation: &str) -> bool {
    matches!(operation, "CreateTable" | "DescribeTable" | "UpdateTimeToLive")
}

/// Whether a read may answer what was: it need not be consistent.
pub(crate) fn can_be_stale(operation: &str, body: &[u8]) -> bool {
    const CONSISTENT: &[u8] = b"\"ConsistentRead\":true";
    let is_consistent = body.windows(CONSISTENT.len()).any(|window| window == CONSISTENT);
    matches!(operation, "GetItem" | "BatchGetItem" | "Query" | "Scan") && !is_consistent
}
