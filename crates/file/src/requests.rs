//! The kinds of work that a file does.

use std::sync::Arc;
use std::task::{Wake, Waker};

use tollgate_core::Tick;
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::{Key, Mutex, OpId, OutcomeCallback, OwnedTransaction, StoreError, TxnOutcome};

use crate::commit_queue::{DetachedCount, FollowUp, Job};
use crate::dedup;
use crate::error::{Abort, TxnError};
use crate::reader::ReadExecutor;
use crate::request::Request;
use crate::scope::{self, OwnedScope};
use crate::txn::{ReadView, WriteTxn};
use crate::writer::WriteExecutor;

/// How often a detached call is tried before it is given up. With the backoff in between that takes minutes, and then
/// it is no passing trouble.
const TRIES_MAX: u32 = 1_000;

/// Applying a call.
pub(crate) struct Apply {
    call: OwnedTransaction,
    writes: Vec<Write>,
    /// A call that this one undoes, so that it may be made again.
    undoes: Option<OpId>,
    is_repeat: bool,
}

impl Apply {
    pub(crate) fn new(call: OwnedTransaction, writes: Vec<Write>) -> Apply {
        Apply { call, writes, undoes: None, is_repeat: false }
    }

    fn apply(&mut self, batch: &mut WriteTxn<'_>) -> Result<TxnOutcome, Abort> {
        if let Some(id) = self.undoes {
            dedup::forget(batch.connection, id.0.to_be_bytes())?;
        }
        let applied = self.call.with(|call| batch.apply(call, &self.writes))?;
        self.is_repeat = applied.is_repeat;
        Ok(applied.outcome)
    }
}

impl Request<WriteExecutor> for Apply {
    type Answer = Result<TxnOutcome, RecordsError>;

    fn run(&mut self, batch: &mut WriteTxn<'_>) -> Result<Option<Self::Answer>, TxnError> {
        Abort::answer(self.apply(batch)).map(Some)
    }

    fn is_owed(&self) -> bool {
        self.call.with(|call| call.steps.iter().all(|step| step.takes().is_none()))
    }

    fn failed(why: StoreError) -> Self::Answer {
        Err(why.into())
    }

    fn undo(
        self,
        answer: Self::Answer,
        since: Tick,
        unheard: DetachedCount,
    ) -> Option<Box<dyn Job<WriteExecutor>>> {
        let Ok(TxnOutcome::Done(done)) = answer else { return None };
        // What was applied before belongs to the caller that got that outcome.
        if self.is_repeat {
            return None;
        }
        let undoes = self.call.id;
        let call = self.call.undo(&done)?;
        let undo = Apply { call, writes: Vec::new(), undoes, is_repeat: false };
        Some(Box::new(DetachedApply::new(undo, since, unheard)))
    }
}

/// A detached call. If it fails for want of space or because other processes write, it is retried.
pub(crate) struct DetachedApply {
    apply: Apply,
    since: Tick,
    tries: u32,
    /// Until it has failed: a caller that reads after that need not wait to see it.
    unheard: Option<DetachedCount>,
    /// What is called with its outcome, and that outcome.
    told: Option<OutcomeCallback>,
    applied: Option<TxnOutcome>,
}

impl DetachedApply {
    pub(crate) fn new(apply: Apply, since: Tick, unheard: DetachedCount) -> DetachedApply {
        DetachedApply { apply, since, tries: 0, unheard: Some(unheard), told: None, applied: None }
    }

    /// Adds a callback: `told` is called with the outcome.
    pub(crate) fn telling(self, told: OutcomeCallback) -> DetachedApply {
        DetachedApply { told: Some(told), ..self }
    }
}

/// Runs the callback when the executor is free: like a waker, it may do anything.
struct IdleCallback(Mutex<Option<(OutcomeCallback, TxnOutcome)>>);

impl Wake for IdleCallback {
    fn wake(self: Arc<Self>) {
        let telling = self.0.lock().take();
        if let Some((told, applied)) = telling {
            told(&applied);
        }
    }
}

impl Job<WriteExecutor> for DetachedApply {
    fn since(&self) -> Tick {
        self.since
    }

    fn try_again(&mut self, now: Tick) {
        self.since = now;
    }

    fn begin(&mut self) -> bool {
        true
    }

    fn run(&mut self, batch: &mut WriteTxn<'_>) -> Result<(), TxnError> {
        // No caller is left to get an error.
        self.applied = Request::run(&mut self.apply, batch)?.and_then(Result::ok);
        Ok(())
    }

    fn finish(mut self: Box<Self>, outcome: Result<(), &StoreError>, after: &mut FollowUp<WriteExecutor>) {
        self.tries += 1;
        self.unheard = None;
        match outcome {
            Ok(()) => {
                let telling = self.told.take().zip(self.applied.take());
                let telling = telling.map(|telling| Arc::new(IdleCallback(Mutex::new(Some(telling)))));
                after.wakers.extend(telling.map(Waker::from));
            }
            Err(StoreError::Unavailable(..)) if self.tries < TRIES_MAX => after.failed.push(self),
            Err(_) => {}
        }
    }
}

/// Work that reads: of the executor that reads, or of the one that writes if that has something to write first.
pub(crate) struct ReadRequest<F>(pub(crate) F);

impl<T, F> Request<ReadExecutor> for ReadRequest<F>
where
    T: Send + 'static,
    F: FnMut(&mut ReadView<'_>) -> Result<T, Abort> + Send + 'static,
{
    type Answer = Result<T, RecordsError>;

    fn run(&mut self, view: &mut ReadView<'_>) -> Result<Option<Self::Answer>, TxnError> {
        Abort::answer((self.0)(view)).map(Some)
    }

    fn failed(why: StoreError) -> Self::Answer {
        Err(why.into())
    }
}

impl<T, F> Request<WriteExecutor> for ReadRequest<F>
where
    T: Send + 'static,
    F: FnMut(&mut ReadView<'_>) -> Result<T, Abort> + Send + 'static,
{
    type Answer = Result<T, RecordsError>;

    fn run(&mut self, batch: &mut WriteTxn<'_>) -> Result<Option<Self::Answer>, TxnError> {
        Abort::answer((self.0)(&mut batch.view()?)).map(Some)
    }

    fn failed(why: StoreError) -> Self::Answer {
        Err(why.into())
    }
}

/// Other work that writes.
pub(crate) struct WriteRequest<F>(pub(crate) F);

impl<T, F> Request<WriteExecutor> for WriteRequest<F>
where
    T: Send + 'static,
    F: FnMut(&mut WriteTxn<'_>) -> Result<T, Abort> + Send + 'static,
{
    type Answer = Result<T, RecordsError>;

    fn run(&mut self, batch: &mut WriteTxn<'_>) -> Result<Option<Self::Answer>, TxnError> {
        Abort::answer((self.0)(batch)).map(Some)
    }

    fn failed(why: StoreError) -> Self::Answer {
        Err(why.into())
    }
}

/// Writing down the usage of a scope, some buckets at a time.
pub(crate) struct WriteUsage {
    pub(crate) namespace: String,
    pub(crate) scope: OwnedScope,
    /// Up to where it is done, and where it will be once the transaction holds.
    pub(crate) done: Option<Key>,
    pub(crate) next: Option<Key>,
}

impl Request<WriteExecutor> for WriteUsage {
    type Answer = Result<(), RecordsError>;

    fn run(&mut self, batch: &mut WriteTxn<'_>) -> Result<Option<Self::Answer>, TxnError> {
        let written = scope::write_usage(batch, &self.namespace, &self.scope, self.done.as_ref());
        self.next = match Abort::answer(written)? {
            Ok(next) => next,
            Err(error) => return Ok(Some(Err(error))),
        };
        Ok(self.next.is_none().then_some(Ok(())))
    }

    fn go_on(&mut self) {
        self.done = self.next.take();
    }

    fn failed(why: StoreError) -> Self::Answer {
        Err(why.into())
    }
}
