//! Jobs of a commit queue: the work in a transaction, and the caller that gets the answer.

use std::sync::Arc;
use std::task::Waker;

use tollgate_core::Tick;
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::txn::Applied;
use tollgate_store::{OpId, OutcomeCallback, OwnedTransaction, StoreError, TxnOutcome};

use crate::commit_queue::{DetachedCount, FollowUp};
use crate::dedup;
use crate::error::{Abort, TxnError};
use crate::reply_slot::ReplySlot;
use crate::txn::WriteTxn;

/// How often a detached job is tried before it is given up. With the backoff in between that takes minutes, and then
/// the fault will not go away by itself.
const TRIES_MAX: u32 = 1_000;

/// How a job ended; with the outcome if it applied a transaction on buckets.
pub(crate) type JobAnswer = Result<Option<Applied>, RecordsError>;

type RunFn = Box<dyn FnMut(&mut WriteTxn<'_>) -> Result<(), Abort> + Send>;

/// What a job does. If its transaction fails, it may be run again.
pub(crate) enum Work {
    /// A function that keeps its result itself. On the connection that reads it may only read.
    Run(RunFn),
    /// A transaction on buckets.
    Apply(ApplyJob),
}

/// A transaction on buckets, and the writes that go with it.
pub(crate) struct ApplyJob {
    call: OwnedTransaction,
    writes: Vec<Write>,
    /// A transaction that this one undoes, so that it may be applied again.
    undoes: Option<OpId>,
}

impl ApplyJob {
    pub(crate) fn new(call: OwnedTransaction, writes: Vec<Write>) -> ApplyJob {
        ApplyJob { call, writes, undoes: None }
    }

    fn run(&self, txn: &mut WriteTxn<'_>) -> Result<Applied, Abort> {
        if let Some(id) = self.undoes {
            dedup::forget(txn.connection, id.0.to_be_bytes())?;
        }
        self.call.with(|call| txn.apply(call, &self.writes))
    }
}

impl Work {
    fn run(&mut self, txn: &mut WriteTxn<'_>) -> Result<JobAnswer, TxnError> {
        Abort::answer(match self {
            Work::Run(run) => run(txn).map(|()| None),
            Work::Apply(apply) => apply.run(txn).map(Some),
        })
    }

    /// Returns whether the job is done even if the caller drops the reply: it ends a lease, for example.
    pub(crate) fn is_owed(&self) -> bool {
        match self {
            Work::Run(_) => false,
            Work::Apply(apply) => apply.call.steps().all(|step| step.takes().is_none()),
        }
    }

    /// Returns what undoes the work, for a caller that dropped the reply. An outcome of an earlier transaction with the
    /// same id belongs to the caller that got it then.
    pub(crate) fn undo(self, answer: JobAnswer) -> Option<Work> {
        let Ok(Some(Applied { outcome: TxnOutcome::Done(done), is_repeat: false })) = answer else {
            return None;
        };
        let Work::Apply(ApplyJob { call, .. }) = self else { return None };
        let undoes = call.id;
        let call = call.undo(&done)?;
        Some(Work::Apply(ApplyJob { call, writes: Vec::new(), undoes }))
    }
}

/// One job.
pub(crate) struct Job {
    /// When it was queued, by the time of the system.
    pub(crate) since: Tick,
    /// Until it is answered.
    work: Option<Work>,
    /// The answer if the transaction commits.
    answer: Option<JobAnswer>,
    owner: JobOwner,
}

enum JobOwner {
    /// A caller waits for the answer.
    Caller(Arc<ReplySlot>),
    /// No caller waits.
    Detached {
        tries: u32,
        /// Until it has failed: a caller that reads after that need not wait to see it.
        count: Option<DetachedCount>,
        callback: Option<OutcomeCallback>,
    },
}

impl Job {
    /// Makes a job that a caller waits for.
    pub(crate) fn new(work: Work, since: Tick, slot: Arc<ReplySlot>) -> Job {
        Job { since, work: Some(work), answer: None, owner: JobOwner::Caller(slot) }
    }

    /// Makes a detached job. If it fails for want of space or because other processes write, it is retried.
    pub(crate) fn detached(
        work: Work,
        since: Tick,
        count: DetachedCount,
        callback: Option<OutcomeCallback>,
    ) -> Job {
        let owner = JobOwner::Detached { tries: 0, count: Some(count), callback };
        Job { since, work: Some(work), answer: None, owner }
    }

    /// Returns whether it is still wanted. From then on it cannot be cancelled any more, only be undone.
    pub(crate) fn begin(&self) -> bool {
        match &self.owner {
            JobOwner::Caller(slot) => slot.begin(),
            JobOwner::Detached { .. } => true,
        }
    }

    /// Does the work.
    pub(crate) fn run(&mut self, txn: &mut WriteTxn<'_>) -> Result<(), TxnError> {
        if let Some(work) = &mut self.work {
            self.answer = Some(work.run(txn)?);
        }
        Ok(())
    }

    /// Lets a detached job that failed be tried again from `now` on.
    pub(crate) fn retry_from(&mut self, now: Tick) {
        self.since = now;
    }

    /// Answers the caller, once the transaction is committed or has failed.
    pub(crate) fn finish(mut self, committed: Result<(), &StoreError>, follow_up: &mut FollowUp) {
        if let Err(why) = committed {
            self.answer = Some(Err(why.clone().into()));
        }
        let JobOwner::Detached { tries, count, callback } = &mut self.owner else {
            return self.answer_caller(follow_up);
        };
        *tries += 1;
        *count = None;
        let is_retried = *tries < TRIES_MAX && matches!(committed, Err(StoreError::Unavailable(..)));
        if is_retried {
            return follow_up.failed.push(self);
        }
        // No caller is left to get an error.
        if let (Some(callback), Some(Ok(Some(applied)))) = (callback.take(), self.answer.take()) {
            follow_up.callbacks.push((callback, applied.outcome));
        }
    }

    fn answer_caller(&mut self, follow_up: &mut FollowUp) {
        if let (JobOwner::Caller(slot), Some(work)) = (&self.owner, self.work.take()) {
            let answer = self.answer.take().unwrap_or_else(|| Err(panicked()));
            if let Some((undo, count)) = slot.answer(answer, work, &mut follow_up.wakers) {
                follow_up.first.push(Job::detached(undo, self.since, count, None));
            }
        }
    }
}

fn panicked() -> RecordsError {
    StoreError::Refused("a call made the store panic, which is a bug of the store".into()).into()
}

/// Answers with an error: a job that was begun and not finished is one whose executor panicked. So no caller waits for
/// ever.
impl Drop for Job {
    fn drop(&mut self) {
        self.answer = None;
        let mut follow_up = FollowUp::default();
        self.answer_caller(&mut follow_up);
        follow_up.wakers.into_iter().for_each(Waker::wake);
    }
}
