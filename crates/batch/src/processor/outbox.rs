//! Where outcomes wait for their reader.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tollgate_store::Mutex;

use crate::Outcome;
use crate::status::ScopeStatus;
use crate::summary::BatchProgress;

/// In which order outcomes are returned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As items are finished.
    #[default]
    Completion,
    /// As they came in. An item that is finished early waits for those before.
    Input,
}

/// What the batch and its reader share.
pub(super) struct Outbox<O>(Mutex<OutboxState<O>>);

struct OutboxState<O> {
    outcomes: Outcomes<O>,
    closed: bool,
    shutdown: bool,
    progress: BatchProgress,
    scopes: Vec<ScopeStatus>,
    /// Whether the reader wants to know how the scopes stand, which is not worth working out for each poll.
    wants_scopes: bool,
    reader: Option<Waker>,
    batch: Option<Waker>,
    /// Whether the batch waits for room. If not, it need not be notified of everything that is read.
    held_up: bool,
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

/// An item that has an outcome, or will have none.
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
            held_up: false,
        })))
    }

    pub(super) fn push(&self, outcome: Outcome<O>) {
        self.change(|inside| {
            match &mut inside.outcomes {
                Outcomes::Completion(queue) => queue.push_back(outcome),
                Outcomes::Input { waiting, .. } => {
                    waiting.insert(outcome.index, OutboxSlot::Outcome(Box::new(outcome)));
                }
            }
            inside.reader.take()
        });
    }

    /// An item of the input has no outcome in this run.
    pub(super) fn skip(&self, index: u64) {
        self.change(|inside| {
            if let Outcomes::Input { next, waiting } = &mut inside.outcomes {
                // Runs of skipped items leave nothing behind.
                if *next == index {
                    *next += 1;
                } else {
                    waiting.insert(index, OutboxSlot::Skipped);
                }
            }
            inside.reader.take()
        });
    }

    /// Returns what `has_room` says of how many outcomes wait, and for which item of the input the reader waits, if it
    /// wants them in that order. If there is no room, the batch is woken when something has been read.
    pub(super) fn has_room(
        &self,
        context: &mut Context<'_>,
        has_room: impl FnOnce(usize, Option<u64>) -> bool,
    ) -> bool {
        let mut inside = self.0.lock();
        let has_room = match &inside.outcomes {
            Outcomes::Completion(queue) => has_room(queue.len(), None),
            Outcomes::Input { next, waiting } => has_room(waiting.len(), Some(*next)),
        };
        if !has_room {
            inside.held_up = true;
            inside.listen(context);
        }
        has_room
    }

    /// The batch is woken when it is shut down.
    pub(super) fn listen(&self, context: &mut Context<'_>) {
        self.0.lock().listen(context);
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.0.lock().shutdown
    }

    pub(super) fn shut_down(&self) {
        self.change(|inside| {
            inside.shutdown = true;
            inside.batch.take()
        });
    }

    pub(super) fn close(&self) {
        self.change(|inside| {
            inside.closed = true;
            inside.reader.take()
        });
    }

    /// Sets the progress. Returns true if the reader has asked for the status of the scopes, too.
    pub(super) fn set_progress(&self, progress: BatchProgress) -> bool {
        let mut inside = self.0.lock();
        inside.progress = progress;
        inside.wants_scopes
    }

    pub(super) fn progress(&self) -> BatchProgress {
        self.0.lock().progress
    }

    pub(super) fn set_scopes(&self, scopes: Vec<ScopeStatus>) {
        let mut inside = self.0.lock();
        inside.wants_scopes = false;
        inside.scopes = scopes;
    }

    /// The status of each scope when this was last asked for. Wakes the batch, so that the next answer is as new as this
    /// question.
    pub(super) fn scopes(&self) -> Vec<ScopeStatus> {
        let (scopes, waker) = {
            let mut inside = self.0.lock();
            inside.wants_scopes = true;
            (inside.scopes.clone(), inside.batch.take())
        };
        waker.into_iter().for_each(Waker::wake);
        scopes
    }

    pub(super) fn poll_pop(&self, context: &mut Context<'_>) -> Poll<Option<Outcome<O>>> {
        let mut inside = self.0.lock();
        if let Some(outcome) = inside.outcomes.pop() {
            let held_up = std::mem::take(&mut inside.held_up);
            let waker = inside.batch.take_if(|_| held_up);
            drop(inside);
            waker.into_iter().for_each(Waker::wake);
            return Poll::Ready(Some(outcome));
        }
        if inside.closed {
            return Poll::Ready(None);
        }
        inside.reader = Some(context.waker().clone());
        Poll::Pending
    }

    /// Changes what is inside, and wakes the task that this concerns with no lock held.
    fn change(&self, change: impl FnOnce(&mut OutboxState<O>) -> Option<Waker>) {
        let waker = change(&mut self.0.lock());
        waker.into_iter().for_each(Waker::wake);
    }
}
