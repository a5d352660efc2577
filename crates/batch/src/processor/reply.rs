//! The handling of replies, failures and timers of items.

use tollgate::{Span, Tick};
use tollgate_provider::{Class, FatalKind, Hint};

use super::account::Announced;
use super::call::End;
use super::driver::{Driver, at_least_a_tick, cost_of};
use super::entry::{AbortReason, InFlight, ItemPhase, ItemSlot};
use super::timers::{ItemTimer, TimerKind};
use crate::item::{CallAnswer, CallReply, TokenUsage};
use crate::observe::BatchEvent;
use crate::scope::{Effect, StartQueue};
use crate::{FailureClass, ItemError, StopReason};

/// The reason that is reported if the provider gave none.
const NO_REASON: &str = "the provider gave no reason";

/// The reason of a call that took too long.
const TOO_LONG: &str = "the call took too long";

/// The reason of an item that took too long.
const ITEM_DEADLINE: &str = "the deadline of the item has passed";

/// Why a call has no output.
struct CallFailed {
    class: FailureClass,
    reason: String,
}

impl CallFailed {
    fn new(class: FailureClass, reason: impl Into<String>) -> CallFailed {
        CallFailed { class, reason: reason.into() }
    }
}

impl<P, S: Default, O: 'static> Driver<P, S, O> {
    /// Handles a call that has ended. `Err(true)` means that it panicked, and `Err(false)` that it
    /// was aborted.
    pub(super) fn returned(&mut self, now: Tick, slot: ItemSlot, end: Result<End<O>, bool>) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let at = std::mem::replace(&mut entry.phase, ItemPhase::Waiting);
        let ItemPhase::InFlight(running) = at else { return };
        self.budget.release(entry.load, entry.cost_micros);
        self.waiting_bytes = self.waiting_bytes.saturating_add(entry.payload_bytes);
        match (end, running.abort_reason) {
            (Ok(End::Replied(reply)), _) => self.replied(now, slot, &running, reply),
            (Ok(End::NotStarted), _) | (Err(false), Some(AbortReason::Recalled)) => {
                self.requeue_unstarted(now, slot, &running)
            }
            (Ok(End::Denied(reason)), _) => {
                self.accounts.all[running.account].scope.withdraw();
                self.fail(now, slot, CallFailed::new(FailureClass::Fatal, reason));
            }
            (Err(true), _) => {
                self.record_lost(now, slot, &running);
                self.fail(now, slot, CallFailed::new(FailureClass::Panicked, "the handler panicked"));
            }
            (Err(false), Some(AbortReason::Item)) => {
                self.record_lost(now, slot, &running);
                self.fail(now, slot, CallFailed::new(FailureClass::Deadline, ITEM_DEADLINE));
            }
            (Err(false), _) => {
                self.spend(slot, TokenUsage::Unknown, None);
                let hint = Hint::transient().with_reason(TOO_LONG);
                self.record_reply(now, slot, &running, &hint);
                self.handle_failure(now, slot, running.account, hint);
            }
        }
    }

    /// Puts the item of a call that never started back to the head of its queue.
    fn requeue_unstarted(&mut self, now: Tick, slot: ItemSlot, running: &InFlight) {
        let scope = &mut self.accounts.all[running.account].scope;
        scope.withdraw();
        scope.counters_mut().given_back += 1;
        let Some(entry) = self.entries.get_mut(slot) else { return };
        entry.calls -= 1;
        match self.stopped.clone() {
            Some(why) => self.finish(now, slot, Err(ItemError::Unfinished(why))),
            None => self.accounts.queues[entry.queue].items.put_back(slot),
        }
    }

    /// Handles a call that ended with unknown usage: the estimate counts.
    fn record_lost(&mut self, now: Tick, slot: ItemSlot, running: &InFlight) {
        self.accounts.all[running.account].scope.abandon();
        self.spend(slot, TokenUsage::Unknown, None);
        self.replied_event(now, slot, running, Class::Transient, None);
    }

    /// Handles a handler that made no call, because it knows that the scope is closed or about to
    /// be.
    fn not_sent(&mut self, now: Tick, slot: ItemSlot, running: &InFlight) {
        self.accounts.all[running.account].scope.withdraw();
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.calls -= 1;
        }
        self.reroute(now, slot);
    }

    fn replied(&mut self, now: Tick, slot: ItemSlot, running: &InFlight, reply: CallReply<O>) {
        if !reply.was_sent {
            return self.not_sent(now, slot, running);
        }
        self.call_times.record(now.since(running.started).to_duration());
        self.spend(slot, reply.usage, reply.cost_micros);
        let CallReply { hint, rejected, .. } = reply;
        if let (Some(entry), Some(rejected)) = (self.entries.get_mut(slot), rejected) {
            entry.rejected = Some(rejected);
        }
        self.record_reply(now, slot, running, &hint);
        match (reply.result, hint.class) {
            (CallAnswer::Done(output), _) => self.finish(now, slot, Ok(output)),
            (CallAnswer::Invalid(why), _) => {
                self.accounts.all[running.account].scope.counters_mut().wasted += 1;
                self.retry(now, slot, CallFailed::new(FailureClass::Invalid, why), Span::ZERO);
            }
            (CallAnswer::Refused, Class::Throttled) => self.park(now, slot, running.account, &hint),
            (CallAnswer::Refused, Class::Exhausted { .. } | Class::Fatal(FatalKind::Auth)) => {
                self.reroute(now, slot)
            }
            (CallAnswer::Refused, Class::Fatal(_)) => {
                self.fail(now, slot, CallFailed::new(FailureClass::Fatal, reason(hint)));
            }
            (CallAnswer::Refused, _) => self.handle_failure(now, slot, running.account, hint),
        }
    }

    /// Handles a call that failed in a way that may pass.
    fn handle_failure(&mut self, now: Tick, slot: ItemSlot, account: usize, hint: Hint) {
        let scope = &self.accounts.all[account].scope;
        if scope.closed().is_some() {
            return self.reroute(now, slot);
        }
        if scope.is_out() {
            return self.requeue(now, slot, account, StartQueue::park_behind);
        }
        let advised = hint.advice.map_or(Span::ZERO, Span::covering);
        let class = match hint.class {
            Class::Overloaded => FailureClass::Overloaded,
            _ => FailureClass::Transient,
        };
        self.retry(now, slot, CallFailed::new(class, reason(hint)), advised);
    }

    /// Passes a reply to the scope of its call and to the observer.
    fn record_reply(&mut self, now: Tick, slot: ItemSlot, running: &InFlight, hint: &Hint) {
        self.replied_event(now, slot, running, hint.class, hint.reason.as_deref());
        let scope = &mut self.accounts.all[running.account].scope;
        let run = (running.account, scope.failing_run());
        let entry = self.entries.get_mut(slot);
        let is_blameless = entry.as_ref().is_some_and(|entry| entry.is_blameless(run));
        let effect = scope.reply(now, &running.call, hint, is_blameless);
        if let Some(entry) = entry.filter(|_| hint.class == Class::Transient) {
            entry.failed_in = Some((running.account, scope.failing_run()));
        }
        self.apply_effect(now, running.account, effect, hint);
    }

    fn replied_event(
        &mut self,
        now: Tick,
        slot: ItemSlot,
        running: &InFlight,
        class: Class,
        reason: Option<&str>,
    ) {
        let (Some(observer), Some(entry)) = (&mut self.observer, self.entries.get(slot)) else { return };
        let scope = &self.accounts.all[running.account].name;
        let took = now.since(running.started).to_duration();
        observer.observe(&BatchEvent::Replied { id: &entry.item.id, scope, class, took, reason });
    }

    fn spend(&mut self, slot: ItemSlot, usage: TokenUsage, cost: Option<u64>) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let tokens = match usage {
            TokenUsage::Known(tokens) => tokens,
            TokenUsage::Zero => 0,
            TokenUsage::Unknown => entry.load,
        };
        let cost = cost.unwrap_or(match usage {
            TokenUsage::Zero => 0,
            _ => cost_of(entry.cost_micros, entry.load, tokens),
        });
        entry.tokens_used = entry.tokens_used.saturating_add(tokens);
        entry.cost_spent = entry.cost_spent.saturating_add(cost);
        self.budget.spend(tokens, cost);
    }

    /// Applies the effect of a reply to all items that share the scope.
    fn apply_effect(&mut self, now: Tick, account: usize, effect: Effect, hint: &Hint) {
        let reason = hint.reason.as_deref().unwrap_or(NO_REASON);
        match effect {
            Effect::Opened(until) => {
                self.announce(now, account, until, reason);
                self.recall(account);
                self.report(now, account, until);
            }
            Effect::Changed(until) => {
                self.announce(now, account, until, reason);
                self.report(now, account, until);
            }
            Effect::Closed(closed) => {
                let scope = self.accounts.all[account].name.clone();
                self.emit(&BatchEvent::Closed { scope: &scope, closed: &closed });
            }
            Effect::None | Effect::Joined | Effect::Old => {}
        }
    }

    /// Reports that a cooldown began, or that its end has changed.
    pub(super) fn announce(&mut self, now: Tick, account: usize, until: Tick, reason: &str) {
        let generation = self.accounts.all[account].scope.generation();
        let announced = self.accounts.all[account].announced.as_ref();
        let since = announced.filter(|announced| announced.generation == generation).map(|on| on.since);
        if since.is_none() {
            self.cooled_down(now, account);
        }
        let target = &mut self.accounts.all[account];
        target.announced = Some(Announced { generation, since: since.unwrap_or(now), reason: reason.into() });
        let scope = target.name.clone();
        let left = until.since(now).to_duration();
        self.emit(&BatchEvent::CoolingDown { scope: &scope, generation, left, reason });
    }

    /// Handles a 429: parks the item, or fails it if its throttle budget is used up.
    fn park(&mut self, now: Tick, slot: ItemSlot, account: usize, hint: &Hint) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        entry.throttles += 1;
        let first = *entry.first_throttle.get_or_insert(now);
        if now.since(first) >= self.policy.throttle_budget {
            let detail = hint.reason.as_deref().unwrap_or(NO_REASON);
            let reason = format!(
                "refused {} times in {:?}: {detail}",
                entry.throttles,
                now.since(first).to_duration()
            );
            return self.fail(now, slot, CallFailed::new(FailureClass::Throttled, reason));
        }
        self.requeue(now, slot, account, StartQueue::park);
    }

    /// Puts an item back into its queue with its state, which frees its worker.
    fn requeue(
        &mut self,
        now: Tick,
        slot: ItemSlot,
        account: usize,
        put: fn(&mut StartQueue<ItemSlot>, ItemSlot),
    ) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        entry.phase = ItemPhase::Parked;
        let (id, queue) = (entry.item.id.clone(), entry.queue);
        put(&mut self.accounts.queues[queue].items, slot);
        let target = &mut self.accounts.all[account];
        target.scope.counters_mut().parked += 1;
        let scope = target.name.clone();
        self.emit(&BatchEvent::Parked { id: &id, scope: &scope });
        if let Some(why) = self.stopped.clone() {
            self.accounts.queues[queue].items.remove(|other| *other == slot);
            self.finish(now, slot, Err(ItemError::Unfinished(why)));
        }
    }

    /// Requeues an item whose scope closed while it was called, if another account can serve it;
    /// otherwise finishes it.
    fn reroute(&mut self, now: Tick, slot: ItemSlot) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let queue = &mut self.accounts.queues[entry.queue];
        let closed = queue.accounts.iter().map(|account| self.accounts.all[*account].scope.closed());
        let open = closed.clone().any(|closed| closed.is_none());
        let last = closed.flatten().next().cloned();
        match (open, last, self.stopped.clone()) {
            (true, _, None) => queue.items.put_back(slot),
            (true, _, Some(why)) => self.finish(now, slot, Err(ItemError::Unfinished(why))),
            (false, Some(closed), _) => {
                self.finish(now, slot, Err(ItemError::Unfinished(StopReason::Closed(closed))))
            }
            (false, None, _) => {}
        }
    }

    fn fail(&mut self, now: Tick, slot: ItemSlot, failure: CallFailed) {
        let CallFailed { class, reason } = failure;
        self.finish(now, slot, Err(ItemError::Item { class, reason }));
    }

    /// Retries an item after a pause, or fails it after its last attempt.
    fn retry(&mut self, now: Tick, slot: ItemSlot, failure: CallFailed, advised: Span) {
        let class = failure.class;
        let (retry, which) = match class {
            FailureClass::Overloaded => (self.policy.overloaded, 0),
            FailureClass::Invalid => (self.policy.invalid, 2),
            _ => (self.policy.transient, 1),
        };
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let pause = retry.pause_after(entry.failures[which] + 1, self.random.next_u64()).map(Span::covering);
        let Some(pause) = pause else {
            return self.fail(now, slot, failure);
        };
        if let Some(why) = self.stopped.clone() {
            return self.finish(now, slot, Err(ItemError::Unfinished(why)));
        }
        entry.failures[which] += 1;
        entry.phase = ItemPhase::Pausing;
        let pause = at_least_a_tick(pause.max(advised));
        let (id, index) = (entry.item.id.clone(), entry.index);
        self.timers.push(ItemTimer { at: now + pause, slot, index, kind: TimerKind::Retry });
        self.emit(&BatchEvent::Retrying { id: &id, class, pause: pause.to_duration() });
    }

    /// Fires the timers that are due.
    pub(super) fn fire_timers(&mut self, now: Tick) {
        for account in 0..self.accounts.all.len() {
            if self.accounts.all[account].scope.cooling(now).is_none() {
                self.cooled_down(now, account);
            }
        }
        // An item has at most two live timers: its deadline, and that of a call or a pause.
        let entries = &self.entries;
        self.timers.sweep(2 * entries.len(), |timer| {
            entries.get(timer.slot).is_some_and(|entry| entry.expects(timer))
        });
        while let Some(timer) = self.timers.pop(now) {
            let Some(entry) = self.entries.get_mut(timer.slot) else { continue };
            if entry.index != timer.index {
                continue;
            }
            match (timer.kind, &mut entry.phase) {
                (TimerKind::Retry, ItemPhase::Pausing) => {
                    entry.phase = ItemPhase::Waiting;
                    self.accounts.queues[entry.queue].items.park(timer.slot);
                }
                (TimerKind::Attempt(number), ItemPhase::InFlight(running)) if number == entry.calls => {
                    running.abort_reason.get_or_insert(AbortReason::Attempt);
                    running.abort.abort();
                }
                (TimerKind::Item, ItemPhase::InFlight(running)) => {
                    running.abort_reason = Some(AbortReason::Item);
                    running.abort.abort();
                }
                (TimerKind::Item, _) => {
                    let queue = entry.queue;
                    self.accounts.queues[queue].items.remove(|slot| *slot == timer.slot);
                    self.fail(now, timer.slot, CallFailed::new(FailureClass::Deadline, ITEM_DEADLINE));
                }
                _ => {}
            }
        }
    }

    /// Starts no further call. Calls in flight run to their end.
    pub(super) fn stop(&mut self, why: StopReason) {
        if self.stopped.is_some() {
            return;
        }
        self.stopped = Some(why.clone());
        self.source = None;
        let now = self.time.now();
        for slot in self.entries.slots() {
            let is_in_flight =
                self.entries.get(slot).is_some_and(|entry| matches!(entry.phase, ItemPhase::InFlight(_)));
            if !is_in_flight {
                self.finish(now, slot, Err(ItemError::Unfinished(why.clone())));
            }
        }
        self.accounts.queues.iter_mut().for_each(|queue| queue.items.remove(|_| true));
    }

    /// Ends the batch at once: calls in flight are aborted.
    pub(super) fn abort_all(&mut self, now: Tick, why: StopReason) {
        self.stop(why.clone());
        self.calls.abort_all();
        self.by_task.clear();
        for slot in self.entries.slots() {
            self.finish(now, slot, Err(ItemError::Unfinished(why.clone())));
        }
    }
}

fn reason(hint: Hint) -> String {
    hint.reason.unwrap_or_else(|| NO_REASON.into())
}
