//! A program that was built without DynamoDB says so.

use std::sync::Arc;

use tollgate::store::Backend;

use crate::settings::{CliSettings, DynamodbUrl};

const MISSING: &str = "this program was built without DynamoDB; build it with the feature `dynamodb`";

/// There is no such store.
pub(super) fn open(_: &DynamodbUrl, _: &CliSettings) -> Result<Arc<dyn Backend>, String> {
    Err(MISSING.into())
}

/// Opening it says what is wrong.
pub(super) fn is_there(_: &DynamodbUrl, _: &CliSettings) -> bool {
    true
}

/// As [`open`].
pub(super) fn damages(_: &DynamodbUrl, _: &CliSettings) -> Result<Vec<String>, String> {
    Err(MISSING.into())
}
