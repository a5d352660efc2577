//! Trying, and trying again: how a call becomes a lease.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{Denial, Name, Ready, Span, Tick};
use tollgate_store::{Applied, Call, Done, Key, OpId, Reach, Step, StoreError, Term, Ticket};

use super::lease::{Lease, Stored};
use super::plan::{Planned, Request, standing};
use super::route::Route;
use super::ticket::detached_term;
use super::within::within;
use super::{AcquireError, Limiter, Shared, Standing};
use crate::Event;

/// How often a call is planned anew because limits have changed under it.
const STALE_MAX: usize = 16;

/// How soon one who waits looks again where others give back that cannot poke it, at first and at last. Where processes
/// share the lines, only those cannot who died.
const LOOK_AGAIN: [Span; 2] = [Span::from_millis(5), Span::from_millis(200)];

/// One call on its way.
struct Trial<'a, 'r> {
    limiter: &'a Limiter,
    request: &'r Request<'r>,
    since: Tick,
    ticket: Option<Ticket<'a>>,
    /// The limit that made it wait longest, as it looked at first.
    limited_by: Option<Name>,
    looks: u32,
    stale: usize,
}

/// What is to be done next.
enum Next<'a> {
    Return(Lease<'a>),
    /// The config has changed, or the line.
    Again,
    /// Until poked, and no later than this.
    Wait(Option<Tick>),
}

impl Limiter {
    /// Takes all that is requested, or says why not. Waits if the request does.
    pub(super) async fn take(&self, request: &Request<'_>) -> Result<Lease<'_>, AcquireError> {
        let since = self.0.clock.now();
        if let Some(lease) = self.0.skip_store(since).and_then(|()| self.fall_back(request)) {
            return Ok(lease);
        }
        let mut trial =
            Trial { limiter: self, request, since, ticket: None, limited_by: None, looks: 0, stale: 0 };
        let taken = trial.run().await;
        drop(trial);
        match taken {
            Err(error) if error.is_unavailable() => {
                self.0.note_absence();
                self.fall_back(request).ok_or(error)
            }
            taken => taken,
        }
    }
}

impl<'a> Trial<'a, '_> {
    async fn run(&mut self) -> Result<Lease<'a>, AcquireError> {
        loop {
            let plan = self.limiter.0.plan(self.request).await?;
            let next = match self.is_held_up(&plan)? {
                true => self.wait_in_line(&plan).await?,
                false => self.ask_store(plan).await?,
            };
            match next {
                Next::Return(lease) => return Ok(lease),
                Next::Again => {}
                Next::Wait(due) => {
                    if let Some(ticket) = &self.ticket {
                        ticket.poked(&self.limiter.0.clock, due).await;
                    }
                }
            }
        }
    }

    fn shared(&self) -> &'a Arc<Shared> {
        &self.limiter.0
    }

    /// Whether somebody waits whom this one may not overtake. One who waits then stands in line.
    fn is_held_up(&mut self, plan: &[Planned]) -> Result<bool, AcquireError> {
        let shared = self.shared();
        let room = shared.backend.room();
        if self.ticket.is_none() {
            let now = shared.clock.now();
            let ahead = |planned: &Planned| {
                room.is_ahead(&shared.namespace, planned.key(), self.request.priority, now).is_some()
            };
            if room.is_quiet() || !plan.iter().any(ahead) {
                return Ok(false);
            }
            if !self.request.waits {
                return Ok(true);
            }
        }
        let ticket = self.ticket.get_or_insert_with(|| room.ticket(self.request.priority, self.since));
        let keys: Vec<Key> = plan.iter().map(|planned| planned.key().clone()).collect();
        // In this order: what happens from here on pokes, what happened before is seen.
        ticket.listen();
        Ok(!ticket.may_ask(&shared.namespace, &keys, shared.settings.waiters_max)?)
    }

    /// Others are ahead.
    async fn wait_in_line(&mut self, plan: &[Planned]) -> Result<Next<'a>, AcquireError> {
        let shared = self.shared();
        let now = shared.clock.now();
        if self.request.waits && self.request.deadline.is_none_or(|deadline| now < deadline) {
            return Ok(Next::Wait(self.request.deadline));
        }
        let standing = shared.stand(self.request, plan).await?;
        Err(self.refuse(standing, now))
    }

    async fn ask_store(&mut self, plan: Vec<Planned>) -> Result<Next<'a>, AcquireError> {
        let shared = self.shared();
        let term = shared.term(self.request, &plan);
        let applied = match shared.apply_takes(&plan, term).await {
            // A bucket that a route has cannot make room for another.
            Err(StoreError::NamespaceFull { .. }) if shared.backend.reach() == Reach::Process => {
                shared.routes.clear();
                shared.apply_takes(&plan, term).await
            }
            applied => applied,
        };
        match applied? {
            Applied::Done(done) => Ok(Next::Return(self.admit(plan, &done, term))),
            Applied::Denied(denials) => self.denied(&plan, denials),
            Applied::Stale(step) => {
                self.stale += 1;
                if self.stale > STALE_MAX {
                    let why = "limits change faster than they can be read";
                    return Err(StoreError::Unavailable(Duration::ZERO, why.into()).into());
                }
                let resource = self.request.demands[plan[step].resource].0;
                shared.routes.forget(self.request.entity, resource);
                shared.catalog.refresh(plan[step].entity(), resource);
                Ok(Next::Again)
            }
            other => Err(StoreError::BadCall(format!("the store answered a take with {other:?}")).into()),
        }
    }

    fn denied(&mut self, plan: &[Planned], denials: Vec<Denial>) -> Result<Next<'a>, AcquireError> {
        let shared = self.shared();
        let now = shared.clock.now();
        let ready = denials.iter().map(Denial::ready).fold(Ready::Now, Ready::later);
        // Only for the slowest: whoever cannot use the others before then must not keep them from those who can.
        let slowest: Vec<&Key> = plan
            .iter()
            .zip(&denials)
            .filter(|(_, denial)| denial.ready() == ready)
            .map(|(planned, _)| planned.key())
            .collect();
        let earliest = denials.iter().map(Denial::earliest).fold(Ready::Now, Ready::later);
        if !self.request.waits || self.is_in_vain(earliest, now) {
            return Err(self.refuse(standing(self.request, plan, denials), now));
        }
        if self.limited_by.is_none() {
            let standing = standing(self.request, plan, denials);
            self.limited_by = standing.limited_by().map(|(_, status)| status.limit().name().clone());
        }
        let room = shared.backend.room();
        let ticket = self.ticket.get_or_insert_with(|| room.ticket(self.request.priority, self.since));
        let is_new = ticket.stand(&shared.namespace, slowest.iter().copied(), shared.settings.waiters_max)?;
        ticket.stand_only(&shared.namespace, &slowest);
        if is_new {
            // What was given back before it stood in line poked nobody.
            return Ok(Next::Again);
        }
        Ok(Next::Wait(self.look_again(ready, now)))
    }

    fn is_in_vain(&self, earliest: Ready, now: Tick) -> bool {
        self.request.deadline.is_some_and(|deadline| match earliest {
            Ready::At(earliest) => earliest > deadline || deadline <= now,
            Ready::Now | Ready::Unknown => deadline <= now,
        })
    }

    /// When to ask again if nobody pokes: when it is said to pass, at the deadline, and, where others take and give back
    /// unseen, ever more seldom in between. Not at the same instants as other processes.
    fn look_again(&mut self, ready: Ready, now: Tick) -> Option<Tick> {
        let ready = match ready {
            Ready::At(tick) => Some(tick.max(now)),
            Ready::Now => Some(now),
            Ready::Unknown => None,
        };
        let look = (self.shared().backend.reach() != Reach::Process).then(|| {
            let [first, last] = LOOK_AGAIN.map(Span::as_micros);
            let first = if self.shared().backend.room().is_shared() { last } else { first };
            let pause = first.saturating_mul(1 << self.looks.min(10)).min(last);
            self.looks += 1;
            now + Span::from_micros(pause - self.shared().jitter(pause / 2))
        });
        [ready, look, self.request.deadline].into_iter().flatten().min()
    }

    fn refuse(&self, standing: Box<Standing>, now: Tick) -> AcquireError {
        let slowest = standing.limited_by().map(|(_, status)| status.limit().name().clone());
        self.shared().reporter.report_if_watched(&Event::Denied { limit: slowest.as_ref() });
        if self.request.waits {
            return AcquireError::TimedOut { standing, waited: now.since(self.since).to_duration() };
        }
        AcquireError::Refused(standing)
    }

    fn admit(&mut self, plan: Vec<Planned>, done: &[Done], term: Option<Term>) -> Lease<'a> {
        let shared = self.shared();
        let now = shared.clock.now();
        let waited = self.ticket.is_some().then(|| now.since(self.since).to_duration());
        shared.pin_route(self.request, &plan);
        let stored = Stored::new(shared, self.request, plan, done, term);
        let lease = Lease::stored(self.limiter, stored, waited);
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

impl Shared {
    /// The buckets of a route are there now: the next call need not look for them.
    fn pin_route(&self, request: &Request<'_>, plan: &[Planned]) {
        let (Some(first), [(resource, _)], None) = (plan.first(), &*request.demands, request.limits) else {
            return;
        };
        let is_here = self.backend.reach() == Reach::Process;
        let unpinned = |route: &Arc<Route>| route.pins.is_none();
        if is_here
            && self.routes.get(request.entity, resource).as_ref().is_some_and(unpinned)
            && let Some(chain) = first.chain()
        {
            self.keep_route(request.entity, resource, Arc::clone(chain));
        }
    }

    /// Takes all steps of a plan, or none.
    pub(super) async fn apply_takes(
        &self,
        plan: &[Planned],
        term: Option<Term>,
    ) -> Result<Applied, StoreError> {
        let steps: Vec<Step<'_>> = plan.iter().map(|planned| planned.take(&self.namespace, term)).collect();
        self.apply(&steps).await
    }

    /// Applies steps, as part of what is used.
    pub(super) async fn apply(&self, steps: &[Step<'_>]) -> Result<Applied, StoreError> {
        // A reply is only ever lost on the way from another host.
        let id = (self.backend.reach() == Reach::Fleet).then(|| OpId(self.backend.new_holder()));
        let call = Call { id, steps, metered: true };
        within(&self.clock, self.settings.timeout, self.backend.apply(&call)).await
    }

    /// How a request would fare, behind those who wait already.
    pub(super) async fn stand(
        &self,
        request: &Request<'_>,
        plan: &[Planned],
    ) -> Result<Box<Standing>, StoreError> {
        let now = self.clock.now();
        let steps: Vec<Step<'_>> = plan.iter().map(|planned| planned.take(&self.namespace, None)).collect();
        let denials = within(&self.clock, self.settings.timeout, self.backend.ask(&steps)).await?;
        let behind = plan.iter().zip(denials).map(|(planned, denial)| {
            let ahead = self.backend.room().is_ahead(&self.namespace, planned.key(), request.priority, now);
            denial.not_before(ahead.map_or(Ready::Now, |due| due.map_or(Ready::Unknown, Ready::At)))
        });
        Ok(standing(request, plan, behind.collect()))
    }

    /// For how long resources are held if nothing is heard of the holder, if the plan holds any.
    fn term(&self, request: &Request<'_>, plan: &[Planned]) -> Option<Term> {
        if !plan.iter().any(Planned::holds_resources) {
            return None;
        }
        if let Some(ttl) = request.detached {
            return Some(detached_term(ttl));
        }
        Some(Term { holder: self.backend.new_holder(), ttl: self.settings.lease_ttl? })
    }
}
