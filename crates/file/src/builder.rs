//! Settings of a file store.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate_store::usage::UsageRetention;
use tollgate_store::{Clock, HostClock};

use crate::{FileOpenError, FileStore};

/// How much a crash may undo. A process that is killed loses nothing that was answered, whichever is chosen; this is
/// about a crash of the whole machine.
///
/// # Examples
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("tollgate-durability-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// use tollgate_file::{Durability, FileStore};
///
/// // For budgets that must survive a power failure.
/// let store = FileStore::builder(folder.join("budgets.tollgate")).durability(Durability::Full).build()?;
/// # drop(store);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// If the machine stops, the last moments may be lost; the file stays whole.
    #[default]
    Normal,
    /// Nothing that was answered is lost, even if the machine stops. Every commit waits for the disk.
    Full,
    /// If the machine stops, the file may be damaged. For files that are made again then.
    Off,
}

/// Settings of a [`FileStore`].
///
/// # Examples
///
/// ```
/// # let folder = std::env::temp_dir().join(format!("tollgate-builder-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder)?;
/// use std::time::Duration;
///
/// use tollgate_file::FileStore;
///
/// let store = FileStore::builder(folder.join("limits.tollgate"))
///     .timeout(Duration::from_secs(1))
///     .bytes_max(64 << 20)
///     .build()?;
/// assert!(store.path().ends_with("limits.tollgate"));
/// # drop(store);
/// # std::fs::remove_dir_all(&folder)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct FileStoreBuilder {
    pub(crate) path: PathBuf,
    pub(crate) durability: Durability,
    pub(crate) timeout: Duration,
    /// The clock, if it is not that of the host.
    pub(crate) clock: Option<Clock>,
    pub(crate) host: Option<HostClock>,
    pub(crate) bytes_max: Option<u64>,
    pub(crate) usage_retention: UsageRetention,
}

impl FileStoreBuilder {
    pub(crate) fn new(path: &Path) -> FileStoreBuilder {
        FileStoreBuilder {
            path: path.into(),
            durability: Durability::default(),
            timeout: Duration::from_secs(5),
            clock: None,
            host: None,
            bytes_max: None,
            usage_retention: UsageRetention::default(),
        }
    }

    /// Sets how much a crash of the machine may undo.
    pub fn durability(self, durability: Durability) -> FileStoreBuilder {
        FileStoreBuilder { durability, ..self }
    }

    /// Sets how long a call waits while other processes have the file locked; 5 seconds by default.
    pub fn timeout(self, timeout: Duration) -> FileStoreBuilder {
        FileStoreBuilder { timeout, ..self }
    }

    /// Sets the clock, which is used as it is. The default is a clock that all processes of the host which have the
    /// store open agree on: it follows the time of day, and does not stop if that is set back.
    pub fn clock(self, clock: Clock) -> FileStoreBuilder {
        FileStoreBuilder { clock: Some(clock), ..self }
    }

    /// Sets the clocks of the host, for tests in which its time of day is set.
    #[doc(hidden)]
    pub fn host(self, host: HostClock) -> FileStoreBuilder {
        FileStoreBuilder { host: Some(host), ..self }
    }

    /// Sets how large the file may become; by default it may fill the disk. At the bound the store behaves as if the
    /// disk were full. The log beside the file is not counted.
    pub fn bytes_max(self, bytes_max: u64) -> FileStoreBuilder {
        FileStoreBuilder { bytes_max: Some(bytes_max), ..self }
    }

    /// Sets how long the records of usage are kept that this process writes; [`UsageRetention::default`] by default.
    pub fn usage_retention(self, usage_retention: UsageRetention) -> FileStoreBuilder {
        FileStoreBuilder { usage_retention, ..self }
    }

    /// Opens the file, or creates it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`FileOpenError`] with the path and what is wrong with it. A file that is not ours is left as it is.
    pub fn build(self) -> Result<FileStore, FileOpenError> {
        FileStore::from_settings(&self)
    }
}
