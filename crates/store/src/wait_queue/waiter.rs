//! A waiter, as those see it that wake it.

use std::sync::{Arc, Weak};
use std::task::Waker;

use tollgate_core::Tick;

use super::local::LocalQueues;
use crate::cell_queue::{REACTION_MAX, Rank};
use crate::sync::{Mutex, MutexGuard};
use crate::{Alarm, Clock};

pub(super) struct Waiter {
    pub(super) rank: Rank,
    clock: Clock,
    local: Weak<LocalQueues>,
    state: Mutex<WaiterState>,
}

#[derive(Default)]
struct WaiterState {
    notified: bool,
    waker: Option<Waker>,
    /// When it polls again by itself, which is the least that those behind it wait.
    due: Option<Tick>,
    /// The next alarm that is set.
    armed: Option<Tick>,
    /// Since when it is expected to act, by the clock of the system: it was notified, or it is asking the store. A future
    /// that is not polled any more stays in that state.
    busy_since: Option<Tick>,
    /// It did not react in time. It is not in the shared queues until it does.
    passed_over: bool,
}

impl Waiter {
    pub(super) fn new(rank: Rank, clock: Clock, local: &Arc<LocalQueues>) -> Waiter {
        Waiter { rank, clock, local: Arc::downgrade(local), state: Mutex::new(WaiterState::default()) }
    }

    pub(super) fn due(&self) -> Option<Tick> {
        self.state.lock().due
    }

    /// Returns when it will have taken too long to react, if it is expected to.
    pub(super) fn overdue_at(&self) -> Option<Tick> {
        self.state.lock().busy_since.map(|since| since + REACTION_MAX)
    }

    pub(super) fn is_responsive(&self) -> bool {
        self.overdue_at().is_none_or(|overdue| Clock::system().now() < overdue)
    }

    pub(super) fn is_passed_over(&self) -> bool {
        self.state.lock().passed_over
    }

    /// Lets others pass it. It is notified, so that it takes its place again as soon as it reacts.
    pub(super) fn pass_over(&self) {
        let mut state = self.state.lock();
        state.passed_over = true;
        self.wake(state);
    }

    /// Notifies it, so that it asks the store again.
    pub(super) fn notify(&self) {
        self.wake(self.state.lock());
    }

    fn wake(&self, mut state: MutexGuard<'_, WaiterState>) {
        state.notified = true;
        // Without a waker it is not parked, and so it is expected to act already.
        let Some(waker) = state.waker.take() else { return };
        // Before the lock is free: it may react, and park again, at once.
        let overdue = Waiter::expect_reaction(&mut state);
        drop(state);
        self.watch(overdue);
        waker.wake();
    }

    /// Notes that it is expected to act from now on. Returns when it will have taken too long.
    fn expect_reaction(state: &mut WaiterState) -> Tick {
        let now = Clock::system().now();
        state.busy_since = Some(now);
        now + REACTION_MAX
    }

    fn watch(&self, overdue: Tick) {
        if let Some(local) = self.local.upgrade() {
            local.watch(overdue);
        }
    }

    /// Forgets earlier notifications: the waiter asks the store now, which knows of them. Returns true if it was passed
    /// over before.
    pub(super) fn clear_notification(&self) -> bool {
        let mut state = self.state.lock();
        let overdue = Waiter::expect_reaction(&mut state);
        state.notified = false;
        let was_passed_over = std::mem::take(&mut state.passed_over);
        drop(state);
        self.watch(overdue);
        was_passed_over
    }

    /// Returns true if it was notified; otherwise it is parked, and `waker` is woken when it is.
    pub(super) fn is_notified(&self, waker: &Waker) -> bool {
        // Dropped when the lock is free: the last waker of a task may drop anything.
        let _replaced;
        let mut state = self.state.lock();
        if state.notified {
            return true;
        }
        _replaced = state.waker.replace(waker.clone());
        state.busy_since = None;
        false
    }

    /// Sets an alarm for `due` unless one is set that rings first: alarms of a waiter that is often notified must not
    /// pile up.
    pub(super) fn set_alarm(self: &Arc<Self>, due: Option<Tick>) {
        let mut state = self.state.lock();
        state.due = due;
        let Some(due) = due.filter(|due| state.armed.is_none_or(|armed| *due < armed)) else { return };
        state.armed = Some(due);
        drop(state);
        let waiter: Arc<dyn Alarm> = self.clone();
        self.clock.alarm(due, Arc::downgrade(&waiter));
    }
}

impl Alarm for Waiter {
    fn ring(self: Arc<Self>, at: Tick, _: &Clock) {
        let mut state = self.state.lock();
        state.armed = state.armed.filter(|armed| *armed != at);
        self.wake(state);
    }
}
