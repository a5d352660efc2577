//! Buckets and records in a DynamoDB table.

#[cfg(feature = "aggregate")]
pub mod aggregate;
mod attributes;
mod backend;
mod bucket;
mod builder;
mod clock;
mod endpoint;
mod error;
mod inner;
mod records;
mod service;
mod service_error;
mod store;
mod table;
mod table_warnings;

pub use bucket::Chains;
pub use builder::DynamoStoreBuilder;
pub use error::DynamoOpenError;
pub use inner::DynamoStore;
pub use service::ServiceErrorCounts;
pub use service_error::ServiceError;
