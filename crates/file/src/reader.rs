//! The executor of read jobs, on a connection of its own beside the writer's.

use std::time::Duration;

use rusqlite::Connection;
use tollgate_store::usage::UsageRetention;

use crate::clock::FileClock;
use crate::commit_queue::{Executor, FollowUp};
use crate::error::{TxnError, store_error};
use crate::identity::Identity;
use crate::job::Job;
use crate::limits::FileLimitsCache;
use crate::sweep::SweepState;
use crate::txn::WriteTxn;

/// Runs read jobs, each on a snapshot of the file.
pub(crate) struct ReadExecutor {
    connection: Connection,
    identity: Identity,
    clock: FileClock,
    timeout: Duration,
    known: FileLimitsCache,
    usage_retention: UsageRetention,
}

impl ReadExecutor {
    pub(crate) fn new(
        connection: Connection,
        identity: Identity,
        clock: FileClock,
        timeout: Duration,
        usage_retention: UsageRetention,
    ) -> ReadExecutor {
        ReadExecutor {
            connection,
            identity,
            clock,
            timeout,
            known: FileLimitsCache::default(),
            usage_retention,
        }
    }

    /// Runs one job on a snapshot of the file.
    fn read(&mut self, job: &mut Job) -> Result<(), TxnError> {
        self.identity.check()?;
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        self.connection.prepare_cached("BEGIN")?.execute([])?;
        // If the clock's row cannot be read, the clock goes on by the row that it knows.
        let _ = self.clock.sync(&self.connection);
        let ReadExecutor { connection, clock, known, usage_retention, .. } = self;
        // A job that reads makes nothing that would have to be swept.
        let mut sweep = SweepState::default();
        let read = job.run(&mut WriteTxn::new(connection, clock, known, &mut sweep, usage_retention));
        let ended = self.connection.prepare_cached("COMMIT")?.execute([]);
        read.and(ended.map(drop))
    }
}

impl Executor for ReadExecutor {
    fn batch_max(&self) -> usize {
        100
    }

    fn run(&mut self, jobs: Vec<Job>, follow_up: &mut FollowUp) {
        for mut job in jobs.into_iter().filter(Job::begin) {
            let committed = self.read(&mut job).map_err(|fault| store_error(&fault, self.timeout));
            job.finish(committed.as_ref().copied(), follow_up);
        }
    }

    fn into_connection(self: Box<Self>) -> Connection {
        self.connection
    }
}
