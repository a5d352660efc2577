use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tollgate_store::Reply;

use super::{Archive, ArchiveError};

/// An archive in a folder of this host.
///
/// ```no_run
/// # async fn put() -> Result<(), tollgate_dynamo::aggregate::ArchiveError> {
/// use tollgate_dynamo::aggregate::{Archive, Folder};
///
/// Folder::new("audit").put("ns/2026/11/15.jsonl.gz", vec![1, 2, 3]).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// Returns the archive in this folder, which is created with the first file.
    pub fn new(path: impl Into<PathBuf>) -> Folder {
        Folder(path.into())
    }
}

impl Archive for Folder {
    fn put<'a>(&'a self, name: &'a str, contents: Vec<u8>) -> Reply<'a, Result<(), ArchiveError>> {
        let path = self.0.join(name);
        let put = put(&path, &contents);
        Reply::ready(put.map_err(|error| ArchiveError(path.display().to_string(), error.to_string())))
    }
}

/// Writes a temporary file and renames it, so that a file in the archive is complete.
fn put(path: &Path, contents: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let beside = path.with_extension(format!("part-{}", std::process::id()));
    let mut file = fs::File::create(&beside)?;
    file.write_all(contents)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}
