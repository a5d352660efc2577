use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate_store::usage::UsageRetention;
use tollgate_store::{Clock, HostClock};

use crate::{ShmOpenError, ShmStore};

/// The longest name of a store.
const NAME_MAX: usize = 64;

/// Where stores are unless it says otherwise.
const FOLDER: &str = "/dev/shm";

/// How much room a store has unless it says otherwise: a gigabyte. It takes only what it needs.
const CAPACITY: u64 = 1 << 30;

/// Settings of a [`ShmStore`].
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct ShmStoreBuilder {
    pub(crate) name: String,
    pub(crate) folder: PathBuf,
    /// The file, if it is not one of a name in a folder.
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

    /// A file that is named otherwise.
    pub(crate) fn at(file: &Path) -> ShmStoreBuilder {
        ShmStoreBuilder { file: Some(file.into()), ..ShmStoreBuilder::new("") }
    }

    /// The folder of the file; `/dev/shm` unless it says otherwise, which is memory. On a disk it is as fast, and the
    /// system writes it there now and then.
    pub fn folder(self, folder: impl AsRef<Path>) -> ShmStoreBuilder {
        ShmStoreBuilder { folder: folder.as_ref().into(), ..self }
    }

    /// How many bytes the store may grow to; a gigabyte unless it says otherwise, which is enough for two million buckets.
    /// The process that makes the store decides; what other processes say has no effect.
    pub fn capacity(self, bytes: u64) -> ShmStoreBuilder {
        ShmStoreBuilder { capacity: bytes, ..self }
    }

    /// How long to wait while another process has the lock, which it has for microseconds unless it is stopped; 5 seconds
    /// unless it says otherwise. A process that is dead is not waited for.
    pub fn timeout(self, timeout: Duration) -> ShmStoreBuilder {
        ShmStoreBuilder { timeout, ..self }
    }

    /// The clock, which is used as it is. Unless it says otherwise, it is one that all processes of the host agree on which
    /// have the store open: it follows the time of day, and does not stop if that is set back.
    pub fn clock(self, clock: Clock) -> ShmStoreBuilder {
        ShmStoreBuilder { clock: Some(clock), ..self }
    }

    /// The clocks of the host, for tests in which its time of day is set.
    #[doc(hidden)]
    pub fn host(self, host: HostClock) -> ShmStoreBuilder {
        ShmStoreBuilder { host: Some(host), ..self }
    }

    /// How long records of usage are kept that this process writes to; as [`UsageRetention::default`] unless it says otherwise.
    pub fn usage_retention(self, usage_retention: UsageRetention) -> ShmStoreBuilder {
        ShmStoreBuilder { usage_retention, ..self }
    }

    /// The file that it is in, or would be: the name behind the id of the user, so that users have stores of their own.
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

    /// Opens the store, or makes it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`ShmOpenError`] with the path and what is wrong with it. A file that is not ours is left as it is.
    pub fn build(self) -> Result<ShmStore, ShmOpenError> {
        ShmStore::from_settings(&self)
    }
}
