//! Where audit events go when they have expired.

mod file;
mod folder;

use tollgate_store::Reply;

pub(super) use file::{ArchiveFile, files};
pub use folder::Folder;

/// Why something could not be archived.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} cannot be archived: {1}")]
pub struct ArchiveError(pub String, pub String);

/// Where files can be put by name: a folder, a bucket of S3.
pub trait Archive: Send + Sync {
    /// Puts a file where it belongs, in place of one of the same name. A file that is there is whole.
    ///
    /// # Cancel safety
    ///
    /// The file is put, or not.
    ///
    /// # Errors
    ///
    /// [`ArchiveError`] with what went wrong.
    fn put<'a>(&'a self, name: &'a str, contents: Vec<u8>) -> Reply<'a, Result<(), ArchiveError>>;
}
