//! Changes to a set in a store, for all programs that share it.

use tollgate_catalog::SharedSet;
use tollgate_core::{Costs, Limit, Limits, LimitsError, Span, Usage};
use tollgate_store::records::RecordsError;
use tollgate_store::{Freed, Op, StoreError, TxnOutcome};

use super::{STALE_MAX, StoredBacking};
use crate::ReplaceError;
use crate::admission::limits_unsettled;

impl StoredBacking {
    /// Puts a limit in force in place of the one of the same name.
    pub(in crate::set) async fn replace(&self, limit: Limit) -> Result<(), ReplaceError> {
        self.change(|set| set.replacing(limit.clone())).await
    }

    /// Removes the limit of a name, for all programs.
    pub(in crate::set) async fn remove(&self, name: Box<str>) -> Result<(), ReplaceError> {
        self.change(|set| set.removing(&name)).await
    }

    /// Changes the record of the set and puts its limits in force, both at once.
    async fn change(
        &self,
        change: impl Fn(&SharedSet) -> Result<SharedSet, LimitsError>,
    ) -> Result<(), ReplaceError> {
        self.open().await?;
        let mut has_looked = false;
        for _ in 0..STALE_MAX {
            let before = self.known().lock().set.clone();
            let after = match change(&before) {
                Ok(after) => after,
                // What is cached may be out of date.
                Err(_) if !has_looked => {
                    self.learn(None).await?;
                    has_looked = true;
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let limits = after.in_force();
            if self.put_in_force(&limits, &before, &after).await? {
                self.cache(after);
                self.store.backend.wait_queues().notify(&Freed::all(&self.store.namespace, &self.key));
                return Ok(());
            }
            self.learn(Some(&limits)).await?;
        }
        Err(limits_unsettled().into())
    }

    /// Writes the record and takes nothing under its limits, which puts them in force. `false` if something was changed
    /// since the record was read.
    async fn put_in_force(
        &self,
        limits: &Limits,
        before: &SharedSet,
        after: &SharedSet,
    ) -> Result<bool, StoreError> {
        let costs = Costs::none(limits.len());
        let steps = [self.step(limits, Op::Take { costs: &costs, term: None })];
        let call = self.store.transaction(&steps);
        let writes = [after.write_after(before)];
        match self.store.bounded(self.store.backend.apply_with(&call, &writes)).await {
            Ok(TxnOutcome::Stale(_)) | Err(RecordsError::Failed(_)) => Ok(false),
            Ok(_) => Ok(true),
            Err(RecordsError::Store(error)) => Err(error),
            Err(other) => Err(StoreError::BadCall(other.to_string())),
        }
    }

    /// Begins a cooldown, or extends one. Returns whether this process did not know of it.
    pub(in crate::set) async fn cool_down(&self, span: Span) -> Result<bool, StoreError> {
        let limits = self.in_force().limits;
        let (now, none) = (self.clock().now(), Costs::none(limits.len()));
        let charged =
            |limit: &Limit| if limit.is_cooldown() { span.as_micros().saturating_add(1) } else { 0 };
        let used: Vec<u64> = limits.iter().map(charged).collect();
        let usage = Usage { at: now, reserved: &none, used: &used, holder: None };
        self.store.apply(&[self.step(&limits, Op::Settle(usage))]).await?;
        let until = (now + span).as_micros();
        Ok(self.cooling.fetch_max(until, std::sync::atomic::Ordering::Relaxed) < until)
    }

    /// Ends a cooldown before its time.
    pub(in crate::set) async fn end_cool_down(&self) -> Result<(), StoreError> {
        let limits = self.in_force().limits;
        let credit = cooldown_only(&limits);
        self.store.apply(&[self.step(&limits, Op::TopUp(&credit))]).await?;
        self.cache_cooldown(None);
        Ok(())
    }
}

fn cooldown_only(limits: &Limits) -> Costs {
    Costs::none(limits.len()).of_cooldown(limits, 1)
}
