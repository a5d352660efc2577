//! A cell: one bucket in memory, its lock, and the queue in front of it.
//!
//! Everything happens under one mutex: a lock around all limits of a bucket costs what one compare-and-swap
//! costs, and lock-free buys nothing once several limits must move together. A thread that changes the bucket in a
//! way that may let a waiter pass serves the queue before it releases the lock, so a grant is the commit and no
//! waiter ever has to ask again. Wakers are called after the lock is free.

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Weak};
use std::task::Waker;

use tollgate_core::{
    Bucket, Costs, Denial, Holder, Limits, Packed, Ready, SmallCosts, Span, Status, Tick, Usage,
};

use crate::cell_queue::{QueuedWaiter, Rank, WaitResult};
use crate::locked::{LockedBucket, Wakeups};
use crate::sync::{Mutex, MutexGuard, order_of};
use crate::{Alarm, Clock, Key, Priority, Taken};

/// One bucket in memory with its queue. Made by [`BucketCell::new`] or by a [`Memory`](crate::Memory).
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Tick, demand};
/// use tollgate_store::{BucketCell, Key, ManualClock, Priority};
///
/// let clock = ManualClock::at(Tick::from_secs(10)).clock();
/// let limits = Limits::new([Limit::per_minute("rpm", 1)])?;
/// let cell = BucketCell::new(Key::new(&["user-1"]), limits.clone(), Tick::ZERO);
/// let costs = limits.costs(&demand! { rpm: 1 })?;
/// cell.try_take(&clock, &costs, None, Priority::Normal)?;
/// let denial = cell.try_take(&clock, &costs, None, Priority::Normal).unwrap_err();
/// assert_eq!(denial.wait().map(|wait| wait.as_secs()), Some(60));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BucketCell {
    key: Key,
    inner: Mutex<LockedBucket>,
}

/// A holder of resources, and how long it may be silent before it loses them.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Span, Tick, demand};
/// use tollgate_store::{BucketCell, Key, LeaseTerm, ManualClock, Priority, new_holder_id};
///
/// let manual = ManualClock::at(Tick::from_secs(10));
/// let limits = Limits::new([Limit::resource("slots", 1)])?;
/// let cell = BucketCell::new(Key::new(&["pool"]), limits.clone(), Tick::ZERO);
/// let term = LeaseTerm { holder: new_holder_id(), ttl: Span::from_secs(30) };
/// cell.try_take(&manual.clock(), &limits.costs(&demand! { slots: 1 })?, Some(term), Priority::Normal)?;
///
/// manual.advance(Span::from_secs(20));
/// assert!(cell.renew(&manual.clock(), term), "a heartbeat in time");
/// manual.advance(Span::from_secs(31));
/// assert!(!cell.renew(&manual.clock(), term), "the slot is free again");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseTerm {
    /// The holder, unique among all.
    pub holder: u128,
    /// The longest time without a heartbeat.
    pub ttl: Span,
}

impl LeaseTerm {
    /// Returns the holder whose term begins at `now`.
    pub fn starting(self, now: Tick) -> Holder {
        Holder { id: self.holder, expires: now + self.ttl }
    }
}

impl BucketCell {
    /// Returns a cell with a fresh bucket as of `then`; time before that does not count for it.
    pub fn new(key: Key, limits: Limits, then: Tick) -> Arc<BucketCell> {
        let bucket = Bucket::fresh(&limits, then);
        Arc::new(BucketCell {
            key,
            inner: Mutex::new(LockedBucket { limits, bucket, usage: None, waiting: None }),
        })
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Where it stands in the order in which several cells are locked.
    pub(crate) fn lock_order(&self) -> usize {
        order_of(&self.inner)
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, LockedBucket> {
        self.inner.lock()
    }

    /// Returns a cell like this one for a forked process: with neither the waiters of the parent nor what its leases hold.
    /// `None` if a thread of the parent had it locked at the instant of the fork, so that its state is not known.
    pub fn of_a_fork(&self) -> Option<Arc<BucketCell>> {
        let inner = self.inner.try_lock()?.of_a_fork();
        Some(Arc::new(BucketCell { key: self.key.clone(), inner: Mutex::new(inner) }))
    }

    /// Lets go of the lock, and does what must be done without it.
    pub(crate) fn finish(
        self: &Arc<Self>,
        inner: MutexGuard<'_, LockedBucket>,
        after: Wakeups,
        clock: &Clock,
    ) {
        drop(inner);
        self.follow_up(after, clock);
    }

    /// Sets the alarm and wakes the waiters. The caller holds no lock: a waker may do anything.
    pub(crate) fn follow_up(self: &Arc<Self>, after: Wakeups, clock: &Clock) {
        if let Some(at) = after.alarm {
            let this: Arc<dyn Alarm> = self.clone();
            let alarm: Weak<dyn Alarm> = Arc::downgrade(&this);
            clock.alarm(at, alarm);
        }
        if let Some(at) = after.watch {
            self.watch(at, clock);
        }
        wake_all(after.wakers);
    }

    /// Looks at `at`, by the clock of the system, for grants that are not collected.
    #[cold]
    fn watch(self: &Arc<Self>, at: Tick, clock: &Clock) {
        let watch: Arc<dyn Alarm> =
            Arc::new(UncollectedAlarm { cell: Arc::downgrade(self), clock: clock.clone() });
        Clock::system().alarm(at, Arc::downgrade(&watch));
        // Dropped when the lock is free. If no waiter is left, there is nothing to look for.
        let _replaced;
        if let Some(waiting) = &mut self.lock().waiting {
            _replaced = waiting.watch.replace(watch);
        }
    }

    /// Takes `costs` now if no caller waits, the bucket is plain and they fit, which is the common case; otherwise
    /// changes nothing and returns `None`, and [`try_take`](BucketCell::try_take) has the reason.
    ///
    /// Inlined, because the call would be a tenth of all that it does. The time is read before the lock is taken, which so
    /// is held for less than half as long: if it had to be waited for, the bucket is later than that, and never goes back.
    // Hidden: the fast path of sibling crates, as are `take_plain_under` and `settle_packed`.
    #[doc(hidden)]
    #[inline(always)]
    pub fn take_plain(&self, clock: &Clock, costs: &SmallCosts) -> Option<Tick> {
        let now = clock.now();
        let mut inner = self.lock();
        let LockedBucket { limits, bucket, waiting, .. } = &mut *inner;
        if waiting.is_some() {
            return None;
        }
        bucket.take_plain(limits, now, costs)
    }

    /// Takes `costs` now, or returns why they do not fit. Overtakes no waiter.
    ///
    /// # Errors
    ///
    /// [`Denial`] with the status of every limit; nothing has changed.
    pub fn try_take(
        &self,
        clock: &Clock,
        costs: &Costs,
        term: Option<LeaseTerm>,
        priority: Priority,
    ) -> Result<Taken, Box<Denial>> {
        let mut inner = self.lock();
        inner.try_take(clock.now(), costs, term, priority)
    }

    /// Settles what was taken with what was used, and lets waiters pass that now can.
    ///
    /// `limits` are those the usage is counted in; if the cell's have changed since, it is carried over by name.
    pub fn settle(self: &Arc<Self>, clock: &Clock, limits: &Limits, usage: &Usage<'_>) {
        let mut inner = self.lock();
        let clock_matters = inner.waiting.is_some() || !inner.limits.refunds_ignore_time() || usage.is_over();
        let now = if clock_matters { clock.now() } else { inner.bucket.stamp() };
        inner.settle(now, limits, usage);
        if inner.waiting.is_some() {
            let after = inner.serve(now);
            self.finish(inner, after, clock);
        }
    }

    /// Settles as [`settle`](BucketCell::settle) does, in the common case: no caller waits, nothing is over-used, and what
    /// was taken is packed. In any other case it changes nothing and returns false.
    #[doc(hidden)]
    #[inline]
    pub fn settle_packed(&self, limits: &Limits, packed: &Packed, used: &[u64; 4]) -> bool {
        self.lock().settle_packed(limits, packed, used)
    }

    /// Keeps the holder's resources for another `ttl`. Returns false if they have expired and are no longer its own.
    pub fn renew(&self, clock: &Clock, term: LeaseTerm) -> bool {
        let now = clock.now();
        let LockedBucket { limits, bucket, .. } = &mut *self.lock();
        bucket.renew(limits, now, term.starting(now))
    }

    /// Drops holders that were silent for too long, grants to the waiters that now can pass, and returns the number of
    /// those holders.
    pub fn expire(self: &Arc<Self>, clock: &Clock) -> usize {
        let now = clock.now();
        let mut inner = self.lock();
        let LockedBucket { limits, bucket, .. } = &mut *inner;
        let expired = bucket.expire(limits, now);
        let after = inner.serve(now);
        self.finish(inner, after, clock);
        expired
    }

    /// Returns the status of every limit.
    pub fn peek(&self, clock: &Clock) -> Vec<Status> {
        self.snapshot(clock).0
    }

    /// Returns the status of every limit, the number of waiters, and the end of the cooldown if one lasts: all as of one
    /// instant.
    pub fn snapshot(&self, clock: &Clock) -> (Vec<Status>, usize, Option<Tick>) {
        let mut inner = self.lock();
        let now = clock.now();
        inner.take_back_for_newcomer(now);
        let waiting = inner.waiting.as_ref();
        let cooling_until = waiting.map(|waiting| waiting.closed_until).filter(|until| *until > now);
        (
            inner.bucket.peek(&inner.limits, now),
            waiting.map_or(0, |waiting| waiting.queue.len()),
            cooling_until,
        )
    }

    /// Returns when `costs` would be admitted to a newcomer, as far as is known now.
    pub fn ready(&self, clock: &Clock, costs: &Costs, priority: Priority) -> Ready {
        let now = clock.now();
        let mut inner = self.lock();
        inner.take_back_for_newcomer(now);
        inner.ready(now, costs, priority)
    }

    /// Returns the limits in force.
    pub fn limits(&self) -> Limits {
        self.lock().limits.clone()
    }

    /// Puts other limits in force at once. What was used is carried over by name; waiters that can now pass are
    /// granted, and those that never could any more are refused.
    pub fn replace_limits(self: &Arc<Self>, clock: &Clock, limits: Limits) {
        let now = clock.now();
        let mut inner = self.lock();
        inner.adopt(now, &limits);
        let after = inner.serve(now);
        self.finish(inner, after, clock);
    }

    /// Admits no caller before `until`. A later end extends the cooldown, an earlier one does not shorten it.
    pub fn cool_down(self: &Arc<Self>, clock: &Clock, until: Tick) {
        let now = clock.now();
        let mut inner = self.lock();
        let waiting = inner.waiting.get_or_insert_default();
        waiting.closed_until = waiting.closed_until.max(until);
        let after = inner.serve(now);
        self.finish(inner, after, clock);
    }

    /// Ends the cooldown, if one lasts.
    pub fn end_cool_down(self: &Arc<Self>, clock: &Clock) {
        let now = clock.now();
        let mut inner = self.lock();
        if let Some(waiting) = &mut inner.waiting {
            waiting.closed_until = Tick::ZERO;
        }
        let after = inner.serve(now);
        self.finish(inner, after, clock);
    }

    /// Returns the end of the cooldown, if one lasts.
    pub fn cooling_until(&self, clock: &Clock) -> Option<Tick> {
        let now = clock.now();
        let inner = self.lock();
        inner.waiting.as_ref().map(|waiting| waiting.closed_until).filter(|until| *until > now)
    }

    /// Gives credit of these limits that no caller had taken, up to what is full, and serves the waiters.
    pub fn top_up(self: &Arc<Self>, clock: &Clock, limits: &Limits, credit: &Costs) {
        let mut inner = self.lock();
        let now = clock.now();
        inner.top_up(now, limits, credit);
        if inner.waiting.is_some() {
            let after = inner.serve(now);
            self.finish(inner, after, clock);
        }
    }

    /// Returns the status that these limits would have if they came with a call now. Changes nothing.
    pub fn peek_under(&self, clock: &Clock, limits: &Limits) -> Vec<Status> {
        let inner = self.lock();
        let now = clock.now();
        let joined = inner.limits.merged(limits).unwrap_or_else(|_| limits.clone());
        let mut bucket = inner.bucket.clone();
        if inner.limits != joined {
            bucket.adopt(&inner.limits, &joined, now);
        }
        let statuses = bucket.peek(&joined, now);
        statuses.into_iter().filter(|status| limits.index(status.limit().name()).is_some()).collect()
    }

    /// Returns the number of waiters.
    pub fn waiting(&self) -> usize {
        self.lock().waiting.as_ref().map_or(0, |waiting| waiting.queue.len())
    }

    /// Takes a waiter out of the queue. A grant that it has not collected is given back.
    pub(crate) fn cancel(self: &Arc<Self>, clock: &Clock, rank: Rank, term: Option<LeaseTerm>) {
        let now = clock.now();
        let mut inner = self.lock();
        let Some(waiting) = &mut inner.waiting else { return };
        // Kept until the lock is free: dropping its waker may drop a task that waits here, too.
        let waiter = waiting.queue.remove(rank);
        if let (None, Some(WaitResult::Granted { taken, waiter: QueuedWaiter { costs, .. }, .. })) =
            (&waiter, waiting.queue.take_result(rank))
        {
            let limits = inner.limits.clone();
            let nothing = vec![0; costs.len()];
            let holder = term.map(|term| term.holder);
            inner.settle(now, &limits, &Usage { at: taken.at, reserved: &costs, used: &nothing, holder });
        }
        let after = inner.serve(now);
        self.finish(inner, after, clock);
    }

    /// Returns whether the bucket was forgotten while a caller had the cell: nothing can be taken from it any more, and
    /// no caller sees what is settled on it. A caller that still wants the bucket looks it up again.
    pub fn is_removed(&self) -> bool {
        self.lock().is_removed()
    }

    /// Forgets the bucket for all callers that have the cell. The caller of this function follows up.
    pub(crate) fn remove(&self, now: Tick) -> Wakeups {
        let mut inner = self.lock();
        inner.remove();
        inner.serve(now)
    }
}

impl Alarm for BucketCell {
    fn ring(self: Arc<Self>, at: Tick, clock: &Clock) {
        let now = clock.now();
        let mut inner = self.lock();
        inner.alarm_rang(at);
        let after = inner.serve(now);
        self.finish(inner, after, clock);
    }
}

/// Looks for grants of a cell that are not collected. It rings by the clock of the system; the cell may go by another.
struct UncollectedAlarm {
    cell: Weak<BucketCell>,
    clock: Clock,
}

impl Alarm for UncollectedAlarm {
    fn ring(self: Arc<Self>, _: Tick, _: &Clock) {
        let Some(cell) = self.cell.upgrade() else { return };
        let now = self.clock.now();
        let mut inner = cell.lock();
        inner.watch_rang();
        let after = inner.serve(now);
        cell.finish(inner, after, &self.clock);
    }
}

/// Wakes all waiters, also if the waker of one panics; that panic then goes on.
fn wake_all(wakers: Vec<Waker>) {
    let mut panicked = None;
    for waker in wakers {
        panicked = catch_unwind(AssertUnwindSafe(|| waker.wake())).err().or(panicked);
    }
    if let Some(panic) = panicked {
        resume_unwind(panic);
    }
}
