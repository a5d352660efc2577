//! What happens to an item when its call comes back, or its time is up.

use tollgate::{Span, Tick};
use tollgate_provider::{Class, FatalKind, Hint};

use super::account::Announced;
use super::call::End;
use super::driver::{Driver, at_least_a_tick, cost_of};
use super::dues::{Due, DueFor};
use super::entry::{AbortReason, InFlight, ItemPhase, ItemSlot};
use crate::item::{CallAnswer, CallReply, TokenUsage};
use crate::observe::BatchEvent;
use crate::scope::{Effect, StartQueue};
use crate::{FailureClass, ItemError, StopReason};

/// Stands for the reason that a provider did not give.
const NO_REASON: &str = "the provider gave no reason";

/// The reason of a call that took too long.
const TOO_LONG: &str = "the call took too long";

/// The reason of an item that did.
const ITEM_DEADLINE: &str = "the deadline of the item has passed";

/// Why a call brought no output.
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
    /// A call came back: with an end, or with nothing because it panicked (`Err(true)`) or was called off.
    pub(super) fn returned(&mut self, now: Tick, slot: ItemSlot, end: Result<End<O>, bool>) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let at = std::mem::replace(&mut entry.at, ItemPhase::Waiting);
        let ItemPhase::Flying(flight) = at else { return };
        self.ledger.forget(entry.load, entry.cost_micros);
        self.waiting_bytes = self.waiting_bytes.saturating_add(entry.payload_bytes);
        match (end, flight.cut) {
            (Ok(End::Replied(reply)), _) => self.replied(now, slot, &flight, reply),
            (Ok(End::GaveBack), _) | (Err(false), Some(AbortReason::Recalled)) => {
                self.gave_back(now, slot, &flight)
            }
            (Ok(End::Denied(reason)), _) => {
                self.places.all[flight.place].scope.withdraw();
                self.fail(now, slot, CallFailed::new(FailureClass::Fatal, reason));
            }
            (Err(true), _) => {
                self.lost(now, slot, &flight);
                self.fail(now, slot, CallFailed::new(FailureClass::Panicked, "the handler panicked"));
            }
            (Err(false), Some(AbortReason::Item)) => {
                self.lost(now, slot, &flight);
                self.fail(now, slot, CallFailed::new(FailureClass::Deadline, ITEM_DEADLINE));
            }
            (Err(false), _) => {
                self.spend(slot, TokenUsage::Unknown, None);
                let hint = Hint::transient().with_reason(TOO_LONG);
                self.hear(now, slot, &flight, &hint);
                self.failed(now, slot, flight.place, hint);
            }
        }
    }

    /// A call never started. It is the next one to do so.
    fn gave_back(&mut self, now: Tick, slot: ItemSlot, flight: &InFlight) {
        let scope = &mut self.places.all[flight.place].scope;
        scope.withdraw();
        scope.counters_mut().given_back += 1;
        let Some(entry) = self.entries.get_mut(slot) else { return };
        entry.calls -= 1;
        match self.stopped.clone() {
            Some(why) => self.finish(now, slot, Err(ItemError::Unfinished(why))),
            None => self.places.lanes[entry.lane].line.put_back(slot),
        }
    }

    /// A call ended and it is not known what it used, so what was estimated counts.
    fn lost(&mut self, now: Tick, slot: ItemSlot, flight: &InFlight) {
        self.places.all[flight.place].scope.abandon();
        self.spend(slot, TokenUsage::Unknown, None);
        self.replied_event(now, slot, flight, Class::Transient, None);
    }

    /// A handler made no call, because it knows that the scope is closed or about to be.
    fn not_sent(&mut self, now: Tick, slot: ItemSlot, flight: &InFlight) {
        self.places.all[flight.place].scope.withdraw();
        if let Some(entry) = self.entries.get_mut(slot) {
            entry.calls -= 1;
        }
        self.shut_out(now, slot);
    }

    fn replied(&mut self, now: Tick, slot: ItemSlot, flight: &InFlight, reply: CallReply<O>) {
        if !reply.was_sent {
            return self.not_sent(now, slot, flight);
        }
        self.call_times.record(now.since(flight.started).to_duration());
        self.spend(slot, reply.usage, reply.cost_micros);
        let CallReply { hint, rejected, .. } = reply;
        if let (Some(entry), Some(rejected)) = (self.entries.get_mut(slot), rejected) {
            entry.rejected = Some(rejected);
        }
        self.hear(now, slot, flight, &hint);
        match (reply.result, hint.class) {
            (CallAnswer::Done(output), _) => self.finish(now, slot, Ok(output)),
            (CallAnswer::Invalid(why), _) => {
                self.places.all[flight.place].scope.counters_mut().wasted += 1;
                self.again(now, slot, CallFailed::new(FailureClass::Invalid, why), Span::ZERO);
            }
            (CallAnswer::Refused, Class::Throttled) => self.park(now, slot, flight.place, &hint),
            (CallAnswer::Refused, Class::Exhausted { .. } | Class::Fatal(FatalKind::Auth)) => {
                self.shut_out(now, slot)
            }
            (CallAnswer::Refused, Class::Fatal(_)) => {
                self.fail(now, slot, CallFailed::new(FailureClass::Fatal, reason(hint)));
            }
            (CallAnswer::Refused, _) => self.failed(now, slot, flight.place, hint),
        }
    }

    /// A call failed in a way that may pass.
    fn failed(&mut self, now: Tick, slot: ItemSlot, place: usize, hint: Hint) {
        let scope = &self.places.all[place].scope;
        if scope.closed().is_some() {
            return self.shut_out(now, slot);
        }
        if scope.is_out() {
            return self.stand_in_line(now, slot, place, StartQueue::park_behind);
        }
        let advised = hint.advice.map_or(Span::ZERO, Span::covering);
        let class = match hint.class {
            Class::Overloaded => FailureClass::Overloaded,
            _ => FailureClass::Transient,
        };
        self.again(now, slot, CallFailed::new(class, reason(hint)), advised);
    }

    /// Tells the scope of a call what the provider said, and the observer.
    fn hear(&mut self, now: Tick, slot: ItemSlot, flight: &InFlight, hint: &Hint) {
        self.replied_event(now, slot, flight, hint.class, hint.reason.as_deref());
        let scope = &mut self.places.all[flight.place].scope;
        let run = (flight.place, scope.failing_run());
        let entry = self.entries.get_mut(slot);
        let is_blameless = entry.as_ref().is_some_and(|entry| entry.is_blameless(run));
        let effect = scope.reply(now, &flight.call, hint, is_blameless);
        if let Some(entry) = entry.filter(|_| hint.class == Class::Transient) {
            entry.failed_in = Some((flight.place, scope.failing_run()));
        }
        self.affect(now, flight.place, effect, hint);
    }

    fn replied_event(
        &mut self,
        now: Tick,
        slot: ItemSlot,
        flight: &InFlight,
        class: Class,
        reason: Option<&str>,
    ) {
        let (Some(observer), Some(entry)) = (&mut self.observer, self.entries.get(slot)) else { return };
        let scope = &self.places.all[flight.place].name;
        let took = now.since(flight.started).to_duration();
        observer.observe(&BatchEvent::Replied { id: &entry.card.id, scope, class, took, reason });
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
        self.ledger.spend(tokens, cost);
    }

    /// What a reply means for all who share the scope.
    fn affect(&mut self, now: Tick, place: usize, effect: Effect, hint: &Hint) {
        let reason = hint.reason.as_deref().unwrap_or(NO_REASON);
        match effect {
            Effect::Opened(until) => {
                self.announce(now, place, until, reason);
                self.recall(place);
                self.report(now, place, until);
            }
            Effect::Changed(until) => {
                self.announce(now, place, until, reason);
                self.report(now, place, until);
            }
            Effect::Closed(closed) => {
                let scope = self.places.all[place].name.clone();
                self.tell(&BatchEvent::Closed { scope: &scope, closed: &closed });
            }
            Effect::None | Effect::Joined | Effect::Old => {}
        }
    }

    /// Reports that a cooldown began, or ends at another time than was said before.
    pub(super) fn announce(&mut self, now: Tick, place: usize, until: Tick, reason: &str) {
        let generation = self.places.all[place].scope.generation();
        let announced = self.places.all[place].announced.as_ref();
        let since = announced.filter(|announced| announced.generation == generation).map(|on| on.since);
        if since.is_none() {
            self.cooled_down(now, place);
        }
        let here = &mut self.places.all[place];
        here.announced = Some(Announced { generation, since: since.unwrap_or(now), reason: reason.into() });
        let scope = here.name.clone();
        let left = until.since(now).to_duration();
        self.tell(&BatchEvent::CoolingDown { scope: &scope, generation, left, reason });
    }

    /// An item met a 429.
    fn park(&mut self, now: Tick, slot: ItemSlot, place: usize, hint: &Hint) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        entry.throttles += 1;
        let first = *entry.first_throttle.get_or_insert(now);
        if now.since(first) >= self.policy.throttle_budget {
            let said = hint.reason.as_deref().unwrap_or("not now");
            let reason = format!(
                "refused {} times since {:?}: {said}",
                entry.throttles,
                now.since(first).to_duration()
            );
            return self.fail(now, slot, CallFailed::new(FailureClass::Throttled, reason));
        }
        self.stand_in_line(now, slot, place, StartQueue::park);
    }

    /// Puts an item back into its queue with all it knows, and its worker is free.
    fn stand_in_line(
        &mut self,
        now: Tick,
        slot: ItemSlot,
        place: usize,
        put: fn(&mut StartQueue<ItemSlot>, ItemSlot),
    ) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        entry.at = ItemPhase::Parked;
        let (id, lane) = (entry.card.id.clone(), entry.lane);
        put(&mut self.places.lanes[lane].line, slot);
        let here = &mut self.places.all[place];
        here.scope.counters_mut().parked += 1;
        let scope = here.name.clone();
        self.tell(&BatchEvent::Parked { id: &id, scope: &scope });
        if let Some(why) = self.stopped.clone() {
            self.places.lanes[lane].line.remove(|other| *other == slot);
            self.finish(now, slot, Err(ItemError::Unfinished(why)));
        }
    }

    /// The scope of an item closed while it was called. Another account may still serve it.
    fn shut_out(&mut self, now: Tick, slot: ItemSlot) {
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let lane = &mut self.places.lanes[entry.lane];
        let closed = lane.places.iter().map(|place| self.places.all[*place].scope.closed());
        let open = closed.clone().any(|closed| closed.is_none());
        let last = closed.flatten().next().cloned();
        match (open, last, self.stopped.clone()) {
            (true, _, None) => lane.line.put_back(slot),
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

    /// Tries again after a pause, or gives up.
    fn again(&mut self, now: Tick, slot: ItemSlot, failure: CallFailed, advised: Span) {
        let class = failure.class;
        let (retry, which) = match class {
            FailureClass::Overloaded => (self.policy.overloaded, 0),
            FailureClass::Invalid => (self.policy.invalid, 2),
            _ => (self.policy.transient, 1),
        };
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let pause = retry.pause_after(entry.failures[which] + 1, self.random.next()).map(Span::covering);
        let Some(pause) = pause else {
            return self.fail(now, slot, failure);
        };
        if let Some(why) = self.stopped.clone() {
            return self.finish(now, slot, Err(ItemError::Unfinished(why)));
        }
        entry.failures[which] += 1;
        entry.at = ItemPhase::Pausing;
        let pause = at_least_a_tick(pause.max(advised));
        let (id, index) = (entry.card.id.clone(), entry.index);
        self.dues.push(Due { at: now + pause, slot, index, what: DueFor::Retry });
        self.tell(&BatchEvent::Retrying { id: &id, class, pause: pause.to_duration() });
    }

    /// Does what is due.
    pub(super) fn ring(&mut self, now: Tick) {
        for place in 0..self.places.all.len() {
            if self.places.all[place].scope.cooling(now).is_none() {
                self.cooled_down(now, place);
            }
        }
        // An item has a deadline, and a call or a pause that ends.
        let entries = &self.entries;
        self.dues
            .sweep(2 * entries.len(), |due| entries.get(due.slot).is_some_and(|entry| entry.expects(due)));
        while let Some(due) = self.dues.pop(now) {
            let Some(entry) = self.entries.get_mut(due.slot) else { continue };
            if entry.index != due.index {
                continue;
            }
            match (due.what, &mut entry.at) {
                (DueFor::Retry, ItemPhase::Pausing) => {
                    entry.at = ItemPhase::Waiting;
                    self.places.lanes[entry.lane].line.park(due.slot);
                }
                (DueFor::Attempt(number), ItemPhase::Flying(flight)) if number == entry.calls => {
                    flight.cut.get_or_insert(AbortReason::Attempt);
                    flight.abort.abort();
                }
                (DueFor::Item, ItemPhase::Flying(flight)) => {
                    flight.cut = Some(AbortReason::Item);
                    flight.abort.abort();
                }
                (DueFor::Item, _) => {
                    let lane = entry.lane;
                    self.places.lanes[lane].line.remove(|slot| *slot == due.slot);
                    self.fail(now, due.slot, CallFailed::new(FailureClass::Deadline, ITEM_DEADLINE));
                }
                _ => {}
            }
        }
    }

    /// Starts nothing more. Calls under way go on to their end.
    pub(super) fn stop(&mut self, why: StopReason) {
        if self.stopped.is_some() {
            return;
        }
        self.stopped = Some(why.clone());
        self.source = None;
        let now = self.time.now();
        for slot in self.entries.slots() {
            let flying = self.entries.get(slot).is_some_and(|entry| matches!(entry.at, ItemPhase::Flying(_)));
            if !flying {
                self.finish(now, slot, Err(ItemError::Unfinished(why.clone())));
            }
        }
        self.places.lanes.iter_mut().for_each(|lane| lane.line.remove(|_| true));
    }

    /// Ends at once: calls under way are called off.
    pub(super) fn cut_short(&mut self, now: Tick, why: StopReason) {
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
