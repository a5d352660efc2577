//! Serving a call from what is held, or taking a portion with it.

use std::sync::Arc;

use tokio::sync::OwnedMutexGuard;
use tollgate_core::{Costs, Limits};
use tollgate_store::prefetch::{Prefetch, PrefetchBuffer, add_prefetch, bounds};
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::{
    Clock, Op, OwnedTransaction, QueuePlace, Step, StepOutcome, StoreError, Taken, Transaction, TxnOutcome,
};

use super::known::CallProgress;
use crate::apply::unique_id;
use crate::background::REMEMBERED;
use crate::inner::{RedisInner, without_tests};

/// A step that may be served from what is held.
struct PrefetchStep {
    /// The name of the bucket.
    name: Vec<u8>,
    limits: Limits,
    bounds: Vec<u64>,
    /// What is taken or was reserved.
    costs: Costs,
}

/// What a call asks for, of all its buckets.
enum PrefetchOp {
    Take(Vec<PrefetchStep>),
    /// With what was used of each.
    Settle(Vec<(PrefetchStep, Box<[u64]>)>),
    /// What is done to the whole of a bucket.
    Other,
    /// Nothing that has to do with what is held.
    Elsewhere,
}

impl RedisInner {
    /// Applies a call by what is held ahead if that can be done, or on the server.
    pub(crate) async fn apply_prefetched(
        &self,
        call: &OwnedTransaction,
        writes: &[Write],
        remembered: std::time::Duration,
        place: &QueuePlace,
    ) -> Result<TxnOutcome, RecordsError> {
        let Some(prefetch) = self.ahead.prefetch else {
            return self.apply_in_turn(call, writes, remembered, &[], place).await;
        };
        match self.ahead.known.get(call.id) {
            Some(CallProgress::Served(done)) => return Ok(TxnOutcome::Done(done)),
            Some(CallProgress::Sent) => {}
            None => {
                if let Some(done) = self.serve(call, writes, prefetch, place).await? {
                    place.rank.into_iter().for_each(|rank| drop(self.leave_queues(rank)));
                    self.ahead.known.note(call.id, CallProgress::Served(done.clone()));
                    return Ok(TxnOutcome::Done(done));
                }
            }
        }
        let applied = self.apply_in_turn(call, writes, remembered, &[], place).await;
        if matches!(&applied, Ok(TxnOutcome::Denied(denials)) if denials.iter().any(|it| it.claimed() != 0)) {
            // Waiters of other processes are ahead, and may be short of what is held here.
            self.return_held(call).await;
        }
        if matches!(applied, Err(RecordsError::Store(StoreError::Unavailable(..)))) {
            self.ahead.known.note(call.id, CallProgress::Sent);
        }
        applied
    }

    async fn serve(
        &self,
        call: &OwnedTransaction,
        writes: &[Write],
        prefetch: Prefetch,
        place: &QueuePlace,
    ) -> Result<Option<Vec<StepOutcome>>, StoreError> {
        match self.asked(call, writes, prefetch.percent) {
            PrefetchOp::Take(parts) => self.serve_take(call, parts, prefetch, place).await,
            PrefetchOp::Settle(parts) => Ok(self.serve_settlement(&parts).await),
            PrefetchOp::Other => {
                // What is done to the whole is done to what is held as well.
                self.return_held(call).await;
                Ok(None)
            }
            PrefetchOp::Elsewhere => Ok(None),
        }
    }

    /// Gives back what is held of the buckets of a call.
    async fn return_held(&self, call: &OwnedTransaction) {
        for step in call.steps() {
            let name = self.service.layout.bucket(step.place.namespace, step.place.key);
            if let Some(holding) = self.ahead.holdings.get(&name) {
                let mut stash = holding.stash.lock().await;
                let held = stash.empty();
                self.give_back(&holding, held).await;
            }
        }
    }

    fn asked(&self, call: &OwnedTransaction, writes: &[Write], percent: u8) -> PrefetchOp {
        let is_usual = |step: &Step<'_>| matches!(step.op, Op::Take { .. }) || settlement(step).is_some();
        if !call.steps().all(|step| is_usual(&step)) {
            return PrefetchOp::Other;
        }
        if !call.is_metered() || !writes.is_empty() || call.steps().next().is_none() {
            return PrefetchOp::Elsewhere;
        }
        let part = |step: &Step<'_>, costs: &Costs| {
            Some(PrefetchStep {
                name: self.service.layout.bucket(step.place.namespace, step.place.key),
                limits: step.place.limits.clone(),
                bounds: bounds(step.place.limits, percent)?,
                costs: costs.clone(),
            })
        };
        let takes =
            call.steps().map(|step| part(&step, step.takes()?)).collect::<Option<Vec<PrefetchStep>>>();
        if let Some(takes) = takes {
            return PrefetchOp::Take(takes);
        }
        let settlements = call.steps().map(|step| {
            let (reserved, used) = settlement(&step)?;
            Some((part(&step, reserved)?, used.into()))
        });
        settlements.collect::<Option<Vec<_>>>().map_or(PrefetchOp::Elsewhere, PrefetchOp::Settle)
    }

    /// What is held of all buckets, locked in the order of their names, in the order of the parts.
    async fn lock<'p>(
        &self,
        parts: impl Iterator<Item = &'p PrefetchStep>,
    ) -> Option<Vec<OwnedMutexGuard<PrefetchBuffer>>> {
        let mut wanted: Vec<(usize, &[u8])> = parts.map(|part| part.name.as_slice()).enumerate().collect();
        wanted.sort_by_key(|(_, name)| *name);
        let mut locked = Vec::with_capacity(wanted.len());
        for (place, name) in wanted {
            let stash = Arc::clone(&self.ahead.holdings.get(name)?.stash);
            locked.push((place, stash.lock_owned().await));
        }
        locked.sort_by_key(|(place, _)| *place);
        Some(locked.into_iter().map(|(_, stash)| stash).collect())
    }

    async fn serve_settlement(&self, parts: &[(PrefetchStep, Box<[u64]>)]) -> Option<Vec<StepOutcome>> {
        let mut stashes = self.lock(parts.iter().map(|(part, _)| part)).await?;
        let fits =
            |((part, used), stash): (&(PrefetchStep, Box<[u64]>), &OwnedMutexGuard<PrefetchBuffer>)| {
                stash.settled(&part.limits, (&part.costs, used), &part.bounds).is_some()
            };
        if !parts.iter().zip(&stashes).all(fits) {
            return None;
        }
        for ((part, used), stash) in parts.iter().zip(&mut stashes) {
            // An undone take stays an event, as on the server.
            stash.settle(&part.limits, (&part.costs, used), &part.bounds, 0);
        }
        Some(vec![StepOutcome::Settled; parts.len()])
    }

    async fn serve_take(
        &self,
        call: &OwnedTransaction,
        parts: Vec<PrefetchStep>,
        prefetch: Prefetch,
        place: &QueuePlace,
    ) -> Result<Option<Vec<StepOutcome>>, StoreError> {
        // A reference to a holding keeps it from being forgotten.
        let holdings: Vec<_> = call
            .steps()
            .zip(&parts)
            .map(|(step, part)| {
                let (holding, is_new) = self.ahead.holdings.make(&part.name, &step.place);
                if is_new {
                    self.return_when_idle(part.name.clone(), prefetch);
                }
                holding
            })
            .collect();
        let Some(mut stashes) = self.lock(parts.iter()).await else { return Ok(None) };
        let now = Clock::system().now();
        if parts.iter().zip(&stashes).all(|(part, stash)| stash.has(&part.limits, &part.costs)) {
            let taken = parts.iter().zip(&mut stashes).map(|(part, stash)| {
                stash.take(&part.limits, &part.costs, now);
                StepOutcome::Taken(Taken { at: stash.filled(), remarks: 0 })
            });
            return Ok(Some(taken.collect()));
        }
        if place.rank.is_some() {
            // A waiter takes no more than it waits for: others wait as well.
            return Ok(None);
        }
        let mut wanted = Vec::with_capacity(parts.len());
        for ((part, stash), holding) in parts.iter().zip(&mut stashes).zip(&holdings) {
            if stash.limits().is_some() && !stash.is_of(&part.limits, &part.costs) {
                let held = stash.empty();
                self.give_back(holding, held).await;
            }
            let ahead = stash.ahead(&part.costs, &part.bounds, now);
            let total = add_prefetch(&part.limits, &part.costs, &ahead);
            // Of what may not be held ahead nothing ever is, so the next call would be no other.
            let is_some =
                ahead.iter().zip(part.costs.amounts()).all(|(ahead, cost)| ahead > &0 || cost == &0);
            let Some(total) = total.filter(|_| is_some) else { return Ok(None) };
            wanted.push((total, ahead));
        }
        let mut told = Vec::with_capacity(parts.len());
        for (part, stash) in parts.iter().zip(&mut stashes) {
            let mut counted = std::mem::take(&mut stash.uncounted);
            counted.add_take(&part.costs);
            told.push(counted);
        }
        let portion = portion(call, wanted.iter().map(|(total, _)| total));
        let applied = self.apply_in_turn(&portion, &[], REMEMBERED, &told, place).await;
        let applied = applied.map_err(without_tests);
        match applied {
            Ok(TxnOutcome::Done(done)) => {
                let rows = parts.iter().zip(&mut stashes).zip(wanted.iter().zip(&done));
                for ((part, stash), ((_, ahead), done)) in rows {
                    let at = if let StepOutcome::Taken(taken) = done { taken.at } else { stash.filled() };
                    stash.fill(&part.limits, &part.costs, ahead, at, now);
                }
                Ok(Some(done))
            }
            Err(error @ StoreError::Unavailable(..)) => {
                let asked = parts.into_iter().map(|part| part.costs).collect();
                self.find_out(portion, told, asked);
                Err(error)
            }
            // Without anything ahead it may still fit, and whatever is wrong is reported by the call itself.
            _ => {
                for ((part, stash), mut counted) in parts.iter().zip(&mut stashes).zip(told) {
                    counted.remove_take(&part.costs);
                    stash.uncounted = counted;
                    stash.shrink();
                }
                Ok(None)
            }
        }
    }
}

/// What was reserved and what was used, if that is what a step says.
fn settlement<'s>(step: &'s Step<'_>) -> Option<(&'s Costs, &'s [u64])> {
    match &step.op {
        Op::Settle(usage) | Op::SettleExisting(usage) => Some((usage.reserved, usage.used)),
        _ => None,
    }
}

/// The call that takes these of the same buckets.
fn portion<'c>(call: &OwnedTransaction, totals: impl Iterator<Item = &'c Costs>) -> OwnedTransaction {
    let steps: Vec<Step<'_>> = call
        .steps()
        .zip(totals)
        .map(|(step, costs)| Step { place: step.place, op: Op::Take { costs, term: None } })
        .collect();
    OwnedTransaction::new(&Transaction { id: Some(unique_id()), steps: &steps, metered: true })
}
