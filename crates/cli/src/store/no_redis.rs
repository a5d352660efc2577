//! A program that was built without Redis says so.

use std::sync::Arc;

use tollgate::store::Backend;

use crate::settings::{CliSettings, RedisAddress};

/// There is no such store.
pub(super) fn open(_: &RedisAddress, _: &CliSettings) -> Result<Arc<dyn Backend>, String> {
    Err("this program was built without Redis; build it with the feature `redis`".into())
}

/// There is nothing to look at.
pub(super) fn damages(_: &RedisAddress, _: &CliSettings) -> Result<Vec<String>, String> {
    Err("this program was built without Redis; build it with the feature `redis`".into())
}
