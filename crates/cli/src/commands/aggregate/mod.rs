//! `tollgate aggregate`: processes the stream of a DynamoDB table.

mod stop_signal;
mod view;

use std::time::Duration;

use anyhow::Result;
use tollgate_dynamo::aggregate::{
    Aggregator, BatchOutcome, FailedRecord, Folder, StreamBatch, StreamReader, StreamRecord, StreamStart,
};

use self::stop_signal::StopSignal;
use self::view::Aggregated;
use crate::args::AggregateArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{Output, ProgressLine, grouped};
use crate::store::open_dynamodb;

/// How long to wait for more records at the end of the stream.
const IDLE: Duration = Duration::from_secs(1);

/// How long to wait after a failure, at first and at most.
const REST: [Duration; 2] = [Duration::from_millis(200), Duration::from_secs(10)];

/// The maximum number of attempts of a batch with `--once`.
const TRIES_MAX: u32 = 5;

/// Processes the stream until a signal to stop.
pub(super) fn run(context: &Context, args: AggregateArgs) -> Result<Output> {
    let store = open_dynamodb(&context.settings)?;
    let start = match (args.from_start, args.latest) {
        (true, _) => StreamStart::Oldest,
        (_, true) => StreamStart::Latest,
        _ => StreamStart::Checkpoint,
    };
    let mut aggregator = Aggregator::new(store.clone());
    if let Some(folder) = &args.archive {
        aggregator = aggregator.with_archive(Folder::new(folder));
    }
    let reader = StreamReader::open(&store, start).wait()?;
    let mut run = AggregateRun {
        context,
        aggregator,
        reader,
        is_once: args.once,
        stop: StopSignal::listen()?,
        done: BatchOutcome::default(),
        progress: context.progress(),
    };
    run.work()?;
    let exit = if run.done.failed.is_empty() { Exit::OK } else { Exit::FAILURE };
    drop(run.progress);
    Ok(Output::new(Aggregated::from(run.done)).with_exit(exit))
}

/// One run of the command.
struct AggregateRun<'a> {
    context: &'a Context,
    aggregator: Aggregator,
    reader: StreamReader,
    is_once: bool,
    stop: StopSignal,
    done: BatchOutcome,
    progress: ProgressLine,
}

impl AggregateRun<'_> {
    fn work(&mut self) -> Result<()> {
        while !self.stop.is_set() {
            match self.reader.next_batch().wait() {
                Ok(Some(batch)) => {
                    if !self.process(&batch)? {
                        return Ok(());
                    }
                }
                Ok(None) if self.is_once => return Ok(()),
                Ok(None) => self.stop.pause(IDLE),
                Err(error) if self.is_once => return Err(error.into()),
                Err(error) => {
                    self.context.note(format_args!("{error}; retrying"));
                    self.stop.pause(REST[1]);
                }
            }
        }
        Ok(())
    }

    /// Processes a batch, and retries the records that fail. Returns `false` if it gives up.
    fn process(&mut self, batch: &StreamBatch) -> Result<bool> {
        let mut left = batch.records.clone();
        let mut rest = REST[0];
        let mut tries = 0;
        loop {
            let mut outcome = self.aggregator.handle(&left).wait();
            let failed = std::mem::take(&mut outcome.failed);
            outcome.records = left.len() - failed.len();
            self.done.add(outcome);
            self.show();
            if failed.is_empty() {
                self.reader.done(batch).wait()?;
                return Ok(true);
            }
            tries += 1;
            if self.stop.is_set() || self.is_once && tries >= TRIES_MAX {
                self.done.failed.extend(failed);
                return Ok(false);
            }
            if let Some(FailedRecord { why, .. }) = failed.first() {
                self.context.note(format_args!("{} records failed and are retried: {why}", failed.len()));
            }
            left.retain(|record| is_among(&failed, record));
            self.stop.pause(rest);
            rest = (rest * 2).min(REST[1]);
        }
    }

    fn show(&mut self) {
        let shards = self.reader.progress();
        let BatchOutcome { records, written, archived, .. } = &self.done;
        self.progress.show(format_args!(
            "{} records of {} open shards: {} buckets written, {} events archived",
            grouped(records),
            grouped(shards.open),
            grouped(written),
            grouped(archived),
        ));
    }
}

fn is_among(failed: &[FailedRecord], record: &StreamRecord) -> bool {
    failed.iter().any(|failed| failed.sequence == record.sequence)
}
