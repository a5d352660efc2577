//! The log beside the file: what was written and is not yet in the file itself.
//!
//! SQLite begins its log anew when all of it is in the file and no process reads from it. It copies the log into the
//! file while others go on writing, so with several busy processes there is always something left to copy, and the log
//! grows for as long as they are busy. So once it is long, the process that has written copies all of it while the
//! others wait.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rusqlite::Connection;

use crate::error::TxnError;
use crate::pause::pause;

/// How many pages are written to the log between two attempts to copy it into the file.
const COPY_EVERY: u32 = 1_000;

/// How many pages the log has before others wait while it is copied: 16 MB.
const PAGES_MAX: u32 = 4_000;

/// How often, and after how long, it is looked whether those who write or read are done: for a tenth of a second. Who
/// reads for longer is waited for after the next [`COPY_EVERY`] pages.
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
    /// Takes the log of a connection over from SQLite.
    pub(crate) fn of(connection: &mut Connection) -> Result<WriteAheadLog, TxnError> {
        let pages = Arc::new(AtomicU32::new(0));
        let seen = Arc::clone(&pages);
        connection.wal_hook(Some(move |_: &mut _, now: i32| {
            seen.store(now.try_into().unwrap_or(0), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(WriteAheadLog { pages, copied: 0 })
    }

    /// Copies it into the file if it is time, after a commit. If that fails, what was committed holds all the same, and
    /// the log is longer when it is tried again.
    pub(crate) fn copy_if_due(&mut self, connection: &mut Connection) {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.copied {
            // It was begun anew.
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

/// Copies all of it, with all others waiting, so that the next commit begins it anew.
fn copy_all(connection: &mut Connection) -> Result<(), TxnError> {
    connection.busy_handler(Some(|looks: i32| {
        pause(LOOK_AGAIN);
        looks < LOOKS
    }))?;
    let copied = copy(connection, "RESTART");
    connection.busy_timeout(Duration::ZERO)?;
    copied
}
