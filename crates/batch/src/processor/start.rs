//! The choice of the item that starts next, and of its account.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Context;

use tollgate::{Span, Tick};

use super::budget::Fit;
use super::call::{self, ADMITTING, CallReservation, HeldReservation, LimitRoom, RECALLED};
use super::driver::{Driver, at_least_a_tick};
use super::entry::{AbortReason, InFlight, ItemPhase, ItemSlot};
use super::timers::{ItemTimer, TimerKind};
use crate::item::ItemAttempt;
use crate::journal::GroupWriter;
use crate::observe::BatchEvent;
use crate::scope::Permit;
use crate::{ItemError, StopReason};

/// Whether the head of a queue may start.
enum StartVerdict {
    /// In this account, with the reservation if it is made already.
    In(usize, Option<HeldReservation>),
    /// Not before this time.
    At(Tick),
    /// Not before a call has ended.
    Later,
    /// Never, in no account.
    Never(StopReason),
}

impl<P, S: Default, O: 'static> Driver<P, S, O> {
    /// Starts all calls that may start.
    pub(super) fn start(&mut self, context: &mut Context<'_>, now: Tick) {
        let queues = self.accounts.queues.len();
        self.rotation = self.rotation.wrapping_add(1);
        for step in 0..queues {
            let queue = (self.rotation + step) % queues;
            while let Some(slot) = self.head(context, queue) {
                if self.by_task.len() >= self.sizes.workers {
                    break;
                }
                match self.start_verdict(now, queue, slot) {
                    StartVerdict::In(account, held) => self.launch(now, queue, account, held),
                    StartVerdict::Never(why) => {
                        self.accounts.queues[queue].items.take();
                        self.finish(now, slot, Err(ItemError::Unfinished(why)));
                    }
                    StartVerdict::At(at) => {
                        self.wake_at(Some(at));
                        break;
                    }
                    StartVerdict::Later => break,
                }
            }
        }
    }

    /// Returns the next item of a queue for whose outcome there is room. Parked items are not in
    /// the order of the input, so one behind the head may have room where the head has none.
    fn head(&mut self, context: &mut Context<'_>, queue: usize) -> Option<ItemSlot> {
        if self.is_behind() {
            return None;
        }
        let slot = *self.accounts.queues[queue].items.peek()?;
        if self.has_room(context, slot) {
            return Some(slot);
        }
        let mut items = std::mem::take(&mut self.accounts.queues[queue].items);
        let found = items.bring_forward(|slot| self.has_room(context, *slot));
        let head = items.peek().copied().filter(|_| found);
        self.accounts.queues[queue].items = items;
        head
    }

    /// Returns true if so many bytes of results wait for the disk that no call starts. The journal
    /// wakes the batch.
    fn is_behind(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.pending_bytes() >= self.sizes.bytes)
    }

    /// Returns true if there will be room for the outcome of an item. A reader in the order of the
    /// input must get the item it waits for, however many finished items wait behind it.
    fn has_room(&self, context: &mut Context<'_>, slot: ItemSlot) -> bool {
        let most = self.sizes.workers + self.sizes.buffer;
        let index = self.entries.get(slot).map_or(0, |entry| entry.index);
        let coming = self.by_task.len() + self.journal.as_ref().map_or(0, GroupWriter::pending);
        self.outbox.has_room(context, |unread, next| match next {
            Some(next) => index < next.saturating_add(most as u64),
            None => coming + unread < most,
        })
    }

    fn start_verdict(&mut self, now: Tick, queue: usize, slot: ItemSlot) -> StartVerdict {
        let Some(entry) = self.entries.get(slot) else { return StartVerdict::Later };
        let load = entry.load();
        match self.budget.fit(&self.policy, entry.load, entry.cost_micros) {
            Fit::Fits => {}
            Fit::Perhaps if !self.by_task.is_empty() => return StartVerdict::Later,
            Fit::Perhaps | Fit::Never => {
                self.stop(StopReason::Budget);
                return StartVerdict::Later;
            }
        }
        let tokens = entry.load;
        let (mut soonest, mut closed, mut must_queue) = (None::<Tick>, None, None);
        let order = self.by_latency(queue);
        for (rank, account) in order.iter().copied().enumerate() {
            let permit = match self.slow_start(now, account) {
                Some(at) => Permit::PacedUntil(at),
                None => self.accounts.all[account].scope.permit(now, load),
            };
            let at = match permit {
                // A faster account finishes all waiting items before this one finishes a single
                // call.
                Permit::Now if self.is_too_slow(now, queue, account, &order[..rank], soonest) => continue,
                // Where there is a choice, an account is chosen only when it is known to admit the
                // call.
                Permit::Now if order.len() > 1 => match self.reserve_in(account, tokens) {
                    LimitRoom::Taken(held) => return StartVerdict::In(account, held),
                    LimitRoom::In(wait) => now + at_least_a_tick(Span::covering(wait)),
                    LimitRoom::Unknown => {
                        must_queue = must_queue.or(Some(account));
                        continue;
                    }
                },
                Permit::Now => return StartVerdict::In(account, None),
                Permit::CoolingUntil(at) | Permit::PacedUntil(at) => at,
                Permit::Closed(why) => {
                    closed = Some(why);
                    continue;
                }
            };
            soonest = Some(soonest.map_or(at, |soonest| soonest.min(at)));
        }
        match (must_queue, soonest, closed) {
            (Some(account), _, _) => StartVerdict::In(account, None),
            (None, Some(at), _) => StartVerdict::At(at),
            (None, None, Some(closed)) => StartVerdict::Never(StopReason::Closed(closed)),
            (None, None, None) => StartVerdict::Later,
        }
    }

    /// Returns the accounts of a queue, those with the shortest latency first. Accounts of about
    /// the same latency take turns, and one of unknown latency is tried first.
    fn by_latency(&self, queue: usize) -> Vec<usize> {
        let accounts = &self.accounts.queues[queue].accounts;
        let mut order: Vec<usize> =
            (0..accounts.len()).map(|step| accounts[(self.rotation + step) % accounts.len()]).collect();
        let latency =
            |account: &usize| self.accounts.all[*account].scope.pace().latency().unwrap_or(Span::ZERO);
        let known = order.iter().map(latency).filter(|latency| *latency > Span::ZERO);
        let Some(least) = known.min().filter(|_| order.len() > 1) else { return order };
        order.sort_by_key(|account| latency(account).as_micros() * 2 / (least.as_micros() * 3).max(1));
        order
    }

    /// Returns true if a call in this account would end later than all waiting items would if the
    /// faster accounts, the first of which is ready at `soonest`, took them. While the input may
    /// have more items, it returns false.
    fn is_too_slow(
        &self,
        now: Tick,
        queue: usize,
        account: usize,
        faster: &[usize],
        soonest: Option<Tick>,
    ) -> bool {
        let (Some(soonest), None) = (soonest, &self.source) else { return false };
        let pace = |account: usize| self.accounts.all[account].scope.pace();
        let Some(latency) = pace(account).latency() else { return false };
        let waiting = self.accounts.queues[queue].items.len() as u64;
        let all_done = |faster: &usize| {
            let (rate, took) = pace(*faster).calls().zip(pace(*faster).latency())?;
            Some(soonest + rate.time_of(waiting) + took)
        };
        faster.iter().filter_map(all_done).min().is_some_and(|all_done| now + latency > all_done)
    }

    /// Returns whether an account admits a call with so many tokens. One without limits always
    /// does.
    fn reserve_in(&self, account: usize, tokens: u64) -> LimitRoom {
        match &self.accounts.all[account].limits {
            Some(limits) => call::try_reserve(limits, (self.demand)(tokens)),
            None => LimitRoom::Taken(None),
        }
    }

    fn launch(&mut self, now: Tick, queue: usize, account: usize, held: Option<HeldReservation>) {
        let Some((slot, _)) = self.accounts.queues[queue].items.take() else { return };
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let target = &mut self.accounts.all[account];
        if matches!(entry.phase, ItemPhase::Parked) {
            target.scope.counters_mut().handed_out += 1;
            if let Some(observer) = &mut self.observer {
                observer.observe(&BatchEvent::HandedOut { id: &entry.item.id, scope: &target.name });
            }
        }
        entry.calls += 1;
        let call = target.scope.start(now, entry.load());
        let attempt = ItemAttempt {
            item: Arc::clone(&entry.item),
            scope: Arc::clone(&target.name),
            attempt: entry.attempt(),
            number: entry.calls,
        };
        let reservation = target.limits.as_ref().map(|set| CallReservation {
            set: set.clone(),
            demand: Arc::clone(&self.demand),
            tokens: entry.load,
            stage: Arc::new(AtomicU8::new(ADMITTING)),
            held,
        });
        let stage = reservation.as_ref().map(|reservation| Arc::clone(&reservation.stage));
        let abort = (self.spawn)(&mut self.calls, attempt, reservation);
        self.by_task.insert(abort.id(), slot);
        self.budget.reserve(entry.load, entry.cost_micros);
        self.waiting_bytes = self.waiting_bytes.saturating_sub(entry.payload_bytes);
        entry.phase =
            ItemPhase::InFlight(InFlight { call, account, started: now, abort, stage, abort_reason: None });
        if let Some(span) = self.policy.attempt_deadline {
            let kind = TimerKind::Attempt(entry.calls);
            self.timers.push(ItemTimer { at: now + span, slot, index: entry.index, kind });
        }
        if let Some(observer) = &mut self.observer {
            let attempt = entry.attempt();
            observer.observe(&BatchEvent::Started { id: &entry.item.id, scope: &target.name, attempt });
        }
    }

    /// Aborts the calls of an account that wait for their reservation, because a cooldown began.
    /// Their items are requeued.
    pub(super) fn recall(&mut self, account: usize) {
        let slots: Vec<ItemSlot> = self.by_task.values().copied().collect();
        for slot in slots {
            let Some(entry) = self.entries.get_mut(slot) else { continue };
            let ItemPhase::InFlight(running) = &mut entry.phase else { continue };
            let Some(stage) = running.stage.as_ref().filter(|_| running.account == account) else { continue };
            let recalled = stage.compare_exchange(ADMITTING, RECALLED, Ordering::AcqRel, Ordering::Acquire);
            if recalled.is_ok() {
                running.abort_reason = Some(AbortReason::Recalled);
                running.abort.abort();
            }
        }
    }
}
