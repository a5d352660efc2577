//! Settings of a store in shared memory.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate_store::usage::UsageRetention;
use tollgate_store::{Clock, HostClock};

use crate::{ShmOpenError, ShmStore};

/// The longest name of a store.
const NAME_MAX: usize = 64;

/// The default folder of stores.
const FOLDER: &str = "/dev/shm";

/// The default capacity of a store: a gigabyte. It takes only the memory that it needs.
const CAPACITY: u64 = 1 << 30;

/// Settings of a [`ShmStore`].
///
/// # Examples
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("tollgate-shm-builder-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// use std::time::Duration;
///
/// use tollgate_shm::ShmStore;
///
/// let store = ShmStore::builder("limits")
///     .folder(&folder)
///     .capacity(64 << 20)
///     .timeout(Duration::from_secs(1))
///     .build()?;
/// assert!(store.path().starts_with(&folder));
/// # drop(store);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct ShmStoreBuilder {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    /// The file, if it is not derived from a name and a folder.
    file: Option<PathBuf>,
    pub(crate) capacity: u64,
    pub(crate) timeout: Duration,
    /// The clock, if it is not that of the host.
    pub(crate) clock: Option<Clock>,
    pub(crate) host: Option<HostClock>,
    pub(crate) usage_retention: UsageRetention,
}

impl ShmStoreBuilder {
    pub(crate) fn new(name: &str) -> ShmStoreBuilder {
        ShmStoreBuilder {
            name: name.into(),
            folder: FOLDER.into(),
            file: None,
            capacity: CAPACITY,
            timeout: Duration::from_secs(5),
            clock: None,
            host: None,
            usage_retention: UsageRetention::default(),
        }
    }

    /// Makes settings for a file with another name.
    pub(crate) fn at(file: &Path) -> ShmStoreBuilder {
        ShmStoreBuilder { file: Some(file.into()), ..ShmStoreBuilder::new("") }
    }

    /// Sets the folder of the file; by default `/dev/shm`, which is memory. On a disk the store is as fast, and the
    /// system writes it to the disk from time to time.
    pub fn folder(self, folder: impl AsRef<Path>) -> ShmStoreBuilder {
        ShmStoreBuilder { folder: folder.as_ref().into(), ..self }
    }

    /// Sets how many bytes the store may grow to; a gigabyte by default, which is enough for two million buckets. The
    /// process that creates the store decides; the setting of other processes has no effect.
    pub fn capacity(self, bytes: u64) -> ShmStoreBuilder {
        ShmStoreBuilder { capacity: bytes, ..self }
    }

    /// Sets how long a call waits while another process has the lock, which takes microseconds unless that process is
    /// stopped; 5 seconds by default. A call does not wait for a process that has ended.
    pub fn timeout(self, timeout: Duration) -> ShmStoreBuilder {
        ShmStoreBuilder { timeout, ..self }
    }

    /// Sets the clock, which is used as it is. The default is a clock that all processes of the host which have the
    /// store open agree on: it follows the time of day, and does not stop if that is set back.
    pub fn clock(self, clock: Clock) -> ShmStoreBuilder {
        ShmStoreBuilder { clock: Some(clock), ..self }
    }

    /// Sets the clocks of the host, for tests in which its time of day is set.
    #[doc(hidden)]
    pub fn host(self, host: HostClock) -> ShmStoreBuilder {
        ShmStoreBuilder { host: Some(host), ..self }
    }

    /// Sets how long the records of usage are kept that this process writes; [`UsageRetention::default`] by default.
    pub fn usage_retention(self, usage_retention: UsageRetention) -> ShmStoreBuilder {
        ShmStoreBuilder { usage_retention, ..self }
    }

    /// Returns the path of the file, whether it exists or not: the name behind the id of the user, so that users have
    /// separate stores.
    ///
    /// # Errors
    ///
    /// [`ShmOpenError::BadName`].
    pub fn path(&self) -> Result<PathBuf, ShmOpenError> {
        if let Some(file) = &self.file {
            return Ok(file.clone());
        }
        let bad = |why| Err(ShmOpenError::BadName(self.name.clone(), why));
        let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
        match self.name.as_bytes() {
            [] => bad("it is empty"),
            name if name.len() > NAME_MAX => bad("it is too long"),
            name if !name.iter().copied().all(is_allowed) => bad("it has another character"),
            _ => Ok(self.folder.join(format!("tollgate-{}-{}", crate::user(), self.name))),
        }
    }

    /// Opens the store, or creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`ShmOpenError`] with the path and what is wrong with it. A file that is not ours is left as it is.
    pub fn build(self) -> Result<ShmStore, ShmOpenError> {
        ShmStore::from_settings(&self)
    }
}
