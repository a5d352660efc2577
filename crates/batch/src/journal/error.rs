use std::path::PathBuf;

/// Why a journal cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JournalError {
    /// Another run has it open.
    #[error("{} is in use by another run; wait for it, or write to another file", path.display())]
    InUse {
        /// Which file.
        path: PathBuf,
    },
    /// It is the file of another program. Nothing was written to it.
    #[error(
        "{} is not a file of results (line {line}: {cause}), so nothing was written to it; name another file, or remove \
         it if it is not needed",
        path.display()
    )]
    Foreign {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: u64,
        /// Why that is not a result.
        cause: String,
    },
    /// There is a line that no run wrote.
    #[error(
        "line {line} of {} is no result: {cause}; no crash explains that, so nothing was written: restore the file, or \
         remove the line to have its item called again",
        path.display()
    )]
    Corrupt {
        /// Which file.
        path: PathBuf,
        /// Which line, from 1.
        line: u64,
        /// What is wrong with it.
        cause: String,
    },
    /// The system said no.
    #[error("cannot use {}: {cause}", path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What it said.
        cause: std::io::Error,
    },
}
