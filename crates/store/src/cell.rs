//! A cell: one bucket in memory, its lock, and the queue in front of it.
//!
//! Everything happens under one mutex: a lock around all limits of a bucket costs what one compare-and-swap
//! costs, and lock-free buys nothing once several limits must move together. Whoever changes the bucket in a
//! way that may let a waiter pass serves the queue before letting go of the lock, so a grant is the commit and
//! nobody ever has to look again. Wakers are called after the lock is free.

use std::sync::{Arc, Weak};
use std::task::Waker;

use tollgate_core::{Bucket, Costs, Denial, Holder, Limits, Packed, Ready, Span, Status, Take, Tick, Usage};

use crate::queue::{Fate, Queue, Rank, Waiter};
use crate::sync::{Mutex, MutexGuard, order_of};
use crate::{Alarm, Clock, Key, Priority};

/// How much too early an alarm may ring by the clock of the cell, which may have stepped back a little since the
/// timer read it. Such an alarm is set again; to take it for one that is still set would be to wait for ever.
const EARLY_MAX: Span = Span::from_millis(1);

/// One bucket in memory with its queue. Made by [`Cell::new`] or by a [`Memory`](crate::Memory).
pub struct Cell {
    key: Key,
    inner: Mutex<Inner>,
}

pub(crate) struct Inner {
    pub(crate) limits: Limits,
    pub(crate) bucket: Bucket,
    /// Only while somebody waits, a cooldown lasts or an alarm is set: idle cells are many and stay small.
    pub(crate) side: Option<Box<Side>>,
}

#[derive(Default)]
pub(crate) struct Side {
    pub(crate) queue: Queue,
    /// Nobody is admitted before this.
    pub(crate) closed_until: Tick,
    /// The next alarm that is set.
    armed: Option<Tick>,
    /// Waiters who were told that they can never pass under new limits, and have yet to be woken.
    refused: Vec<Waker>,
}

impl Side {
    /// Whether nobody waits, nobody has yet to hear, and no cooldown lasts.
    fn is_idle(&self, now: Tick) -> bool {
        self.queue.is_idle() && self.closed_until <= now
    }

    fn closed_until_after(&self, now: Tick) -> Ready {
        if self.closed_until > now { Ready::At(self.closed_until) } else { Ready::Now }
    }
}

/// How long a holder of resources may be silent before they are taken from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Term {
    /// The holder, unique among all.
    pub holder: u128,
    /// How long it may be silent.
    pub ttl: Span,
}

impl Term {
    pub(crate) fn starting(self, now: Tick) -> Holder {
        Holder { id: self.holder, expires: now + self.ttl }
    }
}

/// Whom to wake and when to look again, once the lock is free.
#[derive(Default)]
pub(crate) struct Aftermath {
    wakers: Vec<Waker>,
    alarm: Option<Tick>,
}

impl Cell {
    /// A cell with a fresh bucket as of `then`; time before that does not count for it.
    pub fn new(key: Key, limits: Limits, then: Tick) -> Arc<Cell> {
        let bucket = Bucket::fresh(&limits, then);
        Arc::new(Cell { key, inner: Mutex::new(Inner { limits, bucket, side: None }) })
    }

    pub(crate) fn key(&self) -> &Key {
        &self.key
    }

    /// Where it stands in the order in which several cells are locked.
    pub(crate) fn lock_order(&self) -> usize {
        order_of(&self.inner)
    }

    #[inline]
    pub(crate) fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock()
    }

    /// Lets go of the lock, and does what must be done without it.
    pub(crate) fn finish(self: &Arc<Self>, inner: MutexGuard<'_, Inner>, after: Aftermath, clock: &Clock) {
        drop(inner);
        self.follow_up(after, clock);
    }

    /// Sets the alarm and wakes whom it is for. Whoever calls this holds no lock: a waker may do anything.
    pub(crate) fn follow_up(self: &Arc<Self>, after: Aftermath, clock: &Clock) {
        if let Some(at) = after.alarm {
            let this: Arc<dyn Alarm> = self.clone();
            let alarm: Weak<dyn Alarm> = Arc::downgrade(&this);
            clock.alarm(at, alarm);
        }
        after.wakers.into_iter().for_each(Waker::wake);
    }

    /// Takes `costs` now if nobody waits, the bucket is plain and they fit, which is the common case; otherwise
    /// does nothing, and [`try_take`](Cell::try_take) knows more.
    pub fn take_plain(&self, clock: &Clock, costs: &Costs) -> Option<Tick> {
        let mut inner = self.lock();
        let Inner { limits, bucket, side } = &mut *inner;
        if side.is_some() {
            return None;
        }
        bucket.take_plain(limits, clock.now(), costs)
    }

    /// Takes `costs` now, or says why not. Does not overtake those who wait.
    ///
    /// # Errors
    ///
    /// [`Denial`] with the status of every limit; nothing has changed.
    #[allow(
        clippy::result_large_err,
        reason = "a denial is a value, and allocates nothing for up to 8 limits"
    )]
    pub fn try_take(
        &self,
        clock: &Clock,
        costs: &Costs,
        term: Option<Term>,
        priority: Priority,
    ) -> Result<Tick, Box<Denial>> {
        let mut inner = self.lock();
        inner.try_take(clock.now(), costs, term, priority)
    }

    /// Settles what was taken with what was used, and lets waiters pass that now can.
    ///
    /// `limits` are those the usage is counted in; if the cell's have changed since, it is carried over by name.
    pub fn settle(self: &Arc<Self>, clock: &Clock, limits: &Limits, usage: &Usage<'_>) {
        let mut inner = self.lock();
        let clock_matters = inner.side.is_some() || !inner.limits.refunds_ignore_time() || usage.is_over();
        let now = if clock_matters { clock.now() } else { inner.bucket.stamp() };
        inner.settle(now, limits, usage);
        if inner.side.is_some() {
            let after = inner.serve(now);
            self.finish(inner, after, clock);
        }
    }

    /// As [`settle`](Cell::settle), for the common case: nobody waits, nothing is over-used, and what was taken is
    /// packed. `false`, with nothing changed, if it is another.
    #[inline]
    pub fn settle_packed(&self, limits: &Limits, packed: &Packed, used: &[u64; 4]) -> bool {
        let mut inner = self.lock();
        let Inner { limits: in_force, bucket, side } = &mut *inner;
        let is_common = side.is_none() && in_force.same(limits) && in_force.refunds_ignore_time();
        is_common && bucket.settle_packed(in_force, bucket.stamp(), packed, used)
    }

    /// Keeps the holder's resources for another `ttl`. `false` if they have expired and are no longer its own.
    pub fn renew(&self, clock: &Clock, term: Term) -> bool {
        let now = clock.now();
        let Inner { limits, bucket, .. } = &mut *self.lock();
        bucket.renew(limits, now, term.starting(now))
    }

    /// Drops holders that were silent for too long, lets waiters pass that now can, and says how many it were.
    pub fn expire(self: &Arc<Self>, clock: &Clock) -> usize {
        let now = clock.now();
        let mut inner = self.lock();
        let Inner { limits, bucket, .. } = &mut *inner;
        let expired = bucket.expire(limits, now);
        let after = inner.serve(now);
        self.finish(inner, after, clock);
        expired
    }

    /// How every limit stands.
    pub fn peek(&self, clock: &Clock) -> Vec<Status> {
        self.snapshot(clock).0
    }

    /// How every limit stands, how many wait, and when the cooldown ends if one lasts: all as of one instant.
    pub fn snapshot(&self, clock: &Clock) -> (Vec<Status>, usize, Option<Tick>) {
        let inner = self.lock();
        let now = clock.now();
        let side = inner.side.as_ref();
        let cooling_until = side.map(|side| side.closed_until).filter(|until| *until > now);
        (inner.bucket.peek(&inner.limits, now), side.map_or(0, |side| side.queue.len()), cooling_until)
    }

    /// When `costs` would be admitted to a newcomer, as far as can be told now.
    pub fn ready(&self, clock: &Clock, costs: &Costs, priority: Priority) -> Ready {
        let now = clock.now();
        self.lock().ready(now, costs, priority)
    }

    /// The limits.
    pub fn limits(&self) -> Limits {
        self.lock().limits.clone()
    }

    /// Puts other limits in force at once. What was used is carried over by name; waiters who can now pass do,
    /// and those who never could any more are told so.
    pub fn replace_limits(self: &Arc<Self>, clock: &Clock, limits: Limits) {
        let now = clock.now();
        let mut inner = self.lock();
        inner.adopt(now, &limits);
        let after = inner.serve(now);
        self.finish(inner, after, clock);
    }

    /// Admits nobody before `until`. A later end extends the cooldown, an earlier one does not shorten it.
    pub fn cool_down(self: &Arc<Self>, clock: &Clock, until: Tick) {
        let now = clock.now();
        let mut inner = self.lock();
        let side = inner.side.get_or_insert_default();
        side.closed_until = side.closed_until.max(until);
        let after = inner.serve(now);
        self.finish(inner, after, clock);
    }

    /// The end of the cooldown, if one lasts.
    pub fn cooling_until(&self, clock: &Clock) -> Option<Tick> {
        let now = clock.now();
        let inner = self.lock();
        inner.side.as_ref().map(|side| side.closed_until).filter(|until| *until > now)
    }

    /// How many wait.
    pub fn waiting(&self) -> usize {
        self.lock().side.as_ref().map_or(0, |side| side.queue.len())
    }

    /// Takes a waiter out of the queue. What it was granted and has not heard of is given back.
    pub(crate) fn cancel(self: &Arc<Self>, clock: &Clock, rank: Rank, term: Option<Term>) {
        let now = clock.now();
        let mut inner = self.lock();
        let Some(side) = &mut inner.side else { return };
        // Kept until the lock is free: dropping its waker may drop a task that waits here, too.
        let waiter = side.queue.remove(rank);
        if let (None, Some(Fate::Granted { at, costs, .. })) = (&waiter, side.queue.forget(rank)) {
            let limits = inner.limits.clone();
            let nothing = vec![0; costs.len()];
            let holder = term.map(|term| term.holder);
            inner.settle(now, &limits, &Usage { at, reserved: &costs, used: &nothing, holder });
        }
        let after = inner.serve(now);
        self.finish(inner, after, clock);
    }

    /// Whether nothing would be lost with the cell: nobody waits, and its bucket equals a fresh one.
    pub(crate) fn is_idle(&self, now: Tick) -> bool {
        let inner = self.lock();
        inner.side.as_ref().is_none_or(|side| side.is_idle(now)) && inner.bucket.is_fresh(&inner.limits, now)
    }
}

impl Alarm for Cell {
    fn ring(self: Arc<Self>, clock: &Clock) {
        let now = clock.now();
        let mut inner = self.lock();
        if let Some(side) = &mut inner.side {
            side.armed = side.armed.filter(|armed| *armed > now + EARLY_MAX);
        }
        let after = inner.serve(now);
        self.finish(inner, after, clock);
    }
}

impl Inner {
    #[allow(
        clippy::result_large_err,
        reason = "a denial is a value, and allocates nothing for up to 8 limits"
    )]
    #[inline]
    pub(crate) fn try_take(
        &mut self,
        now: Tick,
        costs: &Costs,
        term: Option<Term>,
        priority: Priority,
    ) -> Result<Tick, Box<Denial>> {
        if !self.fits(now, costs, priority) {
            return Err(Box::new(self.denial(now, costs, priority)));
        }
        let holder = term.map(|term| term.starting(now));
        Ok(self.bucket.commit(&self.limits, now, &Take { costs, holder }))
    }

    /// Whether a newcomer passes: nobody is ahead of it, no cooldown lasts, and it fits.
    #[inline]
    pub(crate) fn fits(&self, now: Tick, costs: &Costs, priority: Priority) -> bool {
        let open = self.side.is_none() || self.is_open(now, priority);
        open && self.bucket.fits(&self.limits, now, costs)
    }

    /// Why a newcomer does not pass, with the cooldown and those ahead of it in the wait.
    #[cold]
    pub(crate) fn denial(&self, now: Tick, costs: &Costs, priority: Priority) -> Denial {
        let denial = self.bucket.denial(&self.limits, now, costs);
        if self.side.is_some() { denial.not_before(self.ready(now, costs, priority)) } else { denial }
    }

    /// Whether a newcomer may try at all: no cooldown, and nobody ahead of it.
    #[inline]
    pub(crate) fn is_open(&self, now: Tick, priority: Priority) -> bool {
        match &self.side {
            None => true,
            Some(side) => side.closed_until <= now && !side.queue.is_ahead_of(priority, now),
        }
    }

    /// When a newcomer would pass: after the cooldown, and after those ahead of it.
    pub(crate) fn ready(&self, now: Tick, costs: &Costs, priority: Priority) -> Ready {
        self.ready_under(&self.limits, &self.bucket, now, costs, priority)
    }

    /// The same if `limits` were in force and the bucket were `bucket`; `costs` are counted in those.
    pub(crate) fn ready_under(
        &self,
        limits: &Limits,
        bucket: &Bucket,
        now: Tick,
        costs: &Costs,
        priority: Priority,
    ) -> Ready {
        let Some(side) = &self.side else { return bucket.ready(limits, now, costs) };
        let mut sum = side.queue.costs_ahead_of(priority, now, self.limits.len());
        if !limits.has_places_of(&self.limits) {
            sum = sum.moved(&self.limits, limits);
        }
        sum.add(costs);
        bucket.ready(limits, now, &sum).later(self.closed_until(now))
    }

    pub(crate) fn settle(&mut self, now: Tick, limits: &Limits, usage: &Usage<'_>) {
        self.bucket.settle_counted_in(limits, &self.limits, now, usage);
    }

    /// Puts other limits in force, and tells waiters who can never pass under them. Whoever calls this serves.
    pub(crate) fn adopt(&mut self, now: Tick, limits: &Limits) {
        let old = std::mem::replace(&mut self.limits, limits.clone());
        self.bucket.adopt(&old, limits, now);
        if let (Some(side), false) = (&mut self.side, limits.has_places_of(&old)) {
            side.queue.for_each_costs(|costs| *costs = costs.moved(&old, limits));
        }
        self.refuse_impossible();
    }

    /// As [`adopt`](Inner::adopt), and answers whether anything has changed.
    #[inline]
    pub(crate) fn adopt_if_changed(&mut self, now: Tick, limits: &Limits) -> bool {
        let changed = !self.limits.same(limits) && self.limits != *limits;
        if changed {
            self.adopt(now, limits);
        }
        changed
    }

    /// Ready when the cooldown is over.
    pub(crate) fn closed_until(&self, now: Tick) -> Ready {
        self.side.as_ref().map_or(Ready::Now, |side| side.closed_until_after(now))
    }

    /// Grants from the head for as long as it fits, then tells those whose deadline has come.
    pub(crate) fn serve(&mut self, now: Tick) -> Aftermath {
        let refused = self.side.as_mut().map(|side| std::mem::take(&mut side.refused));
        let mut after = Aftermath { wakers: refused.unwrap_or_default(), alarm: None };
        while let Some(waker) = self.grant_head(now).or_else(|| self.time_out(now)) {
            after.wakers.push(waker);
        }
        after.alarm = self.next_alarm(now);
        self.tidy(now);
        after
    }

    /// Drops the queue when nobody waits, nobody has yet to hear, no cooldown lasts and no alarm is set: one that
    /// is forgotten would be set again by the next waiter, and waiters who come and go would pile alarms up.
    pub(crate) fn tidy(&mut self, now: Tick) {
        if self.side.as_ref().is_some_and(|side| side.is_idle(now) && side.armed.is_none()) {
            self.side = None;
        }
    }

    fn grant_head(&mut self, now: Tick) -> Option<Waker> {
        let side = self.side.as_mut().filter(|side| side.closed_until <= now)?;
        let (rank, head) = side.queue.head()?;
        if !self.bucket.fits(&self.limits, now, &head.costs) {
            return None;
        }
        let take = Take { costs: &head.costs, holder: head.term.map(|term| term.starting(now)) };
        let at = self.bucket.commit(&self.limits, now, &take);
        side.queue.decide(rank, |Waiter { costs, since, waker, .. }| {
            (Fate::Granted { at, costs, waited: now.since(since) }, waker)
        })
    }

    fn time_out(&mut self, now: Tick) -> Option<Waker> {
        let side = self.side.as_mut()?;
        let rank = side.queue.overdue(now)?;
        let mut costs = side.queue.waiter(rank)?.costs.clone();
        let denial = self.bucket.denial(&self.limits, now, &costs);
        // The head at least would have gone first. Counting all who are ahead takes too long for one who gives up.
        if let Some((_, head)) = side.queue.head().filter(|(head, _)| *head != rank) {
            costs.add(&head.costs);
        }
        let ready = self.bucket.ready(&self.limits, now, &costs).later(side.closed_until_after(now));
        let denial = Box::new(denial.not_before(ready));
        side.queue
            .decide(rank, |waiter| (Fate::TimedOut { denial, waited: now.since(waiter.since) }, waiter.waker))
    }

    /// When the queue must be looked at again, if no alarm is set that comes first.
    fn next_alarm(&mut self, now: Tick) -> Option<Tick> {
        let side = self.side.as_mut()?;
        let head = side.queue.head().and_then(|(_, head)| {
            let ready = self.bucket.ready(&self.limits, now, &head.costs);
            match ready.later(Ready::At(side.closed_until)) {
                Ready::At(tick) => Some(tick.max(now)),
                Ready::Now | Ready::Unknown => None,
            }
        });
        let cooldown = Some(side.closed_until).filter(|until| *until > now);
        let wanted = [head, side.queue.next_deadline(), cooldown].into_iter().flatten().min()?;
        if side.armed.is_some_and(|armed| armed <= wanted) {
            return None;
        }
        side.armed = Some(wanted);
        Some(wanted)
    }

    /// Tells every waiter who could never pass any more.
    fn refuse_impossible(&mut self) {
        let Some(side) = &mut self.side else { return };
        for rank in side.queue.ranks() {
            let waiter = side.queue.waiter(rank);
            if let Some(why) = waiter.and_then(|waiter| self.limits.impossible(&waiter.costs)) {
                let waker = side.queue.decide(rank, |waiter| (Fate::Impossible(why), waiter.waker));
                side.refused.extend(waker);
            }
        }
    }
}
