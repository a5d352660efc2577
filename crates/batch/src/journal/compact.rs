//! Compaction: replaces a journal by one that has a single line for each id.
//!
//! The existing file is never overwritten: its results are copied to a new file temporary it, which
//! is renamed to its name once it is on disk. A crash leaves the one or the other.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::line::LineStatus;
use super::scan::Scan;
use super::{IdMap, JournalError, OnFailed, lock, sync_folder};

/// Writes the last line of each id to a new file, without failures that are to be retried, and
/// renames it to the name of the old one. The new file is locked before another process can see it.
/// `repeated` has the ids with several lines, and the end of the last line of each.
pub(super) fn compact(
    path: &Path,
    old: &File,
    on_failed: OnFailed,
    repeated: &IdMap<u64>,
) -> Result<(File, u64), JournalError> {
    let io = |cause| JournalError::Io { path: path.into(), cause };
    // A symbolic link stays one: its target is replaced.
    let target = std::fs::canonicalize(path).map_err(io)?;
    let temporary = temporary_path(&target);
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let new = options.read(true).write(true).create_new(true).open(&temporary).map_err(io)?;
    let replaced =
        lock(path, &new).and_then(|()| copy(path, old, &new, on_failed, repeated)).and_then(|len| {
            let permissions = old.metadata().map_err(io)?.permissions();
            new.set_permissions(permissions).and_then(|()| new.sync_all()).map_err(io)?;
            std::fs::rename(&temporary, &target).and_then(|()| sync_folder(&target)).map_err(io)?;
            Ok(len)
        });
    if replaced.is_err() {
        // After the rename no file of this name exists.
        let _ = std::fs::remove_file(&temporary);
    }
    replaced.map(|len| (new, len))
}

fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    path.with_file_name(name)
}

fn copy(
    path: &Path,
    old: &File,
    new: &File,
    on_failed: OnFailed,
    repeated: &IdMap<u64>,
) -> Result<u64, JournalError> {
    let io = |cause: io::Error| JournalError::Io { path: path.into(), cause };
    let (mut writer, mut len) = (BufWriter::new(new), 0);
    let mut scan = Scan::new(path, old)?;
    while let Some(known) = scan.next()? {
        let is_retried = known.status == LineStatus::Failed && on_failed == OnFailed::Retry;
        if is_retried || repeated.get(&known.id).is_some_and(|last| last != scan.end()) {
            continue;
        }
        writer.write_all(scan.line()).and_then(|()| writer.write_all(b"\n")).map_err(io)?;
        len += scan.line().len() as u64 + 1;
    }
    writer.flush().map_err(io)?;
    Ok(len)
}
