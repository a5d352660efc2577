//! Buckets and records in Redis or Valkey: a single server, one behind sentinels, or a cluster.

mod ahead;
mod apply;
mod backend;
mod builder;
mod change;
mod draft;
mod error;
mod inner;
mod integrity;
mod later;
mod layout;
mod numbers;
mod queue;
mod records;
mod scope;
mod service;
mod store;
mod time;
mod trouble;
mod url;
mod value;

pub use builder::RedisStoreBuilder;
pub use error::RedisOpenError;
pub use inner::RedisStore;
pub use service::ServerErrorCounts;
pub use trouble::ServerError;
pub use url::{RedisUrl, UrlError};
