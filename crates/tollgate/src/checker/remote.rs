//! Checks whose counts are in a store.
//!
//! A store replaces the limits of a bucket as a whole, and a check that brings `rpm` alone must not make the key lose its
//! `tpm`. So each limit has a bucket of its own here.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Costs, Demand, Denial, Limit, Limits};
use tollgate_store::{Backend, Key, LeaseTerm, Priority, Reply, StoreError, WAITERS_MAX};

use super::Waited;
use crate::acquire::WaitOptions;
use crate::admission::{Decision, Planner, Takes, WaitPolicy, admit};
use crate::limiter::STORE_TIMEOUT;
use crate::store_client::StoreClient;
use crate::{Attempt, CheckError};

/// A checker whose counts are in a store.
pub(super) struct StoredChecker(pub(super) StoreClient);

/// What is charged to the bucket of one limit.
pub(super) struct CheckPart {
    pub(super) key: Key,
    pub(super) limits: Limits,
    pub(super) costs: Costs,
}

/// The buckets of one check. The limits come with the call, so they never change under it.
struct CheckPlanner(Vec<CheckPart>);

impl Planner for CheckPlanner {
    type Plan = ();
    type Error = CheckError;

    async fn plan(&self) -> Result<(), CheckError> {
        Ok(())
    }

    fn is_current(&self, (): &()) -> bool {
        true
    }

    fn takes<'p>(&'p self, (): &'p ()) -> Vec<Takes<'p>> {
        let takes =
            |part: &'p CheckPart| Takes { bucket: &part.key, limits: &part.limits, costs: &part.costs };
        self.0.iter().map(takes).collect()
    }

    async fn refresh(&self, (): &(), _: usize) -> Result<(), CheckError> {
        Err(StoreError::BadCall("the store knows later limits than those of the check".into()).into())
    }

    fn term(&self, (): &()) -> Option<LeaseTerm> {
        None
    }
}

/// Why a check was not charged, and how long the caller waited before that.
type CheckDenied = (Box<Denial>, Duration);

impl StoredChecker {
    pub(super) fn new(backend: Arc<dyn Backend>, namespace: &str) -> StoredChecker {
        StoredChecker(StoreClient::new(backend, namespace, STORE_TIMEOUT))
    }

    /// Returns a checker of the same counts with another store timeout.
    pub(super) fn with_timeout(&self, timeout: Duration) -> StoredChecker {
        StoredChecker(StoreClient::new(Arc::clone(&self.0.backend), Arc::clone(&self.0.namespace), timeout))
    }

    pub(super) fn check(
        &self,
        entity: &str,
        operation: &str,
        costs: &Costs,
        limits: &Limits,
        priority: Priority,
    ) -> Reply<'_, Result<Attempt<()>, CheckError>> {
        let planner = CheckPlanner(parts(entity, operation, costs, limits));
        Reply::later(async move {
            Ok(match self.charge(planner, WaitPolicy::at_once(priority)).await? {
                Ok(_) => Attempt::Admitted(()),
                Err((denial, _)) => Attempt::Denied(denial),
            })
        })
    }

    pub(super) fn check_and_wait(
        &self,
        entity: &str,
        operation: &str,
        costs: &Costs,
        limits: &Limits,
        wait: WaitOptions,
    ) -> Reply<'_, Result<Option<Waited>, CheckError>> {
        let planner = CheckPlanner(parts(entity, operation, costs, limits));
        let policy = wait.policy(self.0.clock(), WAITERS_MAX);
        Reply::later(async move {
            match self.charge(planner, policy).await? {
                Ok(waited) => Ok(waited),
                Err((denial, waited)) => Err(CheckError::TimedOut { denial, waited }),
            }
        })
    }

    /// Charges all parts or none.
    async fn charge(
        &self,
        planner: CheckPlanner,
        policy: WaitPolicy,
    ) -> Result<Result<Option<Waited>, CheckDenied>, CheckError> {
        if planner.0.is_empty() {
            return Ok(Ok(None));
        }
        match admit(&self.0, &planner, policy).await? {
            Decision::Admitted(admitted) => {
                let limit = admitted.limited_by;
                Ok(Ok(admitted.waited.map(|duration| Waited { limit, duration })))
            }
            Decision::Denied(denied) => {
                let denial = Denial::joined(&denied.denials);
                let denial = denial.ok_or_else(|| StoreError::BadCall("the store denied no limit".into()))?;
                Ok(Err((Box::new(denial), denied.waited)))
            }
        }
    }
}

/// Returns a part for each limit that something is asked of.
pub(super) fn parts(entity: &str, operation: &str, costs: &Costs, limits: &Limits) -> Vec<CheckPart> {
    let part = |(index, limit): (usize, &Limit)| {
        // The name of a limit has no `/`, so everything before the last one is the operation.
        let key = Key::new(&[entity, &format!("{operation}/{}", limit.name())]);
        let limits = Limits::new([limit.clone()]).expect("one valid limit is a set");
        let demand: Demand = [(limit.name().as_str(), costs.amount(index))].into_iter().collect();
        let costs = limits.resolve(&demand, |_| Ok(())).expect("it was resolved before");
        CheckPart { key, limits, costs }
    };
    limits.iter().enumerate().filter(|(index, _)| costs.takes(*index)).map(part).collect()
}
