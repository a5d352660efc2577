//! Errors of journals.
use std::path::PathBuf;

/// Why a journal cannot be used.
///
/// ```
/// use tollgate_batch::journal::{Journal, JournalError, OnFailed};
///
/// # let path = std::env::temp_dir().join(format!("tollgate-doc-foreign-{}.txt", std::process::id()));
/// std::fs::write(&path, "notes\n").unwrap();
/// let refused = Journal::open(&path, OnFailed::Keep).unwrap_err();
/// assert!(matches!(refused, JournalError::Foreign { line: 1, .. }));
/// # std::fs::remove_file(&path).unwrap();
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another run has the file open.
    #[error("{} is in use by another run; wait for it, or write to another file", path.display())]
    InUse {
        /// The path of the file.
        path: PathBuf,
    },
    /// The file is that of another program. Nothing was written to it.
    #[error(
        "{} is not a file of results (line {line}: {cause}), so nothing was written to it; name another file, or remove \
         it if it is not needed",
        path.display()
    )]
    Foreign {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// Why the line is not a result.
        cause: String,
    },
    /// A line of the file is not a result, and no crash explains that.
    #[error(
        "line {line} of {} is not a result: {cause}; no crash explains that, so nothing was written: restore the file, or \
         remove the line to have its item called again",
        path.display()
    )]
    Corrupt {
        /// The path of the file.
        path: PathBuf,
        /// The number of the line, from 1.
        line: u64,
        /// Why the line is not a result.
        cause: String,
    },
    /// The operating system reported an error.
    #[error("cannot use {}: {cause}", path.display())]
    Io {
        /// The path of the file.
        path: PathBuf,
        /// The error of the operating system.
        cause: std::io::Error,
    },
}
