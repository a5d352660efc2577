//! Background work: detached calls, giving back, unknown writes, usage, splits.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tokio::runtime::Handle;
use tollgate_store::workers::{Background, time_ordered_id};
use tollgate_store::{Freed, Mutex, OpId, OutcomeCallback, OwnedTransaction, StoreError};

use super::address::Address;
use super::item_op::ItemOp;
use super::item_queue::ItemQueue;
use super::{Buckets, without_tests};

/// For how long a job is retried while the service does not answer.
const RETRIED_FOR: Duration = Duration::from_secs(1_000);

/// Runs the background jobs of the buckets of a store.
pub(crate) struct BackgroundJobs {
    background: Background<Address>,
    buckets: Weak<Buckets>,
}

/// A job that no caller waits for.
enum BackgroundJob {
    /// Applies a call. The callback gets the outcome once.
    Apply(Arc<OwnedTransaction>, Mutex<Option<OutcomeCallback>>),
    GiveBack(Address, ItemOp),
    /// Finds out what came of a write, also if no caller writes to the bucket any more.
    Resolve(Address, u32),
    WriteUsage(Address),
    /// Doubles the items of a bucket that is written to more often than it bears.
    Double(Address),
}

impl BackgroundJobs {
    pub(super) fn new(runtime: Handle, buckets: Weak<Buckets>) -> BackgroundJobs {
        BackgroundJobs { background: Background::new(runtime, RETRIED_FOR), buckets }
    }

    /// Applies a call, and calls `callback` with the outcome.
    pub(crate) fn apply_detached(&self, mut call: OwnedTransaction, callback: OutcomeCallback) {
        let Some(buckets) = self.buckets.upgrade() else { return };
        // With an id, what was applied is not applied again by the next attempt.
        call.id = call.id.or_else(|| Some(OpId(time_ordered_id(buckets.service.clock.now()))));
        let addresses = addresses(&call);
        self.start(BackgroundJob::Apply(Arc::new(call), Mutex::new(Some(callback))), addresses);
    }

    /// Waits until the detached calls on the buckets of a call were attempted.
    pub(crate) async fn await_detached(&self, call: &OwnedTransaction) {
        self.background.pending().none_of(|| addresses(call)).await;
    }

    /// Waits until all detached calls were attempted.
    pub(super) async fn await_all_detached(&self) {
        self.background.pending().none().await;
    }

    pub(super) fn give_back(&self, address: Address, op: ItemOp) {
        let addresses = addresses(&op.call);
        self.start(BackgroundJob::GiveBack(address, op), addresses);
    }

    pub(super) fn resolve(&self, address: &Address, shard: u32) {
        self.start(BackgroundJob::Resolve(address.clone(), shard), Vec::new());
    }

    /// Writes down what was put aside of a bucket, unless a job is about to.
    pub(super) fn write_usage(&self, address: &Address, queue: &ItemQueue) {
        if queue.begin_writing_usage() {
            self.start(BackgroundJob::WriteUsage(address.clone()), Vec::new());
        }
    }

    pub(super) fn double(&self, address: &Address) {
        self.start(BackgroundJob::Double(address.clone()), Vec::new());
    }

    /// Runs a job until the service answers or refuses it. Callers that ask for these buckets wait for the first attempt.
    fn start(&self, job: BackgroundJob, addresses: Vec<Address>) {
        let Some(buckets) = self.buckets.upgrade() else { return };
        let job = Arc::new(job);
        self.background.retry(addresses, move || {
            let (job, buckets) = (Arc::clone(&job), Arc::clone(&buckets));
            async move { job.run(&buckets).await }
        });
    }
}

impl BackgroundJob {
    async fn run(&self, buckets: &Buckets) -> Result<(), StoreError> {
        match self {
            BackgroundJob::Apply(call, callback) => {
                let outcome = buckets.dispatcher.dispatch(Arc::clone(call), Vec::new()).await;
                let outcome = outcome.map_err(without_tests)?;
                buckets.notify_freed(call, &outcome);
                if let Some(callback) = callback.lock().take() {
                    callback(&outcome);
                }
                Ok(())
            }
            BackgroundJob::GiveBack(address, op) => {
                buckets.submitter.submit(address, op.clone()).await?;
                buckets.wait_queues.notify(&Freed::all(&address.namespace, &address.key));
                Ok(())
            }
            BackgroundJob::Resolve(address, shard) => {
                let items = &buckets.submitter.items;
                let queue = items.shards.queue(address, *shard);
                let mut state = queue.state.lock().await;
                items.resolve_unknown(address, &queue, &mut state).await
            }
            BackgroundJob::Double(address) => buckets.submitter.merged.double(address).await,
            BackgroundJob::WriteUsage(address) => {
                let written = buckets.usage_writer.write(address).await;
                buckets.submitter.items.shards.first(address).end_writing_usage();
                written
            }
        }
    }
}

fn addresses(call: &OwnedTransaction) -> Vec<Address> {
    call.steps().filter_map(|step| Address::of(&step.place).ok()).collect()
}
