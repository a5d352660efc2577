//! Trying, and trying again: how a demand on a set in a store becomes a lease.

use tollgate_core::{Costs, Demand, Denial, Name};
use tollgate_store::{LeaseTerm, Op, Reach, StepOutcome, StoreError, TxnOutcome};

use super::{InForce, STALE_MAX, StoredBacking, unsettled};
use crate::admission::{Admission, AfterDenial, Takes, WaitPolicy};
use crate::lease::Grant;
use crate::set::LimitSet;
use crate::{AcquireError, Attempt, Event, Lease};

/// One demand on its way.
struct SetAcquireLoop<'a, 'w> {
    set: &'a LimitSet,
    remote: &'a StoredBacking,
    wanted: &'w Demand,
    turn: Admission<'a>,
    /// The limit that made it wait longest, as it looked at first.
    limited_by: Option<Name>,
    stood_in_line: bool,
    stale: usize,
}

/// What it comes to, counted in the limits in force.
struct Priced {
    in_force: InForce,
    costs: Costs,
}

enum SetLoopStep<'a> {
    Admit(Lease<'a>),
    Refuse(Box<Denial>),
    Turn(AfterDenial),
}

impl LimitSet {
    /// Takes what is wanted of a set in a store, or says why not. Waits as `patience` says.
    pub(in crate::set) async fn acquire_stored<'a>(
        &'a self,
        remote: &'a StoredBacking,
        wanted: Demand,
        patience: WaitPolicy,
    ) -> Result<Attempt<Lease<'a>>, AcquireError> {
        if remote.away.is_recent(remote.clock().now())
            && let Some(lease) = self.fall_back(remote, &wanted)?
        {
            return Ok(Attempt::Admitted(lease));
        }
        let turn = Admission::new(&*remote.backend, &remote.namespace, patience);
        let (limited_by, stood_in_line, stale) = (None, false, 0);
        let mut trial =
            SetAcquireLoop { set: self, remote, wanted: &wanted, turn, limited_by, stood_in_line, stale };
        let taken = trial.run().await;
        if let Err(AcquireError::TimedOut { .. }) = taken {
            trial.turn.leave().await;
        }
        drop(trial);
        match taken {
            Err(AcquireError::Store(StoreError::Unavailable(after, why))) => {
                remote.away.note(remote.clock().now());
                let lease = self.fall_back(remote, &wanted)?;
                let error = || StoreError::Unavailable(after, why).into();
                lease.map(Attempt::Admitted).ok_or_else(error)
            }
            taken => {
                if let Err(AcquireError::QueueFull(_)) = taken {
                    self.reporter().report_if_watched(&Event::Denied { limit: None });
                }
                taken
            }
        }
    }
}

impl<'a> SetAcquireLoop<'a, '_> {
    async fn run(&mut self) -> Result<Attempt<Lease<'a>>, AcquireError> {
        self.remote.open().await?;
        let mut priced = self.price()?;
        loop {
            if !self.remote.is_in_force(&priced.in_force.limits) {
                priced = self.price()?;
            }
            let takes = takes(self.remote, &priced);
            let next = match self.turn.must_queue(|| std::iter::once(takes))? {
                true => self.wait_in_line(&priced).await?,
                false => self.ask_store(&priced).await?,
            };
            match next {
                SetLoopStep::Admit(lease) => return Ok(Attempt::Admitted(lease)),
                SetLoopStep::Refuse(denial) => return self.refuse(denial),
                SetLoopStep::Turn(AfterDenial::Wait(due)) => self.turn.notified(due).await,
                SetLoopStep::Turn(_) => {}
            }
        }
    }

    fn price(&self) -> Result<Priced, AcquireError> {
        let in_force = self.remote.in_force();
        let costs = self.remote.costs(&in_force, self.wanted, |name| self.set.skip_unknown(name))?;
        in_force.limits.impossible(&costs).map_or(Ok(()), Err)?;
        Ok(Priced { in_force, costs })
    }

    /// Others are ahead.
    async fn wait_in_line(&mut self, priced: &Priced) -> Result<SetLoopStep<'a>, AcquireError> {
        let turned = self.turn.in_line();
        let is_new = !std::mem::replace(&mut self.stood_in_line, true);
        // A caller with a deadline gets its error at once if that cannot be met, also behind others.
        if matches!(turned, AfterDenial::Deny) || is_new && matches!(turned, AfterDenial::Wait(Some(_))) {
            let alone = self.remote.ask(&priced.in_force.limits, &priced.costs).await?;
            // Whatever the waiters ahead wait for, even if that is not known yet.
            if self.turn.is_too_late(&alone) {
                return Ok(SetLoopStep::Refuse(Box::new(alone)));
            }
            let behind = self.turn.behind(&self.remote.key, alone);
            if matches!(turned, AfterDenial::Deny) || self.turn.is_too_late(&behind) {
                return Ok(SetLoopStep::Refuse(Box::new(behind)));
            }
            return Ok(SetLoopStep::Turn(AfterDenial::Again));
        }
        Ok(SetLoopStep::Turn(turned))
    }

    async fn ask_store(&mut self, priced: &Priced) -> Result<SetLoopStep<'a>, AcquireError> {
        let Priced { in_force: InForce { limits, .. }, costs } = priced;
        let term = self.term(priced);
        let step = self.remote.step(limits, Op::Take { costs, term });
        let taken = self.remote.apply_in_turn(step, &self.turn).await?;
        match taken {
            TxnOutcome::Done(done) => Ok(SetLoopStep::Admit(self.admit(priced, done.first(), term))),
            TxnOutcome::Denied(denials) => self.denied(priced, denials),
            TxnOutcome::Stale(_) => {
                self.stale += 1;
                if self.stale > STALE_MAX {
                    return Err(unsettled().into());
                }
                self.remote.learn(Some(limits)).await?;
                Ok(SetLoopStep::Turn(AfterDenial::Again))
            }
            other => Err(StoreError::BadCall(format!("the store answered a take with {other:?}")).into()),
        }
    }

    fn denied(&mut self, priced: &Priced, denials: Vec<Denial>) -> Result<SetLoopStep<'a>, AcquireError> {
        let turned = self.turn.denied(&[takes(self.remote, priced)], &denials)?;
        let Some(denial) = denials.into_iter().next() else {
            return Err(StoreError::BadCall("the store denied a take without a word".into()).into());
        };
        self.remote.hear_cooling(denial.cooling_until());
        if let AfterDenial::Deny = turned {
            return Ok(SetLoopStep::Refuse(Box::new(denial)));
        }
        if self.limited_by.is_none() {
            self.limited_by = denial.limited_by().map(|status| status.limit().name().clone());
        }
        Ok(SetLoopStep::Turn(turned))
    }

    fn refuse(&self, denial: Box<Denial>) -> Result<Attempt<Lease<'a>>, AcquireError> {
        let slowest = denial.limited_by();
        let limit = slowest.as_ref().map(|status| status.limit().name());
        self.set.reporter().report_if_watched(&Event::Denied { limit });
        Ok(Attempt::Denied(denial))
    }

    /// For how long resources are held without a heartbeat of the holder, if any are.
    fn term(&self, Priced { in_force, costs }: &Priced) -> Option<LeaseTerm> {
        let limits = in_force.limits.iter();
        let holds = limits.zip(costs.amounts()).any(|(limit, cost)| limit.is_resource() && *cost > 0);
        let ttl = self.set.lease_ttl().filter(|_| holds)?;
        let (heartbeats, backend) = (self.remote.settings.heartbeats, &*self.remote.backend);
        Some(LeaseTerm { holder: heartbeats.new_holder_id(backend), ttl })
    }

    fn admit(&self, priced: &Priced, done: Option<&StepOutcome>, term: Option<LeaseTerm>) -> Lease<'a> {
        let reporter = self.set.reporter();
        let (at, remarks) = match done {
            Some(StepOutcome::Taken(taken)) => (taken.at, taken.remarks),
            _ => (self.remote.clock().now(), 0),
        };
        let waited = self.turn.waited();
        let grant = Grant::new(self.set, self.remote, priced.in_force.clone(), term);
        let lease = Lease::there(self.set, at, priced.costs.clone(), waited, grant);
        if let Some(duration) = waited {
            reporter.report_if_watched(&Event::Waited { limit: self.limited_by.as_ref(), duration });
        }
        reporter.report_if_watched(&Event::Allowed);
        // A cooldown, which may have the place past the last bit, has nothing to remark.
        for (index, limit) in priced.in_force.limits.iter().enumerate().filter(|(_, it)| !it.is_cooldown()) {
            if remarks >> index & 1 == 1 {
                reporter.report(&Event::Remarked { limit: limit.name() });
            }
        }
        lease
    }
}

fn takes<'k>(remote: &'k StoredBacking, priced: &'k Priced) -> Takes<'k> {
    Takes { bucket: &remote.key, limits: &priced.in_force.limits, costs: &priced.costs }
}

impl StoredBacking {
    /// Whether what is taken here can be taken by other processes.
    pub(crate) fn reach(&self) -> Reach {
        self.backend.reach()
    }
}
