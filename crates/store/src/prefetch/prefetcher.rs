//! Serving calls from what was taken ahead, or taking a portion with them.
//!
//! A call is served so if all of its steps can be: otherwise one call takes a portion of every bucket of the chain at
//! once.

use std::sync::{Arc, Weak};

use tokio::runtime::Handle;
use tokio::sync::MutexGuard;
use tollgate_core::{Costs, Limits, Span, Tick, Usage};

use super::buckets::{PrefetchedBucket, PrefetchedBuckets};
use super::{Portion, PortionOutcome, PortionSource, Prefetch, PrefetchBuffer, add_prefetch, bounds};
use crate::workers::unique_id;
use crate::{
    BucketRef, Clock, Key, Op, OwnedTransaction, Scope, Step, StepOutcome, StoreError, Taken, Transaction,
};

/// Serves calls from what a process has taken ahead of its buckets. `S` takes it and gives it back.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
///
/// use tollgate_core::{Limit, Limits, Tick, demand};
/// use tollgate_store::prefetch::{
///     Portion, PortionOutcome, PortionSource, Prefetch, Prefetcher, ServeMode, UsageDelta,
/// };
/// use tollgate_store::{BucketRef, Key, Op, OwnedTransaction, Step, StepOutcome, Taken};
///
/// /// A store in which everything fits.
/// struct Endless;
///
/// impl PortionSource for Endless {
///     const TAKES_PARTIAL: bool = false;
///
///     fn now(&self) -> Tick {
///         Tick::from_secs(1)
///     }
///
///     async fn take_portion(&self, portion: &Portion) -> PortionOutcome {
///         let taken = StepOutcome::Taken(Taken { at: self.now(), warnings: 0 });
///         PortionOutcome::Taken(portion.call.steps().map(|_| taken).collect())
///     }
///
///     async fn give_back(&self, _: OwnedTransaction, _: UsageDelta) {}
/// }
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
/// # let handle = runtime.handle().clone();
/// # runtime.block_on(async {
/// let source = Arc::new(Endless);
/// let settings = Prefetch::new(5, Duration::from_secs(1));
/// let prefetcher = Prefetcher::new(settings, Arc::downgrade(&source), handle);
///
/// let (key, limits) = (Key::new(&["entity", "resource"]), Limits::new([Limit::per_minute("rpm", 1_000)])?);
/// let costs = limits.costs(&demand! { rpm: 1 })?;
/// let bucket = BucketRef { namespace: "ns", key: &key, limits: &limits };
/// let take = [Step { place: bucket, op: Op::Take { costs: &costs, term: None } }];
/// // The first take takes a portion, and the second one is served from it.
/// assert!(prefetcher.serve(&take, ServeMode::HeldOnly, 0).await?.is_none());
/// assert!(prefetcher.serve(&take, ServeMode::Portion, 0).await?.is_some());
/// assert!(prefetcher.serve(&take, ServeMode::HeldOnly, 0).await?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Prefetcher<S> {
    settings: Option<Prefetch>,
    source: Weak<S>,
    runtime: Handle,
    buckets: Arc<PrefetchedBuckets>,
}

/// The way in which a call may be served.
///
/// # Examples
///
/// ```
/// use tollgate_store::Transaction;
/// use tollgate_store::prefetch::ServeMode;
///
/// fn mode(call: &Transaction<'_>, is_waiter: bool) -> ServeMode {
///     match (call.metered, is_waiter) {
///         (false, _) => ServeMode::Bypass,
///         (true, true) => ServeMode::HeldOnly,
///         (true, false) => ServeMode::Portion,
///     }
/// }
///
/// let call = Transaction { id: None, steps: &[], metered: true };
/// assert_eq!(mode(&call, true), ServeMode::HeldOnly);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServeMode {
    /// From what is held, or by a new portion.
    Portion,
    /// From what is held only: a waiter takes no more than it waits for, because others wait as well.
    HeldOnly,
    /// Not at all, because its usage is not counted, or something else is to be done with it.
    Bypass,
}

/// The steps of a call, as a prefetcher can serve them.
enum PrefetchRequest<'a> {
    Take(Vec<PrefetchStep<'a>>),
    /// With what was used of each.
    Settle(Vec<(PrefetchStep<'a>, &'a [u64])>),
    /// An operation on a whole bucket, with what is held ahead of it.
    WholeBucket,
    /// Nothing that has to do with what is held.
    Unrelated,
}

/// A step that may be served from what is held.
struct PrefetchStep<'a> {
    bucket: BucketRef<'a>,
    /// The most that may be held ahead.
    bounds: Vec<u64>,
    /// The costs that are taken or were reserved.
    costs: &'a Costs,
}

type Buffers<'b> = Vec<MutexGuard<'b, PrefetchBuffer>>;

impl<S: PortionSource> Prefetcher<S> {
    /// Returns a prefetcher of a store that owns it; it serves nothing without settings.
    pub fn new(settings: Option<Prefetch>, source: Weak<S>, runtime: Handle) -> Prefetcher<S> {
        Prefetcher { settings, source, runtime, buckets: Arc::default() }
    }

    /// Returns whether anything is taken ahead.
    pub fn is_on(&self) -> bool {
        self.settings.is_some()
    }

    /// Returns the most that may be held ahead of a bucket under these limits, of each; `None` if nothing is.
    pub fn bounds(&self, limits: &Limits) -> Option<Vec<u64>> {
        bounds(limits, self.settings?.percent)
    }

    /// Serves a call; `None` if it has to be sent to the store as it is. A settlement changes the number of takes that
    /// are counted by `events`.
    ///
    /// # Errors
    ///
    /// The store's, if what was asked for cannot be had or it is unknown whether it was taken.
    ///
    /// # Cancel safety
    ///
    /// None: it must be run to its end.
    pub async fn serve(
        &self,
        steps: &[Step<'_>],
        mode: ServeMode,
        events: i64,
    ) -> Result<Option<Vec<StepOutcome>>, StoreError> {
        let (Some(settings), Some(source)) = (self.settings, self.source.upgrade()) else { return Ok(None) };
        match PrefetchRequest::of(steps, mode, settings.percent) {
            PrefetchRequest::Take(parts) => {
                // As long as this has references to the buckets, their idle watches do not remove them.
                let buckets: Vec<_> =
                    parts.iter().map(|part| self.bucket(&part.bucket, settings.idle)).collect();
                let buffers = lock_all(&buckets).await;
                take(&*source, &parts, &buckets, buffers, mode).await
            }
            PrefetchRequest::Settle(parts) => Ok(self.settle(&parts, events).await),
            PrefetchRequest::WholeBucket => {
                for step in steps {
                    self.return_bucket(step.place.namespace, step.place.key).await;
                }
                Ok(None)
            }
            PrefetchRequest::Unrelated => Ok(None),
        }
    }

    async fn settle(&self, parts: &[(PrefetchStep<'_>, &[u64])], events: i64) -> Option<Vec<StepOutcome>> {
        let get = |part: &PrefetchStep<'_>| self.buckets.get(part.bucket.namespace, part.bucket.key);
        let buckets = parts.iter().map(|(part, _)| get(part)).collect::<Option<Vec<_>>>()?;
        let mut buffers = lock_all(&buckets).await;
        let fits =
            |((part, used), buffer): (&(PrefetchStep<'_>, &[u64]), &MutexGuard<'_, PrefetchBuffer>)| {
                buffer.settled(part.bucket.limits, (part.costs, used), &part.bounds).is_some()
            };
        if !parts.iter().zip(&buffers).all(fits) {
            return None;
        }
        for ((part, used), buffer) in parts.iter().zip(&mut buffers) {
            buffer.settle(part.bucket.limits, (part.costs, used), &part.bounds, events);
        }
        Some(vec![StepOutcome::Settled; parts.len()])
    }

    /// Gives back what is held ahead of a bucket.
    ///
    /// # Cancel safety
    ///
    /// Dropped once it has been polled, it goes on in the background.
    pub async fn return_bucket(&self, namespace: &str, key: &Key) {
        self.return_all(self.buckets.get(namespace, key).into_iter().collect()).await;
    }

    /// Gives back what is held ahead of the buckets of a scope.
    ///
    /// # Cancel safety
    ///
    /// As [`return_bucket`](Prefetcher::return_bucket).
    pub async fn return_scope(&self, namespace: &str, scope: Scope<'_>) {
        self.return_all(self.buckets.of(namespace, scope)).await;
    }

    /// Gives back in a task of its own: a caller that is dropped between the emptying of a buffer and the answer of the store
    /// would lose what was used.
    async fn return_all(&self, buckets: Vec<Arc<PrefetchedBucket>>) {
        let Some(source) = self.source.upgrade().filter(|_| !buckets.is_empty()) else { return };
        let task = self.runtime.spawn(async move {
            for bucket in buckets {
                bucket.give_back(&*source, &mut *bucket.buffer.lock().await).await;
            }
        });
        // It fails only if the runtime is shut down, and with it the store.
        let _ = task.await;
    }

    /// Drops what is held ahead of the buckets of a scope, which are forgotten, and what was used of it.
    ///
    /// # Cancel safety
    ///
    /// If it is dropped, some of what is held is kept. A repeated call drops it.
    pub async fn drop_scope(&self, namespace: &str, scope: Scope<'_>) {
        for bucket in self.buckets.of(namespace, scope) {
            drop(bucket.buffer.lock().await.empty());
        }
    }

    /// Serves nothing any more of what is held ahead of a bucket, which was deleted. What was used of it is counted once it is
    /// idle.
    pub fn detach_bucket(&self, namespace: &str, key: &Key) {
        self.buckets.remove(namespace, key);
    }

    fn bucket(&self, bucket: &BucketRef<'_>, idle: Span) -> Arc<PrefetchedBucket> {
        let (bucket, is_new) = self.buckets.get_or_insert(bucket);
        if is_new {
            self.watch(Arc::clone(&bucket), idle);
        }
        bucket
    }

    /// Starts a background task that gives back what is held ahead of a bucket once no caller takes from it.
    fn watch(&self, bucket: Arc<PrefetchedBucket>, idle: Span) {
        let (source, buckets) = (self.source.clone(), Arc::clone(&self.buckets));
        self.runtime.spawn(async move {
            loop {
                tokio::time::sleep(idle.to_duration() / 2).await;
                // Should the store be gone, what it held fills up again by itself.
                let Some(source) = source.upgrade() else { return };
                let mut buffer = bucket.buffer.lock().await;
                if !buffer.is_idle(Clock::system().now(), idle) {
                    continue;
                }
                bucket.give_back(&*source, &mut buffer).await;
                drop(buffer);
                if buckets.remove_unused(&bucket) {
                    return;
                }
            }
        });
    }
}

impl PrefetchedBucket {
    /// Gives back what a buffer holds, and counts what was used of it.
    async fn give_back<S: PortionSource>(&self, source: &S, buffer: &mut PrefetchBuffer) {
        let Some((limits, held, used)) = buffer.empty() else { return };
        if used.is_nothing() && held.iter().all(|held| *held == 0) {
            return;
        }
        let (namespace, key) = &self.key;
        if let Some(call) = giving_back(&BucketRef { namespace, key, limits: &limits }, &held, source.now()) {
            source.give_back(call, used).await;
        }
    }
}

impl<'a> PrefetchRequest<'a> {
    fn of(steps: &'a [Step<'a>], mode: ServeMode, percent: u8) -> PrefetchRequest<'a> {
        if steps.iter().any(|step| step.takes().is_none() && settlement(step).is_none()) {
            return PrefetchRequest::WholeBucket;
        }
        if mode == ServeMode::Bypass || steps.is_empty() {
            return PrefetchRequest::Unrelated;
        }
        let part = |step: &'a Step<'a>, costs: &'a Costs| {
            Some(PrefetchStep { bucket: step.place, bounds: bounds(step.place.limits, percent)?, costs })
        };
        let takes = steps.iter().map(|step| part(step, step.takes()?));
        if let Some(takes) = takes.collect::<Option<Vec<_>>>() {
            return PrefetchRequest::Take(takes);
        }
        let settlements = steps.iter().map(|step| {
            let (reserved, used) = settlement(step)?;
            Some((part(step, reserved)?, used))
        });
        settlements.collect::<Option<Vec<_>>>().map_or(PrefetchRequest::Unrelated, PrefetchRequest::Settle)
    }
}

/// Takes from what is held of all buckets, or takes a portion.
async fn take<S: PortionSource>(
    source: &S,
    parts: &[PrefetchStep<'_>],
    buckets: &[Arc<PrefetchedBucket>],
    mut buffers: Buffers<'_>,
    mode: ServeMode,
) -> Result<Option<Vec<StepOutcome>>, StoreError> {
    let now = Clock::system().now();
    if parts.iter().zip(&buffers).all(|(part, buffer)| buffer.has(part.bucket.limits, part.costs)) {
        let taken = parts.iter().zip(&mut buffers).map(|(part, buffer)| {
            buffer.take(part.bucket.limits, part.costs, now);
            StepOutcome::Taken(Taken { at: buffer.filled(), warnings: 0 })
        });
        return Ok(Some(taken.collect()));
    }
    if mode == ServeMode::HeldOnly {
        return Ok(None);
    }
    let mut wanted = Vec::with_capacity(parts.len());
    for ((part, buffer), bucket) in parts.iter().zip(&mut buffers).zip(buckets) {
        if buffer.limits().is_some() && !buffer.is_of(part.bucket.limits, part.costs) {
            bucket.give_back(source, buffer).await;
        }
        let ahead = buffer.ahead(part.costs, &part.bounds, now);
        let is_full = ahead.iter().zip(part.costs.amounts()).all(|(ahead, cost)| *ahead > 0 || *cost == 0);
        let total = add_prefetch(part.bucket.limits, part.costs, &ahead);
        let Some(total) = total.filter(|_| is_full || S::TAKES_PARTIAL) else { return Ok(None) };
        wanted.push((total, ahead));
    }
    take_portion(source, parts, buffers, wanted, now).await
}

/// Takes a portion: for each bucket the costs in all, and how much of that is beyond what was asked for.
async fn take_portion<S: PortionSource>(
    source: &S,
    parts: &[PrefetchStep<'_>],
    mut buffers: Buffers<'_>,
    wanted: Vec<(Costs, Vec<u64>)>,
    now: Tick,
) -> Result<Option<Vec<StepOutcome>>, StoreError> {
    let portion = portion(parts, &mut buffers, wanted.iter().map(|(total, _)| total));
    let outcome = source.take_portion(&portion).await;
    match outcome {
        PortionOutcome::Taken(done) => {
            let rows = parts.iter().zip(&mut buffers).zip(wanted.iter().zip(&done));
            for ((part, buffer), ((_, ahead), done)) in rows {
                let at = if let StepOutcome::Taken(taken) = done { taken.at } else { buffer.filled() };
                buffer.fill(part.bucket.limits, part.costs, ahead, at, now);
            }
            Ok(Some(done))
        }
        PortionOutcome::Unknown(error) => Err(error),
        PortionOutcome::NotTaken | PortionOutcome::Failed(_) => {
            for ((part, buffer), mut used) in parts.iter().zip(&mut buffers).zip(portion.used) {
                used.remove_take(part.costs);
                buffer.uncounted = used;
                buffer.shrink();
            }
            if let PortionOutcome::Failed(error) = outcome { Err(error) } else { Ok(None) }
        }
    }
}

/// The call that takes these costs in all, with what to count of each bucket.
fn portion<'c>(
    parts: &[PrefetchStep<'_>],
    buffers: &mut Buffers<'_>,
    totals: impl Iterator<Item = &'c Costs>,
) -> Portion {
    let take = |(part, costs)| {
        let PrefetchStep { bucket, .. }: &PrefetchStep<'_> = part;
        Step { place: *bucket, op: Op::Take { costs, term: None } }
    };
    let steps: Vec<Step<'_>> = parts.iter().zip(totals).map(take).collect();
    let used = parts.iter().zip(buffers).map(|(part, buffer)| {
        let mut used = std::mem::take(&mut buffer.uncounted);
        used.add_take(part.costs);
        used
    });
    Portion {
        used: used.collect(),
        asked: parts.iter().map(|part| part.costs.clone()).collect(),
        call: OwnedTransaction::new(&Transaction { id: Some(unique_id()), steps: &steps, metered: true }),
    }
}

/// Locks the buffers of buckets in the order of their keys, so that no two callers wait for each other, and returns
/// them in the order of the buckets.
async fn lock_all(buckets: &[Arc<PrefetchedBucket>]) -> Buffers<'_> {
    let mut order: Vec<usize> = (0..buckets.len()).collect();
    order.sort_by_key(|index| {
        let (namespace, key) = &buckets[*index].key;
        (namespace, key.as_bytes())
    });
    let mut locked: Vec<(usize, MutexGuard<'_, PrefetchBuffer>)> = Vec::with_capacity(buckets.len());
    for index in order {
        locked.push((index, buckets[index].buffer.lock().await));
    }
    locked.sort_by_key(|(index, _)| *index);
    locked.into_iter().map(|(_, buffer)| buffer).collect()
}

/// Returns what was reserved and what was used, if the step is a settlement.
fn settlement<'s>(step: &'s Step<'_>) -> Option<(&'s Costs, &'s [u64])> {
    match &step.op {
        Op::Settle(usage) | Op::SettleExisting(usage) => Some((usage.reserved, usage.used)),
        _ => None,
    }
}

/// Returns the call that gives back so much of a bucket's limits; `None` if they have changed so that it cannot be.
pub fn giving_back(bucket: &BucketRef<'_>, held: &[u64], now: Tick) -> Option<OwnedTransaction> {
    let limits = bucket.limits;
    let reserved = add_prefetch(limits, &Costs::none(limits.len()), held)?;
    let used = vec![0; limits.len()];
    let usage = Usage { at: now, reserved: &reserved, used: &used, holder: None };
    let steps = [Step { place: *bucket, op: Op::SettleExisting(usage) }];
    Some(OwnedTransaction::new(&Transaction { id: Some(unique_id()), steps: &steps, metered: true }))
}

#[cfg(test)]
mod tests {
    use std::future::Future;
    use std::sync::Mutex;
    use std::task::{Context, Waker};
    use std::time::Duration;

    use tokio::sync::Notify;
    use tollgate_core::{Limit, demand};

    use super::super::UsageDelta;
    use super::*;

    /// A store in which everything fits, and which takes back only when it is open.
    #[derive(Default)]
    struct SlowSource {
        is_open: Notify,
        used: Mutex<Vec<Vec<i64>>>,
        is_done: Notify,
    }

    impl PortionSource for SlowSource {
        const TAKES_PARTIAL: bool = false;

        fn now(&self) -> Tick {
            Tick::from_secs(1)
        }

        async fn take_portion(&self, portion: &Portion) -> PortionOutcome {
            let taken = StepOutcome::Taken(Taken { at: self.now(), warnings: 0 });
            PortionOutcome::Taken(portion.call.steps().map(|_| taken).collect())
        }

        async fn give_back(&self, _: OwnedTransaction, used: UsageDelta) {
            self.is_open.notified().await;
            self.used.lock().unwrap().push(used.amounts.to_vec());
            self.is_done.notify_one();
        }
    }

    #[test]
    fn what_is_given_back_is_counted_although_the_caller_is_dropped() {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        let source = Arc::new(SlowSource::default());
        let settings = Prefetch::new(5, Duration::from_secs(3_600));
        let prefetcher = Prefetcher::new(settings, Arc::downgrade(&source), runtime.handle().clone());
        let (key, limits) =
            (Key::new(&["user", "gpt-4"]), Limits::new([Limit::per_minute("rpm", 1_000)]).unwrap());
        let costs = limits.costs(&demand! { rpm: 1 }).unwrap();
        let bucket = BucketRef { namespace: "ns", key: &key, limits: &limits };
        let take = [Step { place: bucket, op: Op::Take { costs: &costs, term: None } }];
        for mode in [ServeMode::Portion, ServeMode::HeldOnly] {
            assert!(runtime.block_on(prefetcher.serve(&take, mode, 0)).unwrap().is_some());
        }
        let mut returned = Box::pin(prefetcher.return_bucket("ns", &key));
        assert!(returned.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        drop(returned);
        source.is_open.notify_one();
        let done = async { tokio::time::timeout(Duration::from_secs(60), source.is_done.notified()).await };
        runtime.block_on(done).expect("the background goes on");
        assert_eq!(*source.used.lock().unwrap(), [[1]], "the first take was counted with its portion");
    }
}
