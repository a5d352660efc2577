//! A file that the processes of one host share.

use std::path::Path;

use tollgate_file::{FileOpenError, FileStore};

use crate::OpenOptions;

/// Opens the file, or creates it. Its directory is not created, so that a typo leaves no directories behind.
pub(crate) fn open(path: &Path, options: &OpenOptions) -> Result<FileStore, FileOpenError> {
    let mut builder = FileStore::builder(path).usage_retention(options.usage_retention);
    if let Some(timeout) = options.timeout {
        builder = builder.timeout(timeout);
    }
    builder.build()
}
