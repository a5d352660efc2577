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
pub use error::OpenError;
pub use inner::RedisStore;
pub use service::Troubles;
pub use trouble::Trouble;
pub use url::{RedisUrl, UrlError};
