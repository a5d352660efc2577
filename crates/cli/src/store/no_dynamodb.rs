//! A program that was built without DynamoDB says so.

use std::sync::Arc;

use tollgate::store::Backend;

use crate::settings::{DynamodbUrl, Settings};

const MISSING: &str = "this program was built without DynamoDB; build it with the feature `dynamodb`";

/// There is no such store.
pub(super) fn open(_: &DynamodbUrl, _: &Settings) -> Result<Arc<dyn Backend>, String> {
    Err(MISSING.into())
}

/// Opening it says what is wrong.
pub(super) fn is_there(_: &DynamodbUrl, _: &Settings) -> bool {
    true
}

/// As [`open`].
pub(super) fn damages(_: &DynamodbUrl, _: &Settings) -> Result<Vec<String>, String> {
    Err(MISSING.into())
}
