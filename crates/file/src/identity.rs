//! The identity of a file: whether its path still names it.
//!
//! A file that is deleted or replaced stays there only for the processes that have it open: they would go on taking
//! from buckets that no other process sees. So a reader checks before each read whether the path still names the file,
//! and the writer once in each streak of transactions.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rusqlite::ffi;

use crate::error::{FileOpenError, TxnError};
use crate::open::io_error;

/// Others than the owner may write to the file.
#[cfg(unix)]
const WRITABLE_BY_OTHERS: u32 = 0o022;

/// An open file and its path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    path: PathBuf,
    number: (u64, u64),
}

impl Identity {
    /// Returns the file that a path names.
    pub(crate) fn of(path: &Path) -> Result<Identity, FileOpenError> {
        let there = fs::metadata(path).map_err(|why| io_error(path, &why))?;
        Ok(Identity { path: path.into(), number: number(&there) })
    }

    /// Returns whether another path names the same file.
    pub(crate) fn is_same(&self, other: &Identity) -> bool {
        self.number == other.number
    }

    /// Returns whether the path still names the file. A file whose metadata cannot be read is not judged.
    pub(crate) fn check(&self) -> Result<(), TxnError> {
        match fs::metadata(&self.path) {
            Ok(there) if number(&there) != self.number => Err(moved()),
            Err(why) if why.kind() == ErrorKind::NotFound => Err(moved()),
            _ => Ok(()),
        }
    }
}

/// Returns the error that SQLite itself has for a file that was moved, when it notices.
fn moved() -> TxnError {
    TxnError::SqliteFailure(ffi::Error::new(ffi::SQLITE_READONLY_DBMOVED), None)
}

/// Returns the device of the file, and its number there.
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

/// This system has no such permissions.
#[cfg(not(unix))]
pub(crate) fn check_mode(_: &Path) -> Result<(), FileOpenError> {
    Ok(())
}
