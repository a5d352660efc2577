//! Applying calls.

use std::collections::HashSet;
use std::sync::Arc;

use tollgate_store::records::{RecordsError, Write, check_writes};
use tollgate_store::{OwnedTransaction, StepOutcome, StoreError, Transaction, TxnOutcome, join_all};

use super::Chains;
use super::address::Address;
use super::draft::{ItemDraft, UsageMode};
use super::item_queue::{ItemOp, OpResult};
use crate::inner::DynamoInner;

/// A call on its way, with the bucket of each of its steps.
pub(super) struct PendingTxn {
    pub(super) call: Arc<OwnedTransaction>,
    pub(super) addresses: Vec<Address>,
    pub(super) writes: Vec<Write>,
}

impl DynamoInner {
    /// Applies the call and makes the writes, or neither; once if the call has an id.
    ///
    /// # Cancel safety
    ///
    /// None: it must be run to its end.
    pub(crate) async fn apply(
        &self,
        call: Arc<OwnedTransaction>,
        writes: Vec<Write>,
    ) -> Result<TxnOutcome, RecordsError> {
        let addresses = call.with(|call| check(call, &writes))?;
        let trip = PendingTxn { call, addresses, writes };
        let steps = trip.addresses.len();
        match trip.call.id {
            None => self.dispatch(&trip, &mut vec![None; steps]).await,
            Some(id) => {
                let progress = self.buckets.progress(id);
                let mut course = progress.lock().await;
                if course.is_done {
                    return Ok(TxnOutcome::Done(course.steps.iter().flatten().copied().collect()));
                }
                course.steps.resize(steps, None);
                let applied = self.dispatch(&trip, &mut course.steps).await?;
                course.is_done = matches!(applied, TxnOutcome::Done(_));
                Ok(applied)
            }
        }
    }

    async fn dispatch(
        &self,
        trip: &PendingTxn,
        done: &mut [Option<StepOutcome>],
    ) -> Result<TxnOutcome, RecordsError> {
        let is_whole = trip.addresses.len() > 1 && self.buckets.settings.chains == Chains::Transaction;
        let applied = if !trip.writes.is_empty() || trip.addresses.is_empty() || is_whole {
            self.together(trip).await?
        } else if trip.call.steps().all(|step| step.takes().is_none()) {
            return Ok(self.each(trip, done).await?);
        } else if trip.addresses.len() == 1 {
            self.alone(trip).await?
        } else if self.looks_well(trip) {
            self.at_once(trip).await?
        } else {
            self.together(trip).await?
        };
        if let TxnOutcome::Done(all) = &applied {
            done.iter_mut().zip(all).for_each(|(place, done)| *place = Some(*done));
        }
        Ok(applied)
    }

    /// A call of one step.
    async fn alone(&self, trip: &PendingTxn) -> Result<TxnOutcome, StoreError> {
        Ok(match self.run(trip, 0).await? {
            OpResult::Done(done) => TxnOutcome::Done(vec![done]),
            OpResult::Denied(denial) => TxnOutcome::Denied(vec![*denial]),
            OpResult::Stale | OpResult::Moved | OpResult::Whole => TxnOutcome::Stale(0),
        })
    }

    /// Steps that nothing can deny: each for itself, and those that were done are not done again.
    async fn each(
        &self,
        trip: &PendingTxn,
        done: &mut [Option<StepOutcome>],
    ) -> Result<TxnOutcome, StoreError> {
        let left: Vec<usize> = (0..done.len()).filter(|step| done[*step].is_none()).collect();
        let runs = left.iter().map(|step| self.run(trip, *step));
        let mut trouble = None;
        for (step, verdict) in left.iter().copied().zip(join_all(runs.collect()).await) {
            match verdict {
                Ok(OpResult::Done(what)) => done[step] = Some(what),
                Ok(_) => {}
                Err(error) => trouble = Some(error),
            }
        }
        match trouble {
            Some(error) => Err(error),
            None => Ok(TxnOutcome::Done(done.iter().flatten().copied().collect())),
        }
    }

    /// Whether all takes would pass as far as is known, each by a write that no other gets in the way of.
    fn looks_well(&self, trip: &PendingTxn) -> bool {
        let now = self.service.clock.now();
        self.buckets.settings.fast_path
            && trip.addresses.iter().enumerate().all(|(index, address)| {
                let lane = self.buckets.lane(address);
                // Where others are taking just now, what comes of it is seen by who takes.
                let Ok(state) = lane.state.try_lock() else { return true };
                let Some(image) = state.image() else { return false };
                if image.shards > 1 {
                    return true;
                }
                let mut draft = ItemDraft::new(Some(image), lane.last(), now);
                let verdict = trip.errand(index).act(&mut draft);
                matches!(verdict, OpResult::Done(_)) && draft.moves.is_some()
            })
    }

    /// Takes from all buckets at once. Should one of them deny, the others get back what was taken.
    async fn at_once(&self, trip: &PendingTxn) -> Result<TxnOutcome, RecordsError> {
        let runs = (0..trip.addresses.len()).map(|step| self.run(trip, step));
        let verdicts = join_all(runs.collect()).await;
        let all: Option<Vec<StepOutcome>> = verdicts
            .iter()
            .map(|verdict| if let Ok(OpResult::Done(done)) = verdict { Some(*done) } else { None })
            .collect();
        if let Some(done) = all {
            return Ok(TxnOutcome::Done(done));
        }
        let taken = verdicts.iter().enumerate().filter_map(|(step, verdict)| {
            let errand = trip.errand(step).reversed(verdict.as_ref().ok()?)?;
            Some((trip.addresses[step].clone(), errand))
        });
        for (address, errand) in taken.collect::<Vec<_>>() {
            self.give_back(address, errand).await;
        }
        if let Some(error) = verdicts.into_iter().find_map(Result::err) {
            return Err(error.into());
        }
        // Now it is known how all of them stand, and if they stand well after all, so much the better.
        self.together(trip).await
    }

    /// Gives back what was taken, now or, if the store does not answer, as soon as it does.
    pub(super) async fn give_back(&self, address: Address, errand: ItemOp) {
        if self.route(&address, errand.clone()).await.is_err() {
            self.give_back_later(address, errand);
        }
    }

    /// Runs one step of a call.
    async fn run(&self, trip: &PendingTxn, step: usize) -> Result<OpResult, StoreError> {
        let (address, errand) = (&trip.addresses[step], trip.errand(step));
        if errand.is_nothing() {
            let lane = self.buckets.lane(address);
            if lane.state.try_lock().is_ok_and(|state| state.image().is_some()) {
                lane.saw(self.service.clock.now());
            }
            return Ok(OpResult::Done(StepOutcome::Settled));
        }
        self.route(address, errand).await
    }
}

impl PendingTxn {
    pub(super) fn errand(&self, step: usize) -> ItemOp {
        let metering = if self.call.is_metered() { UsageMode::On } else { UsageMode::Off };
        ItemOp { call: Arc::clone(&self.call), step, shards: 1, metering }
    }
}

/// The addresses of the steps.
fn check(call: &Transaction<'_>, writes: &[Write]) -> Result<Vec<Address>, StoreError> {
    check_writes(writes)?;
    if call.metered && call.steps.iter().any(|step| step.place.key.pair().is_none()) {
        return Err(StoreError::BadCall("a metered key has two parts, the entity and the resource".into()));
    }
    call.check_limits()?;
    let mut seen = HashSet::new();
    if !call.steps.iter().all(|step| seen.insert((step.place.namespace, step.place.key))) {
        return Err(StoreError::BadCall("two steps name one bucket; make it one step".into()));
    }
    call.steps.iter().map(|step| Address::of(&step.place)).collect()
}
