//! Which file it is that a path names.
//!
//! A file that is deleted or replaced stays there only for the processes that have it open: they would go on
//! taking from buckets that no other process sees. So a reader looks before each read whether the path still names the file,
//! and the writer once in each turn.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::ffi;

use crate::error::{FileOpenError, TxnError};
use crate::open::io_error;

/// Others than the owner may write to the file.
#[cfg(unix)]
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// A file that is open, as its path names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    path: PathBuf,
    number: (u64, u64),
}

impl Identity {
    /// The file that a path names.
    pub(crate) fn of(path: &Path) -> Result<Identity, FileOpenError> {
        let there = fs::metadata(path).map_err(|why| io_error(path, &why))?;
        Ok(Identity { path: path.into(), number: number(&there) })
    }

    /// Whether another path names the same file.
    pub(crate) fn is_same(&self, other: &Identity) -> bool {
        self.number == other.number
    }

    /// Whether the path still names the file. A file that cannot be looked at is not judged.
    pub(crate) fn check(&self) -> Result<(), TxnError> {
        match fs::metadata(&self.path) {
            Ok(there) if number(&there) != self.number => Err(moved()),
            Err(why) if why.kind() == ErrorKind::NotFound => Err(moved()),
            _ => Ok(()),
        }
    }
}

/// What SQLite says of a file that is not where it was, if it notices.
fn moved() -> TxnError {
    TxnError::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY_DBMOVED), None)
}

/// Where the file lies, and its number there.
#[cfg(unix)]
fn number(there: &Metadata) -> (u64, u64) {
    use std::os::unix::fs::MetadataExt;
    (there.dev(), there.ino())
}

/// Files have no numbers here, and those that are open cannot be deleted.
#[cfg(not(unix))]
fn number(_: &Metadata) -> (u64, u64) {
    (0, 0)
}

/// Checks that only the owner may write to the file, and to what belongs to it.
#[cfg(unix)]
pub(crate) fn check_mode(path: &Path) -> Result<(), FileOpenError> {
    use std::os::unix::fs::PermissionsExt;
    for end in ["", "-wal", "-shm"] {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        let Ok(there) = fs::metadata(&name) else { continue };
        let mode = there.permissions().mode() & 0o777;
        if mode & WRITABLE_BY_OTHERS != 0 {
            return Err(FileOpenError::OpenToOthers { path: name.into(), mode });
        }
    }
    Ok(())
}

/// There are no such permissions here.
#[cfg(not(unix))]
pub(crate) fn check_mode(_: &Path) -> Result<(), FileOpenError> {
    Ok(())
}
