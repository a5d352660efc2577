//! The scan of a journal: reads a file line by line, and fails at a line that no run wrote.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use super::recognise::{LineFacts, LineKind, kind, may_be_cut_off};
use super::{GROUP_MAX, JournalError, LINE_BYTES_MAX, REACH};

/// How many lines a crash can have torn.
const TORN_MAX: usize = GROUP_MAX;

/// A scan of the lines of a journal. It writes nothing.
#[derive(Debug)]
pub(super) struct Scan {
    path: PathBuf,
    reader: BufReader<File>,
    /// The last line that was read, without its end.
    line: Vec<u8>,
    number: u64,
    /// Where the next line begins.
    at: u64,
    has_result: bool,
    blanks: u64,
    torn: usize,
    first_torn: Option<(u64, u64, String)>,
}

impl Scan {
    /// Begins at the first line.
    pub(super) fn new(path: &Path, file: &File) -> Result<Scan, JournalError> {
        let io = |cause| JournalError::Io { path: path.into(), cause };
        let mut file = file.try_clone().map_err(io)?;
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        Ok(Scan {
            path: path.into(),
            reader: BufReader::new(file),
            line: Vec::new(),
            number: 0,
            at: 0,
            has_result: false,
            blanks: 0,
            torn: 0,
            first_torn: None,
        })
    }

    /// Returns the end of the last complete line.
    pub(super) fn end(&self) -> u64 {
        self.at
    }

    /// Returns the last line that was read, without its end.
    pub(super) fn line(&self) -> &[u8] {
        &self.line
    }

    /// Returns true if lines were skipped that are not results.
    pub(super) fn has_gaps(&self) -> bool {
        self.blanks > 0 || self.torn > 0
    }

    /// Reads the next result; `None` at the end. Lines that a crash can have torn are skipped.
    ///
    /// # Errors
    ///
    /// [`JournalError::Foreign`], [`JournalError::Corrupt`], [`JournalError::Io`].
    pub(super) fn next(&mut self) -> Result<Option<LineFacts>, JournalError> {
        loop {
            self.line.clear();
            self.number += 1;
            let most = LINE_BYTES_MAX as u64 + 1;
            let read = (&mut self.reader).take(most).read_until(b'\n', &mut self.line);
            let read = read.map_err(|cause| JournalError::Io { path: self.path.clone(), cause })?;
            if self.line.last() != Some(&b'\n') {
                return self.check_tail(read).map(|()| None);
            }
            self.line.pop();
            let at = self.at;
            self.at += read as u64;
            match kind(&self.line) {
                LineKind::Result(known) => {
                    self.has_result = true;
                    return Ok(Some(known));
                }
                LineKind::Blank => self.blanks += 1,
                LineKind::Torn(cause) if self.torn < TORN_MAX => {
                    self.torn += 1;
                    self.first_torn.get_or_insert((self.number, at, cause));
                }
                LineKind::Torn(cause) | LineKind::Foreign(cause) => {
                    return Err(self.bad_line(self.number, cause));
                }
            }
        }
    }

    /// Checks the bytes after the last complete line, and the file as a whole.
    fn check_tail(&self, read: usize) -> Result<(), JournalError> {
        if read > LINE_BYTES_MAX {
            return Err(self.bad_line(self.number, "it does not end".into()));
        }
        if !may_be_cut_off(&self.line) {
            return Err(self.bad_line(self.number, "it is not the beginning of a result".into()));
        }
        let is_new = self.at == 0 && self.line.first() != Some(&0);
        if !self.has_result && !is_new {
            return Err(self.bad_line(1, "no line of the file is a result".into()));
        }
        match &self.first_torn {
            // Blocks of the last group may have reached the disk in any order, so complete lines
            // may follow a torn one.
            Some((line, at, cause)) if at + REACH < self.at => Err(self.bad_line(*line, cause.clone())),
            _ => Ok(()),
        }
    }

    fn bad_line(&self, line: u64, cause: String) -> JournalError {
        let path = self.path.clone();
        match self.has_result {
            true => JournalError::Corrupt { path, line, cause },
            false => JournalError::Foreign { path, line, cause },
        }
    }
}
