//! The write-ahead log beside the file.
//!
//! SQLite restarts its log when all of it is in the file and no process reads from it. It copies the log into the file
//! while other processes go on writing, so with several busy processes there is always something left to copy, and the
//! log grows for as long as they are busy. So once it is long, the process that has written copies all of it while the
//! others wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use crate::error::TxnError;
use crate::pause::pause;

/// How many pages are written to the log between two attempts to copy it into the file.
const COPY_EVERY: u32 = 1_000;

/// How many pages the log has before other processes wait while it is copied: 16 MB.
const PAGES_MAX: u32 = 4_000;

/// How often, and at which interval, the copy checks whether other writers and readers are done: for a tenth of a
/// second. It waits for a longer reader after the next [`COPY_EVERY`] pages.
const LOOKS: i32 = 400;
const LOOK_AGAIN: Duration = Duration::from_micros(250);

/// The log of a connection that writes.
pub(crate) struct WriteAheadLog {
    /// How long it was after the last commit of this connection, in pages.
    pages: Arc<AtomicU32>,
    /// How long it was when it was copied last.
    copied: u32,
}

impl WriteAheadLog {
    /// Takes over the log of a connection from SQLite.
    pub(crate) fn of(connection: &mut Connection) -> Result<WriteAheadLog, TxnError> {
        let pages = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&pages);
        connection.wal_hook(Some(move |_: &mut _, now: i32| {
            seen.store(now.try_into().unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(WriteAheadLog { pages, copied: 0 })
    }

    /// Copies the log into the file if that is due, after a commit. If it fails, what was committed still holds, and
    /// the log is longer at the next attempt.
    pub(crate) fn copy_if_due(&mut self, connection: &mut Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.copied {
            // SQLite has restarted it.
            self.copied = 0;
        }
        if pages < self.copied + COPY_EVERY {
            return;
        }
        self.copied = pages;
        let _ = if pages < PAGES_MAX { copy(connection, "PASSIVE") } else { copy_all(connection) };
    }
}

fn copy(connection: &Connection, how: &str) -> Result<(), TxnError> {
    connection.prepare_cached(&format!("PRAGMA wal_checkpoint({how})"))?.query_row([], |_| Ok(()))
}

/// Copies all of the log while other processes wait, so that the next commit restarts it.
fn copy_all(connection: &mut Connection) -> Result<(), TxnError> {
    connection.busy_handler(Some(|looks: i32| {
        pause(LOOK_AGAIN);
        looks < LOOKS
    }))?;
    let copied = copy(connection, "RESTART");
    connection.busy_timeout(Duration::ZERO)?;
    copied
}
