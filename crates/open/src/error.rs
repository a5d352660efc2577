use tollgate_file::FileOpenError;
use tollgate_store::StoreError;

/// Why a text is not the URL of a store. It quotes neither the URL nor a value in it, which may be a password.
///
/// # Examples
///
/// ```
/// use tollgate_open::{StoreUrl, StoreUrlError};
///
/// let error = "file:".parse::<StoreUrl>().unwrap_err();
/// assert_eq!(error, StoreUrlError::NoPath);
/// assert!(error.to_string().ends_with("write it like file:limits.db"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreUrlError {
    /// No store has such a URL.
    #[error(
        "there is no such store; valid are memory, file:PATH, such as file:limits.db, shm:NAME, redis://HOST and \
         dynamodb:TABLE"
    )]
    UnknownStore,
    /// This build leaves the store out.
    #[error(
        "a store at `{scheme}:` needs the feature `{feature}` of tollgate-open, which this build leaves out"
    )]
    LeftOut {
        /// The scheme of the URL, such as `redis+sentinel`.
        scheme: String,
        /// The feature that has the store: `shm`, `redis` or `dynamodb`.
        feature: &'static str,
    },
    /// Shared memory is there on Linux only.
    #[error("a store at `shm:` needs Linux")]
    NeedsLinux,
    /// A file has no path.
    #[error("the path of the file is missing; write it like file:limits.db")]
    NoPath,
    /// Shared memory has no name.
    #[error("the name of the store is missing; write it like shm:limits")]
    NoName,
    /// The table or a parameter of it is not valid.
    #[cfg(feature = "dynamodb")]
    #[error(transparent)]
    Dynamodb(#[from] crate::DynamodbUrlError),
    /// The address of the server or an option of it is not valid.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] tollgate_redis::UrlError),
}

/// Why a store could not be opened. No variant shows a password.
///
/// # Examples
///
/// ```
/// use tollgate_open::{OpenError, OpenOptions, StoreUrl};
///
/// let url = StoreUrl::File(std::env::temp_dir());
/// let opened = url.open(&OpenOptions::default()).wait();
/// assert!(matches!(opened, Err(OpenError::File(_))));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file cannot be opened.
    #[error(transparent)]
    File(#[from] FileOpenError),
    /// The shared memory cannot be opened.
    #[cfg(all(feature = "shm", target_os = "linux"))]
    #[error(transparent)]
    Shm(#[from] tollgate_shm::ShmOpenError),
    /// The server cannot be used.
    #[cfg(feature = "redis")]
    #[error(transparent)]
    Redis(#[from] tollgate_redis::RedisOpenError),
    /// There is no such table, and its URL does not ask to create one: a table costs money.
    #[cfg(feature = "dynamodb")]
    #[error("there is no table {table:?} in {location}; name another one, or create it, as {creating} does")]
    NoTable {
        /// The name of the table.
        table: String,
        /// Its region, and its endpoint if the URL has one.
        location: String,
        /// The same URL with `create=true`.
        creating: String,
    },
    /// The table cannot be used.
    #[cfg(feature = "dynamodb")]
    #[error(transparent)]
    Dynamodb(tollgate_dynamo::DynamoOpenError),
}

/// Why a store could not be inspected.
///
/// # Examples
///
/// ```
/// use tollgate_open::{DamagesError, OpenOptions, StoreUrl};
///
/// let url = StoreUrl::File(std::env::temp_dir());
/// let inspected = url.damages(&OpenOptions::default()).wait();
/// assert!(matches!(inspected, Err(DamagesError::Open(_))));
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DamagesError {
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store was opened, and did not answer or refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}
