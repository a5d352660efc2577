//! The clock of a file: store time, on which processes agree by a row of the file.
//!
//! The row has the offset of store time to the monotonic clock, and the offset that it is slewed to. Each process
//! computes the time from that, so the row is read when the file is opened and again only if this process has a reason
//! to doubt what it knows, and is written only when the wall clock was set or the host was booted again. Reasons to
//! doubt are a wall clock that is behind although the row does not record that, and a bucket with a stamp in the
//! future.

use std::sync::Arc;

use rusqlite::Connection;
use tollgate_core::Tick;
use tollgate_store::{Clock, HostClock, StoreClock};

use crate::builder::FileStoreBuilder;
use crate::clock_row::{Agreed, ClockRow, HostTimes};
use crate::error::TxnError;

/// How long an executor waits until it reads the row again that it may not or cannot change, in microseconds.
const PAUSE: u64 = 1_000_000;

/// The clock of a store, which all its executors and callers share.
#[derive(Clone)]
pub(crate) struct FileTime {
    pub(crate) clock: Clock,
    /// `None` if the clock was given, and is used as it is.
    shared: Option<Arc<StoreClock>>,
}

impl FileTime {
    pub(crate) fn of(settings: &FileStoreBuilder) -> FileTime {
        if let Some(clock) = &settings.clock {
            return FileTime { clock: clock.clone(), shared: None };
        }
        let shared = StoreClock::local(settings.host.clone().unwrap_or_else(HostClock::system));
        FileTime { clock: shared.clock(), shared: Some(shared) }
    }
}

/// What an executor may do to the row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClockAccess {
    Read,
    Write,
}

/// The clock as an executor has it.
pub(crate) struct FileClock {
    clock: Clock,
    agreement: Option<Agreement>,
}

/// The agreement as an executor knows it.
struct Agreement {
    shared: Arc<StoreClock>,
    access: ClockAccess,
    /// The row, or what it will be once it is written. `None` before it was read.
    known: Option<ClockRow>,
    is_written: bool,
    /// When the row may be read again, by the monotonic clock.
    look_at: u64,
}

impl FileClock {
    /// Returns the clock of an executor that has just opened the file.
    pub(crate) fn open(time: &FileTime, access: ClockAccess, connection: &Connection) -> FileClock {
        let mut clock = FileClock { clock: time.clock.clone(), agreement: None };
        if let Some(shared) = time.shared.clone() {
            let mut agreement = Agreement { shared, access, known: None, is_written: false, look_at: 0 };
            // If the row cannot be read now, it is with the first transaction.
            let _ = agreement.agree(connection, 0, ClockAccess::Read);
            agreement.look_at = 0;
            clock.agreement = Some(agreement);
        }
        clock
    }

    pub(crate) fn now(&self) -> Tick {
        self.clock.now()
    }

    /// Records that the transaction was rolled back: the row may not be what this executor wrote.
    pub(crate) fn roll_back(&mut self) {
        if let Some(agreement) = &mut self.agreement {
            agreement.is_written = false;
        }
    }

    /// Reads the row, and writes it if need be, at the beginning of a transaction. It rarely does either.
    ///
    /// # Errors
    ///
    /// A fault that has ended the transaction. Other failures are retried later.
    pub(crate) fn sync(&mut self, connection: &Connection) -> Result<(), TxnError> {
        match &mut self.agreement {
            Some(agreement) if agreement.is_due() => agreement.agree(connection, 0, agreement.access),
            _ => Ok(()),
        }
    }

    /// Returns the time for a bucket with this stamp: `now`, unless the stamp is far ahead of it. Then another process has
    /// seen that store time, and this one catches up.
    ///
    /// # Errors
    ///
    /// As [`sync`](FileClock::sync).
    pub(crate) fn now_for(
        &mut self,
        connection: &Connection,
        stamp: Tick,
        now: Tick,
    ) -> Result<Tick, TxnError> {
        let is_ahead =
            (StoreClock::TOLERANCE + 1..=StoreClock::AHEAD_MAX).contains(&stamp.since(now).as_micros());
        match &mut self.agreement {
            Some(agreement) if is_ahead => {
                let offset = stamp.as_micros().saturating_sub(agreement.shared.monotonic());
                agreement.agree(connection, offset, agreement.access)?;
                Ok(self.clock.now().max(stamp))
            }
            _ => Ok(now),
        }
    }
}

impl Agreement {
    fn is_due(&self) -> bool {
        let host = HostTimes::of(&self.shared);
        let is_stored = self.is_written || self.access == ClockAccess::Read;
        let is_right = |row: &ClockRow| is_stored && row.holds(&host, self.shared.offset());
        host.monotonic >= self.look_at && !self.known.as_ref().is_some_and(is_right)
    }

    /// Computes the offset from the row, the wall clock and the store time that is known to be reached, and follows it.
    fn agree(&mut self, connection: &Connection, reached: u64, access: ClockAccess) -> Result<(), TxnError> {
        let shared = Arc::clone(&self.shared);
        let (host, offset) = (HostTimes::of(&shared), shared.offset());
        self.look_at = host.monotonic.saturating_add(PAUSE);
        let stored = ClockRow::read(connection)?.filter(|row| row.is_sound(&host));
        let is_first = !stored.as_ref().is_some_and(|row| host.is_boot_of(row));
        // This process has learnt it from the wall clock or from a stamp since it last saw the row. Otherwise an offset above
        // the row's is one that another process has slewed meanwhile.
        let is_news = |row: &ClockRow| !row.reaches(&host, offset);
        let counts = is_first || self.known.as_ref().is_some_and(is_news);
        let reached = if counts { reached.max(offset) } else { reached };
        let Agreed { mut row, offset, is_new } = host.agree(stored, reached);
        let written = match (is_new, access) {
            (false, _) => Ok(true),
            (true, ClockAccess::Read) => Ok(false),
            (true, ClockAccess::Write) => row.write(connection).map(|()| true),
        };
        self.is_written = matches!(written, Ok(true));
        if self.is_written {
            self.look_at = 0;
        } else {
            // The clock is slewed only as the row has it, so that processes stay together.
            row.target = offset;
        }
        shared.follow(offset, row.target, host.monotonic);
        self.known = Some(row);
        match written {
            Err(fault) if connection.is_autocommit() => Err(fault),
            // The transaction goes on without the row, for want of room perhaps.
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
