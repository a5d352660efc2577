//! Redis or Valkey as the store.

use std::sync::Arc;

use tollgate::store::Backend;
use tollgate_redis::RedisStore;

use crate::settings::{RedisUrl, Settings};

/// Connects to it.
pub(super) fn open(url: &RedisUrl, settings: &Settings) -> Result<Arc<dyn Backend>, String> {
    let store = RedisStore::builder(url.with_password()).timeout(settings.store_timeout.value);
    Ok(Arc::new(store.build().wait().map_err(|why| why.to_string())?))
}
