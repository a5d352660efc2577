//! What is checked: something of which one is to be had at a time, and for which others wait.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tollgate_core::{Costs, Limit, Limits, Tick, Usage, demand};
use tollgate_store::{BucketCell, Clock, Key, ManualClock, Priority, WaitRequest};

pub(crate) const START: Tick = Tick::from_secs(1_000);

/// One place that can be taken, waited for and given back.
pub(crate) trait Gate: Send + Sync + 'static {
    fn try_take(&self) -> bool;
    fn acquire(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>>;
    fn give_back(&self);
    fn waiting(&self) -> usize;
    /// Whether everything that was taken is back.
    fn is_full(&self) -> bool;
}

/// A cell with one place, and a rate that is given back whole.
pub(crate) struct OfCell {
    pub(crate) hands: ManualClock,
    pub(crate) clock: Clock,
    pub(crate) limits: Limits,
    pub(crate) cell: Arc<BucketCell>,
}

impl OfCell {
    pub(crate) fn new() -> OfCell {
        let limits = Limits::new([Limit::resource("slots", 1), Limit::per_day("rpd", 100)]).unwrap();
        let hands = ManualClock::at(START);
        let cell = BucketCell::new(Key::new(&["gate"]), limits.clone(), START);
        OfCell { clock: hands.clock(), hands, limits, cell }
    }

    pub(crate) fn one(&self) -> Costs {
        self.limits.costs(&demand! { slots: 1, rpd: 3 }).unwrap()
    }

    pub(crate) fn give_back_costs(&self, costs: &Costs) {
        let usage = Usage { at: START, reserved: costs, used: &[0, 0], holder: None };
        self.cell.settle(&self.clock, &self.limits, &usage);
    }

    pub(crate) fn available(&self) -> Vec<i64> {
        self.cell.peek(&self.clock).iter().map(|status| status.available()).collect()
    }
}

impl Gate for OfCell {
    fn try_take(&self) -> bool {
        self.cell.try_take(&self.clock, &self.one(), None, Priority::default()).is_ok()
    }

    fn acquire(self: Arc<Self>) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(async move {
            let request = WaitRequest::of(self.one());
            self.cell.acquire(&self.clock, request).await.unwrap();
        })
    }

    fn give_back(&self) {
        self.give_back_costs(&self.one());
    }

    fn waiting(&self) -> usize {
        self.cell.waiting()
    }

    fn is_full(&self) -> bool {
        self.available() == [1, 100]
    }
}
