//! The writer of a journal: stores outcomes in groups.

use std::collections::VecDeque;
use std::fs::File;
use std::future::Future;
use std::io::{self, Seek, SeekFrom, Write};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::JoinHandle;

use super::{Finished, GROUP_BYTES_MAX, GROUP_MAX, Journal, LINE_BYTES_MAX, SeenBefore};
use crate::{FailureClass, ItemError, Outcome, StopReason};

type Encode<O> = fn(&Outcome<O>) -> Result<Option<Vec<u8>>, serde_json::Error>;

/// A group that is being synced; its task returns the file.
type Sync = JoinHandle<(File, io::Result<()>)>;

/// Takes outcomes, and returns them when they are on disk.
pub(crate) struct GroupWriter<O> {
    file: Option<File>,
    len: u64,
    finished: Finished,
    encode: Encode<O>,
    waiting: VecDeque<(Vec<u8>, Outcome<O>)>,
    syncing: Option<(Sync, Vec<Outcome<O>>, u64)>,
    /// The bytes of lines that are not on disk yet.
    pending_bytes: usize,
    broken: Option<Arc<str>>,
}

impl<O> GroupWriter<O> {
    pub(crate) fn new(journal: Journal, encode: Encode<O>) -> GroupWriter<O> {
        let Journal { file, len, finished, .. } = journal;
        let file = Some(file);
        GroupWriter {
            file,
            len,
            finished,
            encode,
            waiting: VecDeque::new(),
            syncing: None,
            pending_bytes: 0,
            broken: None,
        }
    }

    /// Returns what is known of an item of the input, and remembers that the input has it.
    pub(crate) fn check(&mut self, id: &str, fingerprint: Option<u64>) -> SeenBefore {
        self.finished.check(id, fingerprint)
    }

    /// Returns how many outcomes are not on disk yet.
    pub(crate) fn pending(&self) -> usize {
        self.waiting.len() + self.syncing.as_ref().map_or(0, |(_, group, _)| group.len())
    }

    /// Returns how many bytes of lines are not on disk yet.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.pending_bytes
    }

    /// Returns why the journal cannot be written any more, if so.
    pub(crate) fn broken(&self) -> Option<&Arc<str>> {
        self.broken.as_ref()
    }

    /// Returns the outcome with its line, or without one if it is not to be stored. An output that
    /// cannot be stored makes the item fail: it was called, and calling it again would not help.
    pub(crate) fn encode(&self, outcome: Outcome<O>) -> (Outcome<O>, Option<Vec<u8>>) {
        let reason = match (self.encode)(&outcome) {
            Ok(Some(line)) if line.len() > LINE_BYTES_MAX => {
                format!("the result has {} bytes, and at most {LINE_BYTES_MAX} can be stored", line.len())
            }
            Ok(line) => return (outcome, line),
            Err(cause) => format!("the result cannot be stored as JSON: {cause}"),
        };
        if outcome.rejected.is_some() {
            // The reply to a failed item is less important than the reason of the failure.
            return self.encode(Outcome { rejected: None, ..outcome });
        }
        let failed = ItemError::Item { class: FailureClass::Invalid, reason };
        let outcome = Outcome { result: Err(failed), ..outcome };
        let line = (self.encode)(&outcome).unwrap_or_default();
        (outcome, line)
    }

    /// Takes an outcome and its line. An outcome that is not stored is returned at once.
    pub(crate) fn push(&mut self, outcome: Outcome<O>, line: Option<Vec<u8>>) -> Option<Outcome<O>> {
        match (line, &self.broken) {
            (None, _) => Some(outcome),
            (Some(_), Some(cause)) => Some(unwritten(outcome, cause)),
            (Some(line), None) => {
                self.pending_bytes += line.len();
                self.waiting.push_back((line, outcome));
                None
            }
        }
    }

    /// Writes queued lines, and appends the outcomes that are on disk to `written`. It must be
    /// called within a tokio runtime.
    pub(crate) fn poll(&mut self, context: &mut Context<'_>, written: &mut Vec<Outcome<O>>) {
        loop {
            if self.syncing.is_none() {
                self.begin();
            }
            let Some((sync, ..)) = &mut self.syncing else { return };
            let Poll::Ready(result) = Pin::new(sync).poll(context) else { return };
            let Some((_, group, bytes)) = self.syncing.take() else { return };
            let result = match result {
                Ok((file, result)) => {
                    self.file = Some(file);
                    result
                }
                Err(lost) => Err(io::Error::other(lost)),
            };
            match result {
                Ok(()) => {
                    self.len += bytes;
                    self.pending_bytes = self.pending_bytes.saturating_sub(bytes as usize);
                    written.extend(group);
                }
                Err(cause) => self.give_up(group, &cause, written),
            }
        }
    }

    fn begin(&mut self) {
        if self.waiting.is_empty() {
            return;
        }
        let Some(file) = self.file.take() else { return };
        let (mut bytes, mut group) = (Vec::new(), Vec::new());
        while let Some((line, _)) = self.waiting.front() {
            let full = group.len() >= GROUP_MAX || bytes.len() + line.len() > GROUP_BYTES_MAX;
            if full && !group.is_empty() {
                break;
            }
            if let Some((line, outcome)) = self.waiting.pop_front() {
                bytes.extend_from_slice(&line);
                group.push(outcome);
            }
        }
        let (len, start) = (bytes.len() as u64, self.len);
        let sync = tokio::task::spawn_blocking(move || append(file, start, &bytes));
        self.syncing = Some((sync, group, len));
    }

    fn give_up(&mut self, group: Vec<Outcome<O>>, cause: &io::Error, written: &mut Vec<Outcome<O>>) {
        let cause: Arc<str> = cause.to_string().into();
        let waiting = self.waiting.drain(..).map(|(_, outcome)| outcome);
        written.extend(group.into_iter().chain(waiting).map(|outcome| unwritten(outcome, &cause)));
        self.pending_bytes = 0;
        self.broken = Some(cause);
    }
}

/// Appends a group. If that fails, the part that was written is removed again.
fn append(mut file: File, start: u64, bytes: &[u8]) -> (File, io::Result<()>) {
    let result = file.write_all(bytes).and_then(|()| file.sync_data());
    if result.is_err() {
        // If that fails, too, a torn tail is left, or whole lines, whose items a later run does not
        // call.
        let _ = file.set_len(start).and_then(|()| file.seek(SeekFrom::Start(start)));
    }
    (file, result)
}

fn unwritten<O>(outcome: Outcome<O>, cause: &Arc<str>) -> Outcome<O> {
    let result = Err(ItemError::Unfinished(StopReason::Journal(Arc::clone(cause))));
    Outcome { result, rejected: None, ..outcome }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, CallReply, Item, ItemAttempt};
    use tollgate_provider::Hint;

    #[tokio::test]
    async fn a_file_that_cannot_be_written_ends_the_batch_and_no_unwritten_item_is_reported_as_done() {
        let path = std::env::temp_dir().join(format!("tollgate-journal-unwritable-{}", std::process::id()));
        File::create(&path).expect("a file");
        // Opened for reading only, it refuses every write.
        let file = File::open(&path).expect("a file");
        let journal = Journal { file, len: 0, finished: Finished::default() };
        let items = (0..100_u64).map(|at| Item::new(at.to_string(), at));
        let run = Batch::new()
            .workers(2)
            .buffer(0)
            .resume(journal, items, |_: ItemAttempt<u64>| async { CallReply::done(0_u64, Hint::ok()) });
        let (outcomes, summary) = run.collect().await.expect("the batch ends by itself");
        let _ = std::fs::remove_file(&path);
        assert!(matches!(summary.stopped, Some(StopReason::Journal(_))));
        assert!(outcomes.iter().all(|outcome| matches!(outcome.result, Err(ItemError::Unfinished(_)))));
        assert_eq!(summary.progress.accepted, outcomes.len() as u64);
    }
}
