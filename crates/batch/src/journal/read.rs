//! Reading a journal, up to where it is torn.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{GROUP_BYTES_MAX, JournalError, Line};

/// The lines of a journal, in the order in which they were written.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    buffer: Vec<u8>,
    number: u64,
    good: u64,
    ended: bool,
}

impl Lines {
    pub(super) fn new(path: &Path, file: &File) -> Result<Lines, JournalError> {
        let io = |cause| JournalError::Io { path: path.into(), cause };
        let mut file = file.try_clone().map_err(io)?;
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        let reader = BufReader::new(file);
        Ok(Lines { path: path.into(), reader, buffer: Vec::new(), number: 0, good: 0, ended: false })
    }

    /// How many bytes there are up to the end of the last whole line.
    pub(super) fn good(&self) -> u64 {
        self.good
    }

    fn read(&mut self) -> Result<Option<Line>, JournalError> {
        let io = |cause| JournalError::Io { path: self.path.clone(), cause };
        self.buffer.clear();
        self.number += 1;
        let read = self.reader.read_until(b'\n', &mut self.buffer).map_err(io)?;
        if self.buffer.pop() != Some(b'\n') {
            return Ok(None);
        }
        match serde_json::from_slice(&self.buffer) {
            Ok(line) => {
                self.good += read as u64;
                Ok(Some(line))
            }
            Err(cause) => self.torn(read, &cause),
        }
    }

    /// A line that is none is a torn tail if a group that was never synced explains it, and damage otherwise. Blocks of
    /// a group may reach the disk in any order, so whole lines may follow the torn one.
    fn torn(&mut self, read: usize, cause: &serde_json::Error) -> Result<Option<Line>, JournalError> {
        let mut rest = Vec::new();
        let most = (GROUP_BYTES_MAX + 1).saturating_sub(read) as u64;
        let io = |cause| JournalError::Io { path: self.path.clone(), cause };
        let more = (&mut self.reader).take(most).read_to_end(&mut rest).map_err(io)?;
        if read + more <= GROUP_BYTES_MAX {
            return Ok(None);
        }
        let (path, line) = (self.path.clone(), self.number);
        Err(JournalError::Corrupt { path, line, cause: cause.to_string() })
    }
}

impl Iterator for Lines {
    type Item = Result<Line, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let line = self.read().transpose();
        self.ended = !matches!(line, Some(Ok(_)));
        line
    }
}
