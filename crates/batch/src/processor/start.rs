//! Which item starts next, and where.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::Context;

use tollgate::{Span, Tick};

use super::budget::Fit;
use super::call::{self, ADMITTING, HeldReservation, LimitRoom, RECALLED, Reservation};
use super::driver::{Driver, at_least_a_tick};
use super::dues::{Due, DueFor};
use super::entry::{AbortReason, InFlight, ItemPhase, ItemSlot};
use crate::item::ItemAttempt;
use crate::journal::GroupWriter;
use crate::observe::BatchEvent;
use crate::scope::Permit;
use crate::{ItemError, StopReason};

/// Whether the head of a queue may start.
enum StartVerdict {
    /// In this place, of whose limits its share may be taken already.
    In(usize, Option<HeldReservation>),
    /// Not before.
    At(Tick),
    /// When something has come back.
    Later,
    /// Nowhere, ever.
    Never(StopReason),
}

impl<P, S: Default, O: 'static> Driver<P, S, O> {
    /// Starts what may start.
    pub(super) fn start(&mut self, context: &mut Context<'_>, now: Tick) {
        let lanes = self.places.lanes.len();
        self.turn = self.turn.wrapping_add(1);
        for step in 0..lanes {
            let lane = (self.turn + step) % lanes;
            while let Some(slot) = self.head(context, lane) {
                if self.by_task.len() >= self.sizes.workers {
                    break;
                }
                match self.turn_of(now, lane, slot) {
                    StartVerdict::In(place, held) => self.launch(now, lane, place, held),
                    StartVerdict::Never(why) => {
                        self.places.lanes[lane].line.take();
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

    /// Returns the next item of a queue for whose outcome there is room. Those that are parked are not in the order of
    /// the input.
    fn head(&mut self, context: &mut Context<'_>, lane: usize) -> Option<ItemSlot> {
        if self.is_behind() {
            return None;
        }
        let slot = *self.places.lanes[lane].line.peek()?;
        if self.has_room(context, slot) {
            return Some(slot);
        }
        let mut line = std::mem::take(&mut self.places.lanes[lane].line);
        let found = line.bring_forward(|slot| self.has_room(context, *slot));
        let head = line.peek().copied().filter(|_| found);
        self.places.lanes[lane].line = line;
        head
    }

    /// Returns true if so many bytes of results wait for the disk that nothing starts. The disk wakes the batch.
    fn is_behind(&self) -> bool {
        self.journal.as_ref().is_some_and(|journal| journal.pending_bytes() >= self.sizes.bytes)
    }

    /// Returns whether there will be room for the outcome. A reader in the order of the input must get the item it
    /// waits for, however many that are finished wait behind it.
    fn has_room(&self, context: &mut Context<'_>, slot: ItemSlot) -> bool {
        let most = self.sizes.workers + self.sizes.buffer;
        let index = self.entries.get(slot).map_or(0, |entry| entry.index);
        let coming = self.by_task.len() + self.journal.as_ref().map_or(0, GroupWriter::pending);
        self.outbox.has_room(context, |unread, next| match next {
            Some(next) => index < next.saturating_add(most as u64),
            None => coming + unread < most,
        })
    }

    fn turn_of(&mut self, now: Tick, lane: usize, slot: ItemSlot) -> StartVerdict {
        let Some(entry) = self.entries.get(slot) else { return StartVerdict::Later };
        let load = entry.load();
        match self.ledger.fit(&self.policy, entry.load, entry.cost_micros) {
            Fit::Fits => {}
            Fit::Perhaps if !self.by_task.is_empty() => return StartVerdict::Later,
            Fit::Perhaps | Fit::Never => {
                self.stop(StopReason::Budget);
                return StartVerdict::Later;
            }
        }
        let tokens = entry.load;
        let (mut soonest, mut closed, mut in_line) = (None::<Tick>, None, None);
        let order = self.by_latency(lane);
        for (rank, place) in order.iter().copied().enumerate() {
            let permit = match self.slow_start(now, place) {
                Some(at) => Permit::PacedUntil(at),
                None => self.places.all[place].scope.permit(now, load),
            };
            let at = match permit {
                // A faster account is done with all that wait before this one is with a single call.
                Permit::Now if self.is_too_slow(now, lane, place, &order[..rank], soonest) => continue,
                // Where there is a choice, it is not made before it is known which account has room.
                Permit::Now if order.len() > 1 => match self.room_in(place, tokens) {
                    LimitRoom::Taken(held) => return StartVerdict::In(place, held),
                    LimitRoom::In(wait) => now + at_least_a_tick(Span::covering(wait)),
                    LimitRoom::Unknown => {
                        in_line = in_line.or(Some(place));
                        continue;
                    }
                },
                Permit::Now => return StartVerdict::In(place, None),
                Permit::CoolingUntil(at) | Permit::PacedUntil(at) => at,
                Permit::Closed(why) => {
                    closed = Some(why);
                    continue;
                }
            };
            soonest = Some(soonest.map_or(at, |soonest| soonest.min(at)));
        }
        match (in_line, soonest, closed) {
            (Some(place), _, _) => StartVerdict::In(place, None),
            (None, Some(at), _) => StartVerdict::At(at),
            (None, None, Some(closed)) => StartVerdict::Never(StopReason::Closed(closed)),
            (None, None, None) => StartVerdict::Later,
        }
    }

    /// The places of a queue, those first that answer sooner. Those that answer about as soon take turns; one of which
    /// nothing is known is tried first.
    fn by_latency(&self, lane: usize) -> Vec<usize> {
        let places = &self.places.lanes[lane].places;
        let mut order: Vec<usize> =
            (0..places.len()).map(|step| places[(self.turn + step) % places.len()]).collect();
        let latency = |place: &usize| self.places.all[*place].scope.pace().latency().unwrap_or(Span::ZERO);
        let known = order.iter().map(latency).filter(|latency| *latency > Span::ZERO);
        let Some(least) = known.min().filter(|_| order.len() > 1) else { return order };
        order.sort_by_key(|place| latency(place).as_micros() * 2 / (least.as_micros() * 3).max(1));
        order
    }

    /// Whether a call here ends later than all that wait would if the faster places, the first of which is ready at
    /// `soonest`, took them. As long as there may be more items, it does not.
    fn is_too_slow(
        &self,
        now: Tick,
        lane: usize,
        place: usize,
        faster: &[usize],
        soonest: Option<Tick>,
    ) -> bool {
        let (Some(soonest), None) = (soonest, &self.source) else { return false };
        let pace = |place: usize| self.places.all[place].scope.pace();
        let Some(latency) = pace(place).latency() else { return false };
        let waiting = self.places.lanes[lane].line.len() as u64;
        let all_done = |faster: &usize| {
            let (rate, took) = pace(*faster).calls().zip(pace(*faster).latency())?;
            Some(soonest + rate.time_of(waiting) + took)
        };
        faster.iter().filter_map(all_done).min().is_some_and(|all_done| now + latency > all_done)
    }

    /// Whether a place has room for a call of so many tokens. One without limits always has.
    fn room_in(&self, place: usize, tokens: u64) -> LimitRoom {
        match &self.places.all[place].limits {
            Some(limits) => call::room(limits, (self.demand)(tokens)),
            None => LimitRoom::Taken(None),
        }
    }

    fn launch(&mut self, now: Tick, lane: usize, place: usize, held: Option<HeldReservation>) {
        let Some((slot, _)) = self.places.lanes[lane].line.take() else { return };
        let Some(entry) = self.entries.get_mut(slot) else { return };
        let here = &mut self.places.all[place];
        if matches!(entry.at, ItemPhase::Parked) {
            here.scope.counters_mut().handed_out += 1;
            if let Some(observer) = &mut self.observer {
                observer.observe(&BatchEvent::HandedOut { id: &entry.card.id, scope: &here.name });
            }
        }
        entry.calls += 1;
        let call = here.scope.start(now, entry.load());
        let attempt = ItemAttempt {
            card: Arc::clone(&entry.card),
            scope: Arc::clone(&here.name),
            attempt: entry.attempt(),
            number: entry.calls,
        };
        let reservation = here.limits.as_ref().map(|set| Reservation {
            set: set.clone(),
            demand: Arc::clone(&self.demand),
            tokens: entry.load,
            stage: Arc::new(AtomicU8::new(ADMITTING)),
            held,
        });
        let stage = reservation.as_ref().map(|reservation| Arc::clone(&reservation.stage));
        let abort = (self.spawn)(&mut self.calls, attempt, reservation);
        self.by_task.insert(abort.id(), slot);
        self.ledger.promise(entry.load, entry.cost_micros);
        self.waiting_bytes = self.waiting_bytes.saturating_sub(entry.payload_bytes);
        entry.at = ItemPhase::Flying(InFlight { call, place, started: now, abort, stage, cut: None });
        if let Some(span) = self.policy.attempt_deadline {
            let what = DueFor::Attempt(entry.calls);
            self.dues.push(Due { at: now + span, slot, index: entry.index, what });
        }
        if let Some(observer) = &mut self.observer {
            let attempt = entry.attempt();
            observer.observe(&BatchEvent::Started { id: &entry.card.id, scope: &here.name, attempt });
        }
    }

    /// A cooldown began: calls that still wait for their reservation come back, and give it back.
    pub(super) fn recall(&mut self, place: usize) {
        let slots: Vec<ItemSlot> = self.by_task.values().copied().collect();
        for slot in slots {
            let Some(entry) = self.entries.get_mut(slot) else { continue };
            let ItemPhase::Flying(flight) = &mut entry.at else { continue };
            let Some(stage) = flight.stage.as_ref().filter(|_| flight.place == place) else { continue };
            let recalled = stage.compare_exchange(ADMITTING, RECALLED, Ordering::AcqRel, Ordering::Acquire);
            if recalled.is_ok() {
                flight.cut = Some(AbortReason::Recalled);
                flight.abort.abort();
            }
        }
    }
}
