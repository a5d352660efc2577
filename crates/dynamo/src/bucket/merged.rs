//! What is done to all items of a bucket at once, in one transaction.
//!
//! They are put together, the core does what is to be done as if they were one, and they are shared out again. So a
//! demand may be larger than a share, what is available is exact, and shares are even afterwards. It costs a write for
//! each item, and is made again if another client writes to any of them meanwhile; so it is for what a single item
//! cannot answer.

use std::sync::Arc;

use aws_sdk_dynamodb::types::{Delete, ReturnValuesOnConditionCheckFailure, TransactWriteItem};
use tokio::sync::MutexGuard;
use tollgate_core::{Limits, Tick};
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::usage::Caller;
use tollgate_store::{StepOutcome, StoreError};

use super::address::Address;
use super::draft::ItemDraft;
use super::expression::Expression;
use super::item_queue::{ItemOp, ItemQueue, ItemState, OpResult};
use super::look::look_at_all;
use super::parts::{merged, shared_out};
use super::send::predicted;
use super::snapshot::{self, ItemSnapshot};
use super::write::{self, WriteStamp};
use crate::inner::DynamoInner;
use crate::records;
use crate::service::{CallFailure, CancelReason, Elapsed, Tried};

/// What to do to a bucket.
pub(super) enum MergedOp<'a> {
    /// An operation, and writes that are made with it or not at all.
    Do(&'a ItemOp, &'a [Write]),
    /// Share it out to so many items.
    ShareOut(u32),
}

/// All items of a bucket, as they are, with no other task in this process writing to them.
struct LockedItems<'a> {
    lanes: &'a [Arc<ItemQueue>],
    states: Vec<MutexGuard<'a, ItemState>>,
    images: Vec<Option<ItemSnapshot>>,
}

impl DynamoInner {
    /// Does something to a whole bucket.
    pub(super) async fn whole(
        &self,
        address: &Address,
        deed: MergedOp<'_>,
    ) -> Result<OpResult, RecordsError> {
        let (watch, mut tried, mut misses) = (Elapsed::start(), Tried::default(), 0);
        loop {
            let shards = self.buckets.lane(address).shards();
            let lanes: Vec<Arc<ItemQueue>> =
                (0..shards).map(|shard| self.buckets.part_lane(address, shard)).collect();
            let mut items = self.all_items(address, &lanes).await?;
            let there = items.images.first().and_then(Option::as_ref).map_or(shards, |first| first.shards);
            if there != shards {
                self.buckets.lane(address).set_shards(there);
                continue;
            }
            let (last, now) = (items.last(), self.service.clock.now());
            let whole = if items.images[0].is_some() { merged(&items.images, last, now) } else { None };
            let mut draft = ItemDraft::new(whole.as_ref(), last, now);
            let (verdict, wanted, writes) = match &deed {
                MergedOp::Do(errand, writes) => (errand.act(&mut draft), shards, *writes),
                MergedOp::ShareOut(wanted) => {
                    draft.is_changed = draft.after.is_some();
                    (OpResult::Done(StepOutcome::Changed), *wanted, &[][..])
                }
            };
            if !matches!(verdict, OpResult::Done(_))
                && let Some(failed) = records::failing(&self.service, writes).await?
            {
                return Err(RecordsError::Failed(failed));
            }
            let writes = if matches!(verdict, OpResult::Done(_)) { writes } else { &[] };
            if !draft.is_changed && writes.is_empty() {
                return Ok(verdict);
            }
            let is_new = items.images[0].is_none();
            let wanted = if is_new { self.buckets.settings.shards_min } else { wanted };
            let drafts = drafts_of(&items.images, &draft, wanted);
            if self.write_all(address, &mut items, &drafts, writes, watch, &mut tried).await? {
                let shards =
                    drafts.first().and_then(|draft| draft.after.as_ref()).map_or(1, |image| image.shards);
                self.buckets.lane(address).set_shards(shards);
                lanes.iter().for_each(|lane| lane.saw(now));
                return Ok(verdict);
            }
            drop(items);
            misses += 1;
            self.pause_after(misses, watch).await?;
        }
    }

    async fn all_items<'a>(
        &self,
        address: &Address,
        lanes: &'a [Arc<ItemQueue>],
    ) -> Result<LockedItems<'a>, StoreError> {
        let mut states = Vec::new();
        for lane in lanes {
            let mut state = lane.state.lock().await;
            self.resolve_unknown(address, lane, &mut state).await?;
            states.push(state);
        }
        let keys: Vec<(&Address, u32)> = lanes.iter().map(|lane| (address, lane.shard())).collect();
        let images = look_at_all(&self.service, &keys).await?;
        Ok(LockedItems { lanes, states, images })
    }

    /// Writes all items, and returns whether no other client had written to any of them in between.
    async fn write_all(
        &self,
        address: &Address,
        items: &mut LockedItems<'_>,
        drafts: &[ItemDraft],
        writes: &[Write],
        watch: Elapsed,
        tried: &mut Tried,
    ) -> Result<bool, RecordsError> {
        let now = self.service.clock.now();
        let stroke = WriteStamp { writer: &self.buckets.writer, seq: self.buckets.next_seq(now) };
        let mut parts: Vec<TransactWriteItem> = Vec::new();
        for (shard, draft) in drafts.iter().enumerate() {
            parts.push(match (&draft.before, &draft.after) {
                (Some(before), None) => self.delete_item(address, before),
                _ => self.update_item(
                    address,
                    shard as u32,
                    &write::expression(draft, address, &stroke, false),
                ),
            });
        }
        let is_new = drafts.iter().any(|draft| draft.before.is_none());
        let first_check = parts.len();
        parts.extend(is_new.then(|| self.open_check(&address.namespace)));
        let first_record = parts.len();
        parts.extend(records::transact_items(&self.service, writes, now)?);
        let token = self.service.token();
        loop {
            let write = self.service.client.transact_write_items().client_request_token(&token);
            match self.service.try_once(write.set_transact_items(Some(parts.clone())).send()).await {
                Ok(_) => {
                    for (draft, state) in drafts.iter().zip(&mut items.states) {
                        state.saw(draft.after.is_some().then(|| predicted(draft, &stroke)), draft.now);
                    }
                    return Ok(true);
                }
                Err(CallFailure::Trouble(trouble, _)) => {
                    let paused = self.service.pause(watch, tried, trouble).await;
                    if let Err(failure) = paused {
                        // The next who comes looks at all of them again, and the token keeps it from being made twice.
                        items.states.iter_mut().for_each(|state| state.forget());
                        return Err(failure.store_error().into());
                    }
                }
                Err(CallFailure::Canceled(reasons)) => {
                    items.states.iter_mut().for_each(|state| state.forget());
                    let is_ours = |reason: &CancelReason| match reason {
                        CancelReason::Condition(Some(old)) => {
                            ItemSnapshot::read(old).is_ok_and(|image| stroke.is_of(&image))
                        }
                        _ => false,
                    };
                    // An earlier try of the same transaction was made, and its answer lost.
                    if reasons.iter().take(first_check).any(is_ours) {
                        return Ok(true);
                    }
                    let mut failed = reasons.iter().enumerate();
                    let is_failed = |reason: &CancelReason| matches!(reason, CancelReason::Condition(_));
                    return match failed.find(|(_, reason)| is_failed(reason)) {
                        Some((place, _)) if place >= first_record => {
                            Err(RecordsError::Failed(place - first_record))
                        }
                        Some((place, _)) if place >= first_check => Err(super::send::gone(address).into()),
                        _ => Ok(false),
                    };
                }
                Err(failure) => return Err(failure.store_error().into()),
            }
        }
    }

    fn delete_item(&self, address: &Address, before: &ItemSnapshot) -> TransactWriteItem {
        let mut expression = Expression::default();
        write::require_seen(&mut expression, before);
        let delete = Delete::builder()
            .table_name(&self.service.table)
            .set_key(Some(snapshot::key(address, before.shard)))
            .condition_expression(expression.condition())
            .set_expression_attribute_names(Some(expression.names))
            .set_expression_attribute_values(Some(expression.values))
            .return_values_on_condition_check_failure(ReturnValuesOnConditionCheckFailure::AllOld)
            .build()
            .expect("a table, a key and a condition are all it needs");
        TransactWriteItem::builder().delete(delete).build()
    }
}

impl LockedItems<'_> {
    fn last(&self) -> Tick {
        self.lanes.iter().map(|lane| lane.last()).fold(Tick::ZERO, Tick::max)
    }
}

/// What becomes of each item when the whole becomes what the draft says.
fn drafts_of(images: &[Option<ItemSnapshot>], draft: &ItemDraft, wanted: u32) -> Vec<ItemDraft> {
    let Some(after) = &draft.after else { return Vec::new() };
    let shares = shards_for(&after.whole, wanted);
    let kept = shared_out(&after.kept, &after.whole, shares).unwrap_or_else(|| vec![after.kept.clone()]);
    let shards = kept.len() as u32;
    let mut drafts = Vec::new();
    for (shard, kept) in kept.into_iter().enumerate() {
        let before = images.get(shard).cloned().flatten();
        let mut image = ItemSnapshot {
            whole: after.whole.clone(),
            shard: shard as u32,
            shards,
            ttl: None,
            ..after.clone()
        };
        image.revision = before.as_ref().map_or(0, |before| before.revision);
        image.generation = before.as_ref().map_or(0, |before| before.generation) + 1;
        image.writers = before.as_ref().map(|before| before.writers.clone()).unwrap_or_default();
        if let Some(before) = &before {
            image.counters = before.counters.clone();
            image.counters.adopt(&before.kept.limits, &kept.limits);
        }
        image.kept = kept;
        if shard == 0 {
            image.ttl = if shards == 1 { after.ttl } else { None };
            if before.is_some() {
                count(&mut image, after);
                absorb(&mut image, images.get(shards as usize..).unwrap_or_default());
            }
        } else if before.is_none() {
            // What is counted of the whole is counted at its first item.
            image.counters = super::counters::UsageCounters::of(&image.kept.limits);
        }
        let (now, time) = (draft.now, draft.time);
        drafts.push(ItemDraft {
            before,
            after: Some(image),
            moves: None,
            is_changed: true,
            loose: Vec::new(),
            loose_of: Caller::Own,
            now,
            time,
        });
    }
    for gone in images.get(shards as usize..).unwrap_or_default().iter().flatten() {
        let (now, time) = (draft.now, draft.time);
        let before = Some(gone.clone());
        drafts.push(ItemDraft {
            before,
            after: None,
            moves: None,
            is_changed: true,
            loose: Vec::new(),
            loose_of: Caller::Own,
            now,
            time,
        });
    }
    drafts
}

/// Adds what was counted of the whole.
fn count(image: &mut ItemSnapshot, whole: &ItemSnapshot) {
    let limits = image.kept.limits.clone();
    for (hour, aside) in whole.counters.unwritten(&whole.kept.limits) {
        image.counters.open_hour(&limits, hour);
        image.counters.events.total += i128::from(aside.events);
        aside.amounts.iter().for_each(|(name, amount)| image.counters.add(&limits, name, *amount));
    }
}

/// Takes over what items that go have counted.
fn absorb(image: &mut ItemSnapshot, gone: &[Option<ItemSnapshot>]) {
    for other in gone.iter().flatten() {
        for (hour, aside) in other.counters.unwritten(&other.kept.limits) {
            let sum = image.counters.aside.entry(hour).or_default();
            sum.events += aside.events;
            for (name, amount) in aside.amounts {
                *sum.amounts.entry(name).or_default() += amount;
            }
        }
    }
}

/// So many as are wanted, or one if the limits cannot be shared out.
fn shards_for(limits: &Limits, wanted: u32) -> u32 {
    if wanted > 1 && limits.part(u64::from(wanted) - 1, wanted.into()).is_none() { 1 } else { wanted.max(1) }
}
