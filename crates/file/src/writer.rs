//! The engine that writes: all errands in one transaction, decided one after the other, answered when it holds.

use std::time::Duration;

use rusqlite::Connection;
use tollgate_core::{Span, Tick};
use tollgate_store::{Clock, StoreError};

use crate::batch::Batch;
use crate::desk::{After, Engine, Errand};
use crate::error::{Fault, Stop, is_busy, store_error};
use crate::limits::KnownLimits;
use crate::pause::pause;
use crate::sweep::Sweep;

/// How long to wait before looking again whether another process still writes. SQLite itself waits up to a hundred
/// times as long, and would hardly ever come in between the commits of a busy neighbour.
const LOOK_AGAIN: Duration = Duration::from_micros(250);

/// How long the file may be written to without a break. A neighbour cannot queue for it, only look again and again, so
/// it is left a gap that it can find.
const TURN: Span = Span::from_millis(20);

/// The engine that writes.
pub(crate) struct Writer {
    connection: Connection,
    clock: Clock,
    timeout: Duration,
    known: KnownLimits,
    sweep: Sweep,
    turn: Turn,
}

/// How long this process has been writing without a break. By the time of the system, whatever the store's clock.
struct Turn {
    clock: Clock,
    since: Tick,
    until: Tick,
}

impl Writer {
    pub(crate) fn new(connection: Connection, clock: Clock, timeout: Duration) -> Result<Writer, Fault> {
        // It looks for itself when the file is free.
        connection.busy_timeout(Duration::ZERO)?;
        let turn = Turn { clock: Clock::system(), since: Tick::ZERO, until: Tick::ZERO };
        let (known, sweep) = (KnownLimits::default(), Sweep::default());
        Ok(Writer { connection, clock, timeout, known, sweep, turn })
    }

    /// Begins a transaction that writes, once no other process has one.
    fn begin(&mut self) -> Result<(), Fault> {
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        self.turn.begin();
        let mut begin = self.connection.prepare_cached("BEGIN IMMEDIATE")?;
        let mut until = None;
        loop {
            match begin.execute([]) {
                Err(fault) if is_busy(&fault) => {
                    let now = self.turn.clock.now();
                    if now >= *until.get_or_insert(now + Span::covering(self.timeout)) {
                        return Err(fault);
                    }
                    pause(LOOK_AGAIN);
                }
                begun => return begun.map(drop),
            }
        }
    }

    /// Runs all errands in one transaction, and answers which buckets have more room now.
    fn commit(
        &mut self,
        errands: &mut [Box<dyn Errand<Writer>>],
    ) -> Result<Vec<crate::batch::Address>, Fault> {
        self.begin()?;
        let mut batch = Batch::new(&self.connection, &self.clock, &mut self.known, &mut self.sweep);
        for errand in errands {
            errand.run(&mut batch)?;
        }
        batch.flush()?;
        let pokes = std::mem::take(&mut batch.pokes);
        match self.sweep.run(&self.connection, &mut self.known, self.clock.now()) {
            Err(Stop::Fault(fault)) => return Err(fault),
            // What cannot be swept is left for whoever asks for it.
            Ok(()) | Err(Stop::Answer(_)) => {}
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(pokes)
    }

    fn roll_back(&mut self) {
        // What was learnt about limits may not be so any more.
        self.known.clear();
        self.sweep = Sweep::default();
        if !self.connection.is_autocommit() {
            // If even that fails, the next transaction tries again before it begins.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

impl Turn {
    /// Leaves others a gap, if there was none for long.
    fn begin(&mut self) {
        let now = self.clock.now();
        if now.since(self.until) > Span::covering(LOOK_AGAIN) {
            self.since = now;
        } else if now.since(self.since) > TURN {
            pause(LOOK_AGAIN * 2);
            self.since = self.clock.now();
        }
    }

    fn end(&mut self) {
        self.until = self.clock.now();
    }
}

impl Engine for Writer {
    const TOGETHER_MAX: usize = 1_000;

    type Tools<'a> = Batch<'a>;

    fn serve(&mut self, mut errands: Vec<Box<dyn Errand<Writer>>>, after: &mut After<Writer>) {
        errands.retain_mut(|errand| errand.begin());
        if errands.is_empty() {
            return;
        }
        let committed = self.commit(&mut errands);
        if committed.is_err() {
            self.roll_back();
        }
        self.turn.end();
        let outcome: Result<(), StoreError> = match committed {
            Ok(pokes) => {
                after.pokes = pokes;
                Ok(())
            }
            Err(fault) => Err(store_error(&fault, self.timeout)),
        };
        errands.into_iter().for_each(|errand| errand.finish(outcome.as_ref().copied(), after));
    }
}
