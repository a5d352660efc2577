//! Looking for damage in a file.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::FileStore;
use crate::error::TxnError;

/// How many damages are reported at most.
const DAMAGES_MAX: usize = 100;

impl FileStore {
    /// What is damaged in the file, found by reading all of it; nothing if it is whole. Others can go on using it
    /// meanwhile. In a large file it takes a while.
    pub fn damages(&self) -> Vec<String> {
        match self.examine(damages_of) {
            Ok(damages) => damages.unwrap_or_else(|fault| vec![fault.to_string()]),
            Err(why) => vec![why.to_string()],
        }
    }
}

/// What is damaged in the file, by a connection of its own.
fn damages_of(path: &Path) -> Result<Vec<String>, TxnError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    let mut statement = connection.prepare(&format!("PRAGMA integrity_check({DAMAGES_MAX})"))?;
    let lines: Vec<String> = statement.query_map([], |row| row.get(0))?.collect::<Result<_, _>>()?;
    // A file that is whole has one line, which says so.
    Ok(lines.into_iter().filter(|line| line != "ok").collect())
}
