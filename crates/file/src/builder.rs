use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate_store::usage::UsageRetention;
use tollgate_store::{Clock, HostClock};

use crate::{FileOpenError, FileStore};

/// How much a crash may undo. A process that is killed loses nothing that was answered, whichever it is; this is about
/// the whole machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Durability {
    /// If the machine stops, the last moments may be lost; the file stays whole.
    #[default]
    Normal,
    /// Nothing that was answered is lost, whatever stops. Every commit waits for the disk.
    Full,
    /// If the machine stops, the file may be damaged. For files that are made anew then.
    Off,
}

/// Settings of a [`FileStore`].
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

    /// How much a crash of the machine may undo.
    pub fn durability(self, durability: Durability) -> FileStoreBuilder {
        FileStoreBuilder { durability, ..self }
    }

    /// How long to wait while others have the file locked; 5 seconds unless it says otherwise.
    pub fn timeout(self, timeout: Duration) -> FileStoreBuilder {
        FileStoreBuilder { timeout, ..self }
    }

    /// The clock, which is used as it is. Unless it says otherwise, it is one that all processes of the host agree on which
    /// have the store open: it follows the time of day, and does not stop if that is set back.
    pub fn clock(self, clock: Clock) -> FileStoreBuilder {
        FileStoreBuilder { clock: Some(clock), ..self }
    }

    /// The clocks of the host, for tests in which its time of day is set.
    #[doc(hidden)]
    pub fn host(self, host: HostClock) -> FileStoreBuilder {
        FileStoreBuilder { host: Some(host), ..self }
    }

    /// How large the file may become; as large as the disk unless it says otherwise. At the bound it is as if the disk
    /// were full. The log beside the file is not counted.
    pub fn bytes_max(self, bytes_max: u64) -> FileStoreBuilder {
        FileStoreBuilder { bytes_max: Some(bytes_max), ..self }
    }

    /// How long records of usage are kept that this process writes to; as [`UsageRetention::default`] unless it says otherwise.
    pub fn usage_retention(self, usage_retention: UsageRetention) -> FileStoreBuilder {
        FileStoreBuilder { usage_retention, ..self }
    }

    /// Opens the file, or makes it if it does not exist.
    ///
    /// # Errors
    ///
    /// [`FileOpenError`] with the path and what is wrong with it. A file that is not ours is left as it is.
    pub fn build(self) -> Result<FileStore, FileOpenError> {
        FileStore::from_settings(&self)
    }
}
