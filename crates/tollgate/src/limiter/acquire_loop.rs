//! Trying, and trying again: how a call becomes a lease.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Denial, Name, Tick};
use tollgate_store::{LeaseTerm, OpId, Reach, Step, StepOutcome, StoreError, Transaction, TxnOutcome};

use super::lease::{LimiterLease, StoredGrant};
use super::plan::{LimiterRequest, PlannedTake, standing};
use super::route::Route;
use super::ticket::detached_term;
use super::{ChainStatus, Limiter, LimiterError, LimiterShared};
use crate::Event;
use crate::admission::{Admission, AfterDenial, Takes, behind};
use crate::timeout::with_timeout;

/// How often a call is planned anew because limits have changed under it.
const STALE_MAX: usize = 16;

/// One call on its way.
struct AcquireLoop<'a, 'r> {
    limiter: &'a Limiter,
    request: &'r LimiterRequest<'r>,
    turn: Admission<'a>,
    /// The limit that made it wait longest, as it looked at first.
    limited_by: Option<Name>,
    stale: usize,
}

/// What is to be done next.
enum LoopStep<'a> {
    Return(LimiterLease<'a>),
    /// The config has changed, or the queue.
    Again,
    /// Until notified, and no later than this.
    Wait(Option<Tick>),
}

impl Limiter {
    /// Takes all that is requested, or says why not. Waits if the request does.
    pub(super) async fn take(&self, request: &LimiterRequest<'_>) -> Result<LimiterLease<'_>, LimiterError> {
        let shared = &*self.0;
        if shared.away.is_recent(shared.clock.now())
            && let Some(lease) = self.fall_back(request)
        {
            return Ok(lease);
        }
        let turn = Admission::new(&*shared.backend, &shared.namespace, request.patience);
        let mut trial = AcquireLoop { limiter: self, request, turn, limited_by: None, stale: 0 };
        let taken = trial.run().await;
        if let Err(LimiterError::TimedOut { .. }) = taken {
            trial.turn.leave().await;
        }
        drop(trial);
        match taken {
            Err(error) if error.is_unavailable() => {
                shared.away.note(shared.clock.now());
                self.fall_back(request).ok_or(error)
            }
            taken => taken,
        }
    }
}

impl<'a> AcquireLoop<'a, '_> {
    async fn run(&mut self) -> Result<LimiterLease<'a>, LimiterError> {
        loop {
            let plan = match self.limiter.0.plan(self.request).await {
                Err(error) if error.is_impossible() => {
                    self.shared().heed(self.request).await;
                    return Err(error);
                }
                plan => plan?,
            };
            let next = match self.turn.must_queue(|| plan.iter().map(PlannedTake::takes))? {
                true => self.wait_in_line(&plan).await?,
                false => self.ask_store(plan).await?,
            };
            match next {
                LoopStep::Return(lease) => return Ok(lease),
                LoopStep::Again => {}
                LoopStep::Wait(due) => self.turn.notified(due).await,
            }
        }
    }

    fn shared(&self) -> &'a Arc<LimiterShared> {
        &self.limiter.0
    }

    /// Others are ahead.
    async fn wait_in_line(&mut self, plan: &[PlannedTake]) -> Result<LoopStep<'a>, LimiterError> {
        if let AfterDenial::Wait(due) = self.turn.in_line() {
            return Ok(LoopStep::Wait(due));
        }
        let standing = self.shared().stand(self.request, plan).await?;
        Err(self.refuse(standing))
    }

    async fn ask_store(&mut self, plan: Vec<PlannedTake>) -> Result<LoopStep<'a>, LimiterError> {
        let shared = self.shared();
        let term = shared.term(self.request, &plan);
        let applied = match shared.apply_takes(&plan, term, Some(&self.turn)).await {
            // A bucket that a route has cannot make room for another.
            Err(StoreError::NamespaceFull { .. }) if shared.backend.reach() == Reach::Process => {
                shared.routes().clear();
                shared.apply_takes(&plan, term, Some(&self.turn)).await
            }
            applied => applied,
        };
        match applied? {
            TxnOutcome::Done(done) => Ok(LoopStep::Return(self.admit(plan, &done, term))),
            TxnOutcome::Denied(denials) => self.denied(&plan, denials),
            TxnOutcome::Stale(step) => {
                self.stale += 1;
                if self.stale > STALE_MAX {
                    let why = "limits change faster than they can be read";
                    return Err(StoreError::Unavailable(Duration::ZERO, why.into()).into());
                }
                let resource = self.request.demands[plan[step].resource].0;
                shared.routes().forget(self.request.entity, resource);
                shared.catalog.refresh(plan[step].entity(), resource);
                Ok(LoopStep::Again)
            }
            other => Err(StoreError::BadCall(format!("the store answered a take with {other:?}")).into()),
        }
    }

    fn denied(&mut self, plan: &[PlannedTake], denials: Vec<Denial>) -> Result<LoopStep<'a>, LimiterError> {
        let takes: Vec<Takes<'_>> = plan.iter().map(PlannedTake::takes).collect();
        let turned = self.turn.denied(&takes, &denials)?;
        if let AfterDenial::Deny = turned {
            return Err(self.refuse(standing(self.request, plan, denials)));
        }
        if self.limited_by.is_none() {
            let standing = standing(self.request, plan, denials);
            self.limited_by = standing.limited_by().map(|(_, status)| status.limit().name().clone());
        }
        Ok(match turned {
            AfterDenial::Wait(due) => LoopStep::Wait(due),
            AfterDenial::Again | AfterDenial::Deny => LoopStep::Again,
        })
    }

    fn refuse(&self, standing: Box<ChainStatus>) -> LimiterError {
        let slowest = standing.limited_by().map(|(_, status)| status.limit().name().clone());
        self.shared().reporter.report_if_watched(&Event::Denied { limit: slowest.as_ref() });
        if self.request.patience.waits {
            return LimiterError::TimedOut { status: standing, waited: self.turn.so_far() };
        }
        LimiterError::Denied(standing)
    }

    fn admit(
        &mut self,
        plan: Vec<PlannedTake>,
        done: &[StepOutcome],
        term: Option<LeaseTerm>,
    ) -> LimiterLease<'a> {
        let shared = self.shared();
        let waited = self.turn.waited();
        shared.pin_route(self.request, &plan);
        let stored = StoredGrant::new(shared, self.request, plan, done, term);
        let lease = LimiterLease::stored(self.limiter, stored, waited);
        if let Some(duration) = waited {
            shared.reporter.report_if_watched(&Event::Waited { limit: self.limited_by.as_ref(), duration });
        }
        shared.reporter.report_if_watched(&Event::Allowed);
        for limit in lease.remarks() {
            shared.reporter.report(&Event::Remarked { limit });
        }
        lease
    }
}

impl LimiterShared {
    /// The buckets of a route are there now: the next call need not look for them.
    fn pin_route(&self, request: &LimiterRequest<'_>, plan: &[PlannedTake]) {
        let (Some(first), [(resource, _)], None) = (plan.first(), &*request.demands, request.limits) else {
            return;
        };
        let is_here = self.backend.reach() == Reach::Process;
        let unpinned = |route: &Arc<Route>| route.pins.is_none();
        if is_here
            && self.routes().get(request.entity, resource).as_ref().is_some_and(unpinned)
            && let Some(chain) = first.chain()
        {
            self.keep_route(request.entity, resource, Arc::clone(chain));
        }
    }

    /// Takes all steps of a plan, or none, for a caller that has a turn or is a newcomer.
    pub(super) async fn apply_takes(
        &self,
        plan: &[PlannedTake],
        term: Option<LeaseTerm>,
        turn: Option<&Admission<'_>>,
    ) -> Result<TxnOutcome, StoreError> {
        let steps: Vec<Step<'_>> = plan.iter().map(|planned| planned.take(&self.namespace, term)).collect();
        let Some(turn) = turn else { return self.apply(&steps).await };
        let call = self.call(&steps);
        with_timeout(&self.clock, self.settings.timeout, turn.apply(&call)).await
    }

    /// Applies steps, as part of what is used.
    pub(super) async fn apply(&self, steps: &[Step<'_>]) -> Result<TxnOutcome, StoreError> {
        let call = self.call(steps);
        with_timeout(&self.clock, self.settings.timeout, self.backend.apply(&call)).await
    }

    fn call<'s>(&self, steps: &'s [Step<'s>]) -> Transaction<'s> {
        // A reply is only ever lost on the way from another host.
        let id = (self.backend.reach() == Reach::Fleet).then(|| OpId(self.backend.new_holder_id()));
        Transaction { id, steps, metered: true }
    }

    /// How a request would fare, behind those who wait already.
    pub(super) async fn stand(
        &self,
        request: &LimiterRequest<'_>,
        plan: &[PlannedTake],
    ) -> Result<Box<ChainStatus>, StoreError> {
        let steps: Vec<Step<'_>> = plan.iter().map(|planned| planned.take(&self.namespace, None)).collect();
        let denials = with_timeout(&self.clock, self.settings.timeout, self.backend.ask(&steps)).await?;
        let behind = plan.iter().zip(denials).map(|(planned, denial)| {
            behind(&*self.backend, &self.namespace, planned.key(), request.patience.priority, denial)
        });
        Ok(standing(request, plan, behind.collect()))
    }

    /// For how long resources are held without a heartbeat of the holder, if the plan holds any.
    pub(super) fn term(&self, request: &LimiterRequest<'_>, plan: &[PlannedTake]) -> Option<LeaseTerm> {
        if !plan.iter().any(PlannedTake::holds_resources) {
            return None;
        }
        if let Some(ttl) = request.detached {
            return Some(detached_term(ttl));
        }
        let (ttl, backend) = (self.settings.lease_ttl?, &*self.backend);
        Some(LeaseTerm { holder: self.settings.heartbeats.new_holder_id(backend), ttl })
    }
}
