//! Background work: jobs that no caller waits for.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tollgate_core::Span;
use tollgate_store::{Clock, Freed, Mutex, OpId, OutcomeCallback, OwnedTransaction, StoreError, TxnOutcome};

use super::address::Address;
use super::draft::UsageMode;
use super::item_executor::unique_id;
use super::item_queue::{ItemOp, ItemQueue, PendingDetached};
use crate::inner::DynamoInner;

/// How often a background job is tried. With the backoff in between that is minutes.
const TRIES_MAX: u32 = 200;

/// The longest backoff after a try that failed.
const REST_MAX: Duration = Duration::from_secs(5);

const FIRST_REST: Duration = Duration::from_millis(50);

/// A job that no caller waits for.
enum BackgroundJob {
    /// Applies a call. The callback gets the outcome once.
    Apply(Arc<OwnedTransaction>, Mutex<Option<OutcomeCallback>>),
    GiveBack(Address, ItemOp),
    /// Finds out what came of a write, also if no caller writes to the bucket any more.
    FindOut(Address, u32),
    WriteUsage(Address),
    /// More items for a bucket that is written to more often than it bears.
    Double(Address),
}

impl DynamoInner {
    /// Applies a call in the background: no caller waits for its answer.
    pub(crate) fn apply_detached(&self, call: OwnedTransaction) {
        self.hand_over_and_tell(call, Box::new(|_| ()));
    }

    /// As [`apply_detached`](DynamoInner::apply_detached), and `told` is called with the outcome.
    pub(crate) fn hand_over_and_tell(&self, mut call: OwnedTransaction, told: OutcomeCallback) {
        // With an id, what was done of it is not done again with the next try.
        call.id = call.id.or_else(|| Some(OpId(self.new_holder_id())));
        let unheard = self.hear_later(&call);
        self.in_background(BackgroundJob::Apply(Arc::new(call), Mutex::new(Some(told))), unheard);
    }

    /// Makes callers that ask for the buckets of a call wait until it was tried.
    fn hear_later(&self, call: &OwnedTransaction) -> Vec<Arc<PendingDetached>> {
        let addresses = call.steps().filter_map(|step| Address::of(&step.place).ok());
        let lanes = addresses.map(|address| Arc::clone(&self.buckets.lane(&address).handed_over));
        let unheard: Vec<Arc<PendingDetached>> =
            lanes.chain([Arc::clone(&self.buckets.handed_over)]).collect();
        unheard.iter().for_each(|unheard| unheard.add());
        unheard
    }

    /// Waits until the detached calls on the buckets of a call were tried.
    pub(crate) async fn await_detached(&self, call: &OwnedTransaction) {
        for address in call.steps().filter_map(|step| Address::of(&step.place).ok()).collect::<Vec<_>>() {
            let handed_over = Arc::clone(&self.buckets.lane(&address).handed_over);
            handed_over.none().await;
        }
    }

    /// Waits until all detached calls were tried.
    pub(crate) async fn await_all_detached(&self) {
        self.buckets.handed_over.none().await;
    }

    /// Undoes a call that was applied and whose caller is gone.
    pub(crate) fn undo(&self, call: &OwnedTransaction, applied: &TxnOutcome) {
        let TxnOutcome::Done(done) = applied else { return };
        let Some(mut undo) = call.clone().undo(done) else { return };
        undo.id = Some(unique_id());
        if let Some(id) = call.id {
            self.buckets.forget_call(id);
        }
        let call = Arc::new(undo);
        for step in 0..call.steps().count() {
            let errand = ItemOp {
                call: Arc::clone(&call),
                step,
                shards: 1,
                metering: UsageMode::undo(call.is_metered()),
            };
            if let Ok(address) = errand.with_step(|step| Address::of(&step.place)) {
                self.give_back_later(address, errand);
            }
        }
    }

    pub(super) fn give_back_later(&self, address: Address, errand: ItemOp) {
        let unheard = self.hear_later(&errand.call);
        self.in_background(BackgroundJob::GiveBack(address, errand), unheard);
    }

    pub(super) fn find_out_later(&self, address: &Address, shard: u32) {
        self.in_background(BackgroundJob::FindOut(address.clone(), shard), Vec::new());
    }

    /// Writes down what was put aside of a bucket, when there is time.
    pub(super) fn write_usage_later(&self, address: &Address, lane: &ItemQueue) {
        if lane.begin_writing_usage() {
            self.in_background(BackgroundJob::WriteUsage(address.clone()), Vec::new());
        }
    }

    pub(super) fn double_later(&self, address: &Address) {
        self.in_background(BackgroundJob::Double(address.clone()), Vec::new());
    }

    /// Starts a background task that gives back what is held ahead once no caller wants it.
    pub(super) fn return_when_idle(&self, address: &Address, idle: Span) {
        let lane = self.buckets.lane(address);
        if lane.is_watched.swap(true, Ordering::AcqRel) {
            return;
        }
        let (this, address) = (self.this.clone(), address.clone());
        self.service.workers.handle().spawn(async move {
            loop {
                tokio::time::sleep(idle.to_duration() / 2).await;
                // Should the store be gone, what it held fills up again by itself.
                let Some(inner) = this.upgrade() else { return };
                let mut stash = lane.stash.lock().await;
                if !stash.is_idle(Clock::system().now(), idle) {
                    continue;
                }
                let held = stash.empty();
                lane.is_watched.store(false, Ordering::Release);
                drop(stash);
                // What cannot be given back now is given back later.
                let _ = inner.give_back_prefetched(&address, held).await;
                return;
            }
        });
    }

    /// Tries something until the store answers, or will not.
    fn in_background(&self, job: BackgroundJob, unheard: Vec<Arc<PendingDetached>>) {
        let Some(inner) = self.this.upgrade() else { return };
        let mut unheard = Some(unheard);
        let task = async move {
            let mut rest = FIRST_REST;
            for _ in 0..TRIES_MAX {
                let tried = inner.attempt(&job).await;
                unheard.take().into_iter().flatten().for_each(|unheard| unheard.remove());
                match tried {
                    Err(StoreError::Unavailable(..)) => tokio::time::sleep(rest).await,
                    // What the store refuses for good cannot be helped; what was held expires.
                    _ => return,
                }
                rest = (rest * 2).min(REST_MAX);
            }
        };
        self.service.workers.handle().spawn(task);
    }

    async fn attempt(&self, job: &BackgroundJob) -> Result<(), StoreError> {
        match job {
            BackgroundJob::Apply(call, told) => {
                let applied = self.apply(Arc::clone(call), Vec::new()).await.map_err(super::without_tests)?;
                self.after(call, &applied);
                let told = told.lock().take();
                told.into_iter().for_each(|told| told(&applied));
            }
            BackgroundJob::GiveBack(address, errand) => {
                self.route(address, errand.clone()).await?;
                self.wait_queues.notify(&Freed::all(&address.namespace, &address.key));
            }
            BackgroundJob::FindOut(address, shard) => {
                let lane = self.buckets.part_lane(address, *shard);
                let mut state = lane.state.lock().await;
                self.resolve_unknown(address, &lane, &mut state).await?;
            }
            BackgroundJob::Double(address) => self.double(address).await?,
            BackgroundJob::WriteUsage(address) => {
                let written = self.write_usage_of(address).await;
                self.buckets.lane(address).end_writing_usage();
                written?;
            }
        }
        Ok(())
    }
}
