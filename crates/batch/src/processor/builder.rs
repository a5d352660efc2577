//! Setting a batch up.

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
use super::dues::Dues;
use super::entry::ItemEntries;
use super::outbox::{Order, Outbox};
use super::run::Run;
use super::shared::CooldownLink;
use crate::histogram::Histogram;
use crate::item::{CallReply, ItemAttempt};
use crate::journal::{self, GroupWriter, Journal};
use crate::observe::BatchObserver;
use crate::policy::Policy;
use crate::random::JitterRandom;
use crate::scope::CooldownPolicy;
use crate::shared::SharedCooldown;
use crate::source::ItemSource;
use crate::summary::BatchProgress;
use crate::time::Time;
use crate::{FailureClass, Item};

/// A batch before it runs. See the [crate](crate) for an example.
pub struct Batch {
    sizes: BatchSizes,
    order: Order,
    policy: Policy,
    rules: CooldownPolicy,
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
    /// How many calls are under way at once, unless it is set.
    pub const WORKERS: usize = 50;

    /// How many outcomes wait to be read, unless it is set.
    pub const BUFFER: usize = 1_024;

    /// How many items are accepted ahead of their turn, unless it is set.
    pub const LOOKAHEAD: usize = 1_024;

    /// How many bytes of payloads wait for their turn, and of results for the disk, unless it is set.
    pub const BUFFER_BYTES: usize = 64 << 20;

    /// A batch with nothing configured.
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
            rules: CooldownPolicy::default(),
            accounts: Vec::new(),
            demand: Arc::new(|_| Demand::new()),
            clock: None,
            shared: None,
            observer: None,
            seed: None,
        }
    }

    /// How many calls are under way at once; at least 1.
    #[must_use]
    pub fn workers(mut self, workers: usize) -> Batch {
        self.sizes.workers = workers.max(1);
        self
    }

    /// How many outcomes wait to be read. When so many do, and one more for each worker, nothing starts.
    #[must_use]
    pub fn buffer(mut self, buffer: usize) -> Batch {
        self.sizes.buffer = buffer;
        self
    }

    /// How many items are accepted ahead of their turn. Items of one scope that wait do not hold up those of another as
    /// long as both are among them.
    #[must_use]
    pub fn lookahead(mut self, lookahead: usize) -> Batch {
        self.sizes.lookahead = lookahead;
        self
    }

    /// How many bytes of payloads wait for their turn, as [`Item::payload_bytes`] says, and how many bytes of results for the
    /// disk. When so many do, no item is accepted or nothing starts, however few they are; one item may always wait.
    #[must_use]
    pub fn buffer_bytes(mut self, bytes: usize) -> Batch {
        self.sizes.bytes = bytes.max(1);
        self
    }

    /// In which order outcomes are returned.
    #[must_use]
    pub fn order(self, order: Order) -> Batch {
        Batch { order, ..self }
    }

    /// What holds for cooldowns.
    #[must_use]
    pub fn rules(self, rules: CooldownPolicy) -> Batch {
        Batch { rules, ..self }
    }

    /// An account: a scope that serves items of no scope of their own. With several, each item goes to one that can
    /// take it, and one that cools down or is closed is passed over. Accounts beyond [`SCOPES_MAX`](crate::SCOPES_MAX) are not
    /// used.
    #[must_use]
    pub fn account(mut self, scope: impl Into<Arc<str>>) -> Batch {
        self.accounts.push((scope.into(), None));
        self
    }

    /// As [`account`](Batch::account), with limits of which each call takes its share first, as
    /// [`demand`](Batch::demand) says, and which it settles with what it used.
    ///
    /// Of several accounts whose limits are in this process an item goes to one that has room. Where that is not known
    /// at once (one account, a set in a store, a resource that others hold) it waits in the queue, and keeps its worker
    /// meanwhile.
    #[must_use]
    pub fn account_with(mut self, scope: impl Into<Arc<str>>, limits: LimitSet) -> Batch {
        self.accounts.push((scope.into(), Some(limits)));
        self
    }

    /// What a call of so many tokens takes from the limits of its account. Unless it is set, what a demand of nothing
    /// takes: one call. It is asked before the account is chosen: if accounts have limits of different names, build their
    /// sets with [`skip_unknown`](tollgate::LimitSetBuilder::skip_unknown).
    #[must_use]
    pub fn demand(self, demand: impl Fn(u64) -> Demand + Send + Sync + 'static) -> Batch {
        Batch { demand: Arc::new(demand), ..self }
    }

    /// How often a provider that has too much to do is asked again.
    #[must_use]
    pub fn on_overloaded(mut self, retry: Retry) -> Batch {
        self.policy.overloaded = retry;
        self
    }

    /// How often a call is made again that failed for a reason that may pass, or took too long.
    #[must_use]
    pub fn on_transient(mut self, retry: Retry) -> Batch {
        self.policy.transient = retry;
        self
    }

    /// How often a call is made again whose output was of no use.
    #[must_use]
    pub fn on_invalid(mut self, retry: Retry) -> Batch {
        self.policy.invalid = retry;
        self
    }

    /// So many attempts for whatever may be tried again. Refusals with "not now" are no attempts.
    #[must_use]
    pub fn attempts(mut self, attempts: u32) -> Batch {
        for retry in [&mut self.policy.overloaded, &mut self.policy.transient, &mut self.policy.invalid] {
            *retry = retry.with_attempts(attempts);
        }
        self
    }

    /// For how long an item may be refused with "not now", from the first time on.
    #[must_use]
    pub fn throttle_budget(mut self, budget: Duration) -> Batch {
        self.policy.throttle_budget = Span::covering(budget);
        self
    }

    /// Lets the number of calls under way in a scope grow from one to all workers over this long, at the beginning and after
    /// each cooldown. Unless it is set, only the learned pace holds calls back.
    #[must_use]
    pub fn slow_start(mut self, span: Duration) -> Batch {
        self.policy.slow_start = Some(Span::covering(span));
        self
    }

    /// How long a call may take.
    #[must_use]
    pub fn attempt_deadline(mut self, deadline: Duration) -> Batch {
        self.policy.attempt_deadline = Some(Span::covering(deadline));
        self
    }

    /// How long an item may take from when it is accepted.
    #[must_use]
    pub fn item_deadline(mut self, deadline: Duration) -> Batch {
        self.policy.item_deadline = Some(Span::covering(deadline));
        self
    }

    /// How long the batch may take.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Batch {
        self.policy.batch_deadline = Some(Span::covering(deadline));
        self
    }

    /// How many tokens the batch may use. Calls start only if their estimate fits beside those under way.
    #[must_use]
    pub fn max_tokens(mut self, tokens: u64) -> Batch {
        self.policy.tokens_max = Some(tokens);
        self
    }

    /// How much money the batch may spend, in the unit of [`Item::cost_micros`].
    #[must_use]
    pub fn max_cost_micros(mut self, cost_micros: u64) -> Batch {
        self.policy.cost_micros_max = Some(cost_micros);
        self
    }

    /// Starts nothing more when an item has failed in this way.
    #[must_use]
    pub fn stop_on(mut self, class: FailureClass) -> Batch {
        self.policy.stop_on.push(class);
        self
    }

    /// Takes the time from this clock; unless it is set, from the runtime.
    #[must_use]
    pub fn clock(self, clock: Clock) -> Batch {
        Batch { clock: Some(clock), ..self }
    }

    /// Shares cooldowns with all batches that use the same records.
    #[must_use]
    pub fn share(self, shared: SharedCooldown) -> Batch {
        Batch { shared: Some(shared), ..self }
    }

    /// Notifies the observer of everything that happens.
    #[must_use]
    pub fn observer(self, observer: impl BatchObserver + 'static) -> Batch {
        Batch { observer: Some(Box::new(observer)), ..self }
    }

    /// Makes chance repeat itself.
    #[must_use]
    pub fn seed(self, seed: u64) -> Batch {
        Batch { seed: Some(seed), ..self }
    }

    /// Runs the batch over an iterator. To be called from within a runtime.
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

    /// Runs the batch over a stream. To be called from within a runtime.
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

    /// As [`run`](Batch::run), with a journal: outcomes are on disk before they are returned, and what is finished
    /// there is not called. An id that comes twice is called once.
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

    /// As [`resume`](Batch::resume), over a stream.
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
        let seed = self.seed.unwrap_or_else(JitterRandom::seed);
        let handler = Arc::new(handler);
        let outbox = Outbox::new(self.order);
        let driver = Driver {
            sizes: self.sizes,
            policy: self.policy,
            began: time.now(),
            source: Some(source),
            // Most calls reserve nothing: their tasks need not have room for it.
            spawn: Box::new(move |calls, attempt, reservation| match reservation {
                Some(reservation) => {
                    calls.spawn(call::reserve_and_make(attempt, Arc::clone(&handler), reservation))
                }
                None => calls.spawn(call::make(attempt, Arc::clone(&handler))),
            }),
            demand: self.demand,
            places: Accounts::new(self.accounts, self.rules, seed),
            entries: ItemEntries::default(),
            waiting_bytes: 0,
            calls: JoinSet::new(),
            by_task: foldhash::HashMap::default(),
            dues: Dues::default(),
            ledger: Budget::default(),
            outbox: Arc::clone(&outbox),
            journal,
            shared: self.shared.map(|shared| CooldownLink::new(shared, time.clone())),
            observer: self.observer,
            random: JitterRandom::new(seed),
            next_index: 0,
            settled: 0,
            progress: BatchProgress::default(),
            call_times: Histogram::default(),
            item_times: Histogram::default(),
            stopped: None,
            wake: None,
            sleep: None,
            turn: 0,
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
