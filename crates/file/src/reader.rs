//! The executor that reads, beside threads and processes that write.

use std::time::Duration;

use rusqlite::Connection;
use tollgate_store::usage::UsageRetention;

use crate::clock::FileClock;
use crate::commit_queue::{Executor, FollowUp, Job};
use crate::error::{TxnError, store_error};
use crate::identity::Identity;
use crate::limits::FileLimitsCache;
use crate::txn::ReadView;

/// The executor that reads.
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
    fn read(&mut self, errand: &mut dyn Job<ReadExecutor>) -> Result<(), TxnError> {
        self.identity.check()?;
        if !self.connection.is_autocommit() {
            self.connection.execute_batch("ROLLBACK")?;
        }
        self.connection.prepare_cached("BEGIN")?.execute([])?;
        // If the clock's row cannot be read, the clock goes on by what is known.
        let _ = self.clock.sync(&self.connection);
        let (connection, clock, known) = (&self.connection, &mut self.clock, &mut self.known);
        let usage_retention = &self.usage_retention;
        let read = errand.run(&mut ReadView { connection, clock, known, usage_retention });
        let ended = self.connection.prepare_cached("COMMIT")?.execute([]);
        read.and(ended.map(drop))
    }
}

impl Executor for ReadExecutor {
    const TOGETHER_MAX: usize = 100;

    type Tools<'a> = ReadView<'a>;

    fn into_connection(self) -> Connection {
        self.connection
    }

    fn serve(&mut self, errands: Vec<Box<dyn Job<ReadExecutor>>>, after: &mut FollowUp<ReadExecutor>) {
        for mut errand in errands {
            if !errand.begin() {
                continue;
            }
            let outcome = self.read(&mut *errand).map_err(|fault| store_error(&fault, self.timeout));
            errand.finish(outcome.as_ref().copied(), after);
        }
    }
}
