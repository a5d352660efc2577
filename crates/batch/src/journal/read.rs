//! Reading a journal, whatever a crash has left of it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::{JournalError, LINE_BYTES_MAX, Line, REACH};

/// How many lines a crash can have torn.
const TORN_MAX: usize = super::GROUP_MAX;

/// The lines of a journal, in the order in which they were written. What is torn is left out.
#[derive(Debug)]
pub struct Lines {
    path: PathBuf,
    reader: BufReader<File>,
    buffer: Vec<u8>,
    number: u64,
    /// Where the next line begins.
    at: u64,
    torn: Vec<Torn>,
    ended: bool,
}

/// A line that is none, with its end.
#[derive(Clone, Debug)]
pub(super) struct Torn {
    pub(super) number: u64,
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) cause: String,
}

impl Lines {
    pub(super) fn new(path: &Path, file: &File) -> Result<Lines, JournalError> {
        let io = |cause| JournalError::Io { path: path.into(), cause };
        let mut file = file.try_clone().map_err(io)?;
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        let (path, reader, torn) = (path.into(), BufReader::new(file), Vec::new());
        Ok(Lines { path, reader, buffer: Vec::new(), number: 0, at: 0, torn, ended: false })
    }

    /// Where the last line that ends has its end.
    pub(super) fn end(&self) -> u64 {
        self.at
    }

    /// The lines that are none and that a crash explains: those within the reach of the last group. Its blocks may have
    /// reached the disk in any order, so whole lines may follow a torn one.
    pub(super) fn torn(&self) -> Result<&[Torn], JournalError> {
        match self.torn.first() {
            Some(torn) if torn.at + REACH < self.at => Err(JournalError::Corrupt {
                path: self.path.clone(),
                line: torn.number,
                cause: torn.cause.clone(),
            }),
            _ => Ok(&self.torn),
        }
    }

    /// The next line; `None` at the end, or where a line does not end.
    fn read(&mut self) -> Result<Option<Line>, JournalError> {
        loop {
            let io = |cause| JournalError::Io { path: self.path.clone(), cause };
            self.buffer.clear();
            self.number += 1;
            let most = LINE_BYTES_MAX as u64 + 1;
            let read = (&mut self.reader).take(most).read_until(b'\n', &mut self.buffer).map_err(io)?;
            if self.buffer.pop() != Some(b'\n') {
                return if read <= LINE_BYTES_MAX {
                    Ok(None)
                } else {
                    Err(self.corrupt("it does not end".into()))
                };
            }
            let (at, len) = (self.at, read as u64);
            self.at += len;
            // What was torn once was blanked.
            if self.buffer.iter().all(|byte| *byte == b' ') {
                continue;
            }
            match serde_json::from_slice(&self.buffer) {
                Ok(line) => return Ok(Some(line)),
                Err(cause) if self.torn.len() >= TORN_MAX => return Err(self.corrupt(cause.to_string())),
                Err(cause) => {
                    self.torn.push(Torn { number: self.number, at, len, cause: cause.to_string() });
                }
            }
        }
    }

    fn corrupt(&self, cause: String) -> JournalError {
        JournalError::Corrupt { path: self.path.clone(), line: self.number, cause }
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
