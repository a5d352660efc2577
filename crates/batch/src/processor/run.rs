//! A running batch, and the handle that stops it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use tokio::task::JoinSet;

use super::outbox::Outbox;
use crate::Outcome;
use crate::status::ScopeStatus;
use crate::summary::{BatchProgress, Summary};

/// A running batch: a stream of outcomes. Dropping it ends the batch and all calls in flight.
///
/// ```
/// use tollgate_batch::{Batch, CallReply, Item, ItemAttempt};
/// use tollgate_provider::Hint;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let items = (0..3_u64).map(|number| Item::new(number.to_string(), number));
/// let mut run = Batch::new().run(items, |call: ItemAttempt<u64>| async move {
///     CallReply::done(*call.payload(), Hint::ok())
/// });
/// while let Some(outcome) = run.next().await {
///     println!("{}: {:?}", outcome.id, outcome.result);
/// }
/// assert_eq!(run.finish().await.unwrap().progress.done, 3);
/// # });
/// ```
pub struct Run<O> {
    outbox: Arc<Outbox<O>>,
    /// The one task of the batch, which ends when this is dropped.
    task: JoinSet<Summary>,
}

/// A handle that stops a batch from another task, such as a signal handler.
///
/// ```
/// use tollgate_batch::{Batch, CallReply, Item, ItemAttempt};
/// use tollgate_provider::Hint;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let run = Batch::new().run([Item::new("a", ())], |_: ItemAttempt<()>| async {
///     std::future::pending::<()>().await;
///     CallReply::done((), Hint::ok())
/// });
/// let stopper = run.stopper();
/// let (summary, ()) = tokio::join!(run.finish(), async move { stopper.shut_down() });
/// assert!(summary.unwrap().stopped.is_some());
/// # });
/// ```
pub struct Stopper<O>(Arc<Outbox<O>>);

/// The task of a batch ended before the batch did: an observer panicked, or the runtime is shutting
/// down.
///
/// ```
/// assert!(tollgate_batch::DriverGone.to_string().contains("observer panicked"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task of the batch ended early; an observer panicked, or the runtime was shut down")]
pub struct DriverGone;

impl<O: Send + 'static> Run<O> {
    pub(super) fn new(
        outbox: Arc<Outbox<O>>,
        batch: impl Future<Output = Summary> + Send + 'static,
    ) -> Run<O> {
        let mut task = JoinSet::new();
        task.spawn(batch);
        Run { outbox, task }
    }

    /// Waits for the next outcome; `None` at the end.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses no outcome.
    pub async fn next(&mut self) -> Option<Outcome<O>> {
        poll_fn(|context| self.outbox.poll_pop(context)).await
    }

    /// Returns the progress of the batch.
    pub fn progress(&self) -> BatchProgress {
        self.outbox.progress()
    }

    /// Returns the status of each scope as of the previous call of this method, or of the beginning
    /// of the batch. A caller that polls it is one interval behind, and a batch whose status is not
    /// polled does not compute it.
    pub fn scopes(&self) -> Vec<ScopeStatus> {
        self.outbox.scopes()
    }

    /// Ends the batch: no call starts, calls in flight are aborted, and every accepted item gets
    /// its outcome at once.
    pub fn shut_down(&self) {
        self.outbox.shut_down();
    }

    /// Returns a handle that ends the batch from another task.
    pub fn stopper(&self) -> Stopper<O> {
        Stopper(Arc::clone(&self.outbox))
    }

    /// Waits for the end, and drops the outcomes that were not read.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends the batch.
    ///
    /// # Errors
    ///
    /// [`DriverGone`] if the task of the batch ended before the batch did.
    pub async fn finish(mut self) -> Result<Summary, DriverGone> {
        while self.next().await.is_some() {}
        self.summary().await
    }

    /// Waits for all outcomes, and returns them in the order of the input.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends the batch.
    ///
    /// # Errors
    ///
    /// [`DriverGone`] if the task of the batch ended before the batch did.
    pub async fn collect(mut self) -> Result<(Vec<Outcome<O>>, Summary), DriverGone> {
        let mut outcomes = Vec::new();
        while let Some(outcome) = self.next().await {
            outcomes.push(outcome);
        }
        outcomes.sort_by_key(|outcome| outcome.index);
        Ok((outcomes, self.summary().await?))
    }

    async fn summary(&mut self) -> Result<Summary, DriverGone> {
        match self.task.join_next().await {
            Some(Ok(summary)) => Ok(summary),
            _ => Err(DriverGone),
        }
    }
}

impl<O> Stopper<O> {
    /// Ends the batch, like [`Run::shut_down`].
    pub fn shut_down(&self) {
        self.0.shut_down();
    }
}

impl<O> Clone for Stopper<O> {
    fn clone(&self) -> Stopper<O> {
        Stopper(Arc::clone(&self.0))
    }
}

/// Yields the outcomes, like [`Run::next`].
impl<O: Send + 'static> Stream for Run<O> {
    type Item = Outcome<O>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Outcome<O>>> {
        self.outbox.poll_pop(context)
    }
}

impl<O> std::fmt::Debug for Run<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Run").field("progress", &self.outbox.progress()).finish_non_exhaustive()
    }
}

impl<O> std::fmt::Debug for Stopper<O> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stopper")
    }
}
