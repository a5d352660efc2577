//! Many jobs at once: all results in order, or one by one as they come.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::Arc;

use tollgate_store::Reply;

use super::handle::{FinishedJob, Handle, JobError};
use super::pool::{SubmitError, WorkerPool};
use super::progress::{JobTally, ProgressObserver};

/// Results as they come, each with the number of its input. Inputs are taken as the queues have space for them, so
/// however many there are, only those are kept that wait or run.
///
/// # Cancel safety
///
/// Dropping it calls off the jobs that were submitted and are not done.
///
/// ```
/// use tollgate::workers::{WorkerPool};
///
/// let pool = WorkerPool::threads(2).build(|_, n: u64| Ok::<_, std::fmt::Error>(n * n))?;
/// let mut results = pool.as_completed(1..=3);
/// let mut sum = 0;
/// while let Some((_, result)) = results.next_result().wait() {
///     sum += result?;
/// }
/// assert_eq!(sum, 14);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nothing is handed in until the next result is asked for"]
pub struct Completed<'p, I: Clone + Send + 'static, T: Send + 'static, E: Send + 'static, S> {
    pool: &'p WorkerPool<I, T, E>,
    inputs: S,
    /// An input that no queue took.
    held: Option<(usize, I)>,
    number: usize,
    open: BTreeMap<usize, Handle<T, E>>,
    finished: Arc<FinishedJob>,
}

/// A result, with the number of its input.
type NumberedResult<T, E> = (usize, Result<T, JobError<E>>);

impl<I, T, E> WorkerPool<I, T, E>
where
    I: Clone + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
{
    /// Submits all inputs, waiting where a queue is full, and returns the results in their order.
    ///
    /// # Cancel safety
    ///
    /// Dropping it calls off the jobs that were submitted and are not done.
    pub fn gather<'a, N>(&'a self, inputs: N) -> Reply<'a, Vec<Result<T, JobError<E>>>>
    where
        N: IntoIterator<Item = I>,
        N::IntoIter: Send + 'a,
    {
        self.gather_with(inputs, |_: JobTally| ())
    }

    /// As [`gather`](WorkerPool::gather), and reports its progress: to a [`Bar`](super::Bar), say.
    ///
    /// # Cancel safety
    ///
    /// As [`gather`](WorkerPool::gather).
    pub fn gather_with<'a, N>(
        &'a self,
        inputs: N,
        mut progress: impl ProgressObserver + Send + 'a,
    ) -> Reply<'a, Vec<Result<T, JobError<E>>>>
    where
        N: IntoIterator<Item = I>,
        N::IntoIter: Send + 'a,
    {
        let inputs = inputs.into_iter();
        Reply::later(async move {
            let (_, total) = inputs.size_hint();
            let mut tally = JobTally { done: 0, failed: 0, total };
            progress.observe(tally);
            let mut completed = self.as_completed(inputs);
            let mut results = BTreeMap::new();
            while let Some((number, result)) = completed.next_result().await {
                tally.done += 1;
                tally.failed += usize::from(result.is_err());
                progress.observe(tally);
                results.insert(number, result);
            }
            results.into_values().collect()
        })
    }

    /// Submits all inputs, and returns the results as they come.
    pub fn as_completed<N: IntoIterator<Item = I>>(&self, inputs: N) -> Completed<'_, I, T, E, N::IntoIter> {
        Completed {
            pool: self,
            inputs: inputs.into_iter(),
            held: None,
            number: 0,
            open: BTreeMap::new(),
            finished: Arc::default(),
        }
    }
}

impl<I, T, E, S> Completed<'_, I, T, E, S>
where
    I: Clone + Send + 'static,
    T: Send + 'static,
    E: Send + 'static,
    S: Iterator<Item = I> + Send,
{
    /// Returns the next result; `None` when no result is left.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing: it can be asked again.
    pub fn next_result(&mut self) -> Reply<'_, Option<NumberedResult<T, E>>> {
        Reply::later(async move {
            self.fill();
            if self.open.is_empty() {
                // Other callers have filled the queues. The input is kept until it is submitted: the caller may drop
                // the wait.
                let (number, input) = self.held.clone()?;
                let submitted = self.submit_held(number, input).await;
                self.held = None;
                if let Err(refused) = submitted {
                    return Some(refused);
                }
            }
            loop {
                let number = poll_fn(|context| self.finished.poll_next(context)).await;
                // A job that was submitted again may be reported twice; it is open until it has a result.
                let result = self.open.get(&number).and_then(|handle| handle.0.take());
                if let Some(result) = result {
                    self.open.remove(&number);
                    return Some((number, result));
                }
            }
        })
    }

    async fn submit_held(&mut self, number: usize, input: I) -> Result<(), NumberedResult<T, E>> {
        let on_finished = Some((Arc::clone(&self.finished), number));
        match self.pool.submit_as(input, on_finished).await {
            Ok(handle) => {
                self.open.insert(number, handle);
                Ok(())
            }
            Err(_) => Err((number, Err(JobError::Cancelled))),
        }
    }

    /// Submits as many inputs as the queues have space for.
    fn fill(&mut self) {
        loop {
            let next = self.held.take().or_else(|| {
                let input = self.inputs.next()?;
                self.number += 1;
                Some((self.number - 1, input))
            });
            let Some((number, input)) = next else { return };
            let on_finished = Some((Arc::clone(&self.finished), number));
            match self.pool.try_submit_as(input, on_finished) {
                Ok(handle) => drop(self.open.insert(number, handle)),
                Err(SubmitError::Full(input) | SubmitError::Closed(input)) => {
                    self.held = Some((number, input));
                    return;
                }
            }
        }
    }
}

impl<I: Clone + Send + 'static, T: Send + 'static, E: Send + 'static, S> Drop for Completed<'_, I, T, E, S> {
    fn drop(&mut self) {
        self.open.values().for_each(Handle::cancel);
    }
}
