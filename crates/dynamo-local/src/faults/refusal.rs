//! Errors of the service.

use serde_json::{Value, json};

use super::CallFault;
use crate::answer::HttpAnswer;

/// Returns the error for a request with a fault; `None` if the fault causes no error. `number`
/// chooses among the errors of a fault.
pub(crate) fn refusal(fault: CallFault, operation: &str, body: &[u8], number: u64) -> Option<HttpAnswer> {
    Some(match fault {
        CallFault::Throttle => {
            let kinds =
                ["ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded"];
            let kind = kinds[(number % 3) as usize];
            HttpAnswer::refusal(400, kind, "Throughput exceeds the current capacity of your table or index")
        }
        CallFault::Conflict => conflict(operation, body),
        CallFault::ServerError if number.is_multiple_of(2) => {
            HttpAnswer::refusal(500, "InternalServerError", "Internal server error")
        }
        CallFault::ServerError => HttpAnswer::refusal(503, "ServiceUnavailable", "Service is unavailable"),
        CallFault::AccessDenied => {
            let message =
                format!("User: arn:aws:iam::1:user/x is not authorized to perform: dynamodb:{operation}");
            HttpAnswer::refusal(400, "AccessDeniedException", &message)
        }
        CallFault::MissingTable => {
            HttpAnswer::refusal(400, "ResourceNotFoundException", "Requested resource not found")
        }
        _ => return None,
    })
}

fn conflict(operation: &str, body: &[u8]) -> HttpAnswer {
    const ONGOING: &str = "Transaction is ongoing for the item";
    if !operation.starts_with("Transact") {
        return HttpAnswer::refusal(400, "TransactionConflictException", ONGOING);
    }
    let request: Value = serde_json::from_slice(body).unwrap_or_default();
    let items = request["TransactItems"].as_array().map_or(1, Vec::len).max(1);
    let reason = |at: usize| {
        if at == 0 {
            json!({ "Code": "TransactionConflict", "Message": ONGOING })
        } else {
            json!({ "Code": "None" })
        }
    };
    let reasons: Vec<Value> = (0..items).map(reason).collect();
    let kind = "TransactionCanceledException";
    let body = json!({
        "__type": format!("com.amazonaws.dynamodb.v20120810#{kind}"),
        "Message": "Transaction cancelled, please refer cancellation reasons for specific reasons",
        "CancellationReasons": reasons,
    });
    HttpAnswer::error(400, kind, body.to_string())
}
