//! What the lock of a cell guards: the limits in force, the bucket, and the waiters.
//!
//! Everything here happens under that lock. What must happen without it, because a waker may do anything, is left
//! to the [`Wakeups`].

use std::sync::Arc;
use std::task::Waker;

use tollgate_core::{Bucket, Costs, Denial, Limits, Packed, Ready, SmallCosts, Take, Tick, Usage};

use crate::cell_queue::{CellQueue, QueuedWaiter, WaitResult};
use crate::usage::Sums;
use crate::{Alarm, LeaseTerm, Priority, Taken, stored_bucket};

pub(crate) struct LockedBucket {
    pub(crate) limits: Limits,
    pub(crate) bucket: Bucket,
    /// What was used in the current hour and is in no record, if the bucket is metered. In a box, because most buckets are not:
    /// idle cells are many and stay small.
    pub(crate) usage: Option<Box<Sums>>,
    /// Only while a caller waits, a cooldown lasts or an alarm is set: idle cells are many and stay small.
    pub(crate) waiting: Option<Box<WaitState>>,
}

#[derive(Default)]
pub(crate) struct WaitState {
    pub(crate) queue: CellQueue,
    /// No caller is admitted before this.
    pub(crate) closed_until: Tick,
    /// Set if a cooldown kept waiters from being served, so that their claims are not known.
    unserved: bool,
    /// The alarms that are set, the next one last: each was set because it comes before those that were.
    armed: Vec<Tick>,
    /// True if an alarm of the clock of the system is set to check for grants that are not collected.
    is_watched: bool,
    /// That alarm, which is dropped with the queue.
    pub(crate) watch: Option<Arc<dyn Alarm>>,
    /// Waiters that were refused because they can never pass, and have yet to be woken.
    refused: Vec<Waker>,
    /// The bucket was forgotten while a caller had the cell. No caller is admitted any more.
    is_removed: bool,
}

impl WaitState {
    /// Returns whether no caller waits, no waiter has yet to collect its result, and no cooldown lasts.
    pub(crate) fn is_idle(&self, now: Tick) -> bool {
        self.queue.is_idle() && self.closed_until <= now
    }

    fn closed_until_after(&self, now: Tick) -> Ready {
        if self.is_removed {
            return Ready::Unknown;
        }
        if self.closed_until > now { Ready::At(self.closed_until) } else { Ready::Now }
    }
}

/// The wakers to call and the alarms to set, once the lock is free.
#[derive(Default)]
pub(crate) struct Wakeups {
    pub(crate) wakers: Vec<Waker>,
    pub(crate) alarm: Option<Tick>,
    /// When to check for grants that are not collected, by the clock of the system.
    pub(crate) watch: Option<Tick>,
}

impl LockedBucket {
    /// Takes `costs`, which are counted in `limits`, if no caller waits, these very limits are in force, the bucket is plain
    /// and they fit.
    #[inline]
    pub(crate) fn take_plain_under(
        &mut self,
        now: Tick,
        limits: &Limits,
        costs: &SmallCosts,
    ) -> Option<Tick> {
        if self.waiting.is_some() || !self.limits.same(limits) {
            return None;
        }
        self.bucket.take_plain(&self.limits, now, costs)
    }

    /// Settles what was taken packed, if no caller waits, these very limits are in force and nothing is over-used. `false`,
    /// with nothing changed, if not.
    #[inline]
    pub(crate) fn settle_packed(&mut self, limits: &Limits, packed: &Packed, used: &[u64; 4]) -> bool {
        self.waiting.is_none()
            && self.limits.same(limits)
            && self.bucket.settle_packed(&self.limits, packed, used)
    }

    #[inline]
    pub(crate) fn try_take(
        &mut self,
        now: Tick,
        costs: &Costs,
        term: Option<LeaseTerm>,
        priority: Priority,
    ) -> Result<Taken, Box<Denial>> {
        if !self.fits(now, costs, priority) {
            return Err(Box::new(self.denial(now, costs, priority)));
        }
        let holder = term.map(|term| term.starting(now));
        let at = self.bucket.commit(&self.limits, now, &Take { costs, holder });
        Ok(Taken { at, warnings: self.bucket.warnings(&self.limits, now) })
    }

    /// Returns whether a newcomer passes: no waiter holds it back, no cooldown lasts, and it fits.
    #[inline(always)]
    pub(crate) fn fits(&mut self, now: Tick, costs: &Costs, priority: Priority) -> bool {
        (self.waiting.is_none() || self.admits_newcomer(now, costs, priority))
            && self.bucket.fits(&self.limits, now, costs)
    }

    /// Returns whether a newcomer may try, in a cell with waiters or a cooldown. It is a function of its own, so that
    /// the common path is small enough to be inlined.
    #[inline(never)]
    fn admits_newcomer(&mut self, now: Tick, costs: &Costs, priority: Priority) -> bool {
        self.take_back_for_newcomer(now);
        self.is_open(now, costs, priority)
    }

    /// Returns why a newcomer does not pass, with the cooldown and the waiters ahead of it.
    #[cold]
    pub(crate) fn denial(&self, now: Tick, costs: &Costs, priority: Priority) -> Denial {
        let denial = self.bucket.denial(&self.limits, now, costs);
        if self.waiting.is_some() { denial.not_before(self.ready(now, costs, priority)) } else { denial }
    }

    /// Returns whether a newcomer may try at all: no cooldown lasts, and no waiter claims what it takes from.
    #[inline]
    pub(crate) fn is_open(&self, now: Tick, costs: &Costs, priority: Priority) -> bool {
        let Some(waiting) = &self.waiting else { return true };
        let is_held_back = || waiting.unserved || waiting.queue.is_ahead_of(priority, now, costs.mask());
        !waiting.is_removed && waiting.closed_until <= now && !is_held_back()
    }

    /// As [`is_open`](LockedBucket::is_open), for costs that are counted in `limits`.
    pub(crate) fn is_open_under(
        &self,
        limits: &Limits,
        now: Tick,
        costs: &Costs,
        priority: Priority,
    ) -> bool {
        if self.waiting.is_none() || self.limits.same_layout(limits) {
            return self.is_open(now, costs, priority);
        }
        self.is_open(now, &costs.remapped(limits, &self.limits), priority)
    }

    /// Returns when a newcomer would pass: after the cooldown, and after the waiters ahead of it.
    pub(crate) fn ready(&self, now: Tick, costs: &Costs, priority: Priority) -> Ready {
        self.ready_under(&self.limits, &self.bucket, now, costs, priority)
    }

    /// As [`ready`](LockedBucket::ready), as if `limits` were in force and the bucket were `bucket`; `costs` are
    /// counted in those limits.
    pub(crate) fn ready_under(
        &self,
        limits: &Limits,
        bucket: &Bucket,
        now: Tick,
        costs: &Costs,
        priority: Priority,
    ) -> Ready {
        let Some(waiting) = &self.waiting else { return bucket.ready(limits, now, costs) };
        let sum = if limits.same_layout(&self.limits) {
            let mut sum = waiting.queue.costs_ahead_of(priority, now, costs.mask(), self.limits.len());
            sum.add(costs);
            sum
        } else {
            let mask = costs.remapped(limits, &self.limits).mask();
            let ahead = waiting.queue.costs_ahead_of(priority, now, mask, self.limits.len());
            let mut sum = ahead.remapped(&self.limits, limits);
            sum.add(costs);
            sum
        };
        bucket.ready(limits, now, &sum).later(self.closed_until(now))
    }

    /// Returns whether the bucket was used under limits of a later version than these, if they have one.
    pub(crate) fn is_past(&self, limits: &Limits) -> bool {
        limits.version() != 0 && self.limits.version() > limits.version()
    }

    /// Returns the copy for a forked process: without waiters, because they are threads and tasks of the parent, without held
    /// resources, because every lease is the parent's, and without usage to be written, which the parent writes. What was used
    /// of rates and a cooldown stay.
    pub(crate) fn of_a_fork(&self) -> LockedBucket {
        let mut bucket = self.bucket.clone();
        bucket.free_resources(&self.limits);
        let waiting =
            self.waiting.as_ref().filter(|waiting| waiting.is_removed || waiting.closed_until > Tick::ZERO);
        let waiting = waiting.map(|waiting| {
            let (closed_until, is_removed) = (waiting.closed_until, waiting.is_removed);
            Box::new(WaitState { closed_until, is_removed, ..WaitState::default() })
        });
        LockedBucket { limits: self.limits.clone(), bucket, usage: None, waiting }
    }

    /// Puts limits in force that are [not past](LockedBucket::is_past). The caller serves the queue afterwards.
    pub(crate) fn put_in_force(&mut self, now: Tick, limits: &Limits) {
        if !self.is_under(limits) {
            self.adopt(now, limits);
        } else if limits.version() >= self.limits.version() {
            self.limits = limits.clone();
        }
    }

    /// Puts limits in force that a take was denied under, if they are later or no lower than those in force.
    pub(crate) fn adopt_denied_limits(&mut self, now: Tick, limits: &Limits) {
        if limits.adopted_on_denial(&self.limits) {
            self.put_in_force(now, limits);
        }
    }

    /// Gives credit that is counted in `limits`. The caller serves the queue afterwards.
    pub(crate) fn top_up(&mut self, now: Tick, limits: &Limits, credit: &Costs) {
        stored_bucket::top_up(&mut self.bucket, &self.limits, now, limits, credit);
    }

    pub(crate) fn settle(&mut self, now: Tick, limits: &Limits, usage: &Usage<'_>) {
        self.bucket.settle_counted_in(limits, &self.limits, now, usage);
    }

    /// Puts other limits in force, and refuses waiters that can never pass under them. The caller serves the queue
    /// afterwards.
    pub(crate) fn adopt(&mut self, now: Tick, limits: &Limits) {
        let old = std::mem::replace(&mut self.limits, limits.clone());
        self.bucket.adopt(&old, limits, now);
        if let (Some(waiting), false) = (&mut self.waiting, limits.same_layout(&old)) {
            waiting.queue.for_each_costs(|costs| *costs = costs.remapped(&old, limits));
        }
        self.refuse_impossible();
    }

    /// Returns whether these limits are in force.
    #[inline]
    pub(crate) fn is_under(&self, limits: &Limits) -> bool {
        self.limits.same(limits) || self.limits == *limits
    }

    /// Puts limits in force that came with a call, beside those that came with others: a call that does not name a
    /// limit must not remove it. Returns the costs, counted in the limits then in force.
    ///
    /// If there are more names than a set may have, only those of this call stay.
    #[cold]
    pub(crate) fn join(&mut self, now: Tick, limits: &Limits, costs: &Costs) -> Costs {
        let joined = self.limits.merged(limits).unwrap_or_else(|_| limits.clone());
        if self.limits != joined {
            self.adopt(now, &joined);
        }
        costs.remapped(limits, &self.limits)
    }

    /// Returns when the cooldown is over.
    pub(crate) fn closed_until(&self, now: Tick) -> Ready {
        self.waiting.as_ref().map_or(Ready::Now, |waiting| waiting.closed_until_after(now))
    }

    /// Grants to every waiter that can pass, then times out those whose deadline has come.
    pub(crate) fn serve(&mut self, now: Tick) -> Wakeups {
        self.take_back(now);
        let refused = self.waiting.as_mut().map(|waiting| std::mem::take(&mut waiting.refused));
        let mut wakers = refused.unwrap_or_default();
        let ready = loop {
            let ready = self.grant(now, &mut wakers);
            // One at a time: it may have held back waiters whose deadline has passed as well.
            match self.time_out(now) {
                Some(waker) => wakers.push(waker),
                None => break ready,
            }
        };
        let alarm = self.next_alarm(now, ready);
        let watch = self.next_watch();
        self.drop_idle_queue(now);
        Wakeups { wakers, alarm, watch }
    }

    /// Takes back grants that waiters have not collected in time, so that other waiters can have them. The caller
    /// serves the queue afterwards.
    fn take_back(&mut self, now: Tick) {
        let LockedBucket { limits, bucket, waiting, .. } = self;
        let Some(waiting) = waiting.as_mut().filter(|waiting| !waiting.is_removed) else { return };
        let mut is_changed = false;
        while let Some((at, QueuedWaiter { costs, term, .. })) = waiting.queue.pass_over() {
            let nothing = vec![0; costs.len()];
            let holder = term.map(|term| term.holder);
            bucket.settle(limits, now, &Usage { at, reserved: costs, used: &nothing, holder });
            is_changed = true;
        }
        if is_changed {
            // Limits may have been lowered since it was granted.
            self.refuse_impossible();
        }
    }

    /// Takes back uncollected grants for a caller that does not wait. If waiters are queued, they are served first,
    /// when the alarm rings.
    pub(crate) fn take_back_for_newcomer(&mut self, now: Tick) {
        if self.waiting.as_ref().is_some_and(|waiting| waiting.queue.is_empty()) {
            self.take_back(now);
        }
    }

    /// Returns when to check for grants that are not collected, if a waiter is queued for them and no alarm is set.
    fn next_watch(&mut self) -> Option<Tick> {
        let waiting =
            self.waiting.as_mut().filter(|waiting| !waiting.is_watched && !waiting.queue.is_empty())?;
        // A model has no timer.
        let at = waiting.queue.collected_by().filter(|_| cfg!(not(loom)))?;
        waiting.is_watched = true;
        Some(at)
    }

    /// Records that the alarm for uncollected grants has rung.
    pub(crate) fn watch_rang(&mut self) {
        if let Some(waiting) = &mut self.waiting {
            waiting.is_watched = false;
        }
    }

    /// Drops the queue when no caller waits, no waiter has yet to collect its result, no cooldown lasts and no alarm is
    /// set: an alarm that is lost would be set again by the next waiter, and waiters that come and go would accumulate
    /// alarms.
    pub(crate) fn drop_idle_queue(&mut self, now: Tick) {
        if self
            .waiting
            .as_ref()
            .is_some_and(|waiting| waiting.is_idle(now) && waiting.armed.is_empty() && !waiting.is_removed)
        {
            self.waiting = None;
        }
    }

    /// Serves the first waiter of each class, in order. A waiter that no other holds back is granted its costs, or
    /// claims the limits that it is short of. Returns when the next of those that are short will pass, if it is known.
    fn grant(&mut self, now: Tick, wakers: &mut Vec<Waker>) -> Option<Tick> {
        let LockedBucket { limits, bucket, waiting, .. } = self;
        let waiting = waiting.as_mut().filter(|waiting| !waiting.is_removed)?;
        waiting.unserved = waiting.closed_until > now && !waiting.queue.is_empty();
        if waiting.closed_until > now {
            return None;
        }
        let (mut looked_at, mut next) = (None, None);
        while let Some(rank) = waiting.queue.next_first(looked_at) {
            looked_at = Some(rank);
            let Some(QueuedWaiter { costs, term, .. }) = waiting.queue.waiter(rank) else { continue };
            if waiting.queue.is_claimed_before(rank, costs.mask()) {
                continue;
            }
            if bucket.fits(limits, now, costs) {
                let holder = term.map(|term| term.starting(now));
                let at = bucket.commit(limits, now, &Take { costs, holder });
                let taken = Taken { at, warnings: bucket.warnings(limits, now) };
                wakers.extend(waiting.queue.grant(rank, taken, now));
                continue;
            }
            let shortage = bucket.shortage(limits, now, costs);
            waiting.queue.claim(rank, shortage);
            if let Ready::At(tick) = shortage.ready {
                next = Some(next.map_or(tick, |next: Tick| next.min(tick)));
            }
        }
        next
    }

    fn time_out(&mut self, now: Tick) -> Option<Waker> {
        let waiting = self.waiting.as_mut()?;
        let rank = waiting.queue.overdue(now)?;
        let mut costs = waiting.queue.waiter(rank)?.costs.clone();
        let denial = self.bucket.denial(&self.limits, now, &costs);
        // The first waiter ahead of it would have passed before it. Adding all of them takes too long for a waiter that
        // gives up.
        if let Some(ahead) = waiting.queue.first_ahead_of(rank, costs.mask()) {
            costs.add(ahead);
        }
        let ready = self.bucket.ready(&self.limits, now, &costs).later(waiting.closed_until_after(now));
        let denial = Box::new(denial.not_before(ready));
        waiting.queue.complete(rank, |waiter| {
            (WaitResult::TimedOut { denial, waited: now.since(waiter.since) }, waiter.waker)
        })
    }

    /// Returns when the queue must be served again, if no earlier alarm is set. `ready` is when the next waiter passes
    /// if no cooldown lasts.
    fn next_alarm(&mut self, now: Tick, ready: Option<Tick>) -> Option<Tick> {
        let waiting = self.waiting.as_mut()?;
        let cooldown = Some(waiting.closed_until).filter(|until| *until > now);
        let ready = ready.map(|ready| ready.max(now));
        let next = [ready, waiting.queue.next_deadline(), cooldown].into_iter().flatten().min()?;
        if waiting.armed.last().is_some_and(|armed| *armed <= next) {
            return None;
        }
        waiting.armed.push(next);
        Some(next)
    }

    /// Records that the alarm for `at` has rung. It may ring a little early by the clock of the cell, which may have
    /// stepped back since the timer read it; then it is set again.
    pub(crate) fn alarm_rang(&mut self, at: Tick) {
        if let Some(waiting) = &mut self.waiting {
            waiting.armed.retain(|armed| *armed != at);
        }
    }

    /// Returns whether no caller waits, and the bucket equals a fresh one.
    pub(crate) fn is_idle(&self, now: Tick) -> bool {
        self.waiting.as_ref().is_none_or(|waiting| waiting.is_idle(now))
            && self.bucket.is_fresh(&self.limits, now)
    }

    /// Returns whether the bucket was forgotten.
    pub(crate) fn is_removed(&self) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| waiting.is_removed)
    }

    /// Forgets the bucket and its usage for all callers that still have the cell, and refuses its waiters. The caller serves
    /// the queue afterwards.
    pub(crate) fn remove(&mut self) {
        self.usage = None;
        let waiting = self.waiting.get_or_insert_default();
        waiting.is_removed = true;
        for rank in waiting.queue.ranks() {
            let waker = waiting.queue.complete(rank, |waiter| (WaitResult::Gone, waiter.waker));
            waiting.refused.extend(waker);
        }
    }

    /// Refuses every waiter that could never pass any more.
    fn refuse_impossible(&mut self) {
        let Some(waiting) = &mut self.waiting else { return };
        for rank in waiting.queue.ranks() {
            let waiter = waiting.queue.waiter(rank);
            if let Some(why) = waiter.and_then(|waiter| self.limits.impossible(&waiter.costs)) {
                let waker =
                    waiting.queue.complete(rank, |waiter| (WaitResult::Impossible(why), waiter.waker));
                waiting.refused.extend(waker);
            }
        }
    }
}
