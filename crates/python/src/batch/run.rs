//! A batch that runs.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tokio::sync::{Mutex as AsyncMutex, mpsc, oneshot};
use tollgate_batch::journal::OnFailed;
use tollgate_batch::{
    Batch, CallReply, Item, ItemAttempt, ItemError, Journal, Order, Outcome, Run, Stopper, Summary,
};
use tollgate_provider::Hint;
use tollgate_store::{Mutex, generation};

use super::call::{BatchCall, BatchOutput};
use crate::amount::{seconds, text};
use crate::error::{invalid, lease_ended, refused, unavailable};
use crate::wait::pending::{Begun, Pending};
use crate::wait::{FirstPoll, PendingOp, operation};

/// How many items wait to be accepted by the driver.
const ITEMS_AHEAD: usize = 16;

/// A batch that runs in a thread of its own until it is dropped.
#[pyclass(frozen, name = "BatchRun", module = "tollgate._core")]
pub(crate) struct BatchRun {
    items: Mutex<Option<mpsc::Sender<Item<Py<PyAny>>>>>,
    calls: Arc<AsyncMutex<mpsc::UnboundedReceiver<BatchCall>>>,
    run: Arc<AsyncMutex<Option<Run<BatchOutput>>>>,
    stopper: Stopper<BatchOutput>,
    runtime: Mutex<Option<tokio::runtime::Runtime>>,
    process: u32,
}

/// The items of a batch, as the event loop sends them.
struct SentItems(mpsc::Receiver<Item<Py<PyAny>>>);

impl Stream for SentItems {
    type Item = Item<Py<PyAny>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item<Py<PyAny>>>> {
        self.0.poll_recv(context)
    }
}

/// The settings of a batch, from keywords.
struct Settings<'a, 'py>(&'a Bound<'py, PyDict>);

impl Settings<'_, '_> {
    fn number<T: for<'a, 'py> FromPyObject<'a, 'py, Error = PyErr>>(
        &self,
        name: &str,
    ) -> PyResult<Option<T>> {
        match self.0.get_item(name)? {
            Some(value) if !value.is_none() => value.extract::<T>().map(Some).map_err(|_| {
                let shown = value.repr().map(|shown| shown.to_string()).unwrap_or_default();
                invalid(self.0.py(), format!("{name} is {shown}, but must be a number above 0"))
            }),
            _ => Ok(None),
        }
    }

    fn span(&self, name: &str) -> PyResult<Option<Duration>> {
        match self.0.get_item(name)? {
            Some(value) if !value.is_none() => seconds(name, &value),
            _ => Ok(None),
        }
    }

    fn is_set(&self, name: &str) -> PyResult<bool> {
        self.0.get_item(name)?.map_or(Ok(false), |value| value.is_truthy())
    }

    fn batch(&self) -> PyResult<Batch> {
        let mut batch = Batch::new();
        if let Some(workers) = self.number("workers")? {
            batch = batch.workers(workers);
        }
        if let Some(attempts) = self.number("attempts")? {
            batch = batch.attempts(attempts);
        }
        if let Some(deadline) = self.span("item_deadline")? {
            batch = batch.item_deadline(deadline);
        }
        if let Some(deadline) = self.span("deadline")? {
            batch = batch.deadline(deadline);
        }
        if let Some(tokens) = self.number("max_tokens")? {
            batch = batch.max_tokens(tokens);
        }
        if let Some(budget) = self.span("throttle_budget")? {
            batch = batch.throttle_budget(budget);
        }
        if let Some(buffer) = self.number("buffer")? {
            batch = batch.buffer(buffer).lookahead(buffer);
        }
        Ok(if self.is_set("in_order")? { batch.order(Order::Input) } else { batch })
    }

    fn journal(&self) -> PyResult<Option<Journal>> {
        let py = self.0.py();
        let path: Option<PathBuf> = match self.0.get_item("journal")? {
            Some(path) if !path.is_none() => Some(path.extract()?),
            _ => None,
        };
        let Some(path) = path else { return Ok(None) };
        let on_failed = if self.is_set("retry_failed")? { OnFailed::Retry } else { OnFailed::Keep };
        let journal = py.detach(|| Journal::open(path, on_failed));
        journal.map(Some).map_err(|error| refused(py, error.to_string()))
    }
}

#[pymethods]
impl BatchRun {
    #[new]
    #[pyo3(signature = (**settings))]
    fn new(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<BatchRun> {
        let none = PyDict::new(py);
        let settings = Settings(settings.unwrap_or(&none));
        let (batch, journal) = (settings.batch()?, settings.journal()?);
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("tollgate-batch")
            .enable_time()
            .build()
            .map_err(|error| unavailable(py, format!("no thread for the batch: {error}")))?;
        let (items, sent) = mpsc::channel(ITEMS_AHEAD);
        let (call, calls) = mpsc::unbounded_channel();
        let handler = move |attempt: ItemAttempt<Py<PyAny>>| {
            let (reply, replied) = oneshot::channel();
            // Without a receiver the run has ended, and this call with it.
            let _ = call.send(BatchCall::new(attempt, reply));
            async move {
                let aborted =
                    || CallReply::refused(Hint::transient().with_reason("the call ended without a reply"));
                replied.await.unwrap_or_else(|_| aborted())
            }
        };
        let run: Run<BatchOutput> = {
            let _entered = runtime.enter();
            match journal {
                Some(journal) => batch.resume_stream(journal, SentItems(sent), handler),
                None => batch.run_stream(SentItems(sent), handler),
            }
        };
        Ok(BatchRun {
            items: Mutex::new(Some(items)),
            calls: Arc::new(AsyncMutex::new(calls)),
            stopper: run.stopper(),
            run: Arc::new(AsyncMutex::new(Some(run))),
            runtime: Mutex::new(Some(runtime)),
            process: generation(),
        })
    }

    /// Sends an item, when the driver has room for it. False if it takes no more.
    fn send(
        &self,
        py: Python<'_>,
        id: &Bound<'_, PyString>,
        payload: Py<PyAny>,
        tokens: u64,
        scope: Option<String>,
    ) -> PyResult<Pending> {
        self.check(py)?;
        let item = Item::new(text("id", id)?, payload).tokens(tokens);
        let item = match scope {
            Some(scope) => item.scope(scope),
            None => item,
        };
        let items = self.items.lock().clone();
        Ok(pending(
            "BatchRun.send",
            async move {
                match items {
                    Some(items) => items.send(item).await.is_ok(),
                    None => false,
                }
            },
            |_, sent| Ok(sent),
        ))
    }

    /// Ends the input.
    fn end_input(&self) {
        self.items.lock().take();
    }

    /// Returns the next call to make; `None` at the end.
    fn next_call(&self, py: Python<'_>) -> PyResult<Pending> {
        self.check(py)?;
        let calls = self.calls.clone();
        Ok(pending("BatchRun.next_call", async move { calls.lock().await.recv().await }, |_, call| Ok(call)))
    }

    /// Returns the next outcome as a tuple; `None` at the end.
    fn next_outcome(&self, py: Python<'_>) -> PyResult<Pending> {
        self.check(py)?;
        let run = self.run.clone();
        let next = async move {
            match run.lock().await.as_mut() {
                Some(run) => run.next().await,
                None => None,
            }
        };
        Ok(pending("BatchRun.next_outcome", next, |_, outcome: Option<Outcome<BatchOutput>>| {
            Ok(outcome.map(parts_of))
        }))
    }

    /// Waits for the end, and returns the summary as a dict.
    fn finish(&self, py: Python<'_>) -> PyResult<Pending> {
        self.check(py)?;
        let run = self.run.clone();
        let finished = async move {
            match run.lock().await.take() {
                Some(run) => run.finish().await.ok(),
                None => None,
            }
        };
        Ok(pending("BatchRun.finish", finished, |py, summary: Option<Summary>| match summary {
            Some(summary) => summary_of(py, &summary),
            None => Err(unavailable(py, "the thread of the batch has ended")),
        }))
    }

    /// Ends the batch: no call starts, and every accepted item gets its outcome at once.
    fn shut_down(&self) {
        if self.process == generation() {
            self.stopper.shut_down();
        }
    }
}

impl BatchRun {
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        if self.process == generation() {
            return Ok(());
        }
        Err(lease_ended(py, "the batch belongs to the process that began it; begin one here"))
    }
}

impl Drop for BatchRun {
    fn drop(&mut self) {
        let runtime = self.runtime.get_mut().take();
        if self.process != generation() {
            // Its thread is the parent's: to wait for it would be for ever.
            std::mem::forget(runtime);
        } else if let Some(runtime) = runtime {
            runtime.shutdown_background();
        }
    }
}

fn pending<T, F, V>(
    name: &'static str,
    future: impl Future<Output = T> + Send + 'static,
    finish: F,
) -> Pending
where
    T: Send + 'static,
    F: FnOnce(Python<'_>, T) -> PyResult<V> + Send + 'static,
    V: for<'py> IntoPyObject<'py>,
{
    let operation: PendingOp = operation(future, finish);
    Pending::new(name, Box::new(move |_| Ok(Begun::UnderWay(operation, FirstPoll::Attached))))
}

/// An outcome in Python: id, index, whether it is done, its output, the class and the reason of a failure, attempts, calls,
/// throttles, tokens, seconds.
type OutcomeParts =
    (String, u64, bool, Option<Py<PyAny>>, Option<&'static str>, Option<String>, u32, u32, u32, u64, f64);

fn parts_of(outcome: Outcome<BatchOutput>) -> OutcomeParts {
    let is_done = outcome.result.is_ok();
    let (output, class, reason) = match outcome.result {
        Ok(output) => (Some(output.value), None, None),
        Err(ItemError::Item { class, reason }) => (None, Some(class.name()), Some(reason)),
        Err(error) => (None, Some("unfinished"), Some(error.to_string())),
    };
    let id = outcome.id.to_string();
    let took = outcome.took.as_secs_f64();
    let (attempts, calls, throttles) = (outcome.attempts, outcome.calls, outcome.throttles);
    (id, outcome.index, is_done, output, class, reason, attempts, calls, throttles, outcome.tokens, took)
}

fn summary_of(py: Python<'_>, summary: &Summary) -> PyResult<Py<PyDict>> {
    let (dict, progress) = (PyDict::new(py), &summary.progress);
    dict.set_item("accepted", progress.accepted)?;
    dict.set_item("skipped", progress.skipped)?;
    dict.set_item("done", progress.done)?;
    dict.set_item("failed", progress.failed)?;
    dict.set_item("unfinished", progress.unfinished)?;
    dict.set_item("tokens", progress.tokens)?;
    dict.set_item("calls", progress.calls)?;
    dict.set_item("rejected", progress.rejected)?;
    dict.set_item("cooldowns", progress.generations)?;
    dict.set_item("took", summary.took.as_secs_f64())?;
    dict.set_item("stopped", summary.stopped.as_ref().map(ToString::to_string))?;
    Ok(dict.unbind())
}
