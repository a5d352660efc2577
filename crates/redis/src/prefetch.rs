//! Prefetch: taking portions from the server for the prefetcher, and giving them back.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Tick;
use tollgate_store::prefetch::{Portion, PortionOutcome, PortionSource, ServeMode, UsageDelta, giving_back};
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::{Op, OwnedTransaction, QueuePlace, Step, StoreError, TxnOutcome};

use crate::call_log::CallProgress;
use crate::inner::{RedisInner, without_tests};

impl RedisInner {
    /// Applies a call by what is held ahead if that can be done, or on the server.
    pub(crate) async fn apply_prefetched(
        &self,
        call: &OwnedTransaction,
        writes: &[Write],
        remembered: Duration,
        place: &QueuePlace,
    ) -> Result<TxnOutcome, RecordsError> {
        if !self.prefetcher.is_on() {
            return self.apply_in_turn(call, writes, remembered, &[], place).await;
        }
        match self.calls.get(call.id) {
            Some(CallProgress::Served(done)) => return Ok(TxnOutcome::Done(done)),
            Some(CallProgress::Sent) => {}
            None => {
                let steps: Vec<Step<'_>> = call.steps().collect();
                // An undone take stays an event, as on the server.
                if let Some(done) = self.prefetcher.serve(&steps, serve_mode(call, writes, place), 0).await? {
                    place.rank.into_iter().for_each(|rank| drop(self.leave_queues(rank)));
                    self.calls.note(call.id, CallProgress::Served(done.clone()));
                    return Ok(TxnOutcome::Done(done));
                }
            }
        }
        let outcome = self.apply_in_turn(call, writes, remembered, &[], place).await;
        if matches!(&outcome, Ok(TxnOutcome::Denied(denials)) if denials.iter().any(|it| it.claimed() != 0)) {
            // Waiters of other processes are ahead, and may be short of what is held here.
            for step in call.steps() {
                self.prefetcher.return_bucket(step.place.namespace, step.place.key).await;
            }
        }
        if matches!(outcome, Err(RecordsError::Store(StoreError::Unavailable(..)))) {
            self.calls.note(call.id, CallProgress::Sent);
        }
        outcome
    }

    /// Finds out in the background what came of a portion whose answer was lost. If it was taken it is given back; what
    /// was used before it, and was to be counted with it, is counted in any case.
    fn resolve_portion(&self, portion: Portion) {
        let portion = Arc::new(portion);
        self.in_background(move |inner| async move {
            let attempt = || {
                let (inner, portion) = (Arc::clone(&inner), Arc::clone(&portion));
                async move {
                    inner.apply_with_usage(&portion.call, &portion.used).await.map_err(without_tests)
                }
            };
            let is_taken = match inner.background.until_answered(attempt).await {
                Ok(outcome) => matches!(outcome, TxnOutcome::Done(_)),
                // Whether it was taken is unknown. What was taken fills up again by itself.
                Err(StoreError::Unavailable(..)) => return,
                Err(_) => false,
            };
            let steps = portion.call.steps().zip(&portion.used).zip(&portion.asked);
            for ((step, used), asked) in steps {
                let (held, mut used) = match step.op {
                    Op::Take { costs, .. } if is_taken => (costs.amounts().to_vec(), UsageDelta::default()),
                    _ => (vec![0; step.place.limits.len()], used.clone()),
                };
                used.remove_take(asked);
                if let Some(call) = giving_back(&step.place, &held, inner.now()) {
                    inner.settle_prefetched(call, used);
                }
            }
        });
    }
}

impl PortionSource for RedisInner {
    // A portion is counted by the general script, which costs more than the one for meters.
    const TAKES_PARTIAL: bool = false;

    fn now(&self) -> Tick {
        self.service.time.clock().now()
    }

    async fn take_portion(&self, portion: &Portion) -> PortionOutcome {
        let outcome = self.apply_with_usage(&portion.call, &portion.used).await;
        match outcome.map_err(without_tests) {
            Ok(TxnOutcome::Done(done)) => PortionOutcome::Taken(done),
            Err(error @ StoreError::Unavailable(..)) => {
                self.resolve_portion(portion.clone());
                PortionOutcome::Unknown(error)
            }
            // Whatever else is wrong is reported by the call itself.
            _ => PortionOutcome::NotTaken,
        }
    }

    async fn give_back(&self, call: OwnedTransaction, used: UsageDelta) {
        match self.apply_with_usage(&call, std::slice::from_ref(&used)).await {
            Ok(outcome) => self.notify_freed(&call, &outcome),
            Err(_) => self.settle_prefetched(call, used),
        }
    }
}

fn serve_mode(call: &OwnedTransaction, writes: &[Write], place: &QueuePlace) -> ServeMode {
    if !call.is_metered() || !writes.is_empty() {
        ServeMode::Bypass
    } else if place.rank.is_some() {
        ServeMode::HeldOnly
    } else {
        ServeMode::Portion
    }
}
