//! Several items in one transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use aws_sdk_dynamodb::types::TransactWriteItem;
use tokio::sync::MutexGuard;
use tollgate_store::records::RecordsError;
use tollgate_store::{StepOutcome, StoreError, TxnOutcome};

use super::address::Address;
use super::dispatch::PendingTxn;
use super::draft::ItemDraft;
use super::item_queue::{ItemQueue, ItemState, OpResult, UnknownWrite};
use super::look::look_at_all;
use super::merged::MergedOp;
use super::send::{GivenUp, WriteResult, predicted};
use super::write::{self, WriteStamp};
use crate::inner::DynamoInner;
use crate::records;
use crate::service::{CallFailure, CancelReason, Elapsed, Tried};

/// A bucket of a call that no other task in this process may write to meanwhile.
struct LockedItem<'a> {
    address: &'a Address,
    lane: &'a ItemQueue,
    state: MutexGuard<'a, ItemState>,
}

/// What came of a transaction.
enum TransactOutcome {
    Made,
    /// An item was not what it had to be.
    Missed,
}

impl DynamoInner {
    /// Applies a call to all its buckets and makes its writes in one go.
    pub(super) async fn together(&self, trip: &PendingTxn) -> Result<TxnOutcome, RecordsError> {
        let lanes: Vec<Arc<ItemQueue>> =
            trip.addresses.iter().map(|address| self.buckets.lane(address)).collect();
        let mut seats = self.sit(trip, &lanes).await?;
        let (watch, mut tried, mut misses) = (Elapsed::start(), Tried::default(), 0);
        let mut has_looked = false;
        loop {
            has_looked |= self.see_all(&mut seats).await?;
            let is_shared = |seat: &LockedItem<'_>| match seat.state.image() {
                Some(image) => image.shards > 1,
                None => self.buckets.settings.shards_min > 1,
            };
            if seats.iter().any(is_shared) {
                drop(seats);
                return self.in_turn(trip).await;
            }
            let now = self.service.clock.now();
            let drafts = seats.iter().map(|seat| ItemDraft::new(seat.state.image(), seat.lane.last(), now));
            let mut drafts: Vec<ItemDraft> = drafts.collect();
            if let Some(stale) = trip.stale(&drafts) {
                return Ok(TxnOutcome::Stale(stale));
            }
            if !trip.fits(&mut drafts) {
                let is_old = |seat: &LockedItem<'_>| {
                    now.since(seat.state.seen_at) >= self.buckets.settings.refusal_kept
                };
                if !has_looked && seats.iter().any(is_old) {
                    seats.iter_mut().for_each(|seat| seat.state.forget());
                    continue;
                }
                return self.deny(trip, &mut seats, drafts, watch, &mut tried).await;
            }
            let done = trip.commit(&mut drafts);
            // Whether a holder is gone is nothing that an old look can say.
            if !has_looked && done.contains(&StepOutcome::Renewed(false)) {
                seats.iter_mut().for_each(|seat| seat.state.forget());
                continue;
            }
            let sent = self.transact(trip, &mut seats, &drafts, &done, watch, &mut tried).await?;
            if let TransactOutcome::Made = sent {
                seats.iter().for_each(|seat| seat.lane.saw(now));
                for (seat, draft) in seats.iter().zip(&drafts) {
                    self.count_unbucketed(seat.address, draft).await?;
                }
                return Ok(TxnOutcome::Done(done));
            }
            misses += 1;
            if self.pause_after(misses, watch).await? {
                seats.iter_mut().for_each(|seat| seat.state.forget());
            }
        }
    }

    /// Applies a call with buckets that are in several items: one after the other, and should one deny, those before get
    /// back what was taken.
    async fn in_turn(&self, trip: &PendingTxn) -> Result<TxnOutcome, RecordsError> {
        if let ([address], [_, ..]) = (&*trip.addresses, &*trip.writes) {
            return match self.whole(address, MergedOp::Do(&trip.errand(0), &trip.writes)).await? {
                OpResult::Done(done) => Ok(TxnOutcome::Done(vec![done])),
                OpResult::Denied(denial) => Ok(TxnOutcome::Denied(vec![*denial])),
                OpResult::Stale | OpResult::Moved | OpResult::Whole => Ok(TxnOutcome::Stale(0)),
            };
        }
        if !trip.writes.is_empty() {
            records::write(&self.service, &trip.writes).await?;
        }
        let mut verdicts: Vec<OpResult> = Vec::new();
        for (index, address) in trip.addresses.iter().enumerate() {
            match self.route(address, trip.errand(index)).await {
                Ok(verdict @ OpResult::Done(_)) => verdicts.push(verdict),
                stopped => {
                    for (index, verdict) in verdicts.iter().enumerate() {
                        if let Some(errand) = trip.errand(index).reversed(verdict) {
                            self.give_back(trip.addresses[index].clone(), errand).await;
                        }
                    }
                    return match stopped? {
                        OpResult::Denied(_) => {
                            Ok(TxnOutcome::Denied(self.ask(Arc::clone(&trip.call)).await?))
                        }
                        _ => Ok(TxnOutcome::Stale(index)),
                    };
                }
            }
        }
        let done = verdicts
            .iter()
            .filter_map(|verdict| if let OpResult::Done(done) = verdict { Some(*done) } else { None });
        Ok(TxnOutcome::Done(done.collect()))
    }

    /// Waits until no other task in this process writes to the buckets. All tasks wait in the same order.
    async fn sit<'a>(
        &self,
        trip: &'a PendingTxn,
        lanes: &'a [Arc<ItemQueue>],
    ) -> Result<Vec<LockedItem<'a>>, StoreError> {
        let mut order: Vec<usize> = (0..lanes.len()).collect();
        order.sort_by_key(|index| {
            let address = &trip.addresses[*index];
            (&*address.namespace, address.key.as_bytes())
        });
        let mut seats: Vec<Option<LockedItem<'a>>> = lanes.iter().map(|_| None).collect();
        for index in order {
            let (address, lane) = (&trip.addresses[index], &*lanes[index]);
            let mut state = lane.state.lock().await;
            self.resolve_unknown(address, lane, &mut state).await?;
            state.doubt_absence();
            seats[index] = Some(LockedItem { address, lane, state });
        }
        Ok(seats.into_iter().flatten().collect())
    }

    /// Looks at all buckets that nothing is known of, in one go; whether that was all of them.
    async fn see_all(&self, seats: &mut [LockedItem<'_>]) -> Result<bool, StoreError> {
        let unknown: Vec<usize> = (0..seats.len()).filter(|index| !seats[*index].state.is_known()).collect();
        if unknown.is_empty() {
            return Ok(false);
        }
        let items: Vec<(&Address, u32)> = unknown.iter().map(|index| (seats[*index].address, 0)).collect();
        let images = look_at_all(&self.service, &items).await?;
        let (now, is_all) = (self.service.clock.now(), unknown.len() == seats.len());
        for (index, image) in unknown.into_iter().zip(images) {
            seats[index].state.saw(image, now);
        }
        Ok(is_all)
    }

    /// The call is denied: says how all of its takes stand. Limits that are heeded all the same are put in force.
    async fn deny(
        &self,
        trip: &PendingTxn,
        seats: &mut [LockedItem<'_>],
        mut drafts: Vec<ItemDraft>,
        watch: Elapsed,
        tried: &mut Tried,
    ) -> Result<TxnOutcome, RecordsError> {
        if let Some(failed) = records::failing(&self.service, &trip.writes).await? {
            return Err(RecordsError::Failed(failed));
        }
        let denials = trip.denials(&drafts);
        for ((step, draft), seat) in trip.call.steps().zip(&mut drafts).zip(seats) {
            draft.heed(&step);
            if !draft.is_changed {
                continue;
            }
            match self.send(seat.address, draft, watch, tried).await {
                Ok(WriteResult::Made(image)) => seat.state.saw(Some(*image), draft.now),
                Ok(WriteResult::Missed(image)) => seat.state.saw(image.map(|image| *image), draft.now),
                Err(GivenUp::NotMade(error) | GivenUp::Unsure(_, error)) => {
                    seat.state.forget();
                    return Err(error.into());
                }
            }
        }
        Ok(TxnOutcome::Denied(denials))
    }

    async fn transact(
        &self,
        trip: &PendingTxn,
        seats: &mut [LockedItem<'_>],
        drafts: &[ItemDraft],
        done: &[StepOutcome],
        watch: Elapsed,
        tried: &mut Tried,
    ) -> Result<TransactOutcome, RecordsError> {
        let now = self.service.clock.now();
        let seq = self.buckets.next_seq(now);
        let stroke = WriteStamp { writer: &self.buckets.writer, seq };
        let changed: Vec<usize> = (0..drafts.len()).filter(|index| drafts[*index].is_changed).collect();
        let mut items: Vec<TransactWriteItem> = Vec::new();
        for index in &changed {
            let (address, draft) = (seats[*index].address, &drafts[*index]);
            items.push(self.update_item(address, 0, &write::expression(draft, address, &stroke, false)));
        }
        let is_new = |index: &&usize| drafts[**index].before.is_none();
        let namespaces: BTreeSet<&str> =
            changed.iter().filter(is_new).map(|index| &*seats[*index].address.namespace).collect();
        items.extend(namespaces.iter().map(|namespace| self.open_check(namespace)));
        let first_record = items.len();
        items.extend(records::transact_items(&self.service, &trip.writes, now)?);
        if items.is_empty() {
            return Ok(TransactOutcome::Made);
        }
        let (token, mut is_unsure) = (self.service.token(), false);
        loop {
            let write = self.service.client.transact_write_items().client_request_token(&token);
            match self.service.try_once(write.set_transact_items(Some(items.clone())).send()).await {
                Ok(_) => {
                    for index in changed {
                        seats[index].state.saw(Some(predicted(&drafts[index], &stroke)), drafts[index].now);
                    }
                    return Ok(TransactOutcome::Made);
                }
                Err(CallFailure::Trouble(trouble, _)) => {
                    is_unsure |= trouble.may_be_applied();
                    if let Err(failure) = self.service.pause(watch, tried, trouble).await {
                        if is_unsure {
                            self.leave_unsure(trip, seats, &changed, done, seq);
                        }
                        return Err(failure.store_error().into());
                    }
                }
                Err(CallFailure::Canceled(reasons)) => {
                    return self.missed_one(seats, &changed, &namespaces, first_record, &stroke, reasons);
                }
                Err(failure) => return Err(failure.store_error().into()),
            }
        }
    }

    fn missed_one(
        &self,
        seats: &mut [LockedItem<'_>],
        changed: &[usize],
        namespaces: &BTreeSet<&str>,
        first_record: usize,
        stroke: &WriteStamp<'_>,
        reasons: Vec<CancelReason>,
    ) -> Result<TransactOutcome, RecordsError> {
        let (mut has_missed, mut was_made) = (false, false);
        let mut failed = None;
        for (place, reason) in reasons.into_iter().enumerate() {
            let CancelReason::Condition(old) = reason else { continue };
            match changed.get(place) {
                Some(index) => {
                    let seat = &mut seats[*index];
                    let image = old.map(|old| super::look::understand(seat.address, &old)).transpose()?;
                    // An earlier try of the same transaction was made, and its answer lost.
                    was_made |= image.as_ref().is_some_and(|image| stroke.is_of(image));
                    seat.state.saw(image, self.service.clock.now());
                    has_missed = true;
                }
                None if place < first_record => failed = failed.or(Some(Err(place - changed.len()))),
                None => failed = failed.or(Some(Ok(place - first_record))),
            }
        }
        match failed {
            _ if was_made => Ok(TransactOutcome::Made),
            _ if has_missed => Ok(TransactOutcome::Missed),
            Some(Ok(record)) => Err(RecordsError::Failed(record)),
            Some(Err(namespace)) => {
                let name = namespaces.iter().nth(namespace).copied().unwrap_or_default();
                Err(StoreError::NamespaceGone(name.to_owned()).into())
            }
            None => Ok(TransactOutcome::Missed),
        }
    }

    /// Notes that it is unknown whether the transaction was made; each bucket will find out by itself.
    fn leave_unsure(
        &self,
        trip: &PendingTxn,
        seats: &mut [LockedItem<'_>],
        changed: &[usize],
        done: &[StepOutcome],
        seq: u64,
    ) {
        for index in changed {
            let errands = vec![(trip.errand(*index), OpResult::Done(done[*index]))];
            let state = &mut seats[*index].state;
            state.forget();
            state.unsure = Some(UnknownWrite { seq, errands, undone_by: None });
            self.find_out_later(seats[*index].address, 0);
        }
    }
}

impl PendingTxn {
    fn stale(&self, drafts: &[ItemDraft]) -> Option<usize> {
        self.call.steps().zip(drafts).position(|(step, draft)| step.takes().is_some() && draft.is_past(&step))
    }

    fn fits(&self, drafts: &mut [ItemDraft]) -> bool {
        self.call.steps().zip(drafts).all(|(step, draft)| draft.fits(&step))
    }

    fn denials(&self, drafts: &[ItemDraft]) -> Vec<tollgate_core::Denial> {
        self.call.steps().zip(drafts).filter_map(|(step, draft)| draft.denial(&step)).collect()
    }

    fn commit(&self, drafts: &mut [ItemDraft]) -> Vec<StepOutcome> {
        let steps = self.call.steps().zip(drafts).enumerate();
        steps.map(|(index, (step, draft))| draft.commit(&step, &self.errand(index).metering)).collect()
    }
}
