//! What is made of the stream of a DynamoDB table.

mod ending;
mod view;

use std::time::Duration;

use anyhow::Result;
use tollgate_dynamo::aggregate::{
    Aggregator, BatchOutcome, FailedRecord, Folder, StreamBatch, StreamReader, StreamRecord, StreamStart,
};

use self::ending::StopSignal;
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

/// How often a batch that fails is tried with `--once`, where the caller waits for the end.
const TRIES_MAX: u32 = 5;

/// Does what the stream asks for, until a signal ends it.
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
    let mut shift = Shift {
        context,
        aggregator,
        reader,
        is_once: args.once,
        ending: StopSignal::listen()?,
        done: BatchOutcome::default(),
        progress: context.progress(),
    };
    shift.work()?;
    let exit = if shift.done.failed.is_empty() { Exit::OK } else { Exit::FAILURE };
    drop(shift.progress);
    Ok(Output::new(Aggregated::from(shift.done)).with_exit(exit))
}

/// One run of the command.
struct Shift<'a> {
    context: &'a Context,
    aggregator: Aggregator,
    reader: StreamReader,
    is_once: bool,
    ending: StopSignal,
    done: BatchOutcome,
    progress: ProgressLine,
}

impl Shift<'_> {
    fn work(&mut self) -> Result<()> {
        while !self.ending.is_told() {
            match self.reader.next_batch().wait() {
                Ok(Some(batch)) => {
                    if !self.do_batch(&batch)? {
                        return Ok(());
                    }
                }
                Ok(None) if self.is_once => return Ok(()),
                Ok(None) => self.ending.pause(IDLE),
                Err(error) if self.is_once => return Err(error.into()),
                Err(error) => {
                    self.context.note(format_args!("{error}; trying again"));
                    self.ending.pause(REST[1]);
                }
            }
        }
        Ok(())
    }

    /// Does what a batch asks for, again and again while some of it fails. `false` if it is given up.
    fn do_batch(&mut self, batch: &StreamBatch) -> Result<bool> {
        let mut left = batch.records.clone();
        let (mut rest, mut tries) = (REST[0], 0);
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
            if self.ending.is_told() || self.is_once && tries >= TRIES_MAX {
                self.done.failed.extend(failed);
                return Ok(false);
            }
            if let Some(FailedRecord { why, .. }) = failed.first() {
                self.context.note(format_args!("{} records fail, and are tried again: {why}", failed.len()));
            }
            left.retain(|record| is_among(&failed, record));
            self.ending.pause(rest);
            rest = (rest * 2).min(REST[1]);
        }
    }

    fn show(&mut self) {
        let shards = self.reader.progress();
        let BatchOutcome { records, written, archived, .. } = &self.done;
        self.progress.show(format_args!(
            "{} records of {} open shards: {} buckets written down, {} events archived",
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
