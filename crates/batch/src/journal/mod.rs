//! The journal: durable results. An outcome is on disk before it is returned, and a later run calls
//! only the items that are missing.
//!
//! A journal has one line of JSON for each finished item. Lines are written and synced in groups:
//! while one group is being synced, the next one gathers. Lines that were not synced when the
//! machine crashed are a torn tail, which is removed when the file is opened: no reader got those
//! outcomes.
//!
//! A file is a journal only if its lines are results. Any other file is refused before a byte of it
//! is changed.

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
// Hidden: the command `tollgate batch` reads journals with these.
#[doc(hidden)]
pub use finished::{Finished, SeenBefore};
#[doc(hidden)]
pub use ids::IdMap;
pub(crate) use line::encode;
pub use line::{JournalLine, LineStatus};
pub use read::Lines;
use scan::Scan;
pub(crate) use writer::GroupWriter;

/// How many outcomes are synced together at most.
pub const GROUP_MAX: usize = 4_096;

/// How many bytes are synced together at most, unless one line is longer.
pub const GROUP_BYTES_MAX: usize = 4 << 20;

/// How many bytes a line may have. An outcome that needs more is not stored.
pub const LINE_BYTES_MAX: usize = 32 << 20;

/// How far from its end a crash can have torn a file: a group is written while another one is
/// synced.
const REACH: u64 = (GROUP_BYTES_MAX + LINE_BYTES_MAX) as u64;

/// A journal file, open for writing. While it is open, no other process can open it.
///
/// ```
/// use tollgate_batch::journal::{Journal, OnFailed};
/// use tollgate_batch::{Batch, CallReply, Item, ItemAttempt};
/// use tollgate_provider::Hint;
///
/// # let path = std::env::temp_dir().join(format!("tollgate-doc-journal-{}.jsonl", std::process::id()));
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// for calls in [2, 0] {
///     let journal = Journal::open(&path, OnFailed::Keep).unwrap();
///     let items = ["a", "b"].map(|id| Item::new(id, ()));
///     let run = Batch::new().resume(journal, items, |_: ItemAttempt<()>| async {
///         CallReply::done("output", Hint::ok())
///     });
///     assert_eq!(run.finish().await.unwrap().progress.calls, calls);
/// }
/// # });
/// # std::fs::remove_file(&path).unwrap();
/// ```
#[derive(Debug)]
pub struct Journal {
    file: File,
    len: u64,
    finished: Finished,
}

/// What a run does about items that failed in an earlier run.
///
/// # Examples
///
/// ```
/// use tollgate_batch::journal::{Journal, OnFailed};
///
/// # let path = std::env::temp_dir().join(format!("tollgate-doc-on-failed-{}.jsonl", std::process::id()));
/// let line = r#"{"id":"a","status":"failed","index":0,"attempts":1,"throttles":0,"tokens":0,"cost_micros":0}"#;
/// std::fs::write(&path, format!("{line}\n"))?;
/// assert!(Journal::open(&path, OnFailed::Keep)?.has("a"));
/// assert!(!Journal::open(&path, OnFailed::Retry)?.has("a"), "it is called again");
/// # std::fs::remove_file(&path)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailed {
    /// They are finished.
    #[default]
    Keep,
    /// They are retried: their lines are removed when the journal is opened.
    Retry,
}

impl Journal {
    /// Opens or creates a journal, and reads which items are finished.
    ///
    /// A file that no run has written is refused, and nothing is written to it. A torn tail is cut
    /// off. If the last group has torn lines, or if there are several lines of one id or failures
    /// to retry, the file is replaced by a copy without them.
    ///
    /// # Errors
    ///
    /// [`JournalError::InUse`] while another run has it open; [`JournalError::Foreign`] if it is
    /// the file of another program; [`JournalError::Corrupt`] if it is damaged in a way that no
    /// crash explains; [`JournalError::Io`].
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

    /// Returns true if the item with this id is finished.
    pub fn has(&self, id: &str) -> bool {
        self.finished.has(id)
    }

    /// Reads the lines of a journal without torn ones, even while another process has it open.
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

/// Opens and locks the file, and leaves its content as it is.
fn open_regular(path: &Path) -> Result<File, JournalError> {
    let io = |cause| JournalError::Io { path: path.into(), cause };
    let mut options = OpenOptions::new();
    // Requests and replies may be confidential, so only the owner may read the file.
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let file = options.read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
    if !file.metadata().map_err(io)?.is_file() {
        return Err(io(std::io::Error::other("it is not a regular file")));
    }
    lock(path, &file)?;
    if !is_same_file(path, &file).map_err(io)? {
        // Another run has replaced the file since it was opened.
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
fn is_same_file(path: &Path, file: &File) -> std::io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let (at_path, opened) = (std::fs::metadata(path)?, file.metadata()?);
    Ok((at_path.dev(), at_path.ino()) == (opened.dev(), opened.ino()))
}

/// Returns true: outside of Unix an open file cannot be replaced.
#[cfg(not(unix))]
fn is_same_file(_: &Path, _: &File) -> std::io::Result<bool> {
    Ok(true)
}

/// Syncs the folder of a file: a new file survives a crash only if its folder entry does.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if cfg!(unix) { File::open(folder.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
}
