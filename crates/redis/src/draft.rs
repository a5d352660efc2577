//! Working out a call by the core, from what was seen: everything is decided before anything is changed.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use tollgate_core::{Denial, Tick};
use tollgate_store::prefetch::UsageDelta;
use tollgate_store::records::{Item, ItemKey, RecordsError, Write};
use tollgate_store::txn::{self, BucketTxn, MeteredBucket, TxnBucket};
use tollgate_store::usage::{Sums, UsageRetention, Used};
use tollgate_store::{BucketRef, Step, StoreError, Transaction, TxnOutcome};

use crate::codec::RedisRow;
use crate::commit::{Changes, Expiry};
use crate::layout::Layout;
use crate::queue::QueueStatus;
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
    usage_overrides: &'a [UsageDelta],
    /// How the caller stands among waiters.
    queue_status: QueueStatus,
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
            usage_overrides: &[],
            queue_status: QueueStatus::default(),
            granting: Vec::new(),
            items,
        }
    }

    /// Sets what the steps used; what they say themselves does not count then.
    pub(crate) fn usage_override(self, usage_overrides: &'a [UsageDelta]) -> DraftTxn<'a> {
        DraftTxn { usage_overrides, ..self }
    }

    /// The caller stands so among waiters: behind a claim on a limit it takes nothing.
    pub(crate) fn queue_status(self, queue_status: QueueStatus) -> DraftTxn<'a> {
        DraftTxn { queue_status, ..self }
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
        let outcome = txn::apply(&mut self, call, writes)?.outcome;
        if !self.missing.is_empty() {
            return Ok(CommitPlan::Look(self.missing));
        }
        let outcome = match outcome {
            TxnOutcome::Denied(denials) => TxnOutcome::Denied(self.behind_waiters(call.steps, denials)),
            outcome => outcome,
        };
        if matches!(outcome, TxnOutcome::Done(_)) {
            for words in std::mem::take(&mut self.granting) {
                self.changes.command(&words.each_ref().map(Vec::as_slice));
            }
        }
        self.settle_records();
        let is_guess = self.changes.checked.iter().any(|key| self.view.assumed.contains(key));
        Ok(match self.changes.is_empty() {
            true if is_guess => CommitPlan::Guess,
            true => CommitPlan::Answer(outcome),
            false => CommitPlan::Commit(outcome, self.changes),
        })
    }

    /// Adds to the denials of the takes how the caller stands among waiters.
    fn behind_waiters(&self, steps: &[Step<'_>], denials: Vec<Denial>) -> Vec<Denial> {
        let QueueStatus { held, ahead } = self.queue_status;
        let takes = steps.iter().enumerate().filter(|(_, step)| step.takes().is_some());
        let stand = |((step, _), denial): ((usize, &Step<'_>), Denial)| {
            let denial = denial.with_ahead(ahead);
            match held.filter(|held| held.step == step) {
                Some(held) => denial.behind_claim(held.place),
                None => denial,
            }
        };
        takes.zip(denials).map(stand).collect()
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
                row.map(Some).map_err(|error| error.into_error(Default::default()))
            }
        }
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

/// What belongs to a bucket beside its state and its usage.
#[derive(Default)]
pub(crate) struct DraftHandle {
    /// Whether the bucket exists, and whether callers may wait for a limit of it.
    stored: Option<HasWaiters>,
    /// Usage that is written down with the bucket.
    usage_writes: Vec<Write>,
}

struct HasWaiters(bool);

/// What was looked at is decided by; a value that was not is taken as absent, and noted as [missing](DraftTxn::missing).
impl BucketTxn for DraftTxn<'_> {
    type Error = RecordsError;
    type Handle = DraftHandle;

    const SEES_PROCESSES: bool = false;

    fn now(&mut self, _: &[Step<'_>]) -> Result<Tick, RecordsError> {
        Ok(self.view.now)
    }

    fn load(&mut self, place: &BucketRef<'_>) -> Result<Option<TxnBucket<DraftHandle>>, RecordsError> {
        let Some(RedisRow { kept: stored, usage, has_waiters }) = self.row(place)? else { return Ok(None) };
        let handle = DraftHandle { stored: Some(HasWaiters(has_waiters)), usage_writes: Vec::new() };
        Ok(Some(TxnBucket::new(MeteredBucket { stored, usage }, handle)))
    }

    fn put(
        &mut self,
        place: &BucketRef<'_>,
        bucket: TxnBucket<DraftHandle>,
        now: Tick,
    ) -> Result<(), RecordsError> {
        let TxnBucket { metered: MeteredBucket { stored, usage }, handle, .. } = bucket;
        self.write(&handle.usage_writes)?;
        let has_waiters = handle.stored.as_ref().is_some_and(|HasWaiters(has_waiters)| *has_waiters);
        let row = RedisRow { kept: stored, usage, has_waiters };
        self.changes.put_bucket(self.layout, place, &row, handle.stored.is_none(), now);
        Ok(())
    }

    fn is_closed(&mut self, namespace: &str) -> Result<bool, RecordsError> {
        let key = self.layout.closed(namespace);
        Ok(self.value(&key).is_some_and(|value| !value.is_empty()))
    }

    fn record(&mut self, key: &ItemKey, _: Tick) -> Result<Option<Item>, RecordsError> {
        Ok(self.item(key)?.1.clone())
    }

    /// Looks at the records of all writes before any of them fails, so that all that are missing are looked up together.
    fn first_failing(&mut self, writes: &[Write], _: Tick) -> Result<Option<usize>, RecordsError> {
        for (index, write) in writes.iter().enumerate() {
            let passes = write.passes(self.item(write.key())?.1.as_ref());
            if !passes && self.missing.is_empty() {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    fn write_records(&mut self, writes: &[Write], _: Tick) -> Result<(), RecordsError> {
        self.write(writes)
    }

    fn usage_retention(&self) -> &UsageRetention {
        self.usage_retention
    }

    fn is_held_back(&self) -> bool {
        self.queue_status.held.is_some()
    }

    /// Writes down what was used under limits of other names or places, because the stored form counts usage in the limits in
    /// force. The number of takes stays, so that it is that of the whole hour.
    fn limits_changed(&self, place: &BucketRef<'_>, bucket: &mut TxnBucket<DraftHandle>, now: Tick) {
        let TxnBucket { metered: MeteredBucket { stored, usage }, handle, .. } = bucket;
        let Some(sums) = usage else { return };
        let caller = sums.caller();
        if *sums.limits() != stored.limits && !sums.adopt(&stored.limits, now, caller) {
            let before = sums.roll_over(&stored.limits, now, caller);
            handle.usage_writes.extend(before.writes_at(place, self.usage_retention));
            usage.take_if(|sums| sums.is_empty());
        }
    }

    fn usage_override(&self, step: usize) -> Option<Used<'_>> {
        let delta = self.usage_overrides.get(step)?;
        Some(Used::Reported(delta.caller, delta.events, &delta.amounts))
    }

    /// Counts usage in the limits in force; if those have other places than the limits of the step, it goes to the records.
    fn count(
        &self,
        used: &Used<'_>,
        bucket: &mut MeteredBucket,
        place: &BucketRef<'_>,
        at: Tick,
        writes: &mut Vec<Write>,
    ) {
        let in_force = &bucket.stored.limits;
        if in_force == place.limits || in_force.same_layout(place.limits) {
            let place = BucketRef { limits: in_force, ..*place };
            return used.count(&mut bucket.usage, &place, at, self.usage_retention, writes);
        }
        let mut sums = Sums::new(place.limits, at, used.caller());
        used.add(&mut sums);
        writes.extend(sums.writes_at(place, self.usage_retention));
    }
}
