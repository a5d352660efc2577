//! Executing a call on several items in one transaction.

use std::collections::BTreeSet;
use std::sync::Arc;

use aws_sdk_dynamodb::types::TransactWriteItem;
use tokio::sync::MutexGuard;
use tollgate_core::Denial;
use tollgate_store::records::RecordsError;
use tollgate_store::{StepOutcome, StoreError, TxnOutcome};

use super::address::Address;
use super::dispatch::PendingTxn;
use super::draft::ItemDraft;
use super::item_executor::ItemExecutor;
use super::item_op::OpResult;
use super::item_queue::{ItemQueue, ItemState};
use super::read::{parse_item, read_items};
use super::send::{GivenUp, TransactResult, WriteResult, predicted};
use super::usage_writer::correct_usage;
use super::write::{self, WriteStamp};
use crate::records;
use crate::service::{Attempts, CancelReason};

/// Executes calls in one transaction each.
pub(super) struct TransactionExecutor {
    items: Arc<ItemExecutor>,
}

/// An item of a call that no other task in this process may write to meanwhile.
struct LockedItem<'a> {
    address: &'a Address,
    queue: &'a ItemQueue,
    state: MutexGuard<'a, ItemState>,
}

/// The parts of a transaction: items, then the checks of namespaces, then records.
struct TransactParts<'a> {
    parts: Vec<TransactWriteItem>,
    /// Which of the locked items the first parts change.
    changed: Vec<usize>,
    /// The namespaces that must not be closed, because items in them are new.
    namespaces: BTreeSet<&'a str>,
}

/// What came of a transaction.
enum TransactOutcome {
    Made,
    /// An item was not what it had to be.
    Missed,
}

impl TransactionExecutor {
    pub(super) fn new(items: Arc<ItemExecutor>) -> TransactionExecutor {
        TransactionExecutor { items }
    }

    /// Applies a call to all its buckets and makes its writes, or neither; `None` if one of them is in several items.
    pub(super) async fn execute(&self, txn: &PendingTxn) -> Result<Option<TxnOutcome>, RecordsError> {
        let queues: Vec<Arc<ItemQueue>> =
            txn.addresses.iter().map(|address| self.items.shards.first(address)).collect();
        let mut items = self.lock_all(txn, &queues).await?;
        let (mut attempts, mut is_current) = (Attempts::start(), false);
        loop {
            is_current |= self.read_unknown(&mut items).await?;
            if items.iter().any(|item| self.is_split(item)) {
                return Ok(None);
            }
            let now = self.items.now();
            let drafts =
                items.iter().map(|item| ItemDraft::new(item.state.snapshot(), item.queue.last(), now));
            let mut drafts: Vec<ItemDraft> = drafts.collect();
            if let Some(stale) = txn.stale(&drafts) {
                return Ok(Some(TxnOutcome::Stale(stale)));
            }
            if !txn.fits(&mut drafts) {
                let denial_cached = self.items.writer.settings.denial_cached;
                let is_old = |item: &LockedItem<'_>| now.since(item.state.seen_at) >= denial_cached;
                if !is_current && items.iter().any(is_old) {
                    forget(&mut items);
                    continue;
                }
                return self.deny(txn, &mut items, drafts, &mut attempts).await.map(Some);
            }
            let done = txn.commit(&mut drafts);
            // Whether a holder is gone cannot be decided on an old snapshot.
            if !is_current && done.contains(&StepOutcome::Renewed(false)) {
                forget(&mut items);
                continue;
            }
            if let TransactOutcome::Made = self.send(txn, &mut items, &drafts, &done, &mut attempts).await? {
                items.iter().for_each(|item| item.queue.note_use(now));
                for (item, draft) in items.iter().zip(&drafts) {
                    correct_usage(&self.items.writer, item.address, draft).await?;
                }
                return Ok(Some(TxnOutcome::Done(done)));
            }
            if self.items.service().pause_after_miss(&mut attempts).await? {
                forget(&mut items);
            }
        }
    }

    /// Returns whether a bucket is in several items, or will be once it is made.
    fn is_split(&self, item: &LockedItem<'_>) -> bool {
        match item.state.snapshot() {
            Some(snapshot) => snapshot.shards > 1,
            None => self.items.writer.settings.shards_min > 1,
        }
    }

    /// Waits until no other task in this process writes to the items. All tasks wait in the same order.
    async fn lock_all<'a>(
        &self,
        txn: &'a PendingTxn,
        queues: &'a [Arc<ItemQueue>],
    ) -> Result<Vec<LockedItem<'a>>, StoreError> {
        let mut order: Vec<usize> = (0..queues.len()).collect();
        order.sort_by_key(|index| {
            let address = &txn.addresses[*index];
            (&*address.namespace, address.key.as_bytes())
        });
        let mut items: Vec<Option<LockedItem<'a>>> = queues.iter().map(|_| None).collect();
        for index in order {
            let (address, queue) = (&txn.addresses[index], &*queues[index]);
            let mut state = queue.state.lock().await;
            self.items.resolve_unknown(address, queue, &mut state).await?;
            state.doubt_absence();
            items[index] = Some(LockedItem { address, queue, state });
        }
        Ok(items.into_iter().flatten().collect())
    }

    /// Reads all items that nothing is known of, in one go; returns whether these were all.
    async fn read_unknown(&self, items: &mut [LockedItem<'_>]) -> Result<bool, StoreError> {
        let unknown: Vec<usize> = (0..items.len()).filter(|index| !items[*index].state.is_known()).collect();
        if unknown.is_empty() {
            return Ok(false);
        }
        let keys: Vec<(&Address, u32)> = unknown.iter().map(|index| (items[*index].address, 0)).collect();
        let snapshots = read_items(self.items.service(), &keys).await?;
        let (now, is_all) = (self.items.now(), unknown.len() == items.len());
        for (index, snapshot) in unknown.into_iter().zip(snapshots) {
            items[index].state.update(snapshot, now);
        }
        Ok(is_all)
    }

    /// Returns the denials of all takes. Limits that are accepted all the same are put in force.
    async fn deny(
        &self,
        txn: &PendingTxn,
        items: &mut [LockedItem<'_>],
        mut drafts: Vec<ItemDraft>,
        attempts: &mut Attempts,
    ) -> Result<TxnOutcome, RecordsError> {
        if let Some(failed) = records::failing(self.items.service(), &txn.writes).await? {
            return Err(RecordsError::Failed(failed));
        }
        let denials = txn.denials(&drafts);
        for ((step, draft), item) in txn.call.steps().zip(&mut drafts).zip(items) {
            draft.accept_limits(&step);
            if !draft.is_changed {
                continue;
            }
            match self.items.writer.send(item.address, draft, attempts).await {
                Ok(WriteResult::Made(snapshot)) => item.state.update(Some(*snapshot), draft.now),
                Ok(WriteResult::Missed(snapshot)) => {
                    item.state.update(snapshot.map(|snapshot| *snapshot), draft.now)
                }
                Err(given_up) => {
                    item.state.forget();
                    return Err(given_up.error().into());
                }
            }
        }
        Ok(TxnOutcome::Denied(denials))
    }

    async fn send(
        &self,
        txn: &PendingTxn,
        items: &mut [LockedItem<'_>],
        drafts: &[ItemDraft],
        done: &[StepOutcome],
        attempts: &mut Attempts,
    ) -> Result<TransactOutcome, RecordsError> {
        let now = self.items.now();
        let stamp = self.items.writer.next_stamp(now);
        let mut transact = self.parts(items, drafts, &stamp);
        transact.parts.extend(records::transact_items(self.items.service(), &txn.writes, now)?);
        if transact.parts.is_empty() {
            return Ok(TransactOutcome::Made);
        }
        let parts = std::mem::take(&mut transact.parts);
        match self.items.writer.send_transaction(parts, &stamp, attempts).await {
            Ok(TransactResult::Made) => {
                for index in transact.changed {
                    let draft = &drafts[index];
                    items[index].state.update(Some(predicted(draft, &stamp)), draft.now);
                }
                Ok(TransactOutcome::Made)
            }
            Ok(TransactResult::Canceled(reasons)) => self.canceled(items, &transact, &stamp, reasons),
            Err(GivenUp::NotMade(error)) => Err(error.into()),
            Err(GivenUp::Unknown(seq, error)) => {
                // Each item finds out by itself.
                for index in transact.changed {
                    let ops = vec![(txn.op(index), OpResult::Done(done[index]))];
                    let LockedItem { address, queue, state } = &mut items[index];
                    self.items.leave_unknown(address, queue, state, seq, ops);
                }
                Err(error.into())
            }
        }
    }

    /// Returns the parts for the items that change.
    fn parts<'a>(
        &self,
        items: &[LockedItem<'a>],
        drafts: &[ItemDraft],
        stamp: &WriteStamp<'_>,
    ) -> TransactParts<'a> {
        let writer = &self.items.writer;
        let changed: Vec<usize> = (0..drafts.len()).filter(|index| drafts[*index].is_changed).collect();
        let (mut parts, mut namespaces) = (Vec::new(), BTreeSet::new());
        for index in &changed {
            let (address, draft) = (items[*index].address, &drafts[*index]);
            parts.push(writer.update_item(address, 0, &write::expression(draft, address, stamp, false)));
            if draft.before.is_none() {
                namespaces.insert(&*address.namespace);
            }
        }
        parts.extend(namespaces.iter().map(|namespace| writer.open_check(namespace)));
        TransactParts { parts, changed, namespaces }
    }

    /// Learns from a canceled transaction what its items are.
    fn canceled(
        &self,
        items: &mut [LockedItem<'_>],
        transact: &TransactParts<'_>,
        stamp: &WriteStamp<'_>,
        reasons: Vec<CancelReason>,
    ) -> Result<TransactOutcome, RecordsError> {
        let TransactParts { changed, namespaces, .. } = transact;
        let (mut has_missed, mut was_made, mut failed) = (false, false, None);
        for (part, reason) in reasons.into_iter().enumerate() {
            let CancelReason::Condition(old) = reason else { continue };
            let Some(index) = changed.get(part) else {
                failed = failed.or(Some(part - changed.len()));
                continue;
            };
            let item = &mut items[*index];
            let snapshot = old.map(|old| parse_item(item.address, &old)).transpose()?;
            // An earlier attempt of the same transaction was made, and its answer lost.
            was_made |= snapshot.as_ref().is_some_and(|snapshot| stamp.is_of(snapshot));
            item.state.update(snapshot, self.items.now());
            has_missed = true;
        }
        match failed {
            _ if was_made => Ok(TransactOutcome::Made),
            Some(failed) if !has_missed => match namespaces.iter().nth(failed) {
                Some(namespace) => Err(StoreError::NamespaceGone((*namespace).to_owned()).into()),
                None => Err(RecordsError::Failed(failed - namespaces.len())),
            },
            _ => Ok(TransactOutcome::Missed),
        }
    }
}

fn forget(items: &mut [LockedItem<'_>]) {
    items.iter_mut().for_each(|item| item.state.forget());
}

impl PendingTxn {
    fn stale(&self, drafts: &[ItemDraft]) -> Option<usize> {
        self.call.steps().zip(drafts).position(|(step, draft)| step.takes().is_some() && draft.is_past(&step))
    }

    fn fits(&self, drafts: &mut [ItemDraft]) -> bool {
        self.call.steps().zip(drafts).all(|(step, draft)| draft.fits(&step))
    }

    fn denials(&self, drafts: &[ItemDraft]) -> Vec<Denial> {
        self.call.steps().zip(drafts).filter_map(|(step, draft)| draft.denial(&step)).collect()
    }

    fn commit(&self, drafts: &mut [ItemDraft]) -> Vec<StepOutcome> {
        let steps = self.call.steps().zip(drafts).enumerate();
        steps.map(|(index, (step, draft))| draft.commit(&step, &self.op(index).metering)).collect()
    }
}
