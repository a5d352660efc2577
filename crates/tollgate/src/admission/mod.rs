//! Admission: the loop that every call to a store goes through until it is admitted, denied or too late.
//!
//! A set in a store, a limiter and a checker each plan which buckets a call takes from ([`Planner`]). The loop queues the
//! caller behind waiters that claim a limit it takes from, asks the store, reads limits again that have changed, and waits.

mod queued;

use std::future::Future;
use std::time::Duration;

use tollgate_core::{Costs, Denial, Limit, Limits, Name, Tick};
use tollgate_store::{Key, LeaseTerm, Op, QueueFull, Step, StepOutcome, StoreError, TxnOutcome};

use queued::{AfterDenial, QueuedCaller};
pub(crate) use queued::{WaitPolicy, behind};

use crate::Event;
use crate::observe::Reporter;
use crate::store_client::StoreClient;

/// How often a call is planned again because limits have changed since it was planned.
const STALE_MAX: usize = 16;

/// Plans which buckets a call takes from, under which limits, and how much from each.
pub(crate) trait Planner: Sync {
    type Plan: Send + Sync;
    type Error: From<StoreError> + From<QueueFull> + Send;

    fn plan(&self) -> impl Future<Output = Result<Self::Plan, Self::Error>> + Send;

    /// Returns whether a plan can be used again, because limits have not changed since.
    fn is_current(&self, plan: &Self::Plan) -> bool;

    fn takes<'p>(&'p self, plan: &'p Self::Plan) -> Vec<Takes<'p>>;

    /// Reads the limits of this step's bucket again: the store has later ones.
    fn refresh(&self, plan: &Self::Plan, step: usize)
    -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Returns for how long the resources of the plan are held without a heartbeat, if it holds any that expire.
    fn term(&self, plan: &Self::Plan) -> Option<LeaseTerm>;

    /// Caches what the store reported about the buckets of the plan.
    fn observe(&self, _: &[Denial]) {}

    /// Releases cached buckets of a full namespace; returns whether asking again makes sense.
    fn make_room(&self) -> bool {
        false
    }
}

/// What a caller takes from one bucket.
#[derive(Clone, Copy)]
pub(crate) struct Takes<'k> {
    pub(crate) bucket: &'k Key,
    pub(crate) limits: &'k Limits,
    pub(crate) costs: &'k Costs,
}

impl<'k> Takes<'k> {
    pub(crate) fn step(self, store: &'k StoreClient, term: Option<LeaseTerm>) -> Step<'k> {
        // A lease that holds no resource of the bucket has nothing there that could expire.
        let term = term.filter(|_| self.holds_resources());
        store.step(self.bucket, self.limits, Op::Take { costs: self.costs, term })
    }

    pub(crate) fn holds_resources(&self) -> bool {
        self.limits.have_resources()
            && self
                .limits
                .iter()
                .zip(self.costs.amounts())
                .any(|(limit, cost)| limit.is_resource() && *cost > 0)
    }
}

/// How a call ended.
pub(crate) enum Decision<P> {
    Admitted(AdmittedPlan<P>),
    Denied(DeniedPlan<P>),
}

/// A plan whose steps were all taken.
pub(crate) struct AdmittedPlan<P> {
    pub(crate) plan: P,
    pub(crate) outcomes: Vec<StepOutcome>,
    pub(crate) term: Option<LeaseTerm>,
    pub(crate) waited: Option<Duration>,
    /// The limit that the caller waited for longest, by the first denial.
    pub(crate) limited_by: Option<Name>,
}

/// A plan of which nothing was taken, with the denial of each step.
pub(crate) struct DeniedPlan<P> {
    pub(crate) plan: P,
    pub(crate) denials: Vec<Denial>,
    pub(crate) waited: Duration,
}

/// Admits a call, waits for that as `policy` says, or denies it.
///
/// # Cancel safety
///
/// Dropping it leaves the wait queues; what the store had taken by then is as after a lost reply.
pub(crate) async fn admit<P: Planner>(
    store: &StoreClient,
    planner: &P,
    policy: WaitPolicy,
) -> Result<Decision<P::Plan>, P::Error> {
    let caller = QueuedCaller::new(&*store.backend, &store.namespace, policy);
    let mut call =
        Call { store, planner, caller, limited_by: None, refreshed: 0, has_checked_deadline: false };
    let decided = call.run().await;
    if policy.waits && matches!(decided, Ok(Decision::Denied(_))) {
        call.caller.leave().await;
    }
    decided
}

struct Call<'a, P> {
    store: &'a StoreClient,
    planner: &'a P,
    caller: QueuedCaller<'a>,
    limited_by: Option<Name>,
    refreshed: usize,
    /// Whether the store was asked if a caller behind waiters can meet its deadline.
    has_checked_deadline: bool,
}

enum Next {
    Admitted(Vec<StepOutcome>, Option<LeaseTerm>),
    Denied(Vec<Denial>),
    /// The bucket of this step has later limits.
    Refresh(usize),
    Again,
    Wait(Option<Tick>),
}

impl<P: Planner> Call<'_, P> {
    async fn run(&mut self) -> Result<Decision<P::Plan>, P::Error> {
        let mut plan = self.planner.plan().await?;
        loop {
            match self.step(&plan).await? {
                Next::Admitted(outcomes, term) => {
                    let (waited, limited_by) = (self.caller.waited(), self.limited_by.take());
                    return Ok(Decision::Admitted(AdmittedPlan { plan, outcomes, term, waited, limited_by }));
                }
                Next::Denied(denials) => {
                    let waited = self.caller.elapsed();
                    return Ok(Decision::Denied(DeniedPlan { plan, denials, waited }));
                }
                Next::Refresh(step) => self.planner.refresh(&plan, step).await?,
                Next::Again => {}
                Next::Wait(due) => self.caller.notified(due).await,
            }
            if !self.planner.is_current(&plan) {
                plan = self.planner.plan().await?;
            }
        }
    }

    async fn step(&mut self, plan: &P::Plan) -> Result<Next, P::Error> {
        let takes = self.planner.takes(plan);
        if self.caller.must_queue(&takes)? {
            return self.wait_behind(&takes).await;
        }
        let term = self.planner.term(plan);
        match self.take(&takes, term).await? {
            TxnOutcome::Done(outcomes) => Ok(Next::Admitted(outcomes, term)),
            TxnOutcome::Denied(denials) => Ok(self.denied(&takes, denials)?),
            TxnOutcome::Stale(_) if self.refreshed == STALE_MAX => Err(limits_unsettled().into()),
            TxnOutcome::Stale(step) => {
                self.refreshed += 1;
                Ok(Next::Refresh(step))
            }
            other => Err(StoreError::BadCall(format!("the store answered a take with {other:?}")).into()),
        }
    }

    async fn take(&self, takes: &[Takes<'_>], term: Option<LeaseTerm>) -> Result<TxnOutcome, StoreError> {
        let steps: Vec<Step<'_>> = takes.iter().map(|takes| takes.step(self.store, term)).collect();
        let call = self.store.transaction(&steps);
        match self.store.bounded(self.caller.apply(&call)).await {
            Err(StoreError::NamespaceFull { .. }) if self.planner.make_room() => {
                self.store.bounded(self.caller.apply(&call)).await
            }
            applied => applied,
        }
    }

    /// Waits behind the waiters ahead. A caller that gives up, or whose deadline cannot be met, gets the denial that it
    /// would get behind them.
    async fn wait_behind(&mut self, takes: &[Takes<'_>]) -> Result<Next, P::Error> {
        let after = self.caller.behind_waiters();
        let gives_up = matches!(after, AfterDenial::Deny);
        let checks_deadline =
            self.caller.has_deadline() && !std::mem::replace(&mut self.has_checked_deadline, true);
        if gives_up || checks_deadline {
            let alone = self.store.evaluate(takes).await?;
            self.planner.observe(&alone);
            // Whatever the waiters ahead wait for: when they are served may not be known yet.
            if self.caller.is_too_late(&alone) {
                return Ok(Next::Denied(alone));
            }
            let denials: Vec<Denial> = takes
                .iter()
                .zip(alone)
                .map(|(takes, denial)| self.caller.behind(takes.bucket, denial))
                .collect();
            let is_denied = gives_up || self.caller.is_too_late(&denials);
            return Ok(if is_denied { Next::Denied(denials) } else { Next::Again });
        }
        Ok(match after {
            AfterDenial::Wait(due) => Next::Wait(due),
            AfterDenial::Again | AfterDenial::Deny => Next::Again,
        })
    }

    fn denied(&mut self, takes: &[Takes<'_>], denials: Vec<Denial>) -> Result<Next, QueueFull> {
        self.planner.observe(&denials);
        if self.limited_by.is_none() {
            self.limited_by = slowest(&denials);
        }
        Ok(match self.caller.denied(takes, &denials)? {
            AfterDenial::Deny => Next::Denied(denials),
            AfterDenial::Again => Next::Again,
            AfterDenial::Wait(due) => Next::Wait(due),
        })
    }
}

/// Returns the limit that takes longest, if any of the denials is for a limit.
pub(crate) fn slowest(denials: &[Denial]) -> Option<Name> {
    let slowest = denials.iter().filter_map(Denial::limited_by).reduce(|slowest, other| {
        let is_as_slow = slowest.ready().later(other.ready()) == slowest.ready();
        if is_as_slow { slowest } else { other }
    });
    slowest.map(|status| status.limit().name().clone())
}

/// Limits change faster than they can be read.
pub(crate) fn limits_unsettled() -> StoreError {
    StoreError::Unavailable(Duration::ZERO, "limits change faster than they can be read".into())
}

impl<P> AdmittedPlan<P> {
    /// Returns the shadow limits that would have denied the call, and the soft limits that it passed, of these steps.
    pub(crate) fn warnings<'t>(&self, takes: &[Takes<'t>]) -> Vec<&'t Limit> {
        let of_step = |(takes, outcome): (&Takes<'t>, &StepOutcome)| {
            let StepOutcome::Taken(taken) = outcome else { return Vec::new() };
            takes.limits.warned(taken.warnings).collect()
        };
        takes.iter().zip(&self.outcomes).flat_map(of_step).collect()
    }

    /// Reports that the call was admitted, how long it waited, and the limits that warned.
    pub(crate) fn report(&self, reporter: &Reporter, warnings: &[&Limit]) {
        if let Some(duration) = self.waited {
            reporter.report_if_watched(&Event::Waited { limit: self.limited_by.as_ref(), duration });
        }
        reporter.report_if_watched(&Event::Allowed);
        warnings.iter().for_each(|limit| reporter.report_warning(limit));
    }
}

impl<P> DeniedPlan<P> {
    /// Reports that the call was denied, by the limit that takes longest.
    pub(crate) fn report(&self, reporter: &Reporter) {
        if reporter.is_watched() {
            reporter.report(&Event::Denied { limit: slowest(&self.denials).as_ref() });
        }
    }
}
