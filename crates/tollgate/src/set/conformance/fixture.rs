//! What a law works on: sets on a store of its own, or on none, by a manual clock.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::Duration;

use tollgate_core::{AsDemand, Denial, LimitBuilder, Span, Tick};
use tollgate_store::{Backend, Clock, ManualClock, Memory};

use crate::set::Backing;
use crate::{AcquireError, Checker, Event, Lease, LimitSet, LimitSetBuilder};

/// How long a store may take to answer in a test: longer than any test turns its clock.
const FOREVER: Duration = Duration::from_secs(10 * 365 * 86_400);

/// Makes a store that tells time by the clock it is given, and that no other test sees; `None` for sets that are in no
/// store.
pub type OpenSetStore<'a> = &'a dyn Fn(Clock) -> Option<Arc<dyn Backend>>;

/// Where clocks start: 2025-12-31T23:59:59.123457Z, on no round number of any period.
pub(super) const START: Tick = Tick::from_micros(1_767_225_599_123_457);

/// A store, if there is one, and the clock that it goes by.
pub struct SetFixture {
    /// Turns the clock.
    pub hands: ManualClock,
    /// The store.
    pub backend: Option<Arc<dyn Backend>>,
}

impl SetFixture {
    /// A fresh store.
    pub fn new(open: OpenSetStore<'_>) -> SetFixture {
        let hands = ManualClock::at(START);
        SetFixture { backend: open(hands.clock()), hands }
    }

    /// A set of these limits.
    pub fn set<const N: usize>(&self, limits: [LimitBuilder; N]) -> LimitSet {
        self.builder("law", limits).build().expect("the limits of a law are valid")
    }

    /// The same, with more to say about it.
    pub fn builder<const N: usize>(&self, name: &str, limits: [LimitBuilder; N]) -> LimitSetBuilder {
        // By a clock that is turned by hours, a store that is asked a question meanwhile would seem to be away.
        let builder = LimitSet::builder().limits(limits).store_timeout(FOREVER);
        match &self.backend {
            Some(backend) => builder.store(Arc::clone(backend)).name(name),
            None => builder.clock(self.hands.clock()),
        }
    }

    /// A checker.
    pub fn checker(&self) -> Checker {
        match &self.backend {
            // The clock is turned while the store is asked.
            Some(backend) => Checker::in_store(Arc::clone(backend), "checks").store_timeout(FOREVER),
            None => Checker::in_memory(&Memory::builder().clock(self.hands.clock()).build(), "checks"),
        }
    }

    /// Turns the clock forward.
    pub fn advance_ms(&self, millis: u64) {
        self.hands.advance(Span::from_millis(millis));
    }
}

/// The lease, if the demand is admitted now.
pub(super) fn take(set: &LimitSet, demand: impl AsDemand) -> Option<Lease<'_>> {
    set.try_acquire(demand).wait().expect("the demand of a law is valid").admitted()
}

/// Takes a demand that must be admitted, and keeps it taken, resources aside.
pub(super) fn spend(set: &LimitSet, demand: impl AsDemand) {
    let before = free(set);
    drop(take(set, demand).expect("there is room"));
    // What it held is given back in the background, and may take a moment.
    until(|| free(set) == before);
}

/// What is free of every resource.
fn free(set: &LimitSet) -> Vec<i64> {
    let status = set.peek().wait().expect("a store that is there answers");
    status.limits.iter().filter(|it| it.limit().is_resource()).map(|it| it.available()).collect()
}

/// Why a demand is denied that must be.
pub(super) fn denial(set: &LimitSet, demand: impl AsDemand) -> Denial {
    set.try_acquire(demand).wait().expect("the demand of a law is valid").denied().expect("it is denied")
}

/// How many demands like this are admitted now, one after the other.
pub(super) fn count(set: &LimitSet, demand: impl AsDemand) -> usize {
    std::iter::from_fn(|| take(set, &demand)).count()
}

/// How much could be had of a limit now.
pub(super) fn available(set: &LimitSet, limit: &str) -> i64 {
    let status = set.peek().wait().expect("a store that is there answers");
    status.limit(limit).expect("the limit is there").available()
}

/// How long a law waits for what is to come within a second, on a machine with other work to do.
const PATIENCE: Span = Span::from_secs(300);

/// Gives way to other threads until `done`. Time does not pass by the clock of the law, so this is no sleep.
pub(super) fn until(done: impl Fn() -> bool) {
    eventually(|| done().then_some(()));
}

/// What `look` finds, which is to come soon: a mechanism that does not work fails the law instead of hanging it.
pub(super) fn eventually<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let real = Clock::system();
    let given_up = real.now() + PATIENCE;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(real.now() < given_up, "it did not come within {:?}", PATIENCE.to_duration());
        thread::yield_now();
    }
}

/// A task that waits.
pub(super) struct WaitingTask<'a, T>(Pin<Box<dyn Future<Output = T> + Send + 'a>>);

impl<'a, T> WaitingTask<'a, T> {
    /// Begins to wait for what does not pass in one of `sets`, and polls until it has nothing to do but wait: a store may
    /// take a moment to deny it.
    pub(super) fn begin<F>(sets: &[LimitSet], future: F) -> WaitingTask<'a, T>
    where
        F: IntoFuture<Output = T>,
        F::IntoFuture: Send + 'a,
    {
        let waiting = || sets.iter().map(LimitSet::waiting).sum::<usize>();
        let (before, mut this) = (waiting(), WaitingTask(Box::pin(future.into_future())));
        eventually(|| {
            let is_parked = waiting() != before && !sets.iter().any(is_asking);
            assert!(is_parked || this.poll().is_pending(), "it does not fit");
            is_parked.then_some(())
        });
        this.still_waits();
        this
    }

    pub(super) fn poll(&mut self) -> Poll<T> {
        self.0.as_mut().poll(&mut Context::from_waker(Waker::noop()))
    }

    /// It has every chance to be admitted, and is not.
    pub(super) fn still_waits(&mut self) {
        for _ in 0..20 {
            assert!(self.poll().is_pending(), "it does not fit");
            thread::yield_now();
        }
    }

    /// What comes of it, which is to come now.
    pub(super) fn answer(&mut self) -> T {
        eventually(|| match self.poll() {
            Poll::Ready(answer) => Some(answer),
            Poll::Pending => None,
        })
    }
}

/// Whether a waiter of a set in a store has not yet heard from the store.
fn is_asking(set: &LimitSet) -> bool {
    match set.backing() {
        Backing::Local(_) => false,
        Backing::Stored(remote) => remote.store.backend.wait_queues().is_busy(),
    }
}

/// Begins to wait for a demand on a set.
pub(super) fn wait_for<'a>(
    set: &'a LimitSet,
    demand: impl AsDemand + Send + 'a,
) -> WaitingTask<'a, Result<Lease<'a>, AcquireError>> {
    WaitingTask::begin(std::slice::from_ref(set), set.acquire(demand))
}

/// What an observer heard, in order.
#[derive(Clone, Default)]
pub(super) struct RecordingObserver(Arc<Mutex<Vec<String>>>);

impl RecordingObserver {
    /// An observer that writes down every event.
    pub(super) fn observer(&self) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
        let heard = Arc::clone(&self.0);
        move |event| heard.lock().expect("nobody panics while it listens").push(format!("{event:?}"))
    }

    /// What was heard since the last time.
    pub(super) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().expect("nobody panics while it listens"))
    }
}

/// Runs a future to its end in this thread.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return output;
        }
        std::thread::yield_now();
    }
}
