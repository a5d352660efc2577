//! A batch that runs, and who reads what comes of it.

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

/// A batch that runs: a stream of outcomes. Dropping it ends the batch and all calls under way.
pub struct Run<O> {
    outbox: Arc<Outbox<O>>,
    /// The one task of the batch, which ends with this.
    task: JoinSet<Summary>,
}

/// Asks a batch to end, from anywhere.
pub struct Stopper<O>(Arc<Outbox<O>>);

/// The task of a batch ended before the batch did: an observer panicked, or the runtime is going down.
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

    /// The next outcome; `None` at the end.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it has taken no outcome.
    pub async fn next(&mut self) -> Option<Outcome<O>> {
        poll_fn(|context| self.outbox.poll_pop(context)).await
    }

    /// How the batch stands.
    pub fn progress(&self) -> BatchProgress {
        self.outbox.progress()
    }

    /// How each scope stood when this was last called, or when the batch began. A caller that shows it now and then is one
    /// interval behind, and a batch that no caller asks does no work for it.
    pub fn scopes(&self) -> Vec<ScopeStatus> {
        self.outbox.scopes()
    }

    /// Ends the batch: nothing starts, calls under way are called off, and every accepted item has its outcome at once.
    pub fn shut_down(&self) {
        self.outbox.shut_down();
    }

    /// Something to end the batch with, from another task or a signal.
    pub fn stopper(&self) -> Stopper<O> {
        Stopper(Arc::clone(&self.outbox))
    }

    /// Waits for the end. Outcomes that were not read by then are dropped as they come.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it ends the batch.
    ///
    /// # Errors
    ///
    /// [`DriverGone`] if the task of the batch is gone.
    pub async fn finish(mut self) -> Result<Summary, DriverGone> {
        while self.next().await.is_some() {}
        self.summary().await
    }

    /// Waits for all outcomes, and gives them in the order of the input.
    ///
    /// # Cancel safety
    ///
    /// Dropped, it ends the batch.
    ///
    /// # Errors
    ///
    /// [`DriverGone`] if the task of the batch is gone.
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
    /// As [`Run::shut_down`].
    pub fn shut_down(&self) {
        self.0.shut_down();
    }
}

impl<O> Clone for Stopper<O> {
    fn clone(&self) -> Stopper<O> {
        Stopper(Arc::clone(&self.0))
    }
}

/// The outcomes, as [`Run::next`] gives them.
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
