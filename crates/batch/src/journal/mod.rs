//! Durable results: what is finished is on disk before it is returned, and a later run calls only what is missing.
//!
//! One line of JSON for each finished item. Lines are written and synced in groups: while one group is on its way, the
//! next one gathers. What was not synced when the machine went down is a torn tail, which is dropped when the file is
//! opened: no reader got it.
//!
//! A file is a journal only if its lines say so. Any other file is refused before a byte of it is changed.

mod compact;
mod error;
mod finished;
mod ids;
mod line;
mod read;
mod recognise;
mod scan;
mod writer;

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom};
use std::path::Path;

pub use error::JournalError;
pub use finished::{Finished, SeenBefore};
pub use ids::IdMap;
pub use line::JournalLine;
pub(crate) use line::encode;
pub use read::Lines;
use scan::Scan;
pub(crate) use writer::GroupWriter;

/// How many outcomes are synced together at most.
pub const GROUP_MAX: usize = 4_096;

/// How many bytes are synced together at most, unless one line is longer.
pub const GROUP_BYTES_MAX: usize = 4 << 20;

/// How many bytes a line has at most. An outcome that needs more is not written down.
pub const LINE_BYTES_MAX: usize = 32 << 20;

/// How far from the end of a file a crash can have torn it: a group is written while another one is synced.
const REACH: u64 = (GROUP_BYTES_MAX + LINE_BYTES_MAX) as u64;

/// The file of a batch's results. While it is open no other process can open it.
#[derive(Debug)]
pub struct Journal {
    file: File,
    len: u64,
    finished: Finished,
}

/// What a run does about items that failed in an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailed {
    /// They are finished.
    #[default]
    Keep,
    /// They are tried again: their lines are removed when the journal is opened.
    Retry,
}

impl Journal {
    /// Opens a journal or creates one, and reads what is finished.
    ///
    /// A file that no run wrote is refused, and nothing is written to it. A torn tail is cut off. If there are torn lines in the
    /// last group, several lines of one id or failures to retry, the file is replaced by a copy without them.
    ///
    /// # Errors
    ///
    /// [`JournalError::InUse`] while another run has it open; [`JournalError::Foreign`] if it is the file of another program;
    /// [`JournalError::Corrupt`] if it is damaged in a way that no crash explains; [`JournalError::Io`].
    pub fn open(path: impl AsRef<Path>, on_failed: OnFailed) -> Result<Journal, JournalError> {
        let path = path.as_ref();
        let io = |cause| JournalError::Io { path: path.into(), cause };
        let is_new = !path.exists();
        let mut file = open_regular(path)?;
        let mut finished = Finished::new(on_failed);
        // Where the last line of each id ends that has several.
        let mut repeated = IdMap::new();
        let mut scan = Scan::new(path, &file)?;
        while let Some(known) = scan.next()? {
            if finished.insert(&known) {
                repeated.insert(&known.id, scan.end());
            }
        }
        let mut len = scan.end();
        if scan.has_gaps() || !repeated.is_empty() || finished.retried() > 0 {
            (file, len) = compact::compact(path, &file, on_failed, &repeated)?;
        }
        if file.metadata().map_err(io)?.len() > len {
            file.set_len(len).and_then(|()| file.sync_all()).map_err(io)?;
        }
        file.seek(SeekFrom::Start(len)).map_err(io)?;
        if is_new {
            file.sync_all().and_then(|()| sync_folder(path)).map_err(io)?;
        }
        Ok(Journal { file, len, finished })
    }

    /// Returns how many items are finished.
    pub fn finished(&self) -> usize {
        self.finished.len()
    }

    /// Returns how many of the finished items have failed.
    pub fn failed(&self) -> usize {
        self.finished.failed()
    }

    /// Whether the item of this id is finished.
    pub fn has(&self, id: &str) -> bool {
        self.finished.has(id)
    }

    /// Reads the lines of a journal, finished or torn, even while another process has it open.
    ///
    /// # Errors
    ///
    /// [`JournalError::Io`].
    pub fn read(path: impl AsRef<Path>) -> Result<Lines, JournalError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|cause| JournalError::Io { path: path.into(), cause })?;
        Lines::new(path, &file)
    }
}

/// Opens the file, which is locked from then on. What is there stays as it is.
fn open_regular(path: &Path) -> Result<File, JournalError> {
    let io = |cause| JournalError::Io { path: path.into(), cause };
    let mut options = OpenOptions::new();
    // What was asked and answered is not for others.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
    if !file.metadata().map_err(io)?.is_file() {
        return Err(io(std::io::Error::other("it is no regular file")));
    }
    lock(path, &file)?;
    if !is_still_there(path, &file).map_err(io)? {
        // Another run has replaced it since it was opened.
        return Err(JournalError::InUse { path: path.into() });
    }
    Ok(file)
}

fn lock(path: &Path, file: &File) -> Result<(), JournalError> {
    match file.try_lock() {
        Ok(()) => Ok(()),
        Err(TryLockError::WouldBlock) => Err(JournalError::InUse { path: path.into() }),
        Err(TryLockError::Error(cause)) => Err(JournalError::Io { path: path.into(), cause }),
    }
}

/// Returns true if the path still leads to the file.
#[cfg(unix)]
fn is_still_there(path: &Path, file: &File) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (there, ours) = (std::fs::metadata(path)?, file.metadata()?);
    Ok((there.dev(), there.ino()) == (ours.dev(), ours.ino()))
}

/// Elsewhere a file that is open cannot be replaced.
#[cfg(not(unix))]
fn is_still_there(_: &Path, _: &File) -> std::io::Result<bool> {
    Ok(true)
}

/// A new file is there after a crash only if its folder says so.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if cfg!(unix) { File::open(folder.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
}
