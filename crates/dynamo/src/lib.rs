//! Buckets and records in a DynamoDB table.

mod builder;
mod clock;
mod endpoint;
mod error;
mod inner;
mod service;
mod table;
mod trouble;

pub use builder::DynamoStoreBuilder;
pub use error::OpenError;
pub use inner::DynamoStore;
pub use service::Troubles;
pub use trouble::Trouble;
