//! Executing operations on one bucket.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tollgate_store::{Op, OpId, Step, StepOutcome, StoreError};

use super::address::Address;
use super::draft::{ItemDraft, UsageMode};
use super::item_queue::{ItemOp, ItemQueue, ItemState, OpResult, UnknownWrite};
use super::look::look;
use super::send::{GivenUp, WriteResult};
use super::snapshot::ItemSnapshot;
use crate::inner::DynamoInner;
use crate::service::{Elapsed, Tried};

/// How often a write is made anew because another writer had written in between.
const MISSES_MAX: u32 = 100;

/// After how many misses to wait for a moment.
const MISSES_AT_ONCE: u32 = 2;

/// How long to wait at most after a miss: the more clients write at once, the longer, until they come one after the
/// other.
const MISS_PAUSES: [Duration; 2] = [Duration::from_millis(4), Duration::from_millis(250)];

impl DynamoInner {
    /// Executes an operation, by the first caller that gets the lock: it and all that queued meanwhile, with one write.
    pub(super) async fn go(
        &self,
        address: &Address,
        shard: u32,
        errand: ItemOp,
    ) -> Result<OpResult, StoreError> {
        let lane = self.buckets.part_lane(address, shard);
        let mut answered = lane.join(errand);
        loop {
            let mut state = lane.state.lock().await;
            if let Ok(answer) = answered.try_recv() {
                return answer;
            }
            let requests = lane.next();
            let errands: Vec<ItemOp> = requests.iter().map(|request| request.errand.clone()).collect();
            match self.work(address, &lane, &mut state, &errands).await {
                Ok(verdicts) => {
                    requests
                        .into_iter()
                        .zip(verdicts)
                        .for_each(|(request, verdict)| request.answer(Ok(verdict)));
                }
                Err(error) => requests.into_iter().for_each(|request| request.answer(Err(error.clone()))),
            }
        }
    }

    /// Executes operations on a bucket, in order, with one write.
    pub(super) async fn work(
        &self,
        address: &Address,
        lane: &ItemQueue,
        state: &mut ItemState,
        errands: &[ItemOp],
    ) -> Result<Vec<OpResult>, StoreError> {
        self.resolve_unknown(address, lane, state).await?;
        let (watch, mut tried, mut misses) = (Elapsed::start(), Tried::default(), 0);
        let mut has_looked = false;
        state.doubt_absence();
        loop {
            if !state.is_known() {
                self.see(address, lane, state).await?;
                has_looked = true;
            }
            self.count_items(address, lane, state);
            let now = self.service.clock.now();
            let mut draft = ItemDraft::new(state.image(), lane.last(), now);
            let act = |errand: &ItemOp| {
                if let Some(done) = state.remembered(errand) {
                    return OpResult::Done(done);
                }
                let elsewhere = self.is_redirected(lane, state.image(), errand);
                elsewhere.unwrap_or_else(|| errand.act(&mut draft))
            };
            let verdicts: Vec<OpResult> = errands.iter().map(act).collect();
            if !has_looked && !verdicts.iter().all(|verdict| self.is_fresh_enough(verdict, &draft, state)) {
                state.forget();
                continue;
            }
            let is_used = draft.after.is_some() && verdicts.iter().any(OpResult::is_use);
            if !draft.is_changed {
                if is_used {
                    lane.saw(now);
                }
                self.count_unbucketed(address, &draft).await?;
                return Ok(verdicts);
            }
            match self.send(address, &draft, watch, &mut tried).await {
                Ok(WriteResult::Made(image)) => {
                    state.saw(Some(*image), now);
                    if is_used {
                        lane.saw(now);
                    }
                    if state.is_hot() {
                        state.cool();
                        self.double_later(address);
                    }
                    if state.image().is_some_and(|image| !image.counters.aside.is_empty()) {
                        self.write_usage_later(address, lane);
                    }
                    return Ok(verdicts);
                }
                Ok(WriteResult::Missed(image)) => {
                    state.saw(image.map(|image| *image), now);
                    has_looked = true;
                    misses += 1;
                    if self.pause_after(misses, watch).await? {
                        state.forget();
                    }
                }
                Err(GivenUp::NotMade(error)) => {
                    state.forget();
                    return Err(error);
                }
                Err(GivenUp::Unsure(seq, error)) => {
                    let errands = errands.iter().cloned().zip(verdicts).collect();
                    state.forget();
                    state.unsure = Some(UnknownWrite { seq, errands, undone_by: None });
                    self.find_out_later(address, lane.shard());
                    return Err(error);
                }
            }
        }
    }

    /// Remembers in how many items the bucket was seen to be.
    fn count_items(&self, address: &Address, lane: &ItemQueue, state: &ItemState) {
        let first = self.buckets.lane(address);
        match state.image() {
            Some(image) => first.set_shards(image.shards),
            // Without this item there is no such bucket, and the caller that makes it makes all of it.
            None if lane.shard() > 0 => {
                first.set_shards(1);
                first.state.try_lock().into_iter().for_each(|mut state| state.forget());
            }
            None => {}
        }
    }

    /// Where an operation has to go instead, if this is not the place.
    fn is_redirected(
        &self,
        lane: &ItemQueue,
        image: Option<&ItemSnapshot>,
        errand: &ItemOp,
    ) -> Option<OpResult> {
        let Some(image) = image else {
            let is_new = lane.shard() == 0 && self.buckets.settings.shards_min > 1;
            let creates = errand.with_step(|step| step.creates());
            return match lane.shard() {
                0 if is_new && creates => Some(OpResult::Whole),
                0 => None,
                _ => Some(OpResult::Moved),
            };
        };
        if image.shards != errand.shards {
            return Some(OpResult::Moved);
        }
        // Other limits have to be put in force for all items, and what one cannot pay all of them owe.
        let is_other = |step: &Step<'_>| step.takes().is_some() && !image.kept.is_under(step.place.limits);
        let is_owed = |step: &Step<'_>| !self.can_pay(lane, image, step);
        let is_about_all = image.shards > 1 && errand.with_step(|step| is_other(step) || is_owed(step));
        is_about_all.then_some(OpResult::Whole)
    }

    /// Whether an item has what a settlement charges beyond what was taken.
    fn can_pay(&self, lane: &ItemQueue, image: &ItemSnapshot, step: &Step<'_>) -> bool {
        let (Op::Settle(usage) | Op::SettleExisting(usage)) = &step.op else { return true };
        let now = self.service.clock.now().max(lane.last());
        let left = image.kept.bucket.peek(&image.kept.limits, now);
        let charges = step.place.limits.iter().zip(usage.used).zip(usage.reserved.amounts());
        charges.filter(|((_, used), reserved)| used > reserved).all(|((limit, used), reserved)| {
            let status = left.iter().find(|status| status.limit().name() == limit.name());
            status.is_none_or(|status| i128::from(status.available()) >= i128::from(used - reserved))
        })
    }

    /// Whether a verdict on what was seen some time ago still is one. A write checks that itself.
    fn is_fresh_enough(&self, verdict: &OpResult, draft: &ItemDraft, state: &ItemState) -> bool {
        match verdict {
            OpResult::Denied(_) => draft.now.since(state.seen_at) < self.buckets.settings.refusal_kept,
            OpResult::Done(StepOutcome::Renewed(false)) => false,
            // Versions only grow.
            OpResult::Done(_) | OpResult::Stale | OpResult::Moved | OpResult::Whole => true,
        }
    }

    /// Looks at the item.
    pub(super) async fn see(
        &self,
        address: &Address,
        lane: &ItemQueue,
        state: &mut ItemState,
    ) -> Result<(), StoreError> {
        let image = look(&self.service, address, lane.shard()).await?;
        state.saw(image, self.service.clock.now());
        Ok(())
    }

    /// Lets the other writers of a bucket go first after so many misses. Answers whether time has passed: then the item must
    /// be looked at again, because the others have written meanwhile, and the next write would miss as well.
    pub(super) async fn pause_after(&self, misses: u32, watch: Elapsed) -> Result<bool, StoreError> {
        if misses >= MISSES_MAX || watch.waited() > self.service.timeout {
            let why = format!("others wrote to the same bucket {misses} times in a row; try again");
            return Err(StoreError::Unavailable(watch.waited(), why));
        }
        if misses <= MISSES_AT_ONCE {
            return Ok(false);
        }
        let share = f64::from(getrandom::u32().unwrap_or(u32::MAX / 2)) / f64::from(u32::MAX);
        let [first, last] = MISS_PAUSES;
        let longest = first.saturating_mul(1 << (misses - MISSES_AT_ONCE).min(16)).min(last);
        tokio::time::sleep(longest.mul_f64(share)).await;
        Ok(true)
    }

    /// Finds out what came of a write whose answer was lost, before anything else is written. What it took is given
    /// back, because its caller got the answer that nothing is known; what else it did is remembered as done.
    pub(super) async fn resolve_unknown(
        &self,
        address: &Address,
        lane: &ItemQueue,
        state: &mut ItemState,
    ) -> Result<(), StoreError> {
        if state.unsure.is_none() {
            return Ok(());
        }
        self.see(address, lane, state).await?;
        let (watch, mut tried, mut misses) = (Elapsed::start(), Tried::default(), 0);
        loop {
            let last = state.image().and_then(|image| image.writers.get(&self.buckets.writer).copied());
            let Some(unsure) = &state.unsure else { return Ok(()) };
            let is_undone = unsure.undone_by.is_some() && last == unsure.undone_by;
            // Where it was not made, the next write has a larger number: from then on it cannot be.
            if is_undone || last != Some(unsure.seq) {
                state.unsure = None;
                return Ok(());
            }
            let now = self.service.clock.now();
            let mut draft = ItemDraft::new(state.image(), lane.last(), now);
            for (errand, verdict) in &unsure.errands {
                errand.reversed(verdict).into_iter().for_each(|undo| drop(undo.act(&mut draft)));
            }
            if !draft.is_changed {
                break;
            }
            match self.send(address, &draft, watch, &mut tried).await {
                Ok(WriteResult::Made(image)) => {
                    state.saw(Some(*image), now);
                    break;
                }
                Ok(WriteResult::Missed(image)) => {
                    state.saw(image.map(|image| *image), now);
                    misses += 1;
                    if self.pause_after(misses, watch).await? {
                        self.see(address, lane, state).await?;
                    }
                }
                Err(GivenUp::NotMade(error)) => return Err(error),
                Err(GivenUp::Unsure(seq, error)) => {
                    state.unsure.as_mut().into_iter().for_each(|unsure| unsure.undone_by = Some(seq));
                    return Err(error);
                }
            }
        }
        for (errand, verdict) in state.unsure.take().into_iter().flat_map(|unsure| unsure.errands) {
            // What was taken was given back; what else was done stays done.
            if let (OpResult::Done(done), None) = (&verdict, errand.reversed(&verdict)) {
                state.remember(&errand, *done);
            }
        }
        Ok(())
    }
}

impl ItemOp {
    /// Does it, if it can be done.
    pub(super) fn act(&self, draft: &mut ItemDraft) -> OpResult {
        self.with_step(|step| {
            if step.takes().is_some() && draft.is_past(step) {
                return OpResult::Stale;
            }
            if !draft.fits(step) {
                let denial = draft.denial(step);
                draft.heed(step);
                return denial.map_or(OpResult::Stale, |denial| OpResult::Denied(Box::new(denial)));
            }
            OpResult::Done(draft.commit(step, &self.metering))
        })
    }

    /// The operation that gives back what this one took.
    pub(super) fn reversed(&self, verdict: &OpResult) -> Option<ItemOp> {
        let OpResult::Done(StepOutcome::Taken(taken)) = verdict else { return None };
        let call = self.with_step(|step| {
            let steps = [Step { place: step.place, op: step.op.clone() }];
            let call = tollgate_store::Transaction {
                id: None,
                steps: &steps,
                metered: self.metering != UsageMode::Off,
            };
            tollgate_store::OwnedTransaction::new(&call)
        });
        let mut call = call.undo(&[StepOutcome::Taken(*taken)])?;
        // It is retried until there is an answer, and may have been done before.
        call.id = Some(unique_id());
        let metering = UsageMode::undo(self.metering != UsageMode::Off);
        Some(ItemOp { call: call.into(), step: 0, shards: self.shards, metering })
    }

    pub(super) fn with_step<R>(&self, use_step: impl FnOnce(&Step<'_>) -> R) -> R {
        let step = self.call.steps().nth(self.step).expect("an errand is about a step of its call");
        use_step(&step)
    }

    /// Whether it changes nothing whatever the bucket is: what was used is what was taken.
    pub(super) fn is_nothing(&self) -> bool {
        self.with_step(|step| match &step.op {
            Op::Settle(usage) | Op::SettleExisting(usage) => {
                usage.used == usage.reserved.amounts() && !step.place.limits.have_resources()
            }
            _ => false,
        })
    }
}

/// An id for what is tried again and must be done once.
pub(super) fn unique_id() -> OpId {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let high = getrandom::u64().unwrap_or_default();
    // Without randomness the counter alone tells those of one process apart, which is where they are compared.
    OpId(u128::from(high) << 64 | u128::from(COUNT.fetch_add(1, Ordering::Relaxed)))
}
