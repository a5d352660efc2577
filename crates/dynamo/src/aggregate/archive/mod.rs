//! Archives of audit events that have expired.

mod file;
mod folder;

use tollgate_store::Reply;

pub(super) use file::{ArchiveFile, files};
pub use folder::Folder;

/// Why a file could not be archived.
///
/// ```
/// use tollgate_dynamo::aggregate::ArchiveError;
///
/// assert!(ArchiveError("audit.jsonl.gz".into(), "no space left".into()).to_string().contains("no space left"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0} cannot be archived: {1}")]
pub struct ArchiveError(pub String, pub String);

/// A store of files by name: a folder, a bucket of S3.
///
/// ```
/// use tollgate_dynamo::aggregate::{Archive, ArchiveError};
/// use tollgate_store::Reply;
///
/// /// An archive that keeps nothing.
/// struct Discard;
///
/// impl Archive for Discard {
///     fn put<'a>(&'a self, _: &'a str, _: Vec<u8>) -> Reply<'a, Result<(), ArchiveError>> {
///         Reply::ready(Ok(()))
///     }
/// }
/// ```
pub trait Archive: Send + Sync {
    /// Puts a file, and replaces one of the same name. A file in the archive is always complete.
    ///
    /// # Cancel safety
    ///
    /// The file is put, or not.
    ///
    /// # Errors
    ///
    /// [`ArchiveError`] with the reason.
    fn put<'a>(&'a self, name: &'a str, contents: Vec<u8>) -> Reply<'a, Result<(), ArchiveError>>;
}
