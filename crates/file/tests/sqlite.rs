//! Which SQLite is linked.

use rusqlite::Connection;

/// The first version without a fault that, rarely, damages a file whose log is reset by one process while another writes.
const VERSION_MIN: [u32; 3] = [3, 51, 3];

#[test]
fn a_log_that_is_reset_while_others_write_damages_no_file() {
    let text: String = Connection::open_in_memory()
        .and_then(|connection| connection.query_row("SELECT sqlite_version()", [], |row| row.get(0)))
        .unwrap();
    let version: Vec<u32> = text.split('.').map(|part| part.parse().unwrap()).collect();
    assert!(version.as_slice() >= VERSION_MIN.as_slice(), "SQLite {text} is linked");
}
