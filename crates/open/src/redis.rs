//! Redis or Valkey as the store.

use tollgate_redis::{RedisOpenError, RedisStore};
use tollgate_store::Reply;

use crate::{OpenOptions, RedisAddress};

/// Connects to the server. It is begun at once.
pub(crate) fn open(
    address: &RedisAddress,
    options: &OpenOptions,
) -> Reply<'static, Result<RedisStore, RedisOpenError>> {
    let mut builder = RedisStore::builder(address.with_password()).usage_retention(options.usage_retention);
    if let Some(timeout) = options.timeout {
        builder = builder.timeout(timeout);
    }
    if let Some(time) = options.connect_within {
        builder = builder.connect_within(time);
    }
    builder.build()
}
