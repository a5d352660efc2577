//! Working out a call by the core, from what was seen: everything is decided before anything is changed.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use tollgate_core::{Costs, Denial, Tick};
use tollgate_store::prefetch::UsageDelta;
use tollgate_store::records::{Item, ItemKey, RecordsError, Write};
use tollgate_store::usage::{Sums, UsageRetention, Used};
use tollgate_store::{BucketRef, Op, Step, StepOutcome, StoreError, Transaction, TxnOutcome};

use crate::codec::RedisRow;
use crate::commit::{Changes, Expiry};
use crate::layout::Layout;
use crate::queue::QueueStanding;
use crate::records::item_of;
use crate::service::SeenValues;

/// Values by their keys, as they were at one instant; those that are not there are empty.
#[derive(Debug, Default)]
pub(crate) struct ValueSnapshot {
    pub(crate) now: Tick,
    values: HashMap<Vec<u8>, Vec<u8>>,
    /// Which were only assumed not to be there.
    assumed: Vec<Vec<u8>>,
}

impl ValueSnapshot {
    pub(crate) fn of(keys: &[Vec<u8>], seen: SeenValues) -> ValueSnapshot {
        ValueSnapshot {
            now: seen.now,
            values: keys.iter().cloned().zip(seen.values).collect(),
            assumed: Vec::new(),
        }
    }

    pub(crate) fn keys(&self) -> impl Iterator<Item = &Vec<u8>> {
        self.values.keys()
    }

    /// Takes it that there is nothing at a key, unless it was looked at.
    pub(crate) fn assume_absent(&mut self, key: Vec<u8>) {
        if let Entry::Vacant(vacant) = self.values.entry(key) {
            self.assumed.push(vacant.key().clone());
            vacant.insert(Vec::new());
        }
    }

    pub(crate) fn get(&self, key: &[u8]) -> Option<&[u8]> {
        self.values.get(key).map(Vec::as_slice)
    }
}

/// What is to be done.
pub(crate) enum CommitPlan {
    /// These have to be looked at first, with all that was.
    Look(Vec<Vec<u8>>),
    /// Nothing changes.
    Answer(TxnOutcome),
    /// Nothing changes if what was assumed is so.
    Guess,
    /// The changes, and what comes of the call if they are made.
    Commit(TxnOutcome, Changes),
}

/// A call, the writes that go with it, and what was seen.
pub(crate) struct DraftTxn<'a> {
    layout: &'a Layout,
    view: &'a ValueSnapshot,
    usage_retention: &'a UsageRetention,
    changes: Changes,
    missing: Vec<Vec<u8>>,
    /// What the steps used, where that is not what they say.
    told: &'a [UsageDelta],
    /// How the caller stands among waiters.
    standing: QueueStanding,
    /// The commands that remove the caller's claims if it is granted.
    granting: Vec<[Vec<u8>; 3]>,
    /// Records as they are stored and as they will be.
    items: BTreeMap<ItemKey, (Option<Item>, Option<Item>)>,
}

impl<'a> DraftTxn<'a> {
    pub(crate) fn new(
        layout: &'a Layout,
        view: &'a ValueSnapshot,
        expiry: Expiry,
        usage_retention: &'a UsageRetention,
    ) -> DraftTxn<'a> {
        let changes = Changes::new(expiry);
        let (missing, items) = (Vec::new(), BTreeMap::new());
        DraftTxn {
            layout,
            view,
            usage_retention,
            changes,
            missing,
            told: &[],
            standing: QueueStanding::default(),
            granting: Vec::new(),
            items,
        }
    }

    /// Sets what the steps used; what they say themselves does not count then.
    pub(crate) fn told(self, told: &'a [UsageDelta]) -> DraftTxn<'a> {
        DraftTxn { told, ..self }
    }

    /// The caller stands so among waiters: behind a claim on a limit it takes nothing.
    pub(crate) fn standing(self, standing: QueueStanding) -> DraftTxn<'a> {
        DraftTxn { standing, ..self }
    }

    /// If the call is granted, these are carried out with it.
    pub(crate) fn granting(self, granting: Vec<[Vec<u8>; 3]>) -> DraftTxn<'a> {
        DraftTxn { granting, ..self }
    }

    /// A value, if it was looked at; otherwise it is noted that it has to be.
    fn value(&mut self, key: &[u8]) -> Option<&'a [u8]> {
        let value = self.view.get(key);
        match value {
            Some(_) => self.changes.check(key),
            None => self.missing.push(key.to_vec()),
        }
        value
    }

    pub(crate) fn plan(
        mut self,
        call: &Transaction<'_>,
        writes: &[Write],
    ) -> Result<CommitPlan, RecordsError> {
        let applied = self.apply(call, writes)?;
        if !self.missing.is_empty() {
            return Ok(CommitPlan::Look(self.missing));
        }
        self.settle_records();
        Ok(match self.changes.is_empty() {
            true if self.changes.checked.iter().any(|key| self.view.assumed.contains(key)) => {
                CommitPlan::Guess
            }
            true => CommitPlan::Answer(applied),
            false => CommitPlan::Commit(applied, self.changes),
        })
    }

    /// Writes down and forgets what was used of a bucket, of any hour or only of others than the one it is. `None` if there is
    /// nothing to do.
    pub(crate) fn write_usage(
        mut self,
        place: &BucketRef<'_>,
        also_now: bool,
    ) -> Result<Option<CommitPlan>, RecordsError> {
        let Some(mut row) = self.row(place)? else { return Ok(self.looked()) };
        let now = self.view.now;
        let Some(sums) = row.usage.take_if(|sums| also_now || !sums.is_of_hour(now)) else { return Ok(None) };
        self.write(&sums.writes_at(place, self.usage_retention))?;
        if !self.missing.is_empty() {
            return Ok(Some(CommitPlan::Look(self.missing)));
        }
        self.changes.put_bucket(self.layout, place, &row, false, now);
        self.settle_records();
        Ok(Some(CommitPlan::Commit(TxnOutcome::Done(Vec::new()), self.changes)))
    }

    fn looked(self) -> Option<CommitPlan> {
        (!self.missing.is_empty()).then_some(CommitPlan::Look(self.missing))
    }

    fn row(&mut self, place: &BucketRef<'_>) -> Result<Option<RedisRow>, StoreError> {
        let key = self.layout.bucket(place.namespace, place.key);
        match self.value(&key) {
            None | Some([]) => Ok(None),
            Some(bytes) => {
                let row = RedisRow::from_bytes(bytes, Some(place.limits));
                row.map(Some).map_err(|trouble| trouble.into_error(Default::default()))
            }
        }
    }

    /// Whether the namespace is closed; if that was not looked at, it will be before anything comes of it.
    fn is_closed(&mut self, namespace: &str) -> bool {
        let key = self.layout.closed(namespace);
        self.value(&key).is_some_and(|value| !value.is_empty())
    }

    fn apply(&mut self, call: &Transaction<'_>, writes: &[Write]) -> Result<TxnOutcome, RecordsError> {
        let now = self.view.now;
        let mut rows = Vec::with_capacity(call.steps.len());
        for (index, step) in call.steps.iter().enumerate() {
            let row = self.row_for(step)?;
            let is_past = |row: &DraftBucket| row.row.kept.is_past(step.place.limits);
            if step.takes().is_some() && row.as_ref().is_some_and(is_past) {
                return Ok(TxnOutcome::Stale(index));
            }
            rows.push(row);
        }
        if let Some(failed) = self.failing(writes)? {
            return Err(RecordsError::Failed(failed));
        }
        let is_heeded = |(step, slot): (&Step<'_>, &Option<DraftBucket>)| {
            slot.as_ref().is_some_and(|slot| !slot.is_new && slot.row.kept.accepts_limits_of(step))
        };
        let heeded: Vec<bool> = call.steps.iter().zip(&rows).map(is_heeded).collect();
        for (step, slot) in call.steps.iter().zip(&mut rows) {
            if let (Some(_), Some(slot)) = (step.takes(), slot) {
                put_in_force(step, slot, now, self.usage_retention);
            }
        }
        let QueueStanding { held, ahead } = self.standing;
        if held.is_some() || !takes(call.steps, &rows).all(|(_, costs, row)| row.kept.fits(now, costs)) {
            let denials: Vec<Denial> = takes(call.steps, &rows)
                .map(|(step, costs, row)| {
                    let denial = row.kept.denial(now, costs).with_ahead(ahead);
                    match held.filter(|held| held.step == step) {
                        Some(held) => denial.behind_claim(held.place),
                        None => denial,
                    }
                })
                .collect();
            let heeded = call.steps.iter().zip(rows).zip(heeded).filter(|(_, is_heeded)| *is_heeded);
            for ((step, slot), _) in heeded {
                self.put(step, slot, now)?;
            }
            return Ok(TxnOutcome::Denied(denials));
        }
        let steps = call.steps.iter().zip(&mut rows);
        let done: Vec<StepOutcome> =
            steps.map(|(step, slot)| step.commit(slot.as_mut().map(|it| &mut it.row.kept), now)).collect();
        if call.metered {
            self.meter(call.steps, &mut rows, &done, now)?;
        }
        self.write(writes)?;
        for (step, slot) in call.steps.iter().zip(rows) {
            self.put(step, slot, now)?;
        }
        for words in std::mem::take(&mut self.granting) {
            self.changes.command(&words.each_ref().map(Vec::as_slice));
        }
        Ok(TxnOutcome::Done(done))
    }

    fn put(&mut self, step: &Step<'_>, slot: Option<DraftBucket>, now: Tick) -> Result<(), RecordsError> {
        let Some(DraftBucket { row, is_new, over }) = slot else { return Ok(()) };
        self.write(&over)?;
        self.changes.put_bucket(self.layout, &step.place, &row, is_new, now);
        Ok(())
    }

    /// The bucket of a step, or a fresh one for what [creates](Step::creates) one.
    fn row_for(&mut self, step: &Step<'_>) -> Result<Option<DraftBucket>, StoreError> {
        if let Some(row) = self.row(&step.place)? {
            return Ok(Some(DraftBucket { row, is_new: false, over: Vec::new() }));
        }
        if !step.creates() {
            return Ok(None);
        }
        if self.is_closed(step.place.namespace) {
            return Err(StoreError::NamespaceGone(step.place.namespace.into()));
        }
        Ok(Some(DraftBucket { row: RedisRow::fresh(step.place.limits), is_new: true, over: Vec::new() }))
    }

    /// Counts what the steps used. What is of another hour, or of a bucket that is gone, goes to the records.
    fn meter(
        &mut self,
        steps: &[Step<'_>],
        rows: &mut [Option<DraftBucket>],
        done: &[StepOutcome],
        now: Tick,
    ) -> Result<(), RecordsError> {
        for (index, ((step, slot), done)) in steps.iter().zip(rows).zip(done).enumerate() {
            let (at, used) = match (&step.op, done) {
                (Op::Take { costs, .. }, StepOutcome::Taken(taken)) => (taken.at, Used::Taken(costs)),
                (Op::Settle(usage) | Op::SettleExisting(usage), _) => (now, Used::Settled(usage)),
                _ => continue,
            };
            let used = self.told.get(index).map_or(used, |it| Used::Told(it.caller, it.events, &it.amounts));
            let place = &step.place;
            match slot {
                Some(slot) => slot.over.extend(count(&used, &mut slot.row, place, at, self.usage_retention)),
                // It is gone because it was full, but what was counted of it has to be corrected.
                None if matches!(step.op, Op::Settle(_)) && !self.is_closed(place.namespace) => {
                    let mut sums = Sums::new(place.limits, at, used.caller());
                    used.add(&mut sums);
                    self.write(&sums.writes_at(place, self.usage_retention))?;
                }
                None => {}
            }
        }
        Ok(())
    }

    /// The record at a key as it is now, and as it will be.
    fn item(&mut self, key: &ItemKey) -> Result<&mut (Option<Item>, Option<Item>), StoreError> {
        if !self.items.contains_key(key) {
            let stored = match self.value(&self.layout.record(key)) {
                None | Some([]) => None,
                Some(bytes) => Some(item_of(key, bytes)?),
            };
            let now = self.view.now;
            let there = stored.clone().filter(|item| !item.has_expired(now));
            self.items.insert(key.clone(), (stored, there));
        }
        Ok(self.items.get_mut(key).expect("it was just put there"))
    }

    /// The first write whose tests fail.
    fn failing(&mut self, writes: &[Write]) -> Result<Option<usize>, StoreError> {
        for (index, write) in writes.iter().enumerate() {
            let passes = write.passes(self.item(write.key())?.1.as_ref());
            if !passes && self.missing.is_empty() {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn write(&mut self, writes: &[Write]) -> Result<(), RecordsError> {
        for write in writes {
            let (_, item) = self.item(write.key())?;
            *item = write.applied(item.take());
        }
        Ok(())
    }

    fn settle_records(&mut self) {
        for (key, (stored, item)) in std::mem::take(&mut self.items) {
            self.changes.put_record(self.layout, &key, stored.as_ref(), item.as_ref());
        }
    }
}

/// The bucket of a step.
struct DraftBucket {
    row: RedisRow,
    is_new: bool,
    /// Usage that is written down with it.
    over: Vec<Write>,
}

/// Puts the limits of a step in force. What was used under limits of other names or places is to be written down; the number
/// of takes stays, so that it is that of the whole hour.
fn put_in_force(step: &Step<'_>, slot: &mut DraftBucket, now: Tick, kept: &UsageRetention) {
    let DraftBucket { row, over, .. } = slot;
    row.kept.put_in_force(step.place.limits, now);
    let (limits, Some(sums)) = (&row.kept.limits, &mut row.usage) else { return };
    let caller = sums.caller();
    if sums.limits() != limits && !sums.adopt(limits, now, caller) {
        over.extend(sums.turned(limits, now, caller).writes_at(&step.place, kept));
        row.usage.take_if(|sums| sums.is_empty());
    }
}

/// Counts usage in the bucket, and answers what has to be written down to make room for it. It is counted in the limits of
/// its place; where others are in force, it is written down at once.
fn count(
    used: &Used<'_>,
    row: &mut RedisRow,
    place: &BucketRef<'_>,
    at: Tick,
    kept: &UsageRetention,
) -> Vec<Write> {
    let in_force = &row.kept.limits;
    if in_force != place.limits && !in_force.same_layout(place.limits) {
        let mut sums = Sums::new(place.limits, at, used.caller());
        used.add(&mut sums);
        return sums.writes_at(place, kept);
    }
    let mut over = Vec::new();
    used.count(&mut row.usage, &BucketRef { limits: in_force, ..*place }, at, kept, &mut over);
    over
}

/// The steps that take, by their places, with what they take and from what.
fn takes<'s>(
    steps: &'s [Step<'_>],
    rows: &'s [Option<DraftBucket>],
) -> impl Iterator<Item = (usize, &'s Costs, &'s RedisRow)> {
    let steps = steps.iter().zip(rows).enumerate();
    steps.filter_map(|(index, (step, slot))| Some((index, step.takes()?, &slot.as_ref()?.row)))
}
