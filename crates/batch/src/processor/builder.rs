//! The builder of a batch.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use futures_core::Stream;
use serde::Serialize;
use tokio::task::JoinSet;
use tollgate::{Clock, Demand, LimitSet, Retry, Span};

use super::account::Accounts;
use super::budget::Budget;
use super::call::{self, DemandOf};
use super::driver::{BatchSizes, Driver};
use super::entry::ItemEntries;
use super::outbox::{Order, Outbox};
use super::run::Run;
use super::shared::CooldownLink;
use super::timers::ItemTimers;
use crate::histogram::Histogram;
use crate::item::{CallReply, ItemAttempt};
use crate::journal::{self, GroupWriter, Journal};
use crate::observe::BatchObserver;
use crate::policy::Policy;
use crate::scope::CooldownPolicy;
use crate::shared::SharedCooldown;
use crate::source::ItemSource;
use crate::summary::BatchProgress;
use crate::time::Time;
use crate::{FailureClass, Item};
use tollgate_store::{SplitMix64, random_u64};

/// A batch before it runs: its settings, and the methods that run it.
///
/// # Examples
///
/// ```
/// use tollgate_batch::{Batch, CallReply, Item, ItemAttempt, Order};
/// use tollgate_provider::Hint;
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// let items = (1..=3_u64).map(|number| Item::new(number.to_string(), number));
/// let mut run = Batch::new().workers(2).order(Order::Input).run(items, |call: ItemAttempt<u64>| async move {
///     CallReply::done(call.payload() * 2, Hint::ok())
/// });
/// let mut outputs = Vec::new();
/// while let Some(outcome) = run.next().await {
///     outputs.extend(outcome.result);
/// }
/// assert_eq!(outputs, [2, 4, 6]);
/// # });
/// ```
pub struct Batch {
    sizes: BatchSizes,
    order: Order,
    policy: Policy,
    cooldown: CooldownPolicy,
    accounts: Vec<(Arc<str>, Option<LimitSet>)>,
    demand: DemandOf,
    clock: Option<Clock>,
    shared: Option<SharedCooldown>,
    observer: Option<Box<dyn BatchObserver>>,
    seed: Option<u64>,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}

impl Batch {
    /// The default number of calls in flight.
    pub const WORKERS: usize = 50;

    /// The default number of outcomes that wait to be read.
    pub const BUFFER: usize = 1_024;

    /// The default number of items that are accepted ahead of their calls.
    pub const LOOKAHEAD: usize = 1_024;

    /// The default number of payload bytes that wait for their calls, and of result bytes that wait
    /// for the disk.
    pub const BUFFER_BYTES: usize = 64 << 20;

    /// Returns a batch with default settings.
    pub fn new() -> Batch {
        Batch {
            sizes: BatchSizes {
                workers: Batch::WORKERS,
                buffer: Batch::BUFFER,
                lookahead: Batch::LOOKAHEAD,
                bytes: Batch::BUFFER_BYTES,
            },
            order: Order::default(),
            policy: Policy::default(),
            cooldown: CooldownPolicy::default(),
            accounts: Vec::new(),
            demand: Arc::new(|_| Demand::new()),
            clock: None,
            shared: None,
            observer: None,
            seed: None,
        }
    }

    /// Sets the number of calls that may be in flight; at least 1.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Batch {
        self.sizes.workers = workers.max(1);
        self
    }

    /// Sets the number of outcomes that may wait to be read. When that many wait, and one more for
    /// each worker, no call starts.
    #[must_use]
    pub fn buffer(mut self, buffer: usize) -> Batch {
        self.sizes.buffer = buffer;
        self
    }

    /// Sets the number of items that are accepted ahead of their calls. Waiting items of one scope
    /// do not delay those of another as long as both are among them.
    #[must_use]
    pub fn lookahead(mut self, lookahead: usize) -> Batch {
        self.sizes.lookahead = lookahead;
        self
    }

    /// Sets the number of payload bytes that may wait for their calls, counted by
    /// [`Item::payload_bytes`], and of result bytes that may wait for the disk. At that number no
    /// item is accepted, or no call starts; one item may always wait.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> Batch {
        self.sizes.bytes = bytes.max(1);
        self
    }

    /// Sets the order in which outcomes are returned.
    #[must_use]
    pub fn order(self, order: Order) -> Batch {
        Batch { order, ..self }
    }

    /// Sets the policy for cooldowns.
    #[must_use]
    pub fn cooldown(self, policy: CooldownPolicy) -> Batch {
        Batch { cooldown: policy, ..self }
    }

    /// Adds an account: a scope that serves items without a scope of their own. Of several
    /// accounts, each item goes to one that can take it; accounts that cool down or are closed are
    /// skipped. Accounts beyond [`SCOPES_MAX`](crate::SCOPES_MAX) are ignored.
    #[must_use]
    pub fn account(mut self, scope: impl Into<Arc<str>>) -> Batch {
        self.accounts.push((scope.into(), None));
        self
    }

    /// Adds an [`account`](Batch::account) with limits. Each call first acquires its
    /// [`demand`](Batch::demand) from them, and settles with what it used.
    ///
    /// Of several accounts whose limits are in this process, an item goes to one that can admit it.
    /// Where that is not known at once (one account, a set in a store, a resource that other
    /// callers hold) the call waits in the queue of the limits, and occupies a worker meanwhile.
    #[must_use]
    pub fn account_with(mut self, scope: impl Into<Arc<str>>, limits: LimitSet) -> Batch {
        self.accounts.push((scope.into(), Some(limits)));
        self
    }

    /// Sets the demand of a call with a given number of tokens. By default the demand is empty,
    /// which takes one call. It is computed before the account is chosen: if the limits of the
    /// accounts have different names, build their sets with
    /// [`skip_unknown`](tollgate::LimitSetBuilder::skip_unknown).
    #[must_use]
    pub fn demand(self, demand: impl Fn(u64) -> Demand + Send + Sync + 'static) -> Batch {
        Batch { demand: Arc::new(demand), ..self }
    }

    /// Sets how calls are retried that the provider refused because it is overloaded.
    #[must_use]
    pub fn on_overloaded(mut self, retry: Retry) -> Batch {
        self.policy.overloaded = retry;
        self
    }

    /// Sets how calls are retried that failed for a reason that may pass, or took too long.
    #[must_use]
    pub fn on_transient(mut self, retry: Retry) -> Batch {
        self.policy.transient = retry;
        self
    }

    /// Sets how calls are retried whose output is not usable.
    #[must_use]
    pub fn on_invalid(mut self, retry: Retry) -> Batch {
        self.policy.invalid = retry;
        self
    }

    /// Sets the number of attempts for all classes that are retried. A 429 does not count as an
    /// attempt.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Batch {
        for retry in [&mut self.policy.overloaded, &mut self.policy.transient, &mut self.policy.invalid] {
            *retry = retry.with_attempts(attempts);
        }
        self
    }

    /// Sets for how long an item may meet 429s, from the first one on.
    #[must_use]
    pub fn throttle_budget(mut self, budget: Duration) -> Batch {
        self.policy.throttle_budget = Span::covering(budget);
        self
    }

    /// Lets the number of calls in flight in a scope grow from one to all workers over `span`, at
    /// the beginning and after each cooldown. By default only the learned pace delays calls.
    #[must_use]
    pub fn slow_start(mut self, span: Duration) -> Batch {
        self.policy.slow_start = Some(Span::covering(span));
        self
    }

    /// Sets how long a call may take.
    #[must_use]
    pub fn attempt_deadline(mut self, deadline: Duration) -> Batch {
        self.policy.attempt_deadline = Some(Span::covering(deadline));
        self
    }

    /// Sets how long an item may take from its acceptance.
    #[must_use]
    pub fn item_deadline(mut self, deadline: Duration) -> Batch {
        self.policy.item_deadline = Some(Span::covering(deadline));
        self
    }

    /// Sets how long the batch may take.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Batch {
        self.policy.batch_deadline = Some(Span::covering(deadline));
        self
    }

    /// Sets how many tokens the batch may use. A call starts only if its estimate fits beside those
    /// in flight.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Batch {
        self.policy.tokens_max = Some(tokens);
        self
    }

    /// Sets how much money the batch may spend, in the unit of [`Item::cost_micros`].
    #[must_use]
    pub fn max_cost_micros(mut self, cost_micros: u64) -> Batch {
        self.policy.cost_micros_max = Some(cost_micros);
        self
    }

    /// Starts no further call once an item has failed with this class.
    #[must_use]
    pub fn stop_on(mut self, class: FailureClass) -> Batch {
        self.policy.stop_on.push(class);
        self
    }

    /// Sets the clock. By default the batch takes the time from the runtime.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Batch {
        Batch { clock: Some(clock), ..self }
    }

    /// Shares cooldowns with all batches that use the same records.
    #[must_use]
    pub fn share(self, shared: SharedCooldown) -> Batch {
        Batch { shared: Some(shared), ..self }
    }

    /// Notifies the observer of every event.
    #[must_use]
    pub fn observer(self, observer: impl BatchObserver + 'static) -> Batch {
        Batch { observer: Some(Box::new(observer)), ..self }
    }

    /// Sets the seed of the jitter, which makes a run repeatable.
    #[must_use]
    pub fn seed(self, seed: u64) -> Batch {
        Batch { seed: Some(seed), ..self }
    }

    /// Runs the batch over an iterator. It must be called within a tokio runtime.
    pub fn run<P, S, O, F>(
        self,
        items: impl IntoIterator<Item = Item<P>, IntoIter: Send + 'static>,
        handler: impl Fn(ItemAttempt<P, S>) -> F + Send + Sync + 'static,
    ) -> Run<O>
    where
        P: Send + Sync + 'static,
        S: Default + Send + 'static,
        O: Send + 'static,
        F: Future<Output = CallReply<O>> + Send + 'static,
    {
        self.begin(ItemSource::Iterator(Box::new(items.into_iter())), handler, None)
    }

    /// Runs the batch over a stream. It must be called within a tokio runtime.
    pub fn run_stream<P, S, O, F>(
        self,
        items: impl Stream<Item = Item<P>> + Send + 'static,
        handler: impl Fn(ItemAttempt<P, S>) -> F + Send + Sync + 'static,
    ) -> Run<O>
    where
        P: Send + Sync + 'static,
        S: Default + Send + 'static,
        O: Send + 'static,
        F: Future<Output = CallReply<O>> + Send + 'static,
    {
        self.begin(ItemSource::Stream(Box::pin(items)), handler, None)
    }

    /// Runs the batch over an iterator with a journal: outcomes are on disk before they are
    /// returned, items that the journal has finished are not called, and an id that occurs twice is
    /// called once. It must be called within a tokio runtime.
    pub fn resume<P, S, O, F>(
        self,
        journal: Journal,
        items: impl IntoIterator<Item = Item<P>, IntoIter: Send + 'static>,
        handler: impl Fn(ItemAttempt<P, S>) -> F + Send + Sync + 'static,
    ) -> Run<O>
    where
        P: Send + Sync + 'static,
        S: Default + Send + 'static,
        O: Serialize + Send + 'static,
        F: Future<Output = CallReply<O>> + Send + 'static,
    {
        let writer = GroupWriter::new(journal, journal::encode::<O>);
        self.begin(ItemSource::Iterator(Box::new(items.into_iter())), handler, Some(writer))
    }

    /// Runs the batch over a stream with a journal, like [`resume`](Batch::resume).
    pub fn resume_stream<P, S, O, F>(
        self,
        journal: Journal,
        items: impl Stream<Item = Item<P>> + Send + 'static,
        handler: impl Fn(ItemAttempt<P, S>) -> F + Send + Sync + 'static,
    ) -> Run<O>
    where
        P: Send + Sync + 'static,
        S: Default + Send + 'static,
        O: Serialize + Send + 'static,
        F: Future<Output = CallReply<O>> + Send + 'static,
    {
        let writer = GroupWriter::new(journal, journal::encode::<O>);
        self.begin(ItemSource::Stream(Box::pin(items)), handler, Some(writer))
    }

    fn begin<P, S, O, F>(
        self,
        source: ItemSource<P>,
        handler: impl Fn(ItemAttempt<P, S>) -> F + Send + Sync + 'static,
        journal: Option<GroupWriter<O>>,
    ) -> Run<O>
    where
        P: Send + Sync + 'static,
        S: Default + Send + 'static,
        O: Send + 'static,
        F: Future<Output = CallReply<O>> + Send + 'static,
    {
        let time = self.clock.map_or_else(Time::runtime, Time::Clock);
        let seed = self.seed.unwrap_or_else(random_u64);
        let handler = Arc::new(handler);
        let outbox = Outbox::new(self.order);
        let driver = Driver {
            sizes: self.sizes,
            policy: self.policy,
            began: time.now(),
            source: Some(source),
            // Most calls reserve nothing, so their tasks carry no reservation.
            spawn: Box::new(move |calls, attempt, reservation| match reservation {
                Some(reservation) => {
                    calls.spawn(call::reserve_and_make(attempt, Arc::clone(&handler), reservation))
                }
                None => calls.spawn(call::make(attempt, Arc::clone(&handler))),
            }),
            demand: self.demand,
            accounts: Accounts::new(self.accounts, self.cooldown, seed),
            entries: ItemEntries::default(),
            waiting_bytes: 0,
            calls: JoinSet::new(),
            by_task: foldhash::HashMap::default(),
            timers: ItemTimers::default(),
            budget: Budget::default(),
            outbox: Arc::clone(&outbox),
            journal,
            shared: self.shared.map(|shared| CooldownLink::new(shared, time.clone())),
            observer: self.observer,
            random: SplitMix64::new(seed),
            next_index: 0,
            settled: 0,
            progress: BatchProgress::default(),
            call_times: Histogram::default(),
            item_times: Histogram::default(),
            stopped: None,
            wake: None,
            sleep: None,
            rotation: 0,
            ended: false,
            time,
        };
        Run::new(outbox, driver.run())
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batch")
            .field("sizes", &self.sizes)
            .field("order", &self.order)
            .finish_non_exhaustive()
    }
}
