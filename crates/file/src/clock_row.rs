//! The clock row, by which processes agree on store time.

use rusqlite::{Connection, OptionalExtension, params};
use tollgate_store::StoreClock;

use crate::error::TxnError;
use crate::schema::CLOCK_TABLE;

/// Store time as the file has it. All numbers are microseconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ClockRow {
    /// The boot that the monotonic clock counts from.
    boot: String,
    /// How far store time was ahead of the monotonic clock.
    offset: u64,
    /// When that was, by the monotonic clock.
    written: u64,
    /// The offset that it is slewed to, which is that of the wall clock. The same as `offset` if there is nothing to slew.
    pub(crate) target: u64,
}

/// The clocks of the host at one instant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostTimes<'a> {
    pub(crate) boot: &'a str,
    pub(crate) monotonic: u64,
    /// The offset of the wall clock.
    pub(crate) wall: u64,
}

/// The agreement after the row was read.
#[derive(Debug)]
pub(crate) struct Agreed {
    pub(crate) row: ClockRow,
    /// The offset at this instant.
    pub(crate) offset: u64,
    /// Whether the row is to be written.
    pub(crate) is_new: bool,
}

impl ClockRow {
    /// Returns the current offset by a row of this boot.
    pub(crate) fn offset_at(&self, monotonic: u64) -> u64 {
        let slewed = monotonic.saturating_sub(self.written) / StoreClock::SLEW;
        self.offset.saturating_sub(slewed).max(self.target.min(self.offset))
    }

    /// Returns the offset after a row of another boot. The monotonic clock has started again, so the wall clock
    /// measures how long ago the row was written; and store time never goes back behind what was reached.
    fn offset_after_boot(&self, host: &HostTimes<'_>) -> u64 {
        let wall = host.monotonic.saturating_add(host.wall);
        let ahead = self.offset.saturating_sub(self.target);
        let elapsed = wall.saturating_sub(self.written.saturating_add(self.target));
        let time = wall.saturating_add(ahead.saturating_sub(elapsed / StoreClock::SLEW));
        time.max(self.written.saturating_add(self.offset)).saturating_sub(host.monotonic)
    }

    /// Returns whether store time has reached this offset by a row of this boot.
    pub(crate) fn reaches(&self, host: &HostTimes<'_>, offset: u64) -> bool {
        offset <= self.offset_at(host.monotonic).saturating_add(StoreClock::TOLERANCE)
    }

    /// Returns whether a row of this boot covers this offset: store time has reached it, and is slewed if it is ahead.
    pub(crate) fn holds(&self, host: &HostTimes<'_>, offset: u64) -> bool {
        let right = host.wall.saturating_add(StoreClock::TOLERANCE);
        self.reaches(host, offset) && (offset <= right || self.target <= right)
    }

    /// Returns whether a store can have written the row. An offset that is ahead by a hundred years is damage.
    pub(crate) fn is_sound(&self, host: &HostTimes<'_>) -> bool {
        let wall = host.monotonic.saturating_add(host.wall);
        self.written.saturating_add(self.offset) <= wall.saturating_add(StoreClock::AHEAD_MAX)
    }

    /// Reads the row; `None` if the file has no row, as in a file of an earlier version.
    pub(crate) fn read(connection: &Connection) -> Result<Option<ClockRow>, TxnError> {
        if !connection.table_exists(None, "clock")? {
            return Ok(None);
        }
        let mut read = connection.prepare_cached("SELECT boot, offset, written, target FROM clock")?;
        read.query_row([], |row| {
            let [offset, written, target] = [row.get(1)?, row.get(2)?, row.get(3)?].map(i64::cast_unsigned);
            Ok(ClockRow { boot: row.get(0)?, offset, written, target })
        })
        .optional()
    }

    /// Writes the row, in a transaction.
    pub(crate) fn write(&self, connection: &Connection) -> Result<(), TxnError> {
        connection.execute_batch(CLOCK_TABLE)?;
        let [offset, written, target] = [self.offset, self.written, self.target].map(u64::cast_signed);
        let mut write = connection.prepare_cached(
            "REPLACE INTO clock (id, boot, offset, written, target) VALUES (1, ?1, ?2, ?3, ?4)",
        )?;
        write.execute(params![self.boot, offset, written, target]).map(drop)
    }
}

impl<'a> HostTimes<'a> {
    /// Returns the clocks of a host as a store clock has them.
    pub(crate) fn of(clock: &'a StoreClock) -> HostTimes<'a> {
        // This compares the clocks if that is due, so it comes first.
        let monotonic = clock.monotonic();
        HostTimes { boot: clock.host().boot(), monotonic, wall: clock.wall_offset() }
    }

    /// Returns whether a row counts by the monotonic clock that this host has now.
    pub(crate) fn is_boot_of(&self, row: &ClockRow) -> bool {
        row.boot == self.boot && !self.boot.is_empty()
    }

    /// Computes the offset from the row, the wall clock, and the store time that is known to be reached.
    pub(crate) fn agree(&self, stored: Option<ClockRow>, reached: u64) -> Agreed {
        let said = match &stored {
            Some(row) if self.is_boot_of(row) => row.offset_at(self.monotonic),
            Some(row) => row.offset_after_boot(self),
            None => 0,
        };
        let offset = said.max(self.wall).max(reached);
        match stored {
            Some(row) if self.is_boot_of(&row) && row.holds(self, offset) => {
                Agreed { row, offset, is_new: false }
            }
            _ => {
                let is_ahead = offset > self.wall.saturating_add(StoreClock::TOLERANCE);
                let target = if is_ahead { self.wall } else { offset };
                let row = ClockRow { boot: self.boot.into(), offset, written: self.monotonic, target };
                Agreed { row, offset, is_new: true }
            }
        }
    }
}
