//! The executor of write jobs: all queued jobs run in one transaction and are answered after the commit.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::time::Duration;

use rusqlite::Connection;
use tollgate_core::{Span, Tick};
use tollgate_store::usage::UsageRetention;
use tollgate_store::{Clock, Freed};

use crate::clock::FileClock;
use crate::commit_queue::{Executor, FollowUp};
use crate::error::{Abort, TxnError, affects_all, is_busy, store_error};
use crate::identity::Identity;
use crate::job::Job;
use crate::limits::FileLimitsCache;
use crate::log::WriteAheadLog;
use crate::pause::pause;
use crate::sweep::SweepState;
use crate::txn::WriteTxn;

/// How long the writer sleeps between attempts to begin while another process writes; at first, and from then on.
/// SQLite itself sleeps up to a hundred times as long, and would hardly ever begin between the commits of a busy
/// process.
const LOOK_SOON: Duration = Duration::from_micros(30);
const LOOK_AGAIN: Duration = Duration::from_micros(250);

/// How long a process may write without a break. Other processes cannot queue for the file, only poll, so they need a
/// gap that they can find.
const TURN: Span = Span::from_millis(20);

/// Runs write jobs on one connection.
pub(crate) struct WriteExecutor {
    connection: Connection,
    identity: Identity,
    log: WriteAheadLog,
    clock: FileClock,
    timeout: Duration,
    known: FileLimitsCache,
    sweep: SweepState,
    usage_retention: UsageRetention,
    streak: WriteStreak,
}

/// How long this process has been writing without a break. By the time of the system, whatever the store's clock.
struct WriteStreak {
    clock: Clock,
    since: Tick,
    until: Tick,
    /// Whether the path was checked in this streak. The check takes a tenth of the time of a transaction.
    is_named: bool,
}

impl WriteExecutor {
    pub(crate) fn new(
        mut connection: Connection,
        identity: Identity,
        clock: FileClock,
        timeout: Duration,
        usage_retention: UsageRetention,
    ) -> Result<WriteExecutor, TxnError> {
        // `begin` polls by itself until the file is free.
        connection.busy_timeout(Duration::ZERO)?;
        let log = WriteAheadLog::of(&mut connection)?;
        let streak = WriteStreak::new();
        let (known, sweep) = (FileLimitsCache::default(), SweepState::default());
        Ok(WriteExecutor { connection, identity, log, clock, timeout, known, sweep, usage_retention, streak })
    }

    /// Begins a transaction that writes, once no other process has one; gives up at `until`, and if the file is not the
    /// one that its path names.
    fn begin(&mut self, until: Tick) -> Result<(), TxnError> {
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        self.streak.begin();
        let mut begin = self.connection.prepare_cached("BEGIN IMMEDIATE")?;
        let mut wait = LOOK_SOON;
        loop {
            match begin.execute([]) {
                Err(fault) if is_busy(&fault) && self.streak.clock.now() < until => {
                    pause(wait);
                    wait = LOOK_AGAIN;
                    self.streak.is_named = false;
                }
                begun => return begun.and_then(|_| self.streak.check(&self.identity)),
            }
        }
    }

    /// Runs all jobs in one transaction, and returns which buckets have more room now.
    fn commit(&mut self, jobs: &mut [Job]) -> Result<Vec<Freed>, TxnError> {
        let first = jobs.iter().map(|job| job.since).min().unwrap_or_default();
        let until = first + Span::covering(self.timeout);
        self.begin(until)?;
        if self.clock.sync(&self.connection).is_err() {
            // The failure has ended the transaction; it is not retried at once.
            self.begin(until)?;
        }
        let WriteExecutor { connection, clock, known, sweep, usage_retention, .. } = self;
        let mut txn = WriteTxn::new(connection, clock, known, sweep, usage_retention);
        for job in jobs {
            job.run(&mut txn)?;
        }
        txn.flush()?;
        let freed = std::mem::take(&mut txn.freed);
        match sweep.run(connection, known, usage_retention, clock.now()) {
            Err(Abort::Fault(fault)) => return Err(fault),
            // A row that cannot be swept is left for a caller that asks for it.
            Ok(()) | Err(Abort::Answer(_)) => {}
        }
        self.connection.prepare_cached("COMMIT")?.execute([])?;
        Ok(freed)
    }

    /// Runs all jobs in one transaction, or none.
    fn try_commit(&mut self, jobs: &mut [Job], follow_up: &mut FollowUp) -> Result<(), TxnError> {
        let committed = catch_unwind(AssertUnwindSafe(|| self.commit(jobs)));
        if !matches!(committed, Ok(Ok(_))) {
            self.roll_back();
        }
        // Jobs that are dropped answer their callers.
        let freed = committed.unwrap_or_else(|panic| resume_unwind(panic))?;
        follow_up.freed.extend(freed);
        Ok(())
    }

    fn finish(
        &self,
        jobs: impl IntoIterator<Item = Job>,
        committed: Result<(), TxnError>,
        follow_up: &mut FollowUp,
    ) {
        let committed = committed.map_err(|fault| store_error(&fault, self.timeout));
        jobs.into_iter().for_each(|job| job.finish(committed.as_ref().copied(), follow_up));
    }

    fn roll_back(&mut self) {
        // Limits that were cached in the transaction are not in the file.
        self.known.clear();
        self.sweep = SweepState::default();
        self.clock.roll_back();
        if !self.connection.is_autocommit() {
            // If that fails too, the next transaction tries again before it begins.
            let _ = self.connection.execute_batch("ROLLBACK");
        }
    }
}

impl WriteStreak {
    fn new() -> WriteStreak {
        WriteStreak { clock: Clock::system(), since: Tick::ZERO, until: Tick::ZERO, is_named: false }
    }

    /// Begins a transaction of the streak; leaves other processes a gap if the streak has lasted too long.
    fn begin(&mut self) {
        let now = self.clock.now();
        let has_paused = now.since(self.until) > Span::covering(LOOK_AGAIN);
        if !has_paused && now.since(self.since) <= TURN {
            return;
        }
        if !has_paused {
            pause(LOOK_AGAIN * 2);
        }
        (self.since, self.is_named) = (self.clock.now(), false);
    }

    /// Checks once in a streak whether the path still names the file. A file that is replaced meanwhile is noticed in
    /// the next streak: what was taken before is lost with it anyway.
    fn check(&mut self, identity: &Identity) -> Result<(), TxnError> {
        if !self.is_named {
            identity.check()?;
            self.is_named = true;
        }
        Ok(())
    }

    fn end(&mut self) {
        self.until = self.clock.now();
    }
}

impl Executor for WriteExecutor {
    fn batch_max(&self) -> usize {
        1_000
    }

    fn run(&mut self, mut jobs: Vec<Job>, follow_up: &mut FollowUp) {
        jobs.retain(Job::begin);
        if jobs.is_empty() {
            return;
        }
        match self.try_commit(&mut jobs, follow_up) {
            // One of them may be the reason. The others need not fail with it.
            Err(fault) if jobs.len() > 1 && !affects_all(&fault) => {
                for job in jobs {
                    let mut alone = [job];
                    let committed = self.try_commit(&mut alone, follow_up);
                    self.finish(alone, committed, follow_up);
                }
            }
            // Jobs that were queued later than the first go on waiting.
            Err(fault) if is_busy(&fault) => {
                let given_up = self.streak.clock.now() - Span::covering(self.timeout);
                let (over, waiting): (Vec<_>, Vec<_>) =
                    jobs.into_iter().partition(|job| job.since <= given_up);
                follow_up.first.extend(waiting);
                self.finish(over, Err(fault), follow_up);
            }
            committed => self.finish(jobs, committed, follow_up),
        }
        self.log.copy_if_due(&mut self.connection);
        self.streak.end();
    }

    fn into_connection(self: Box<Self>) -> Connection {
        self.connection
    }
}
