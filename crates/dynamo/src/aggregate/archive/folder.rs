use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tollgate_store::Reply;

use super::{Archive, ArchiveError};

/// An archive in a folder of this host.
#[derive(Clone, Debug)]
pub struct Folder(PathBuf);

impl Folder {
    /// The archive in this folder, which is made when something is put there.
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

/// Writes beside it and renames, so that a file that is there is whole.
fn put(path: &Path, contents: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let beside = path.with_extension(format!("part-{}", std::process::id()));
    let mut file = fs::File::create(&beside)?;
    file.write_all(contents)?;
    file.sync_all()?;
    fs::rename(&beside, path)
}
