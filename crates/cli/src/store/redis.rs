//! Redis or Valkey as the store.

use std::sync::Arc;
use std::time::Duration;

use tollgate::store::Backend;
use tollgate_redis::RedisStore;

use crate::settings::{CliSettings, RedisAddress};

/// How long a command tries to connect while no host accepts the connection: a refused connection is an answer.
const CONNECT_WITHIN: Duration = Duration::from_millis(500);

/// Connects to the server.
pub(super) fn open(url: &RedisAddress, settings: &CliSettings) -> Result<Arc<dyn Backend>, String> {
    open_store(url, settings).map(|store| Arc::new(store) as Arc<dyn Backend>)
}

fn open_store(url: &RedisAddress, settings: &CliSettings) -> Result<RedisStore, String> {
    let store = RedisStore::builder(url.with_password()).timeout(settings.store_timeout.value);
    let store = store.usage_retention(settings.usage_retention.value.0);
    store.connect_within(CONNECT_WITHIN).build().wait().map_err(|why| why.to_string())
}

/// Returns stored data that cannot be read.
pub(super) fn damages(url: &RedisAddress, settings: &CliSettings) -> Result<Vec<String>, String> {
    open_store(url, settings)?.damages().wait().map_err(|why| why.to_string())
}
