//! Buckets and records in Redis or Valkey: a single server, one behind sentinels, or a cluster.

mod apply;
mod backend;
mod background;
mod builder;
mod call_log;
mod codec;
mod commit;
mod draft;
mod error;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod inner;
mod integrity;
mod layout;
mod prefetch;
mod queue;
mod read;
mod records;
mod scope;
mod script_args;
mod server_error;
mod service;
mod store;
mod time;
mod url;

pub use builder::RedisStoreBuilder;
pub use error::RedisOpenError;
pub use inner::RedisStore;
pub use server_error::ServerError;
pub use service::ServerErrorCounts;
pub use url::{RedisUrl, UrlError};
