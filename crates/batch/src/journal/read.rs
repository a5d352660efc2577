//! Reading a journal, whatever a crash has left of it.

use std::fs::File;
use std::path::Path;

use super::scan::Scan;
use super::{JournalError, JournalLine};

/// The lines of a journal, in the order in which they were written. What is torn is left out.
#[derive(Debug)]
pub struct Lines {
    scan: Scan,
    ended: bool,
}

impl Lines {
    pub(super) fn new(path: &Path, file: &File) -> Result<Lines, JournalError> {
        Ok(Lines { scan: Scan::new(path, file)?, ended: false })
    }

    fn read(&mut self) -> Result<Option<JournalLine>, JournalError> {
        while self.scan.next()?.is_some() {
            // What is a result for the scan has all that a line needs, unless a field is of another type.
            if let Ok(line) = serde_json::from_slice(self.scan.line()) {
                return Ok(Some(line));
            }
        }
        Ok(None)
    }
}

impl Iterator for Lines {
    type Item = Result<JournalLine, JournalError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let line = self.read().transpose();
        self.ended = !matches!(line, Some(Ok(_)));
        line
    }
}
