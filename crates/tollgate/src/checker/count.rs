//! Counts of checks: looked at, charged without a check, and given back.

use tollgate_core::{AsDemand, Bucket, CostSink as _, Costs, Limits, Status, Tick, Usage};
use tollgate_store::{Key, Op, Priority, Reply, StoreError};

use super::remote::{CheckPart, StoredChecker, parts};
use super::{Checker, CheckerBacking, LocalChecker};
use crate::CheckError;
use crate::admission::Takes;

/// A change of counts without a check.
#[derive(Clone, Copy)]
enum CountChange {
    Charge,
    Refund,
}

impl Checker {
    /// How these limits stand for what `entity` does by `operation`. Changes nothing.
    ///
    /// ```
    /// use tollgate::{demand, Checker, Limit, Limits};
    ///
    /// let checker = Checker::new();
    /// let limits = Limits::new([Limit::per_minute("tpm", 1_000)])?;
    /// let left = || checker.peek("my_key", "chat", &limits).wait().map(|statuses| statuses[0].available());
    /// assert_eq!(left()?, 1_000);
    /// assert!(checker.try_acquire("my_key", "chat", &demand! { tpm: 400 }, &limits).wait()?.is_admitted());
    /// // It was more in the end, and cannot be refused any more; or less.
    /// checker.charge("my_key", "chat", &demand! { tpm: 700 }, &limits).wait()?;
    /// assert_eq!(left()?, -100);
    /// checker.refund("my_key", "chat", &demand! { tpm: 300 }, &limits).wait()?;
    /// assert_eq!(left()?, 200);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// A resource among the limits, or a store that did not answer.
    pub fn peek<'a>(
        &'a self,
        entity: &str,
        operation: &str,
        limits: &Limits,
    ) -> Reply<'a, Result<Vec<Status>, CheckError>> {
        if let Err(error) = super::check_kinds(limits) {
            return Reply::ready(Err(error));
        }
        match &self.home {
            CheckerBacking::Local(here) => Reply::ready(Ok(here.peek(entity, operation, limits))),
            CheckerBacking::Stored(remote) => {
                let parts = parts(entity, operation, &all_of(limits), limits);
                Reply::later(async move { Ok(remote.peek(&parts).await?) })
            }
        }
    }

    /// Charges `costs` whether they fit or not: for what has happened already. What is beyond a limit is debt, which the
    /// next checks wait for.
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, it has happened, or been sent to the store.
    ///
    /// # Errors
    ///
    /// Costs without a limit, a resource among the limits, or a store that did not answer.
    pub fn charge<'a>(
        &'a self,
        entity: &str,
        operation: &str,
        costs: &impl AsDemand,
        limits: &Limits,
    ) -> Reply<'a, Result<(), CheckError>> {
        self.change(CountChange::Charge, entity, operation, costs, limits)
    }

    /// Gives back what a check has charged and was not used, up to what is full.
    ///
    /// # Cancel safety
    ///
    /// As [`charge`](Checker::charge).
    ///
    /// # Errors
    ///
    /// As [`charge`](Checker::charge).
    pub fn refund<'a>(
        &'a self,
        entity: &str,
        operation: &str,
        costs: &impl AsDemand,
        limits: &Limits,
    ) -> Reply<'a, Result<(), CheckError>> {
        self.change(CountChange::Refund, entity, operation, costs, limits)
    }

    fn change<'a>(
        &'a self,
        change: CountChange,
        entity: &str,
        operation: &str,
        costs: &impl AsDemand,
        limits: &Limits,
    ) -> Reply<'a, Result<(), CheckError>> {
        // More than a capacity never passes a check, but may have been used.
        let known = |name: &str| Err(limits.unknown(name));
        let resolved = super::check_kinds(limits).and_then(|()| Ok(limits.resolve(costs, known)?));
        let costs = match resolved {
            // A call that was not made is neither charged nor given back.
            Ok(costs) => costs.named(),
            Err(error) => return Reply::ready(Err(error)),
        };
        match &self.home {
            CheckerBacking::Local(here) => {
                Reply::ready(here.change(change, entity, operation, &costs, limits))
            }
            CheckerBacking::Stored(remote) => {
                let parts = parts(entity, operation, &costs, limits);
                Reply::eager(async move { Ok(remote.change(change, &parts).await?) })
            }
        }
    }
}

impl LocalChecker {
    fn peek(&self, entity: &str, operation: &str, limits: &Limits) -> Vec<Status> {
        match self.space.find(&Key::new(&[entity, operation])) {
            Some(cell) => cell.peek_under(&self.clock, limits),
            None => {
                let now = self.clock.now();
                Bucket::fresh(limits, now).peek(limits, now)
            }
        }
    }

    fn change(
        &self,
        change: CountChange,
        entity: &str,
        operation: &str,
        costs: &Costs,
        limits: &Limits,
    ) -> Result<(), CheckError> {
        let (now, parts) = (self.clock.now(), [entity, operation]);
        let cell = match change {
            // Held from here on, so that it is not swept out before something is charged to it.
            CountChange::Charge => Some(self.space.cell(&Key::new(&parts), limits, now)?),
            CountChange::Refund => self.space.find(&Key::new(&parts)),
        };
        let Some(cell) = cell else { return Ok(()) };
        // Taking nothing puts the limits of the call in force; whether others wait is no matter.
        let none = Costs::none(limits.len());
        drop(self.space.try_take(&self.clock, &parts, limits, &none, Priority::default())?);
        match change {
            CountChange::Charge => cell.settle(&self.clock, limits, &charged(now, &none, costs)),
            CountChange::Refund => cell.top_up(&self.clock, limits, costs),
        }
        Ok(())
    }
}

impl StoredChecker {
    async fn peek(&self, parts: &[CheckPart]) -> Result<Vec<Status>, StoreError> {
        let nothing: Vec<Costs> = parts.iter().map(|part| Costs::none(part.limits.len())).collect();
        let takes = parts.iter().zip(&nothing);
        let takes = takes.map(|(part, costs)| Takes { bucket: &part.key, limits: &part.limits, costs });
        let denials = self.0.evaluate(&takes.collect::<Vec<_>>()).await?;
        Ok(denials.iter().flat_map(|denial| denial.statuses().collect::<Vec<_>>()).collect())
    }

    async fn change(&self, change: CountChange, parts: &[CheckPart]) -> Result<(), StoreError> {
        let (now, none) = (self.0.clock().now(), Costs::none(1));
        let steps = parts.iter().map(|CheckPart { key, limits, costs }| {
            let op = match change {
                CountChange::Charge => Op::Settle(charged(now, &none, costs)),
                CountChange::Refund => Op::TopUp(costs),
            };
            self.0.step(key, limits, op)
        });
        self.0.apply(&steps.collect::<Vec<_>>()).await.map(drop)
    }
}

/// Costs as what was used beyond nothing.
fn charged<'u>(at: Tick, none: &'u Costs, costs: &'u Costs) -> Usage<'u> {
    Usage { at, reserved: none, used: costs.amounts(), holder: None }
}

/// Something of every limit.
fn all_of(limits: &Limits) -> Costs {
    let mut costs = Costs::none(limits.len());
    (0..limits.len()).for_each(|index| costs.take(index, 0));
    costs
}
