//! Atomic replacement of files.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, IntoInnerError, Write};
use std::path::Path;

/// The permissions of a new file. A file that is replaced keeps its permissions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Readers {
    /// Those of the process's umask.
    Default,
    /// The owner only.
    #[cfg(feature = "batch")]
    Owner,
}

/// Writes a temporary file in the same directory, and renames it. A process that reads meanwhile gets the old
/// file or the new one, and a full disk leaves the old one.
///
/// # Errors
///
/// Those of the disk; then the temporary file is removed.
pub(crate) fn write_atomically(path: &Path, text: &str) -> io::Result<()> {
    // Anything but a regular file, such as a pipe or a link, is written to directly.
    let is_plain = std::fs::symlink_metadata(path).map_or(true, |there| there.is_file());
    if !is_plain {
        return std::fs::write(path, text);
    }
    replace(path, Readers::Default, |out| out.write_all(text.as_bytes()))
}

/// As [`write_atomically`], with what `write` writes. The target of a link is replaced, and the link stays.
///
/// # Errors
///
/// Those of the disk and of `write`; then the temporary file is removed.
pub(crate) fn replace(
    path: &Path,
    readers: Readers,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
    let mut beside = name.to_owned();
    beside.push(format!(".{}.tmp", std::process::id()));
    let beside = path.with_file_name(beside);
    let written = write_new(&beside, &path, readers, write).and_then(|()| std::fs::rename(&beside, &path));
    if written.is_err() {
        // Ignored, because the file may not have been created.
        let _ = std::fs::remove_file(&beside);
    }
    written
}

fn write_new(
    beside: &Path,
    path: &Path,
    readers: Readers,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let file = create(beside, readers)?;
    if let Ok(there) = std::fs::metadata(path) {
        file.set_permissions(there.permissions())?;
    }
    let mut out = BufWriter::with_capacity(1 << 16, file);
    write(&mut out)?;
    out.into_inner().map_err(IntoInnerError::into_error)?.sync_all()
}

fn create(path: &Path, readers: Readers) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(all(unix, feature = "batch"))]
    if readers == Readers::Owner {
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    }
    #[cfg(not(all(unix, feature = "batch")))]
    let _ = readers;
    options.open(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_whole_and_nothing_is_left_beside_it() {
        let folder = std::env::temp_dir().join(format!("tollgate-rewrite-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("limits.toml");
        write_atomically(&path, "one").unwrap();
        let reader = std::fs::File::open(&path).unwrap();
        write_atomically(&path, "two").unwrap();
        assert_eq!(io::read_to_string(reader).unwrap(), "one", "an open reader still sees the old file");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "two");
        assert!(write_atomically(&folder.join("no/such"), "three").is_err());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
