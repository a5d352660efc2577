//! What the SDK says, in our words.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::Error;
use aws_sdk_dynamodb::error::{ConnectorError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use tollgate_store::StoreError;

use crate::Trouble;

/// The attributes of an item.
pub(crate) type Attributes = HashMap<String, AttributeValue>;

/// How a call failed.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// Something went wrong, after this long.
    Trouble(Trouble, Duration),
    /// The condition of a single write did not hold. The item as it is, if there is one and it was asked for.
    Condition(Option<Attributes>),
    /// Conditions of a transaction did not hold: what came of each of its items.
    Canceled(Vec<CancelReason>),
}

/// What came of one item of a transaction that was canceled.
#[derive(Debug)]
pub(crate) enum CancelReason {
    /// Its condition held, as far as that was looked at.
    Fine,
    /// Its condition did not hold. The item as it is, if there is one and it was asked for.
    Condition(Option<Attributes>),
}

impl CallFailure {
    /// What it is to a caller who had no conditions.
    pub(crate) fn store_error(self) -> StoreError {
        match self {
            CallFailure::Trouble(trouble, waited) => trouble.store_error(waited),
            CallFailure::Condition(_) | CallFailure::Canceled(_) => {
                StoreError::Refused("DynamoDB says that a condition failed where none was".into())
            }
        }
    }
}

/// What a call failed of. `table` is named where it is what is wrong.
pub(crate) fn failure<E>(error: SdkError<E, HttpResponse>, table: &str, waited: Duration) -> CallFailure
where
    E: Into<Error> + ProvideErrorMetadata,
{
    let trouble = match error {
        SdkError::ServiceError(context) => {
            let status = context.raw().status().as_u16();
            match context.into_err().into() {
                Error::ConditionalCheckFailedException(failed) => return CallFailure::Condition(failed.item),
                Error::TransactionCanceledException(canceled) => {
                    match reasons(canceled.cancellation_reasons.unwrap_or_default(), table) {
                        Ok(reasons) => return CallFailure::Canceled(reasons),
                        Err(trouble) => trouble,
                    }
                }
                error => by_code(error.code().unwrap_or_default(), error.message(), status, table),
            }
        }
        SdkError::TimeoutError(_) => Trouble::Timeout,
        SdkError::DispatchFailure(failure) => {
            failure.as_connector_error().map_or(Trouble::Lost("no connection".into()), dispatch)
        }
        SdkError::ResponseError(context) => unreadable(context.raw().status().as_u16()),
        SdkError::ConstructionFailure(failure) => construction(&format!("{failure:?}")),
        _ => Trouble::Other("the SDK failed in a way that this version does not know".into()),
    };
    CallFailure::Trouble(trouble, waited)
}

/// An answer that is none of the service's: that of something in between, or one that was cut off.
fn unreadable(status: u16) -> Trouble {
    if status >= 500 {
        return Trouble::Server(status);
    }
    Trouble::Lost(format!("the answer with status {status} could not be read"))
}

fn dispatch(error: &ConnectorError) -> Trouble {
    // Looked at and never shown: the text of what went wrong with credentials does not say that it is about them.
    if is_about_credentials(&format!("{error:?}")) {
        return Trouble::NoCredentials;
    }
    if error.is_timeout() {
        return Trouble::Timeout;
    }
    if error.is_user() {
        return construction(&format!("{error:?}"));
    }
    // Only the innermost cause: what is around it names the request, and with it what it was signed with.
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    Trouble::Lost(cause.to_string())
}

/// A request that could not even be made.
fn construction(debug: &str) -> Trouble {
    if is_about_credentials(debug) {
        return Trouble::NoCredentials;
    }
    if debug.contains("MissingRegion") || debug.contains("region must be set") {
        return Trouble::Invalid("no region is set; name one, or set AWS_REGION".into());
    }
    Trouble::Invalid("the request could not be made; check the endpoint and the region".into())
}

fn is_about_credentials(text: &str) -> bool {
    ["CredentialsNotLoaded", "InvalidConfiguration", "ProviderError", "NoMatchingAuthScheme", "no identity"]
        .iter()
        .any(|sign| text.contains(sign))
}

/// What came of each item, if it was about their conditions.
fn reasons(reasons: Vec<CancellationReason>, table: &str) -> Result<Vec<CancelReason>, Trouble> {
    let code = |reason: &CancellationReason| reason.code.clone().unwrap_or_default();
    let failed = |reason: &CancellationReason| code(reason) == "ConditionalCheckFailed";
    if !reasons.iter().any(failed) {
        let stop = reasons.iter().find(|reason| !matches!(code(reason).as_str(), "" | "None"));
        // Without a word on the items it is as good as a conflict: nothing was written.
        return Err(stop.map_or(Trouble::Conflict, |reason| {
            by_code(&code(reason), reason.message.as_deref(), 400, table)
        }));
    }
    let outcome = |reason: CancellationReason| {
        if failed(&reason) { CancelReason::Condition(reason.item) } else { CancelReason::Fine }
    };
    Ok(reasons.into_iter().map(outcome).collect())
}

/// What an error code means, also those of the items of a transaction.
fn by_code(code: &str, message: Option<&str>, status: u16, table: &str) -> Trouble {
    let message = message.unwrap_or("it gives no reason");
    match code {
        "ProvisionedThroughputExceededException"
        | "ProvisionedThroughputExceeded"
        | "ThrottlingException"
        | "ThrottlingError"
        | "RequestLimitExceeded"
        | "LimitExceededException"
        | "TooManyRequestsException"
        | "SlowDown" => Trouble::Throttled,
        "TransactionConflictException" | "TransactionConflict" | "ReplicatedWriteConflictException" => {
            Trouble::Conflict
        }
        "TransactionInProgressException" => Trouble::InProgress,
        "ResourceNotFoundException" | "TableNotFoundException" => Trouble::NoTable(table.into()),
        "ResourceInUseException" | "TableInUseException" => Trouble::TableBusy(table.into()),
        "InvalidSignatureException" if is_about_time(message) => Trouble::Skewed,
        "RequestTimeTooSkewed" | "RequestExpired" | "RequestInTheFuture" => Trouble::Skewed,
        // Its message repeats the request with the session's token, so it is not passed on.
        "InvalidSignatureException" | "SignatureDoesNotMatch" | "IncompleteSignatureException" => {
            Trouble::AccessDenied("the signature does not match; check the secret key".into())
        }
        "UnrecognizedClientException" | "InvalidClientTokenId" | "MissingAuthenticationTokenException" => {
            Trouble::AccessDenied("AWS does not know the access key or its session".into())
        }
        "ExpiredTokenException" | "ExpiredToken" => {
            Trouble::AccessDenied("the session of the credentials has expired; get new ones".into())
        }
        "AccessDeniedException" | "AccessDenied" => Trouble::AccessDenied(message.into()),
        "ValidationException" | "ValidationError" | "SerializationException" => {
            Trouble::Invalid(message.into())
        }
        "IdempotentParameterMismatchException"
        | "ItemCollectionSizeLimitExceededException"
        | "ItemCollectionSizeLimitExceeded" => Trouble::Invalid(message.into()),
        _ if status == 429 => Trouble::Throttled,
        _ if status >= 500 && status != 501 => Trouble::Server(status),
        "" => Trouble::Other(format!("status {status}: {message}")),
        code => Trouble::Other(format!("{code}: {message}")),
    }
}

fn is_about_time(message: &str) -> bool {
    message.contains("Signature expired") || message.contains("Signature not yet current")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trouble(code: &str) -> Trouble {
        by_code(code, Some("the message"), 400, "limits")
    }

    #[test]
    fn every_code_of_the_service_is_told_for_what_it_is() {
        let throttled = [
            "ProvisionedThroughputExceededException",
            "ThrottlingException",
            "RequestLimitExceeded",
            "ThrottlingError",
            "ProvisionedThroughputExceeded",
        ];
        for code in throttled {
            assert_eq!(trouble(code), Trouble::Throttled, "{code}");
        }
        for code in ["TransactionConflictException", "TransactionConflict"] {
            assert_eq!(trouble(code), Trouble::Conflict, "{code}");
        }
        assert_eq!(trouble("TransactionInProgressException"), Trouble::InProgress);
        assert_eq!(trouble("ResourceNotFoundException"), Trouble::NoTable("limits".into()));
        assert_eq!(trouble("ResourceInUseException"), Trouble::TableBusy("limits".into()));
        assert_eq!(trouble("RequestTimeTooSkewed"), Trouble::Skewed);
        assert_eq!(trouble("AccessDeniedException"), Trouble::AccessDenied("the message".into()));
        assert_eq!(trouble("ValidationException"), Trouble::Invalid("the message".into()));
        assert!(!trouble("UnknownOperationException").is_passing());
        assert_eq!(by_code("InternalServerError", None, 500, "limits"), Trouble::Server(500));
        assert_eq!(by_code("", None, 503, "limits"), Trouble::Server(503));
        assert_eq!(by_code("", None, 429, "limits"), Trouble::Throttled);
    }

    #[test]
    fn no_secret_of_a_signature_is_passed_on() {
        let message = "The Canonical String should have been 'POST x-amz-security-token:SECRET'";
        for code in ["InvalidSignatureException", "UnrecognizedClientException", "ExpiredTokenException"] {
            let trouble = by_code(code, Some(message), 400, "limits");
            assert!(matches!(trouble, Trouble::AccessDenied(_)), "{trouble}");
            assert!(!trouble.to_string().contains("SECRET"), "{trouble}");
        }
        let expired = "Signature expired: 20260101T000000Z is now earlier than 20260101T000500Z";
        assert_eq!(by_code("InvalidSignatureException", Some(expired), 400, "limits"), Trouble::Skewed);
    }

    #[test]
    fn a_transaction_that_failed_its_tests_is_told_from_one_that_was_in_the_way() {
        let reason = |code: &str| CancellationReason::builder().code(code).build();
        let (fine, failed, conflict) = ("None", "ConditionalCheckFailed", "TransactionConflict");
        let told = reasons(vec![reason(fine), reason(conflict), reason(failed)], "limits").unwrap();
        assert!(matches!(told[..], [CancelReason::Fine, CancelReason::Fine, CancelReason::Condition(None)]));
        let told = reasons(vec![reason(fine), reason(conflict)], "limits");
        assert!(matches!(told, Err(Trouble::Conflict)));
        assert!(matches!(reasons(vec![reason("ThrottlingError")], "limits"), Err(Trouble::Throttled)));
        assert!(matches!(reasons(vec![reason("ValidationError")], "limits"), Err(Trouble::Invalid(_))));
        assert!(matches!(reasons(vec![], "limits"), Err(Trouble::Conflict)));
    }

    #[test]
    fn a_host_without_credentials_or_region_is_told_so() {
        assert_eq!(construction("CredentialsNotLoaded(..)"), Trouble::NoCredentials);
        assert!(matches!(construction("MissingRegion"), Trouble::Invalid(why) if why.contains("AWS_REGION")));
        assert!(matches!(construction("other"), Trouble::Invalid(_)));
    }
}
