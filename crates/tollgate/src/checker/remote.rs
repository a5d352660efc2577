//! Checks whose counts are in a store.
//!
//! A store swaps the limits of a bucket whole, and a check that brings `rpm` alone must not make the key forget its
//! `tpm`. So each limit has a bucket of its own here.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Costs, Demand, Denial, Limit, Limits, Name};
use tollgate_store::{
    Backend, BucketRef, Key, Op, OpId, Priority, Reach, Reply, Step, StoreError, Transaction, TxnOutcome,
    WAITERS_MAX,
};

use super::Waited;
use crate::acquire::WaitOptions;
use crate::admission::{Admission, AfterDenial, Takes, WaitPolicy};
use crate::limiter::STORE_TIMEOUT;
use crate::timeout::with_timeout;
use crate::{Attempt, CheckError};

/// Where the counts are.
pub(super) struct StoredChecker {
    pub(super) backend: Arc<dyn Backend>,
    pub(super) namespace: Box<str>,
    /// How long the store may take to answer.
    pub(super) timeout: Duration,
}

/// What is charged to the bucket of one limit.
pub(super) struct CheckPart {
    pub(super) key: Key,
    pub(super) limits: Limits,
    pub(super) costs: Costs,
}

impl CheckPart {
    fn takes(&self) -> Takes<'_> {
        Takes { bucket: &self.key, limits: &self.limits, costs: &self.costs }
    }
}

/// Why it was not charged, and how long the caller waited before that.
type CheckDenied = (Box<Denial>, Duration);

impl StoredChecker {
    pub(super) fn new(backend: Arc<dyn Backend>, namespace: &str) -> StoredChecker {
        StoredChecker { backend, namespace: namespace.into(), timeout: STORE_TIMEOUT }
    }

    pub(super) fn check(
        &self,
        entity: &str,
        operation: &str,
        costs: &Costs,
        limits: &Limits,
        priority: Priority,
    ) -> Reply<'_, Result<Attempt<()>, CheckError>> {
        let parts = parts(entity, operation, costs, limits);
        Reply::later(async move {
            Ok(match self.charge(&parts, WaitPolicy::at_once(priority)).await? {
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
        let parts = parts(entity, operation, costs, limits);
        let patience = wait.policy(self.backend.clock(), WAITERS_MAX);
        Reply::later(async move {
            match self.charge(&parts, patience).await? {
                Ok(waited) => Ok(waited),
                Err((denial, waited)) => Err(CheckError::TimedOut { denial, waited }),
            }
        })
    }

    /// Charges all parts or none.
    async fn charge(
        &self,
        parts: &[CheckPart],
        patience: WaitPolicy,
    ) -> Result<Result<Option<Waited>, CheckDenied>, CheckError> {
        if parts.is_empty() {
            return Ok(Ok(None));
        }
        let mut limited_by = None;
        let mut turn = Admission::new(&*self.backend, &self.namespace, patience);
        let takes: Vec<Takes<'_>> = parts.iter().map(CheckPart::takes).collect();
        loop {
            let (turned, denials) = if turn.must_queue(|| takes.iter().copied())? {
                match turn.in_line() {
                    AfterDenial::Deny => (AfterDenial::Deny, self.ask(parts, &turn).await?),
                    turned => (turned, Vec::new()),
                }
            } else {
                match self.apply(parts, &turn).await? {
                    TxnOutcome::Done(_) => {
                        let waited = turn.waited().map(|duration| Waited { limit: limited_by, duration });
                        return Ok(Ok(waited));
                    }
                    TxnOutcome::Denied(denials) => {
                        limited_by = limited_by.or_else(|| slowest(&denials));
                        (turn.denied(&takes, &denials)?, denials)
                    }
                    other => return Err(odd(&other).into()),
                }
            };
            match turned {
                AfterDenial::Deny => {
                    let denial = Denial::joined(&denials).ok_or_else(|| odd(&TxnOutcome::Denied(denials)))?;
                    let waited = turn.so_far();
                    turn.leave().await;
                    return Ok(Err((Box::new(denial), waited)));
                }
                AfterDenial::Again => {}
                AfterDenial::Wait(due) => turn.notified(due).await,
            }
        }
    }

    fn steps<'s>(&'s self, parts: &'s [CheckPart]) -> Vec<Step<'s>> {
        let step = |part: &'s CheckPart| {
            let place = BucketRef { namespace: &self.namespace, key: &part.key, limits: &part.limits };
            Step { place, op: Op::Take { costs: &part.costs, term: None } }
        };
        parts.iter().map(step).collect()
    }

    async fn apply(&self, parts: &[CheckPart], turn: &Admission<'_>) -> Result<TxnOutcome, StoreError> {
        // A reply is only ever lost on the way from another host.
        let id = (self.backend.reach() == Reach::Fleet).then(|| OpId(self.backend.new_holder_id()));
        let call = Transaction { id, steps: &self.steps(parts), metered: false };
        with_timeout(self.backend.clock(), self.timeout, turn.apply(&call)).await
    }

    async fn ask(&self, parts: &[CheckPart], turn: &Admission<'_>) -> Result<Vec<Denial>, StoreError> {
        let steps = self.steps(parts);
        let denials = with_timeout(self.backend.clock(), self.timeout, self.backend.ask(&steps)).await?;
        Ok(parts.iter().zip(denials).map(|(part, denial)| turn.behind(&part.key, denial)).collect())
    }
}

/// One for each limit that something is asked of.
pub(super) fn parts(entity: &str, operation: &str, costs: &Costs, limits: &Limits) -> Vec<CheckPart> {
    let part = |(index, limit): (usize, &Limit)| {
        // The name of a limit has no `/`, so whatever stands before the last one is the operation.
        let key = Key::new(&[entity, &format!("{operation}/{}", limit.name())]);
        let limits = Limits::new([limit.clone()]).expect("one valid limit is a set");
        let demand: Demand = [(limit.name().as_str(), costs.amount(index))].into_iter().collect();
        let costs = limits.resolve(&demand, |_| Ok(())).expect("it was resolved before");
        CheckPart { key, limits, costs }
    };
    limits.iter().enumerate().filter(|(index, _)| costs.takes(*index)).map(part).collect()
}

/// The limit that takes longest.
fn slowest(denials: &[Denial]) -> Option<Name> {
    Some(Denial::joined(denials)?.limited_by()?.limit().name().clone())
}

fn odd(answer: &TxnOutcome) -> StoreError {
    StoreError::BadCall(format!("the store answered a check with {answer:?}"))
}
