//! The fixture of a law: sets on its own store, or on no store, with a manual clock.

use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::thread;

use tollgate::{AcquireError, Checker, Event, Lease, LimitSet, LimitSetBuilder};
use tollgate_core::{AsDemand, Denial, LimitBuilder, Span};
use tollgate_store::{Backend, Clock, ManualClock, Memory};

use crate::fixture::{FOREVER, UNEVEN_START, open_at};
use crate::poll::{block_on, poll, until};

/// Opens a store that goes by the clock it is given, and that no other law uses; `None` for sets in no store.
pub type OpenSetStore<'a> = &'a dyn Fn(Clock) -> Option<Arc<dyn Backend>>;

/// A store, if there is one, with its manual clock.
pub struct SetFixture {
    /// The clock of the store.
    pub clock: ManualClock,
    /// The store.
    pub backend: Option<Arc<dyn Backend>>,
}

impl SetFixture {
    /// Opens a store.
    pub fn new(open: OpenSetStore<'_>) -> SetFixture {
        let (clock, backend) = open_at(UNEVEN_START, open);
        SetFixture { clock, backend }
    }

    /// Returns a set of these limits.
    pub fn set<const N: usize>(&self, limits: [LimitBuilder; N]) -> LimitSet {
        self.builder("law", limits).build().expect("the limits of a law are valid")
    }

    /// Does the same with settings.
    pub fn builder<const N: usize>(&self, name: &str, limits: [LimitBuilder; N]) -> LimitSetBuilder {
        let builder = LimitSet::builder().limits(limits).store_timeout(FOREVER);
        match &self.backend {
            Some(backend) => builder.store(Arc::clone(backend)).name(name),
            None => builder.clock(self.clock.clock()),
        }
    }

    /// Returns a checker.
    pub fn checker(&self) -> Checker {
        match &self.backend {
            Some(backend) => Checker::in_store(Arc::clone(backend), "checks").store_timeout(FOREVER),
            None => Checker::in_memory(&Memory::builder().clock(self.clock.clock()).build(), "checks"),
        }
    }

    /// Moves the clock forward.
    pub fn advance_ms(&self, millis: u64) {
        self.clock.advance(Span::from_millis(millis));
    }

    /// Begins to wait for a demand on a set, which does not fit.
    pub(super) fn wait_for<'a>(
        &self,
        set: &'a LimitSet,
        demand: impl AsDemand + Send + 'a,
    ) -> WaitingTask<'a, Result<Lease<'a>, AcquireError>> {
        self.begin(std::slice::from_ref(set), set.acquire(demand))
    }

    /// Begins to wait for what does not fit one of `sets`, and polls until there is nothing to do but wait: a store may take a
    /// moment to deny it.
    pub(super) fn begin<'a, F>(&self, sets: &[LimitSet], future: F) -> WaitingTask<'a, F::Output>
    where
        F: IntoFuture,
        F::IntoFuture: Send + 'a,
    {
        let (before, mut task) = (self.waiting(sets), WaitingTask(Box::pin(future.into_future())));
        until(|| {
            let is_parked = self.waiting(sets) != before && !self.is_asking();
            assert!(is_parked || task.poll().is_pending(), "it does not fit");
            is_parked
        });
        task.still_waits();
        task
    }

    /// Returns how many wait, without asking a store.
    fn waiting(&self, sets: &[LimitSet]) -> usize {
        match &self.backend {
            Some(backend) => backend.wait_queues().waiting(),
            None => sets.iter().map(queued).sum(),
        }
    }

    /// Returns whether a waiter has not yet got an answer from the store.
    fn is_asking(&self) -> bool {
        self.backend.as_ref().is_some_and(|backend| backend.wait_queues().is_busy())
    }
}

/// Returns the lease, if the demand is admitted now.
pub(super) fn take(set: &LimitSet, demand: impl AsDemand) -> Option<Lease<'_>> {
    set.try_acquire(demand).wait().expect("the demand of a law is valid").admitted()
}

/// Takes a demand, which must be admitted, and keeps all but the resources.
pub(super) fn spend(set: &LimitSet, demand: impl AsDemand) {
    let before = free(set);
    drop(take(set, demand).expect("there is room"));
    // Resources are released in the background, which may take a moment.
    until(|| free(set) == before);
}

/// Returns what is free of every resource.
fn free(set: &LimitSet) -> Vec<i64> {
    let status = set.peek().wait().expect("the store answers");
    status.limits.iter().filter(|it| it.limit().is_resource()).map(|it| it.available()).collect()
}

/// Returns the denial of a demand, which must be denied.
pub(super) fn denial(set: &LimitSet, demand: impl AsDemand) -> Denial {
    set.try_acquire(demand).wait().expect("the demand of a law is valid").denied().expect("it is denied")
}

/// Returns how many demands like this are admitted now, one after the other.
pub(super) fn count(set: &LimitSet, demand: impl AsDemand) -> usize {
    std::iter::from_fn(|| take(set, &demand)).count()
}

/// Returns what is available of a limit.
pub(super) fn available(set: &LimitSet, limit: &str) -> i64 {
    let status = set.peek().wait().expect("the store answers");
    status.limit(limit).expect("the limit is there").available()
}

/// A task that waits.
pub(super) struct WaitingTask<'a, T>(Pin<Box<dyn Future<Output = T> + Send + 'a>>);

impl<T> WaitingTask<'_, T> {
    pub(super) fn poll(&mut self) -> Poll<T> {
        poll(self.0.as_mut())
    }

    /// Asserts that it is not admitted, though it has every chance to be.
    pub(super) fn still_waits(&mut self) {
        for _ in 0..20 {
            assert!(self.poll().is_pending(), "it does not fit");
            thread::yield_now();
        }
    }

    /// Returns the result, which must come now.
    pub(super) fn answer(&mut self) -> T {
        block_on(self.0.as_mut())
    }
}

/// Returns how many wait for a set.
pub(super) fn queued(set: &LimitSet) -> usize {
    set.peek().wait().expect("the store answers").waiting
}

/// The events that an observer got, in order.
#[derive(Clone, Default)]
pub(super) struct RecordingObserver(Arc<Mutex<Vec<String>>>);

impl RecordingObserver {
    /// Returns an observer that records every event.
    pub(super) fn observer(&self) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
        let recorded = Arc::clone(&self.0);
        move |event| recorded.lock().expect("no observer panics").push(format!("{event:?}"))
    }

    /// Returns the events since the last call.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("no observer panics"))
    }
}
