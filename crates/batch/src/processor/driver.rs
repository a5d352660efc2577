//! The driver: the one task that owns a batch with its items, scopes and calls.
//!
//! Everything is decided here, between two polls, so no call takes a lock, and no call has to
//! survive for others to go on. A worker is a slot for a call, not a task: an item that meets a 429
//! leaves the slot to the next item.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::task::{AbortHandle, Id, JoinSet};
use tollgate::{Span, Tick};
use tollgate_store::{Mutex, SplitMix64};

use super::account::{Accounts, Announced};
use super::budget::Budget;
use super::call::{CallReservation, DemandOf, End};
use super::entry::{ItemEntries, ItemEntry, ItemPhase, ItemSlot};
use super::outbox::Outbox;
use super::shared::CooldownLink;
use super::timers::{ItemTimer, ItemTimers, TimerKind};
use crate::histogram::Histogram;
use crate::item::{ItemAttempt, ItemShared};
use crate::journal::{GroupWriter, SeenBefore};
use crate::observe::{BatchEvent, BatchObserver, SkipReason};
use crate::policy::Policy;
use crate::source::ItemSource;
use crate::summary::{BatchProgress, Summary};
use crate::time::{BatchSleep, Time};
use crate::{FailureClass, Item, ItemError, Outcome, StopReason};

/// How many rounds one poll does before it yields to other tasks.
const ROUNDS_MAX: usize = 64;

/// Spawns a call as a task of its own.
pub(super) type Spawn<P, S, O> =
    Box<dyn Fn(&mut JoinSet<End<O>>, ItemAttempt<P, S>, Option<CallReservation>) -> AbortHandle + Send>;

/// The sizes of a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct BatchSizes {
    pub(super) workers: usize,
    pub(super) buffer: usize,
    pub(super) lookahead: usize,
    /// How many bytes of payloads may wait for their calls, and of outcomes for the disk.
    pub(super) bytes: usize,
}

/// The state of a batch.
pub(super) struct Driver<P, S, O> {
    pub(super) sizes: BatchSizes,
    pub(super) policy: Policy,
    pub(super) time: Time,
    pub(super) began: Tick,
    pub(super) source: Option<ItemSource<P>>,
    pub(super) spawn: Spawn<P, S, O>,
    pub(super) demand: DemandOf,
    pub(super) accounts: Accounts,
    pub(super) entries: ItemEntries<P, S, O>,
    /// The payload bytes of items that have no call in flight.
    pub(super) waiting_bytes: usize,
    pub(super) calls: JoinSet<End<O>>,
    pub(super) by_task: foldhash::HashMap<Id, ItemSlot>,
    pub(super) timers: ItemTimers,
    pub(super) budget: Budget,
    pub(super) outbox: Arc<Outbox<O>>,
    pub(super) journal: Option<GroupWriter<O>>,
    pub(super) shared: Option<CooldownLink>,
    pub(super) observer: Option<Box<dyn BatchObserver>>,
    pub(super) random: SplitMix64,
    pub(super) next_index: u64,
    /// How many items have ended, stored in the journal or not.
    pub(super) settled: u64,
    pub(super) progress: BatchProgress,
    pub(super) call_times: Histogram,
    pub(super) item_times: Histogram,
    pub(super) stopped: Option<StopReason>,
    pub(super) wake: Option<Tick>,
    pub(super) sleep: Option<(Tick, BatchSleep)>,
    pub(super) rotation: usize,
    pub(super) ended: bool,
}

impl<P, S, O> Driver<P, S, O>
where
    S: Default,
    O: 'static,
{
    /// Runs the batch to its end.
    ///
    /// # Cancel safety
    ///
    /// Dropping it ends all calls. Outcomes that are in the journal stay there.
    pub(super) async fn run(mut self) -> Summary {
        std::future::poll_fn(|context| self.poll(context)).await;
        self.end();
        self.summary()
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<()> {
        for _ in 0..ROUNDS_MAX {
            let now = self.time.now();
            // Each step runs before the steps that depend on its result.
            self.check_end(now);
            self.collect(context, now);
            self.fire_timers(now);
            self.write(context);
            let (settled, was_idle) = (self.settled, self.calls.is_empty());
            let more = self.pull(context, now);
            self.apply_shared_cooldowns(context, now);
            let was_full = self.is_full();
            self.start(context, now);
            if self.is_over() {
                self.report_progress(now);
                return Poll::Ready(());
            }
            // An item that ended before it was called leaves its slot to the next. Finished calls
            // wake the batch only if it has polled them since they were spawned.
            let moved = more || self.settled != settled || was_idle && !self.calls.is_empty();
            // Calls that started have freed memory for waiting payloads.
            let moved = moved || was_full && !self.is_full();
            if !moved && self.sleeps(context, now) {
                self.report_progress(now);
                return Poll::Pending;
            }
        }
        self.report_progress(self.time.now());
        context.waker().wake_by_ref();
        Poll::Pending
    }

    fn is_over(&self) -> bool {
        let pending = self.journal.as_ref().map_or(0, GroupWriter::pending);
        self.source.is_none() && self.entries.len() == 0 && pending == 0
    }

    /// Handles the calls that have ended.
    fn collect(&mut self, context: &mut Context<'_>, now: Tick) {
        while let Poll::Ready(Some(joined)) = self.calls.poll_join_next_with_id(context) {
            let (id, end) = match joined {
                Ok((id, end)) => (id, Ok(end)),
                Err(lost) => (lost.id(), Err(lost.is_panic())),
            };
            if let Some(slot) = self.by_task.remove(&id) {
                self.returned(now, slot, end);
            }
        }
    }

    /// Publishes the outcomes that the journal has stored.
    fn write(&mut self, context: &mut Context<'_>) {
        let Some(journal) = &mut self.journal else { return };
        let mut written = Vec::new();
        journal.poll(context, &mut written);
        let broken = journal.broken().cloned();
        written.into_iter().for_each(|outcome| self.publish(outcome));
        if let Some(cause) = broken.filter(|_| self.stopped.is_none()) {
            self.stop(StopReason::Journal(cause));
        }
    }

    /// Ends the batch if it was shut down, or if its deadline has passed.
    fn check_end(&mut self, now: Tick) {
        let deadline = self.policy.batch_deadline.map(|span| self.began + span);
        let late = deadline.is_some_and(|deadline| deadline <= now);
        if self.outbox.is_shut_down() {
            self.abort_all(now, StopReason::Shutdown);
        } else if late {
            self.abort_all(now, StopReason::Deadline);
        } else {
            self.wake_at(deadline);
        }
    }

    /// Accepts as many items as may wait. Returns true if more items may be available at once.
    fn pull(&mut self, context: &mut Context<'_>, now: Tick) -> bool {
        for _ in 0..self.sizes.lookahead.max(1) {
            let most = self.sizes.workers + self.sizes.lookahead;
            if self.entries.len() >= most || self.is_full() || self.is_far_ahead(context) {
                return false;
            }
            let Some(source) = &mut self.source else { return false };
            match source.poll_next(context) {
                Poll::Ready(Some(item)) => self.accept(now, item),
                Poll::Ready(None) => self.source = None,
                Poll::Pending => return false,
            }
        }
        true
    }

    /// Returns true if the payloads of waiting items take all the memory they may. One item may
    /// always wait.
    fn is_full(&self) -> bool {
        self.entries.len() > self.by_task.len() && self.waiting_bytes >= self.sizes.bytes
    }

    /// Returns true if the input is too far ahead: a reader in the order of the input must not have
    /// to store more than a bounded number of items behind the one that it waits for, even if they
    /// are finished already.
    fn is_far_ahead(&self, context: &mut Context<'_>) -> bool {
        let most = self.sizes.workers + self.sizes.buffer + self.sizes.lookahead;
        let index = self.next_index;
        !self
            .outbox
            .has_room(context, |_, next| next.is_none_or(|next| index < next.saturating_add(most as u64)))
    }

    fn accept(&mut self, now: Tick, item: Item<P>) {
        let index = self.next_index;
        self.next_index += 1;
        if let Some(reason) = self.skip_reason(&item) {
            self.progress.skipped += 1;
            self.emit(&BatchEvent::Skipped { id: &item.id, index, reason });
            self.outbox.skip(index);
            return;
        }
        self.progress.accepted += 1;
        let queue = self.accounts.queue(item.scope);
        self.waiting_bytes = self.waiting_bytes.saturating_add(item.payload_bytes);
        let shared = ItemShared { id: item.id, payload: item.payload, state: Mutex::new(S::default()) };
        let slot = self.entries.insert(ItemEntry {
            item: Arc::new(shared),
            index,
            label: item.label,
            queue: queue.unwrap_or_default(),
            load: item.tokens,
            cost_micros: item.cost_micros,
            payload_bytes: item.payload_bytes,
            accepted: now,
            calls: 0,
            throttles: 0,
            first_throttle: None,
            failures: [0; 3],
            failed_in: None,
            tokens_used: 0,
            cost_spent: 0,
            rejected: None,
            phase: ItemPhase::Waiting,
        });
        match queue {
            Some(queue) => self.accounts.queues[queue].items.put(slot),
            None => {
                let reason = format!("a batch has at most {} scopes", super::SCOPES_MAX);
                let failed = ItemError::Item { class: FailureClass::Fatal, reason };
                return self.finish(now, slot, Err(failed));
            }
        }
        if let Some(span) = self.policy.item_deadline {
            self.timers.push(ItemTimer { at: now + span, slot, index, kind: TimerKind::Item });
        }
    }

    /// Returns why an item is not called, if there is a journal to decide by. An item that is
    /// called is remembered.
    fn skip_reason(&mut self, item: &Item<P>) -> Option<SkipReason> {
        let journal = self.journal.as_mut()?;
        let reason = match journal.check(&item.id, item.label.fingerprint) {
            SeenBefore::New => return None,
            SeenBefore::Again => SkipReason::Duplicate,
            SeenBefore::Earlier { has_changed: true, .. } => SkipReason::Changed,
            SeenBefore::Earlier { has_failed: true, .. } => SkipReason::Failed,
            SeenBefore::Earlier { .. } => SkipReason::Done,
        };
        let count = match reason {
            SkipReason::Duplicate => &mut self.progress.duplicates,
            SkipReason::Changed => &mut self.progress.changed,
            SkipReason::Failed => &mut self.progress.failed_before,
            SkipReason::Done => &mut self.progress.done_before,
        };
        *count += 1;
        Some(reason)
    }

    /// Schedules a wake-up at the next time that matters. Returns true if that time lies ahead.
    fn sleeps(&mut self, context: &mut Context<'_>, now: Tick) -> bool {
        self.outbox.listen(context);
        if self.outbox.is_shut_down() && self.stopped.is_none() {
            return false;
        }
        let wake = self.wake.take();
        let Some(at) = [wake, self.timers.next()].into_iter().flatten().min() else {
            return true;
        };
        if at <= now {
            return false;
        }
        let (until, sleep) = self.sleep.get_or_insert_with(|| (at, self.time.sleep_until(at)));
        if *until != at {
            self.time.reset(sleep, at);
            *until = at;
        }
        let sleeps = Pin::new(sleep).poll(context).is_pending();
        if !sleeps {
            self.sleep = None;
        }
        sleeps
    }

    pub(super) fn wake_at(&mut self, at: Option<Tick>) {
        self.wake = [self.wake, at].into_iter().flatten().min();
    }

    /// Finishes an item. This is the one place where outcomes are made. If the item failed, its
    /// outcome has the last reply.
    pub(super) fn finish(&mut self, now: Tick, slot: ItemSlot, result: Result<O, ItemError>) {
        let Some(entry) = self.entries.remove(slot) else { return };
        if !matches!(entry.phase, ItemPhase::InFlight(_)) {
            self.waiting_bytes = self.waiting_bytes.saturating_sub(entry.payload_bytes);
        }
        self.settled += 1;
        let took = now.since(entry.accepted);
        self.item_times.record(took.to_duration());
        let mut outcome = Outcome {
            id: Arc::clone(&entry.item.id),
            index: entry.index,
            attempts: entry.attempt(),
            calls: entry.calls,
            throttles: entry.throttles,
            tokens: entry.tokens_used,
            cost_micros: entry.cost_spent,
            took: took.to_duration(),
            label: entry.label,
            rejected: entry.rejected.filter(|_| matches!(result, Err(ItemError::Item { .. }))),
            result,
        };
        let mut line = None;
        if let Some(journal) = &self.journal {
            (outcome, line) = journal.encode(outcome);
        }
        let class = class_of(&outcome.result);
        match &mut self.journal {
            Some(journal) => {
                if let Some(outcome) = journal.push(outcome, line) {
                    self.publish(outcome);
                }
            }
            None => self.publish(outcome),
        }
        if let Some(class) = class.filter(|class| self.policy.stop_on.contains(class)) {
            self.stop(StopReason::Stopped(class));
        }
    }

    /// Counts an outcome and passes it to the reader. If there is a journal, the outcome is on
    /// disk, so that the count of finished items is what a later run finds.
    fn publish(&mut self, outcome: Outcome<O>) {
        match &outcome.result {
            Ok(_) => self.progress.done += 1,
            Err(ItemError::Item { .. }) => self.progress.failed += 1,
            Err(ItemError::Unfinished(_)) => self.progress.unfinished += 1,
        }
        let (failed, done) = (class_of(&outcome.result), outcome.result.is_ok());
        self.emit(&BatchEvent::Finished { id: &outcome.id, failed, done });
        self.outbox.push(outcome);
    }

    pub(super) fn emit(&mut self, event: &BatchEvent<'_>) {
        if let Some(observer) = &mut self.observer {
            observer.observe(event);
        }
    }

    /// Passes the progress to the reader, and the status of each scope if the reader has asked for
    /// it.
    fn report_progress(&self, now: Tick) {
        if self.outbox.set_progress(self.progress()) {
            self.outbox.set_scopes(self.accounts.all.iter().map(|account| account.status(now)).collect());
        }
    }

    fn progress(&self) -> BatchProgress {
        let mut progress = self.progress;
        progress.in_flight = self.by_task.len() as u64;
        progress.waiting = self.accounts.waiting() as u64;
        (progress.tokens, progress.cost_micros) = (self.budget.tokens, self.budget.cost_micros);
        (progress.calls, progress.rejected, progress.generations) = (0, 0, 0);
        for account in &self.accounts.all {
            let counters = account.scope.counters();
            progress.calls += counters.calls;
            progress.rejected += counters.rejected;
            progress.generations += counters.generations;
        }
        progress
    }

    fn summary(mut self) -> Summary {
        let progress = self.progress();
        let now = self.time.now();
        let scopes: Vec<_> = self.accounts.all.iter().map(|account| account.status(now)).collect();
        let mut counters = crate::scope::Counters::default();
        scopes.iter().for_each(|scope| counters.add(&scope.counters));
        Summary {
            progress,
            counters,
            scopes,
            calls: std::mem::take(&mut self.call_times),
            items: std::mem::take(&mut self.item_times),
            took: now.since(self.began).to_duration(),
            stopped: self.stopped.take(),
        }
    }
}

impl<P, S, O> Driver<P, S, O> {
    /// Ends the batch once: reports the end of cooldowns and of the batch, and closes the outbox.
    fn end(&mut self) {
        if std::mem::replace(&mut self.ended, true) {
            return;
        }
        let now = self.time.now();
        for account in 0..self.accounts.all.len() {
            self.cooled_down(now, account);
        }
        if let Some(observer) = &mut self.observer {
            observer.observe(&BatchEvent::Ended);
        }
        self.outbox.close();
    }

    /// Reports the end of a cooldown whose beginning was reported.
    pub(super) fn cooled_down(&mut self, now: Tick, account: usize) {
        let account = &mut self.accounts.all[account];
        let Some(Announced { generation, since, .. }) = account.announced.take() else { return };
        let paused = now.since(since).to_duration();
        account.paused += paused;
        account.resumed = Some(now);
        let participants = account.scope.counters().participants.last().copied().unwrap_or(0);
        account.participants += participants;
        if let Some(observer) = &mut self.observer {
            observer.observe(&BatchEvent::CooledDown {
                scope: &account.name,
                generation,
                participants,
                paused,
            });
        }
    }
}

/// Ends the batch, so that no reader waits for one that is gone.
impl<P, S, O> Drop for Driver<P, S, O> {
    fn drop(&mut self) {
        self.end();
    }
}

/// Returns the cost of a call that used `used` tokens, by the estimated cost for the estimated
/// tokens.
pub(super) fn cost_of(estimate: u64, tokens: u64, used: u64) -> u64 {
    if tokens == 0 {
        return estimate;
    }
    let cost = u128::from(estimate) * u128::from(used) / u128::from(tokens);
    u64::try_from(cost).unwrap_or(u64::MAX)
}

/// Returns the span, or one microsecond if it is zero: a timer at the present instant would fire
/// again and again.
pub(super) fn at_least_a_tick(span: Span) -> Span {
    span.max(Span::from_micros(1))
}

fn class_of<O>(result: &Result<O, ItemError>) -> Option<FailureClass> {
    match result {
        Err(ItemError::Item { class, .. }) => Some(*class),
        _ => None,
    }
}
