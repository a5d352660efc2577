//! Errors of opening a store and of its transactions.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tollgate_store::StoreError;
use tollgate_store::records::RecordsError;

/// Why a store could not be opened. The file is left as it is.
///
/// # Examples
///
/// ```
/// use tollgate_shm::{ShmOpenError, ShmStore};
///
/// let error = ShmStore::open("my/limits").unwrap_err();
/// assert!(matches!(error, ShmOpenError::BadName(..)));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShmOpenError {
    /// A store cannot have this name.
    #[error("{0:?} is no name of a store: {1}; use up to 64 letters, digits, '-', '_' and '.'")]
    BadName(String, &'static str),
    /// The folder of the file does not exist.
    #[error("the folder of {0} is not there; make it first")]
    NoFolder(PathBuf),
    /// There is a folder of that name.
    #[error("{0} is a folder; name another store, or move it away")]
    IsFolder(PathBuf),
    /// There is a link of that name. It is not followed: any user may make one in a folder where all users may make
    /// files.
    #[error("{0} is a link, which is not followed; name another store, or remove it")]
    IsLink(PathBuf),
    /// There is a device, a pipe or a socket of that name.
    #[error("{0} is no ordinary file; name another store, or move it away")]
    NotAFile(PathBuf),
    /// The file may not be opened, or none may be made in its folder.
    #[error("no permission to open {0}, or to make a file in its folder")]
    NoPermission(PathBuf),
    /// The file is another user's.
    #[error("{path} belongs to the user with id {owner}, and this one has id {user}; name another store")]
    OtherOwner {
        /// The file.
        path: PathBuf,
        /// The id of its owner.
        owner: u32,
        /// The id of the user of this process.
        user: u32,
    },
    /// Other users may read or write the file.
    #[error(
        "{path} has mode {mode:o}, so that others may use it; chmod 600 it if no other user has changed it"
    )]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file is empty.
    #[error("{0} is empty; no store ever is, remove it")]
    Empty(PathBuf),
    /// The file is that of another program.
    #[error("{0} is no store of this program; it was left as it is, name another one")]
    Foreign(PathBuf),
    /// The file has another layout.
    #[error(
        "{path} has layout {found}, and this version knows layout {known}; end the processes that use it and remove it"
    )]
    OtherLayout {
        /// The file.
        path: PathBuf,
        /// The layout that it has.
        found: u64,
        /// The layout that this version knows.
        known: u64,
    },
    /// The file is shorter than its recorded size.
    #[error("{path} has {found} bytes and says that it has {said}: it was cut off; remove it to start anew")]
    CutOff {
        /// The file.
        path: PathBuf,
        /// Its size.
        found: u64,
        /// Its recorded size.
        said: u64,
    },
    /// The file was created before the last boot of the host, or in another namespace of process ids.
    #[error(
        "{0} was made before the last boot, or in a container with process ids of its own; whether its users are \
         alive cannot be seen from here: remove it, or run in the same container"
    )]
    OtherHost(PathBuf),
    /// The file is damaged.
    #[error("{0} is damaged: {1}; end the processes that use it and remove it to start anew")]
    Damaged(PathBuf, String),
    /// There is no room for the file.
    #[error("there is no room for {0}; make room and try again")]
    NoRoom(PathBuf),
    /// A store cannot have this capacity.
    #[error("a capacity of {asked} bytes is not between {least} and {most}")]
    BadCapacity {
        /// What was asked for.
        asked: u64,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// Another process had the store locked for longer than we wait.
    #[error("{0} was locked by another process for {1:?}")]
    Busy(PathBuf, Duration),
    /// The system lacks what a store in shared memory needs.
    #[error("shared memory cannot be used here: {0}")]
    Unsupported(&'static str),
    /// Something else went wrong.
    #[error("{0} cannot be opened: {1}")]
    Failed(PathBuf, String),
}

/// Why a transaction was aborted. Its changes are undone.
#[derive(Debug)]
pub(crate) enum TxnAbort {
    /// The call is answered with this error.
    Answer(RecordsError),
    /// The file is damaged.
    Damaged(&'static str),
    /// Something in the file cannot be read.
    Unreadable(String),
    /// The file can grow no more.
    NoRoom,
    /// The transaction changes more words than the journal can hold.
    TooMuch,
    /// Another process has held the lock for this long.
    Locked(Duration),
    /// Other processes cannot be observed.
    NoProcesses,
}

impl From<StoreError> for TxnAbort {
    fn from(error: StoreError) -> TxnAbort {
        TxnAbort::Answer(error.into())
    }
}

impl From<RecordsError> for TxnAbort {
    fn from(error: RecordsError) -> TxnAbort {
        TxnAbort::Answer(error)
    }
}

impl TxnAbort {
    /// Converts it to the error that the caller gets.
    pub(crate) fn explain(self, path: &Path) -> RecordsError {
        let refused = |why: String| StoreError::Refused(format!("{}: {why}", path.display())).into();
        match self {
            TxnAbort::Answer(error) => error,
            TxnAbort::Damaged(why) => {
                refused(format!("it is damaged: {why}; end the processes that use it and remove it to start anew"))
            }
            TxnAbort::Unreadable(why) => refused(why),
            TxnAbort::NoRoom => StoreError::Unavailable(
                Duration::ZERO,
                format!(
                    "{}: there is no room left, and this call left no trace; make room, or remove it and open it \
                     with a larger capacity",
                    path.display()
                ),
            )
            .into(),
            TxnAbort::TooMuch => StoreError::BadCall("it changes more at once than can be undone".into()).into(),
            TxnAbort::Locked(waited) => {
                let why = format!("{}: another process holds the lock; it may be stopped", path.display());
                StoreError::Unavailable(waited, why).into()
            }
            TxnAbort::NoProcesses => {
                refused("processes cannot be distinguished here; /proc has to be mounted".into())
            }
        }
    }
}

/// Returns the error of a call whose writes have no tests.
pub(crate) fn without_tests(error: RecordsError) -> StoreError {
    match error {
        RecordsError::Store(error) => error,
        error => StoreError::BadCall(error.to_string()),
    }
}
