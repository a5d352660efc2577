//! The outbox: outcomes that wait for their reader.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tollgate_store::Mutex;

use crate::Outcome;
use crate::status::ScopeStatus;
use crate::summary::BatchProgress;

/// The order in which outcomes are returned.
///
/// ```
/// use tollgate_batch::{Batch, CallReply, Item, ItemAttempt, Order};
/// use tollgate_provider::Hint;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let items = ["a", "b", "c"].map(|id| Item::new(id, ()));
/// let mut run = Batch::new().order(Order::Input).run(items, |call: ItemAttempt<()>| async move {
///     CallReply::done(call.id().to_owned(), Hint::ok())
/// });
/// let first = run.next().await.unwrap();
/// assert_eq!((first.index, first.result), (0, Ok("a".to_owned())));
/// # });
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// The order in which items finish.
    #[default]
    Completion,
    /// The order of the input. An item that finishes early waits for those before it.
    Input,
}

/// The state that the batch and its reader share.
pub(super) struct Outbox<O>(Mutex<OutboxState<O>>);

struct OutboxState<O> {
    outcomes: Outcomes<O>,
    closed: bool,
    shutdown: bool,
    progress: BatchProgress,
    scopes: Vec<ScopeStatus>,
    /// True if the reader has asked for the status of the scopes, which is too costly to compute on
    /// every poll.
    wants_scopes: bool,
    reader: Option<Waker>,
    batch: Option<Waker>,
    /// True if the batch waits for the reader. Otherwise reading an outcome need not wake the
    /// batch.
    waits_for_reader: bool,
}

impl<O> OutboxState<O> {
    fn listen(&mut self, context: &mut Context<'_>) {
        match &self.batch {
            Some(waker) if waker.will_wake(context.waker()) => {}
            _ => self.batch = Some(context.waker().clone()),
        }
    }
}

enum Outcomes<O> {
    Completion(VecDeque<Outcome<O>>),
    Input { next: u64, waiting: BTreeMap<u64, OutboxSlot<O>> },
}

/// An item that has its outcome, or will not have one.
enum OutboxSlot<O> {
    Outcome(Box<Outcome<O>>),
    Skipped,
}

impl<O> Outcomes<O> {
    fn pop(&mut self) -> Option<Outcome<O>> {
        match self {
            Outcomes::Completion(queue) => queue.pop_front(),
            Outcomes::Input { next, waiting } => loop {
                let first = waiting.first_entry().filter(|first| first.key() == next)?;
                *next += 1;
                if let OutboxSlot::Outcome(outcome) = first.remove() {
                    return Some(*outcome);
                }
            },
        }
    }
}

impl<O> Outbox<O> {
    pub(super) fn new(order: Order) -> Arc<Outbox<O>> {
        let outcomes = match order {
            Order::Completion => Outcomes::Completion(VecDeque::new()),
            Order::Input => Outcomes::Input { next: 0, waiting: BTreeMap::new() },
        };
        Arc::new(Outbox(Mutex::new(OutboxState {
            outcomes,
            closed: false,
            shutdown: false,
            progress: BatchProgress::default(),
            scopes: Vec::new(),
            wants_scopes: true,
            reader: None,
            batch: None,
            waits_for_reader: false,
        })))
    }

    pub(super) fn push(&self, outcome: Outcome<O>) {
        self.change(|state| {
            match &mut state.outcomes {
                Outcomes::Completion(queue) => queue.push_back(outcome),
                Outcomes::Input { waiting, .. } => {
                    waiting.insert(outcome.index, OutboxSlot::Outcome(Box::new(outcome)));
                }
            }
            state.reader.take()
        });
    }

    /// Marks an item of the input that gets no outcome in this run.
    pub(super) fn skip(&self, index: u64) {
        self.change(|state| {
            if let Outcomes::Input { next, waiting } = &mut state.outcomes {
                // A run of skipped items occupies no memory.
                if *next == index {
                    *next += 1;
                } else {
                    waiting.insert(index, OutboxSlot::Skipped);
                }
            }
            state.reader.take()
        });
    }

    /// Returns the result of `has_room`, which gets the number of unread outcomes and, if the
    /// reader wants the order of the input, the index it waits for. If there is no room, the batch
    /// is woken when an outcome has been read.
    pub(super) fn has_room(
        &self,
        context: &mut Context<'_>,
        has_room: impl FnOnce(usize, Option<u64>) -> bool,
    ) -> bool {
        let mut state = self.0.lock();
        let has_room = match &state.outcomes {
            Outcomes::Completion(queue) => has_room(queue.len(), None),
            Outcomes::Input { next, waiting } => has_room(waiting.len(), Some(*next)),
        };
        if !has_room {
            state.waits_for_reader = true;
            state.listen(context);
        }
        has_room
    }

    /// Registers the batch to be woken when it is shut down.
    pub(super) fn listen(&self, context: &mut Context<'_>) {
        self.0.lock().listen(context);
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.0.lock().shutdown
    }

    pub(super) fn shut_down(&self) {
        self.change(|state| {
            state.shutdown = true;
            state.batch.take()
        });
    }

    pub(super) fn close(&self) {
        self.change(|state| {
            state.closed = true;
            state.reader.take()
        });
    }

    /// Sets the progress. Returns true if the reader has asked for the status of the scopes, too.
    pub(super) fn set_progress(&self, progress: BatchProgress) -> bool {
        let mut state = self.0.lock();
        state.progress = progress;
        state.wants_scopes
    }

    pub(super) fn progress(&self) -> BatchProgress {
        self.0.lock().progress
    }

    pub(super) fn set_scopes(&self, scopes: Vec<ScopeStatus>) {
        let mut state = self.0.lock();
        state.wants_scopes = false;
        state.scopes = scopes;
    }

    /// Returns the status of each scope as of the previous call. Wakes the batch, so that the next
    /// call returns the status of about now.
    pub(super) fn scopes(&self) -> Vec<ScopeStatus> {
        let (scopes, waker) = {
            let mut state = self.0.lock();
            state.wants_scopes = true;
            (state.scopes.clone(), state.batch.take())
        };
        waker.into_iter().for_each(Waker::wake);
        scopes
    }

    pub(super) fn poll_pop(&self, context: &mut Context<'_>) -> Poll<Option<Outcome<O>>> {
        let mut state = self.0.lock();
        if let Some(outcome) = state.outcomes.pop() {
            let waits_for_reader = std::mem::take(&mut state.waits_for_reader);
            let waker = state.batch.take_if(|_| waits_for_reader);
            drop(state);
            waker.into_iter().for_each(Waker::wake);
            return Poll::Ready(Some(outcome));
        }
        if state.closed {
            return Poll::Ready(None);
        }
        state.reader = Some(context.waker().clone());
        Poll::Pending
    }

    /// Changes the state, and wakes the returned waker with no lock held.
    fn change(&self, change: impl FnOnce(&mut OutboxState<O>) -> Option<Waker>) {
        let waker = change(&mut self.0.lock());
        waker.into_iter().for_each(Waker::wake);
    }
}
