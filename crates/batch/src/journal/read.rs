//! Reading a journal, even if a crash has torn it.

use std::fs::File;
use std::path::Path;

use super::scan::Scan;
use super::{JournalError, JournalLine};

/// The lines of a journal, in the order in which they were written, without torn ones.
/// [`Journal::read`](super::Journal::read) returns it.
///
/// ```
/// use tollgate_batch::journal::Journal;
///
/// # let path = std::env::temp_dir().join(format!("tollgate-doc-lines-{}.jsonl", std::process::id()));
/// # std::fs::write(&path, "").unwrap();
/// for line in Journal::read(&path).unwrap() {
///     let line = line.unwrap();
///     println!("{}: {:?}", line.id, line.status);
/// }
/// # std::fs::remove_file(&path).unwrap();
/// ```
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
            // A result of the scan has all fields of a line, unless a field has another type.
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
