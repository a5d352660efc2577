//! Conversion of errors of the SDK.

use std::collections::HashMap;
use std::time::Duration;

use aws_sdk_dynamodb::Error;
use aws_sdk_dynamodb::error::{ConnectorError, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::{AttributeValue, CancellationReason};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use tollgate_store::StoreError;

use crate::ServiceError;

/// The attributes of an item.
pub(crate) type Attributes = HashMap<String, AttributeValue>;

/// How a call failed.
#[derive(Debug)]
pub(crate) enum CallFailure {
    /// The call failed, after this long.
    Service(ServiceError, Duration),
    /// The condition of a single write did not hold. The item as it is, if there is one and it was asked for.
    Condition(Option<Attributes>),
    /// Conditions of a transaction did not hold: what came of each of its items.
    Canceled(Vec<CancelReason>),
}

/// What came of one item of a transaction that was canceled.
#[derive(Debug)]
pub(crate) enum CancelReason {
    /// Its condition held, or was not checked.
    Fine,
    /// Its condition did not hold. The item as it is, if there is one and it was asked for.
    Condition(Option<Attributes>),
}

impl CallFailure {
    /// Converts it for a call without conditions.
    pub(crate) fn store_error(self) -> StoreError {
        match self {
            CallFailure::Service(error, waited) => error.store_error(waited),
            CallFailure::Condition(_) | CallFailure::Canceled(_) => {
                StoreError::Refused("DynamoDB says that a condition failed where none was".into())
            }
        }
    }
}

/// Converts an error of the SDK. `table` is named where it is the reason.
pub(crate) fn failure<E>(error: SdkError<E, HttpResponse>, table: &str, waited: Duration) -> CallFailure
where
    E: Into<Error> + ProvideErrorMetadata,
{
    let error = match error {
        SdkError::ServiceError(context) => {
            let status = context.raw().status().as_u16();
            match context.into_err().into() {
                Error::ConditionalCheckFailedException(failed) => return CallFailure::Condition(failed.item),
                Error::TransactionCanceledException(canceled) => {
                    match reasons(canceled.cancellation_reasons.unwrap_or_default(), table) {
                        Ok(reasons) => return CallFailure::Canceled(reasons),
                        Err(error) => error,
                    }
                }
                error => by_code(error.code().unwrap_or_default(), error.message(), status, table),
            }
        }
        SdkError::TimeoutError(_) => ServiceError::Timeout,
        SdkError::DispatchFailure(failure) => {
            failure.as_connector_error().map_or(ServiceError::Lost("no connection".into()), dispatch)
        }
        SdkError::ResponseError(context) => unreadable(context.raw().status().as_u16()),
        SdkError::ConstructionFailure(failure) => construction(&format!("{failure:?}")),
        _ => ServiceError::Other("the SDK failed in a way that this version does not know".into()),
    };
    CallFailure::Service(error, waited)
}

/// Returns the error of a reply that a proxy made, or that was cut off.
fn unreadable(status: u16) -> ServiceError {
    if status >= 500 {
        return ServiceError::Server(status);
    }
    ServiceError::Lost(format!("the answer with status {status} could not be read"))
}

fn dispatch(error: &ConnectorError) -> ServiceError {
    // The debug text is searched and never shown: only it tells errors of credentials from others.
    if is_about_credentials(&format!("{error:?}")) {
        return ServiceError::NoCredentials;
    }
    if error.is_timeout() {
        return ServiceError::Timeout;
    }
    if error.is_user() {
        return construction(&format!("{error:?}"));
    }
    // Only the innermost cause: those around it show the request, and with it its signature.
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    ServiceError::Lost(cause.to_string())
}

/// Returns the error of a request that could not be built.
fn construction(debug: &str) -> ServiceError {
    if is_about_credentials(debug) {
        return ServiceError::NoCredentials;
    }
    if debug.contains("MissingRegion") || debug.contains("region must be set") {
        return ServiceError::Invalid("no region is set; name one, or set AWS_REGION".into());
    }
    ServiceError::Invalid("the request could not be made; check the endpoint and the region".into())
}

fn is_about_credentials(text: &str) -> bool {
    ["CredentialsNotLoaded", "InvalidConfiguration", "ProviderError", "NoMatchingAuthScheme", "no identity"]
        .iter()
        .any(|sign| text.contains(sign))
}

/// Returns what came of each item, if it was about their conditions.
fn reasons(reasons: Vec<CancellationReason>, table: &str) -> Result<Vec<CancelReason>, ServiceError> {
    let code = |reason: &CancellationReason| reason.code.clone().unwrap_or_default();
    let failed = |reason: &CancellationReason| code(reason) == "ConditionalCheckFailed";
    if !reasons.iter().any(failed) {
        let stop = reasons.iter().find(|reason| !matches!(code(reason).as_str(), "" | "None"));
        // Without reasons for the items it counts as a conflict: nothing was written.
        return Err(stop.map_or(ServiceError::Conflict, |reason| {
            by_code(&code(reason), reason.message.as_deref(), 400, table)
        }));
    }
    let outcome = |reason: CancellationReason| {
        if failed(&reason) { CancelReason::Condition(reason.item) } else { CancelReason::Fine }
    };
    Ok(reasons.into_iter().map(outcome).collect())
}

/// Returns the error of a code, also of the codes of items of a transaction.
fn by_code(code: &str, message: Option<&str>, status: u16, table: &str) -> ServiceError {
    let message = message.unwrap_or("it gives no reason");
    match code {
        "ProvisionedThroughputExceededException"
        | "ProvisionedThroughputExceeded"
        | "ThrottlingException"
        | "ThrottlingError"
        | "RequestLimitExceeded"
        | "LimitExceededException"
        | "TooManyRequestsException"
        | "SlowDown" => ServiceError::Throttled,
        "TransactionConflictException" | "TransactionConflict" | "ReplicatedWriteConflictException" => {
            ServiceError::Conflict
        }
        "TransactionInProgressException" => ServiceError::InProgress,
        "ResourceNotFoundException" | "TableNotFoundException" => ServiceError::NoTable(table.into()),
        "ResourceInUseException" | "TableInUseException" => ServiceError::TableBusy(table.into()),
        "InvalidSignatureException" if is_about_time(message) => ServiceError::Skewed,
        "RequestTimeTooSkewed" | "RequestExpired" | "RequestInTheFuture" => ServiceError::Skewed,
        // Its message repeats the request with the session's token, so it is not passed on.
        "InvalidSignatureException" | "SignatureDoesNotMatch" | "IncompleteSignatureException" => {
            ServiceError::AccessDenied("the signature does not match; check the secret key".into())
        }
        "UnrecognizedClientException" | "InvalidClientTokenId" | "MissingAuthenticationTokenException" => {
            ServiceError::AccessDenied("AWS does not know the access key or its session".into())
        }
        "ExpiredTokenException" | "ExpiredToken" => {
            ServiceError::AccessDenied("the session of the credentials has expired; get new ones".into())
        }
        "AccessDeniedException" | "AccessDenied" => ServiceError::AccessDenied(message.into()),
        "ValidationException" | "ValidationError" | "SerializationException" => {
            ServiceError::Invalid(message.into())
        }
        "IdempotentParameterMismatchException"
        | "ItemCollectionSizeLimitExceededException"
        | "ItemCollectionSizeLimitExceeded" => ServiceError::Invalid(message.into()),
        _ if status == 429 => ServiceError::Throttled,
        _ if status >= 500 && status != 501 => ServiceError::Server(status),
        "" => ServiceError::Other(format!("status {status}: {message}")),
        code => ServiceError::Other(format!("{code}: {message}")),
    }
}

fn is_about_time(message: &str) -> bool {
    message.contains("Signature expired") || message.contains("Signature not yet current")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(code: &str) -> ServiceError {
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
            assert_eq!(error(code), ServiceError::Throttled, "{code}");
        }
        for code in ["TransactionConflictException", "TransactionConflict"] {
            assert_eq!(error(code), ServiceError::Conflict, "{code}");
        }
        assert_eq!(error("TransactionInProgressException"), ServiceError::InProgress);
        assert_eq!(error("ResourceNotFoundException"), ServiceError::NoTable("limits".into()));
        assert_eq!(error("ResourceInUseException"), ServiceError::TableBusy("limits".into()));
        assert_eq!(error("RequestTimeTooSkewed"), ServiceError::Skewed);
        assert_eq!(error("AccessDeniedException"), ServiceError::AccessDenied("the message".into()));
        assert_eq!(error("ValidationException"), ServiceError::Invalid("the message".into()));
        assert!(!error("UnknownOperationException").is_passing());
        assert_eq!(by_code("InternalServerError", None, 500, "limits"), ServiceError::Server(500));
        assert_eq!(by_code("", None, 503, "limits"), ServiceError::Server(503));
        assert_eq!(by_code("", None, 429, "limits"), ServiceError::Throttled);
    }

    #[test]
    fn no_secret_of_a_signature_is_passed_on() {
        let message = "The Canonical String should have been 'POST x-amz-security-token:SECRET'";
        for code in ["InvalidSignatureException", "UnrecognizedClientException", "ExpiredTokenException"] {
            let error = by_code(code, Some(message), 400, "limits");
            assert!(matches!(error, ServiceError::AccessDenied(_)), "{error}");
            assert!(!error.to_string().contains("SECRET"), "{error}");
        }
        let expired = "Signature expired: 20260101T000000Z is now earlier than 20260101T000500Z";
        assert_eq!(by_code("InvalidSignatureException", Some(expired), 400, "limits"), ServiceError::Skewed);
    }

    #[test]
    fn a_transaction_that_failed_its_tests_is_told_from_one_that_was_in_the_way() {
        let reason = |code: &str| CancellationReason::builder().code(code).build();
        let (fine, failed, conflict) = ("None", "ConditionalCheckFailed", "TransactionConflict");
        let told = reasons(vec![reason(fine), reason(conflict), reason(failed)], "limits").unwrap();
        assert!(matches!(told[..], [CancelReason::Fine, CancelReason::Fine, CancelReason::Condition(None)]));
        let told = reasons(vec![reason(fine), reason(conflict)], "limits");
        assert!(matches!(told, Err(ServiceError::Conflict)));
        assert!(matches!(reasons(vec![reason("ThrottlingError")], "limits"), Err(ServiceError::Throttled)));
        assert!(matches!(reasons(vec![reason("ValidationError")], "limits"), Err(ServiceError::Invalid(_))));
        assert!(matches!(reasons(vec![], "limits"), Err(ServiceError::Conflict)));
    }

    #[test]
    fn a_host_without_credentials_or_region_is_told_so() {
        assert_eq!(construction("CredentialsNotLoaded(..)"), ServiceError::NoCredentials);
        assert!(
            matches!(construction("MissingRegion"), ServiceError::Invalid(why) if why.contains("AWS_REGION"))
        );
        assert!(matches!(construction("other"), ServiceError::Invalid(_)));
    }
}
