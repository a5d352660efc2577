//! Integrity checks of a file.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::FileStore;
use crate::error::TxnError;

/// How many errors are reported at most.
const DAMAGES_MAX: usize = 100;

impl FileStore {
    /// Reads all of the file and returns what is damaged in it. Other processes can use it meanwhile. For a large file
    /// this takes a while.
    pub fn damages(&self) -> Vec<String> {
        match self.examine(damages_of) {
            Ok(damages) => damages.unwrap_or_else(|fault| vec![fault.to_string()]),
            Err(why) => vec![why.to_string()],
        }
    }
}

/// Checks the file by a connection of its own, and returns what is damaged.
fn damages_of(path: &Path) -> Result<Vec<String>, TxnError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({DAMAGES_MAX})"))?;
    let lines: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    // For a file that is not damaged there is one line, "ok".
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}
