//! Dispatching transactions: choosing how each of them is written.

use std::sync::Arc;

use tollgate_store::records::{RecordsError, Write};
use tollgate_store::workers::unique_id;
use tollgate_store::{OwnedTransaction, StepOutcome, StoreError, TxnOutcome, join_all};

use super::Chains;
use super::address::Address;
use super::bucket_reader::BucketReader;
use super::dedup::CallTable;
use super::draft::{ItemDraft, UsageMode};
use super::item_op::{ItemOp, OpResult};
use super::merged::MergedOp;
use super::submit::Submitter;
use super::transact::TransactionExecutor;
use crate::records;

/// Applies calls, each in the cheapest way that is atomic enough.
pub(crate) struct Dispatcher {
    submitter: Arc<Submitter>,
    transactions: TransactionExecutor,
    reader: Arc<BucketReader>,
    calls: CallTable,
}

/// A call that is being applied, with the bucket of each of its steps.
pub(super) struct PendingTxn {
    pub(super) call: Arc<OwnedTransaction>,
    pub(super) addresses: Vec<Address>,
    pub(super) writes: Vec<Write>,
}

impl Dispatcher {
    pub(super) fn new(submitter: Arc<Submitter>, reader: Arc<BucketReader>) -> Dispatcher {
        let transactions = TransactionExecutor::new(Arc::clone(&submitter.items));
        Dispatcher { submitter, transactions, reader, calls: CallTable::default() }
    }

    /// Applies the call and makes the writes, or neither; once if the call has an id.
    ///
    /// # Cancel safety
    ///
    /// None: it must be run to its end.
    pub(crate) async fn dispatch(
        &self,
        call: Arc<OwnedTransaction>,
        writes: Vec<Write>,
    ) -> Result<TxnOutcome, RecordsError> {
        call.with(|call| call.check(&writes))?;
        let addresses = call.steps().map(|step| Address::of(&step.place)).collect::<Result<_, _>>()?;
        let txn = PendingTxn { call, addresses, writes };
        let steps = txn.addresses.len();
        let Some(id) = txn.call.id else { return self.choose(&txn, &mut vec![None; steps]).await };
        let progress = self.calls.progress(id);
        let mut progress = progress.lock().await;
        if progress.is_done {
            return Ok(TxnOutcome::Done(progress.steps.iter().flatten().copied().collect()));
        }
        progress.steps.resize(steps, None);
        let outcome = self.choose(&txn, &mut progress.steps).await?;
        progress.is_done = matches!(outcome, TxnOutcome::Done(_));
        Ok(outcome)
    }

    /// Chooses how a call is written. `done` has the steps that earlier attempts applied.
    async fn choose(
        &self,
        txn: &PendingTxn,
        done: &mut [Option<StepOutcome>],
    ) -> Result<TxnOutcome, RecordsError> {
        let is_chain = txn.addresses.len() > 1;
        let in_transaction = is_chain && self.submitter.items.writer.settings.chains == Chains::Transaction;
        let outcome = if !txn.writes.is_empty() || txn.addresses.is_empty() || in_transaction {
            self.together(txn).await?
        } else if txn.call.steps().all(|step| step.takes().is_none()) {
            return Ok(self.independent(txn, done).await?);
        } else if !is_chain {
            single(self.submit(txn, 0).await?)
        } else if self.all_seem_to_fit(txn) {
            self.parallel(txn).await?
        } else {
            self.together(txn).await?
        };
        if let TxnOutcome::Done(all) = &outcome {
            done.iter_mut().zip(all).for_each(|(step, done)| *step = Some(*done));
        }
        Ok(outcome)
    }

    /// Applies steps that nothing can deny: each for itself, and not again if an earlier attempt did.
    async fn independent(
        &self,
        txn: &PendingTxn,
        done: &mut [Option<StepOutcome>],
    ) -> Result<TxnOutcome, StoreError> {
        let left: Vec<usize> = (0..done.len()).filter(|step| done[*step].is_none()).collect();
        let results = left.iter().map(|step| self.submit(txn, *step));
        let mut failed = None;
        for (step, result) in left.iter().copied().zip(join_all(results.collect()).await) {
            match result {
                Ok(OpResult::Done(outcome)) => done[step] = Some(outcome),
                Ok(_) => {}
                Err(error) => failed = Some(error),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(TxnOutcome::Done(done.iter().flatten().copied().collect())),
        }
    }

    /// Returns whether all takes fit as far as is known, each by a write that no other client gets in the way of.
    fn all_seem_to_fit(&self, txn: &PendingTxn) -> bool {
        let items = &self.submitter.items;
        let now = items.now();
        items.writer.settings.fast_path
            && txn.addresses.iter().enumerate().all(|(index, address)| {
                let queue = items.shards.first(address);
                // Where other tasks are writing just now, the take itself finds out.
                let Ok(state) = queue.state.try_lock() else { return true };
                let Some(snapshot) = state.snapshot() else { return false };
                if snapshot.shards > 1 {
                    return true;
                }
                let mut draft = ItemDraft::new(Some(snapshot), queue.last(), now);
                let result = txn.op(index).apply(&mut draft);
                matches!(result, OpResult::Done(_)) && draft.moves.is_some()
            })
    }

    /// Takes from all buckets at once. Should one of them deny, the others get back what was taken.
    async fn parallel(&self, txn: &PendingTxn) -> Result<TxnOutcome, RecordsError> {
        let results = (0..txn.addresses.len()).map(|step| self.submit(txn, step));
        let results = join_all(results.collect()).await;
        let done = results.iter().map(|result| result.as_ref().ok()?.done());
        if let Some(done) = done.collect::<Option<Vec<_>>>() {
            return Ok(TxnOutcome::Done(done));
        }
        for (step, result) in results.iter().enumerate() {
            if let Ok(result) = result {
                self.reverse(txn, step, result).await;
            }
        }
        if let Some(error) = results.into_iter().find_map(Result::err) {
            return Err(error.into());
        }
        // Now all of them are known, and if all fit after all, so much the better.
        self.together(txn).await
    }

    /// Applies a call to all its buckets in one transaction; to those that are in several items one after the other.
    async fn together(&self, txn: &PendingTxn) -> Result<TxnOutcome, RecordsError> {
        match self.transactions.execute(txn).await? {
            Some(outcome) => Ok(outcome),
            None => self.sequential(txn).await,
        }
    }

    /// Applies a call to one bucket after the other, and should one deny, those before get back what was taken.
    async fn sequential(&self, txn: &PendingTxn) -> Result<TxnOutcome, RecordsError> {
        if let ([address], [_, ..]) = (&*txn.addresses, &*txn.writes) {
            let op = txn.op(0);
            return Ok(single(self.submitter.merged.execute(address, MergedOp::Do(&op, &txn.writes)).await?));
        }
        if !txn.writes.is_empty() {
            records::write(self.submitter.items.service(), &txn.writes).await?;
        }
        let mut results: Vec<OpResult> = Vec::new();
        for (index, address) in txn.addresses.iter().enumerate() {
            let stopped = match self.submitter.submit(address, txn.op(index)).await {
                Ok(result @ OpResult::Done(_)) => {
                    results.push(result);
                    continue;
                }
                stopped => stopped,
            };
            for (index, result) in results.iter().enumerate() {
                self.reverse(txn, index, result).await;
            }
            return match stopped? {
                OpResult::Denied(_) => Ok(TxnOutcome::Denied(self.reader.evaluate(&txn.call).await?)),
                _ => Ok(TxnOutcome::Stale(index)),
            };
        }
        Ok(TxnOutcome::Done(results.iter().filter_map(OpResult::done).collect()))
    }

    /// Gives back what a step took.
    async fn reverse(&self, txn: &PendingTxn, step: usize, result: &OpResult) {
        if let Some(op) = txn.op(step).reversed(result) {
            self.submitter.give_back(txn.addresses[step].clone(), op).await;
        }
    }

    /// Submits one step of a call.
    async fn submit(&self, txn: &PendingTxn, step: usize) -> Result<OpResult, StoreError> {
        let (address, op) = (&txn.addresses[step], txn.op(step));
        if op.is_noop() {
            let items = &self.submitter.items;
            let queue = items.shards.first(address);
            if queue.state.try_lock().is_ok_and(|state| state.snapshot().is_some()) {
                queue.note_use(items.now());
            }
            return Ok(OpResult::Done(StepOutcome::Settled));
        }
        self.submitter.submit(address, op).await
    }

    /// Undoes a call that was applied and whose caller is gone.
    pub(crate) fn undo(&self, call: &OwnedTransaction, outcome: &TxnOutcome) {
        let TxnOutcome::Done(done) = outcome else { return };
        let Some(mut undo) = call.clone().undo(done) else { return };
        undo.id = Some(unique_id());
        if let Some(id) = call.id {
            self.calls.forget(id);
        }
        let undo = Arc::new(undo);
        for step in 0..undo.steps().count() {
            let op = ItemOp::new(Arc::clone(&undo), step, UsageMode::undo(undo.is_metered()));
            if let Ok(address) = Address::of(&op.step().place) {
                self.submitter.items.jobs.give_back(address, op);
            }
        }
    }
}

impl PendingTxn {
    pub(super) fn op(&self, step: usize) -> ItemOp {
        let metering = if self.call.is_metered() { UsageMode::On } else { UsageMode::Off };
        ItemOp::new(Arc::clone(&self.call), step, metering)
    }
}

/// Returns the outcome of a call of one step.
fn single(result: OpResult) -> TxnOutcome {
    match result {
        OpResult::Done(done) => TxnOutcome::Done(vec![done]),
        OpResult::Denied(denial) => TxnOutcome::Denied(vec![*denial]),
        OpResult::Stale | OpResult::Moved | OpResult::Whole => TxnOutcome::Stale(0),
    }
}
