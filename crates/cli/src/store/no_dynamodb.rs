//! The error of a program that was built without DynamoDB.

use std::sync::Arc;

use tollgate::store::Backend;

use crate::settings::{CliSettings, DynamodbUrl};

const MISSING: &str = "this program was built without DynamoDB; build it with the feature `dynamodb`";

/// Fails: there is no such store.
pub(super) fn open(_: &DynamodbUrl, _: &CliSettings) -> Result<Arc<dyn Backend>, String> {
    Err(MISSING.into())
}

/// Returns true, so that opening it reports the error.
pub(super) fn exists(_: &DynamodbUrl, _: &CliSettings) -> bool {
    true
}

/// As [`open`].
pub(super) fn damages(_: &DynamodbUrl, _: &CliSettings) -> Result<Vec<String>, String> {
    Err(MISSING.into())
}
