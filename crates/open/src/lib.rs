//! Opens the store that a URL names, so that a command, a server and a program in another language name stores in one way.
//!
//! ```
//! use tollgate_open::{OpenOptions, StoreUrl};
//!
//! # let folder = std::env::temp_dir().join(format!("tollgate-open-lib-{}", std::process::id()));
//! # std::fs::create_dir_all(&folder)?;
//! let url: StoreUrl = format!("file:{}/limits.db", folder.display()).parse()?;
//! let store = url.open(&OpenOptions::default()).wait()?;
//! assert!(store.clock().now().as_micros() > 0);
//! # drop(store);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # URLs
//!
//! | URL | store | feature |
//! |---|---|---|
//! | `memory` | the memory of this process | |
//! | `file:PATH` | a SQLite file that the processes of one host share | |
//! | `shm:NAME` | memory that the processes of one host share, on Linux | `shm` |
//! | `redis://HOST` | a Redis or Valkey server; `rediss://` with TLS, `redis+sentinel://`, `redis+cluster://` | `redis` |
//! | `dynamodb:TABLE` | a DynamoDB table | `dynamodb` |
//!
//! Parameters of a server and of a table follow a `?`, separated by `&`. `RedisAddress` and `DynamodbUrl` list them.
//!
//! No feature is on by default. A URL whose scheme a build leaves out is an error of its own,
//! [`StoreUrlError::LeftOut`], because the user can install another build.
//!
//! # Passwords
//!
//! A URL of Redis may have a password in it. Neither `Display` nor `Debug` of a [`StoreUrl`] shows it, nor does any error;
//! [`StoreUrl::with_password`] returns it. [`redacted`] hides passwords in other texts that may quote a URL.

#[cfg(feature = "dynamodb")]
mod dynamodb;
#[cfg(feature = "dynamodb")]
mod dynamodb_url;
mod error;
mod file;
#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub mod fuzz;
mod open;
mod options;
mod redact;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "redis")]
mod redis_address;
#[cfg(all(feature = "shm", target_os = "linux"))]
mod shm;
mod store_url;

#[cfg(feature = "dynamodb")]
pub use dynamodb_url::{DynamodbUrl, DynamodbUrlError};
pub use error::{DamagesError, OpenError, StoreUrlError};
pub use open::StoreDamage;
pub use options::OpenOptions;
pub use redact::redacted;
#[cfg(feature = "redis")]
pub use redis_address::RedisAddress;
pub use store_url::StoreUrl;
