//! Errors of a file, and how callers see them.

use std::path::PathBuf;
use std::time::Duration;

use rusqlite::{ErrorCode, ffi};
use tollgate_store::StoreError;
use tollgate_store::records::RecordsError;

/// Why a file could not be opened as a store. A file that is not ours was left as it was.
///
/// # Examples
///
/// ```
/// use tollgate_file::{FileOpenError, FileStore};
///
/// let error = FileStore::open(std::env::temp_dir()).unwrap_err();
/// assert!(matches!(error, FileOpenError::IsFolder(_)));
/// assert!(error.to_string().ends_with("is a folder; name a file in it"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileOpenError {
    /// The path is that of a folder.
    #[error("{0} is a folder; name a file in it")]
    IsFolder(PathBuf),
    /// The folder of the file does not exist.
    #[error("the folder of {0} does not exist; make it first")]
    NoFolder(PathBuf),
    /// The system denies access.
    #[error("no permission to open {0}, or to make a file in its folder")]
    NoPermission(PathBuf),
    /// The file can be read but not written.
    #[error("{0} is read-only; a process that takes from a store has to write to it")]
    ReadOnly(PathBuf),
    /// Others than its owner may write to the file, or to one that belongs to it.
    #[error(
        "{path} has mode {mode:o}, so that others may change what it says; chmod go-w {path} if they have not"
    )]
    OpenToOthers {
        /// The file.
        path: PathBuf,
        /// Its permissions.
        mode: u32,
    },
    /// The file is not a SQLite file.
    #[error("{0} is no SQLite file; it was left as it is, name another one")]
    NotSqlite(PathBuf),
    /// The file is a SQLite file of another program.
    #[error("{0} is a SQLite file of another program; it was left as it is, name another one")]
    Foreign(PathBuf),
    /// A later version of this library made the file.
    #[error("{path} has format {found}, and this version knows formats up to {known}; use a later version")]
    Newer {
        /// The file.
        path: PathBuf,
        /// The format that it has.
        found: i64,
        /// The latest format that this version knows.
        known: i64,
    },
    /// The file is damaged.
    #[error("{0} is damaged: {1}; restore it from a copy, or move it away to start anew")]
    Damaged(PathBuf, String),
    /// Others had the file locked for longer than we wait.
    #[error("{0} was locked by others for {1:?}")]
    Busy(PathBuf, Duration),
    /// This process was forked off while a thread of its parent was using the file, or opening or closing one.
    #[error(
        "{0} was in use by a thread of the process that this one was forked off from, and cannot be opened here; \
         fork while no thread uses the store, or open it in the child only"
    )]
    InUseByParent(PathBuf),
    /// The disk is full.
    #[error("there is no room for {0} on its disk; make room and try again")]
    NoRoom(PathBuf),
    /// Something else went wrong.
    #[error("{0} cannot be opened: {1}")]
    Failed(PathBuf, String),
}

/// The error for a process that has a file open that its path does not name any more.
pub(crate) const MOVED: &str = "the file was deleted or replaced while this process had it open, and nothing that it takes \
                     would count for others; open it again, or put the file back";

/// A fault that ends a whole transaction, with everything that was done in it.
pub(crate) type TxnError = rusqlite::Error;

/// Converts the error of opening the file again in a forked process to the error that callers get.
pub(crate) fn reopening(why: &FileOpenError) -> StoreError {
    match why {
        FileOpenError::Busy(_, waited) => StoreError::Unavailable(*waited, why.to_string()),
        FileOpenError::NoRoom(_) => StoreError::Unavailable(Duration::ZERO, why.to_string()),
        why => StoreError::Refused(why.to_string()),
    }
}

/// Converts a fault to the error of the calls that it ended.
pub(crate) fn store_error(fault: &TxnError, timeout: Duration) -> StoreError {
    // Only a lock is ever waited for.
    let unavailable = |why: &str| StoreError::Unavailable(Duration::ZERO, format!("{why} ({fault})"));
    let refused = |why: &str| StoreError::Refused(format!("{why} ({fault})"));
    if fault.sqlite_error().is_some_and(|error| error.extended_code == ffi::SQLITE_READONLY_DBMOVED) {
        return StoreError::Refused(MOVED.into());
    }
    match fault.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            StoreError::Unavailable(timeout, format!("another process has the file locked ({fault})"))
        }
        Some(ErrorCode::DiskFull) => unavailable(
            "there is no room left for the file, and this write left no trace; make room and go on",
        ),
        Some(ErrorCode::SystemIoFailure) => {
            unavailable("the disk failed, or is full, and this write left no trace")
        }
        Some(ErrorCode::OutOfMemory | ErrorCode::FileLockingProtocolFailed) => {
            unavailable("the file could not be used just now")
        }
        Some(ErrorCode::ReadOnly) => refused("the file is read-only"),
        Some(ErrorCode::PermissionDenied | ErrorCode::AuthorizationForStatementDenied) => {
            refused("no permission to use the file")
        }
        Some(ErrorCode::CannotOpen) => refused("the file, or one that belongs to it, cannot be opened"),
        Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
            refused("the file is damaged; restore it from a copy, or move it away to start anew")
        }
        _ => refused("the file cannot be used"),
    }
}

/// Returns whether another process has the file locked, so that a retry may succeed.
pub(crate) fn is_busy(fault: &TxnError) -> bool {
    matches!(fault.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

/// Returns whether a fault has nothing to do with what was to be written, so that the next job meets it too.
pub(crate) fn affects_all(fault: &TxnError) -> bool {
    let code = fault.sqlite_error_code();
    is_busy(fault)
        || matches!(code, Some(ErrorCode::SystemIoFailure | ErrorCode::ReadOnly | ErrorCode::CannotOpen))
}

/// Why a job stopped: its whole transaction has to, or only the job.
#[derive(Debug)]
pub(crate) enum Abort {
    Fault(TxnError),
    Answer(RecordsError),
}

impl From<TxnError> for Abort {
    fn from(fault: TxnError) -> Abort {
        Abort::Fault(fault)
    }
}

impl From<RecordsError> for Abort {
    fn from(error: RecordsError) -> Abort {
        Abort::Answer(error)
    }
}

impl From<StoreError> for Abort {
    fn from(error: StoreError) -> Abort {
        Abort::Answer(error.into())
    }
}

impl Abort {
    /// Splits a result into the answer of the job and a fault of its transaction.
    pub(crate) fn answer<T>(ended: Result<T, Abort>) -> Result<Result<T, RecordsError>, TxnError> {
        match ended {
            Ok(answer) => Ok(Ok(answer)),
            Err(Abort::Answer(error)) => Ok(Err(error)),
            Err(Abort::Fault(fault)) => Err(fault),
        }
    }
}

/// Returns the error for something in the file that this version cannot read.
pub(crate) fn unreadable(what: &str, why: impl std::fmt::Display) -> Abort {
    StoreError::Refused(format!("{what} in the file cannot be read: {why}")).into()
}

/// Returns the error of a call whose writes have no tests.
pub(crate) fn without_tests(error: RecordsError) -> StoreError {
    match error {
        RecordsError::Store(error) => error,
        error => StoreError::BadCall(error.to_string()),
    }
}
