//! The error of a program that was built without Redis.

use std::sync::Arc;

use tollgate::store::Backend;

use crate::settings::{CliSettings, RedisAddress};

/// Fails: there is no such store.
pub(super) fn open(_: &RedisAddress, _: &CliSettings) -> Result<Arc<dyn Backend>, String> {
    Err("this program was built without Redis; build it with the feature `redis`".into())
}

/// Fails: there is no such store.
pub(super) fn damages(_: &RedisAddress, _: &CliSettings) -> Result<Vec<String>, String> {
    Err("this program was built without Redis; build it with the feature `redis`".into())
}
