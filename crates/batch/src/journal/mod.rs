//! Durable results: what is finished is on disk before anybody is told, and a later run calls only what is missing.
//!
//! One line of JSON for each finished item. Lines are written and synced in groups: while one group is on its way, the
//! next one gathers. What was not synced when the machine went down is a torn tail, which is dropped when the file is
//! opened: nobody was told of it.

mod error;
mod line;
mod read;
mod writer;

use std::collections::HashSet;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

pub use error::JournalError;
pub use line::Line;
pub(crate) use line::encode;
pub use read::Lines;
pub(crate) use writer::Writer;

/// How many outcomes are synced together at most.
pub const GROUP_MAX: usize = 4_096;

/// How many bytes are synced together at most, unless one line is longer.
pub const GROUP_BYTES_MAX: usize = 4 << 20;

/// How many bytes a line has at most. An outcome that needs more is not written down.
pub const LINE_BYTES_MAX: usize = 32 << 20;

/// How far from the end of a file a crash can have torn it: a group is written while another one is synced.
const REACH: u64 = (GROUP_BYTES_MAX + LINE_BYTES_MAX) as u64;

/// The file of a batch's results. As long as it is open nobody else can open it.
#[derive(Debug)]
pub struct Journal {
    file: File,
    len: u64,
    finished: HashSet<Box<str>>,
}

/// What a run does about items that failed in an earlier one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailed {
    /// They are finished.
    #[default]
    Keep,
    /// They are tried again. The last line about an item counts.
    Retry,
}

impl Journal {
    /// Opens a journal or makes one, and reads what is finished. A torn tail is cut off, and torn lines
    /// in the last group are blanked.
    ///
    /// # Errors
    ///
    /// [`JournalError::InUse`] while another run has it open; [`JournalError::Corrupt`] if it is damaged in a way that no
    /// crash explains; [`JournalError::Io`].
    pub fn open(path: impl AsRef<Path>, on_failed: OnFailed) -> Result<Journal, JournalError> {
        let path = path.as_ref();
        let io = |cause| JournalError::Io { path: path.into(), cause };
        let made = !path.exists();
        let mut options = OpenOptions::new();
        // What was asked and answered is not for others.
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let mut file = options.read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
        if !file.metadata().map_err(io)?.is_file() {
            return Err(io(std::io::Error::other("it is no regular file")));
        }
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(JournalError::InUse { path: path.into() }),
            Err(TryLockError::Error(cause)) => return Err(io(cause)),
        }
        let mut finished = HashSet::new();
        let mut lines = Lines::new(path, &file)?;
        for line in &mut lines {
            let line = line?;
            if line.is_done() || on_failed == OnFailed::Keep {
                finished.insert(line.id.into_boxed_str());
            } else {
                finished.remove(line.id.as_str());
            }
        }
        let len = lines.end();
        for torn in lines.torn()? {
            // In place, so that nothing behind it moves or is lost; its item is called again.
            let blank = vec![b' '; usize::try_from(torn.len - 1).unwrap_or_default()];
            file.seek(SeekFrom::Start(torn.at)).and_then(|_| file.write_all(&blank)).map_err(io)?;
        }
        let torn = !lines.torn()?.is_empty() || file.metadata().map_err(io)?.len() > len;
        file.set_len(len).map_err(io)?;
        file.seek(SeekFrom::Start(len)).map_err(io)?;
        if torn || made {
            file.sync_all().map_err(io)?;
        }
        if made {
            sync_folder(path).map_err(io)?;
        }
        Ok(Journal { file, len, finished })
    }

    /// How many items are finished.
    pub fn finished(&self) -> usize {
        self.finished.len()
    }

    /// Whether the item of this id is finished.
    pub fn has(&self, id: &str) -> bool {
        self.finished.contains(id)
    }

    /// Reads the lines of a journal, finished or torn, whoever has it open.
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

/// A new file is there after a crash only if its folder says so.
fn sync_folder(path: &Path) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if cfg!(unix) { File::open(folder.unwrap_or(Path::new(".")))?.sync_all() } else { Ok(()) }
}
