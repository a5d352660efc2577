//! A cell under a manual clock, and waits that are polled by hand.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use tollgate_core::{Costs, Limit, LimitBuilder, Limits, Span, Tick, Usage, demand};
use tollgate_store::{
    BucketCell, Clock, Granted, Key, LeaseTerm, ManualClock, Priority, WaitError, WaitFuture, WaitRequest,
};

pub(crate) const START: Tick = Tick::from_secs(1_000);

/// A cell, the clock it goes by, and its limits as they were at first.
pub(crate) struct Desk {
    pub(crate) hands: ManualClock,
    pub(crate) clock: Clock,
    pub(crate) cell: Arc<BucketCell>,
    pub(crate) limits: Limits,
}

impl Desk {
    pub(crate) fn new(limits: impl IntoIterator<Item = LimitBuilder>) -> Desk {
        let limits = Limits::new(limits).unwrap();
        let hands = ManualClock::at(START);
        let cell = BucketCell::new(Key::new(&["desk"]), limits.clone(), START);
        Desk { clock: hands.clock(), hands, cell, limits }
    }

    /// A [`Desk`] with `capacity` slots, all of them taken.
    pub(crate) fn with_taken_slots(capacity: u64) -> Desk {
        let desk = Desk::new([Limit::resource("slots", capacity)]);
        desk.take_slots(capacity);
        desk
    }

    /// A [`Desk`] where `per_second` come back each second, and none is left now.
    pub(crate) fn with_spent_rate(per_second: u64) -> Desk {
        let desk = Desk::new([Limit::per_second("rps", per_second)]);
        let all = desk.limits.costs(&demand! { rps: per_second }).unwrap();
        desk.try_take(&all, Priority::default()).unwrap();
        desk
    }

    pub(crate) fn slots(&self, amount: u64) -> Costs {
        self.limits.costs(&demand! { slots: amount }).unwrap()
    }

    pub(crate) fn rps(&self, amount: u64) -> Costs {
        self.limits.costs(&demand! { rps: amount }).unwrap()
    }

    pub(crate) fn try_take(&self, costs: &Costs, priority: Priority) -> Result<Tick, String> {
        self.cell
            .try_take(&self.clock, costs, None, priority)
            .map(|taken| taken.at)
            .map_err(|denial| denial.to_string())
    }

    pub(crate) fn take_slots(&self, amount: u64) {
        self.try_take(&self.slots(amount), Priority::default()).unwrap();
    }

    pub(crate) fn hold_slots(&self, amount: u64, term: LeaseTerm) {
        self.cell.try_take(&self.clock, &self.slots(amount), Some(term), Priority::default()).unwrap();
    }

    pub(crate) fn release(&self, costs: &Costs) {
        self.settle(costs, &vec![0; self.limits.len()]);
    }

    pub(crate) fn settle(&self, costs: &Costs, used: &[u64]) {
        let usage = Usage { at: self.hands.now(), reserved: costs, used, holder: None };
        self.cell.settle(&self.clock, &self.limits, &usage);
    }

    /// Stands in the queue.
    pub(crate) fn wait(&self, request: WaitRequest) -> Wait<'_> {
        let mut wait = self.enter(request);
        assert!(wait.poll().is_pending(), "there was nothing to wait for");
        wait
    }

    pub(crate) fn wait_for(&self, costs: Costs) -> Wait<'_> {
        self.wait(WaitRequest::of(costs))
    }

    /// A wait that was not polled yet.
    pub(crate) fn enter(&self, request: WaitRequest) -> Wait<'_> {
        Wait { future: Box::pin(self.cell.acquire(&self.clock, request)), bell: Arc::default() }
    }

    pub(crate) fn available(&self) -> Vec<i64> {
        self.cell.peek(&self.clock).iter().map(|status| status.available()).collect()
    }

    /// Turns the clock to `micros` after the start.
    pub(crate) fn turn_to(&self, micros: u64) {
        self.hands.set(START + Span::from_micros(micros));
    }
}

/// A wait in the queue, and how often it was woken.
pub(crate) struct Wait<'a> {
    future: Pin<Box<WaitFuture<'a>>>,
    bell: Arc<Bell>,
}

#[derive(Default)]
struct Bell(AtomicUsize);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Wait<'_> {
    pub(crate) fn poll(&mut self) -> Poll<Result<Granted, WaitError>> {
        let waker = Waker::from(Arc::clone(&self.bell));
        self.future.as_mut().poll(&mut Context::from_waker(&waker))
    }

    pub(crate) fn woken(&self) -> usize {
        self.bell.0.load(Ordering::SeqCst)
    }

    /// Returns what came of it; it must have been woken before it collects that.
    pub(crate) fn heard(mut self) -> Result<Granted, WaitError> {
        assert_eq!(self.woken(), 1, "woken once, when there is something to hear");
        match self.poll() {
            Poll::Ready(outcome) => outcome,
            Poll::Pending => panic!("woken for nothing"),
        }
    }

    /// What it was granted.
    pub(crate) fn granted(self) -> Granted {
        self.heard().unwrap()
    }

    /// Returns whether it still waits, and was not woken.
    pub(crate) fn sleeps(&mut self) -> bool {
        self.woken() == 0 && self.poll().is_pending()
    }
}
