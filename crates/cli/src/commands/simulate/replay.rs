//! Replay of calls, on a manual clock that is set to the time of each.

use std::cmp::Reverse;
use std::collections::hash_map::Entry;
use std::collections::{BinaryHeap, HashMap};
use std::sync::Arc;

use foldhash::fast::RandomState;
use tollgate::Attempt;
use tollgate::catalog::CatalogError;
use tollgate::limiter::{ChainStatus, LimiterError, LimiterLease};
use tollgate::{Demand, DemandError, Limiter, ManualClock, Span, Tick};

use super::log::{LoggedCall, LoggedTime, Millis};
use super::names::{LimitNames, NameTable, NumberedAmounts};
use super::tally::{SimOutcome, SimTally};
use super::waiting::{SimAcquire, Waiters};
use crate::commands::call::reworded;
use crate::units::Units;

/// A call to be made.
#[derive(Clone, Debug)]
pub(super) struct SimCall {
    /// The line of the log.
    pub(super) line: u64,
    pub(super) at: Tick,
    pub(super) entity: u32,
    pub(super) resource: u32,
    pub(super) demand: NumberedAmounts,
    pub(super) used: Option<NumberedAmounts>,
    pub(super) lasts: Span,
}

/// What calls do that are not admitted at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum SimWaitPolicy {
    /// They are denied.
    None,
    /// They wait, up to a timeout if there is one.
    Waits(Option<Span>),
}

/// A running replay.
pub(super) struct Replay {
    limiter: Limiter,
    clock: ManualClock,
    limits: Arc<LimitNames>,
    /// The limits of each entity for each resource, where not all have the same; `None` if there are none.
    own: HashMap<(u32, u32), Option<Vec<u32>>, RandomState>,
    entities: NameTable,
    resources: NameTable,
    policy: SimWaitPolicy,
    /// Calls that were admitted and have not ended.
    open: BinaryHeap<Reverse<SimOpenCall>>,
    waiters: Waiters,
    count: u64,
    /// The outcomes of the calls.
    pub(super) tally: SimTally,
}

/// The result of a replay: the outcomes of calls, by the numbers of names.
pub(super) struct Replayed {
    pub(super) tally: SimTally,
    pub(super) entities: NameTable,
    pub(super) resources: NameTable,
}

struct SimOpenCall {
    end: Tick,
    number: u64,
    lease: LimiterLease<'static>,
    used: Option<NumberedAmounts>,
}

impl Replay {
    /// Creates a replay that starts with the first call. Limits other than `limits` are skipped.
    pub(super) fn new(
        limiter: Limiter,
        clock: ManualClock,
        limits: LimitNames,
        policy: SimWaitPolicy,
        tally: SimTally,
    ) -> Replay {
        Replay {
            limiter,
            clock,
            limits: Arc::new(limits),
            own: HashMap::default(),
            entities: NameTable::default(),
            resources: NameTable::default(),
            policy,
            open: BinaryHeap::new(),
            waiters: Waiters::default(),
            count: 0,
            tally,
        }
    }

    /// Returns the known limits.
    pub(super) fn limits(&self) -> &LimitNames {
        &self.limits
    }

    /// Makes the next call, after all earlier events.
    pub(super) fn make(&mut self, line: u64, logged: &LoggedCall<'_>) {
        let call = self.call(line, logged);
        self.advance(call.at);
        self.clock.set(call.at);
        self.tally.arrived(&call);
        match self.policy {
            SimWaitPolicy::None => self.attempt_once(call),
            SimWaitPolicy::Waits(timeout) => {
                let acquire = self.acquire(&call, timeout);
                self.waiters.enter(call, acquire);
                self.serve();
            }
        }
    }

    /// Removes amounts of limits that the entity does not have for the resource.
    fn of_own(&mut self, (entity, resource): (u32, u32), mut amounts: NumberedAmounts) -> NumberedAmounts {
        if self.limits.are_everywhere() {
            return amounts;
        }
        let own = match self.own.entry((entity, resource)) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let names = (self.entities.name(entity), self.resources.name(resource));
                vacant.insert(own_limits(&self.limiter, &self.limits, names))
            }
        };
        if let Some(own) = own {
            amounts.retain(|(limit, _)| own.contains(limit));
        }
        amounts
    }

    /// Converts a call of the log. One that is older than the call before it is made now.
    fn call(&mut self, line: u64, logged: &LoggedCall<'_>) -> SimCall {
        let LoggedTime(at) = logged.time;
        let now = self.clock.now();
        self.tally.out_of_order += u64::from(at < now);
        // The conversion saturates.
        let micros = (logged.duration_ms.map_or(0.0, |Millis(millis)| millis) * 1e3).round() as u64;
        let entity = self.entities.number(&logged.entity.0);
        let resource = self.resources.number(&logged.resource.0);
        let demand = self.of_own((entity, resource), self.limits.numbered(&logged.demand));
        let used = logged.used.as_ref().map(|used| self.limits.numbered(used));
        SimCall {
            line,
            at: at.max(now),
            entity,
            resource,
            demand,
            used: used.map(|used| self.of_own((entity, resource), used)),
            lasts: Span::from_micros(micros),
        }
    }

    /// Advances the clock until no more waiters can be admitted, and every call has ended.
    pub(super) fn finish(mut self) -> Replayed {
        self.advance(Tick::MAX);
        let Replay { waiters, mut tally, entities, resources, .. } = self;
        for call in waiters.into_calls() {
            tally.came_of(&call, &SimOutcome::Never);
        }
        Replayed { tally, entities, resources }
    }

    /// Processes all events until `now` in order: at one time, calls end before waiters are polled.
    fn advance(&mut self, now: Tick) {
        loop {
            let end = self.open.peek().map_or(Tick::MAX, |Reverse(open)| open.end);
            let next = end.min(self.clock.next_alarm().unwrap_or(Tick::MAX));
            if next > now || next == Tick::MAX {
                return;
            }
            self.clock.set(next);
            while let Some(Reverse(SimOpenCall { lease, used, .. })) = self.pop_ended(next) {
                self.end(lease, used.as_deref());
            }
            self.serve();
        }
    }

    fn pop_ended(&mut self, now: Tick) -> Option<Reverse<SimOpenCall>> {
        self.open.peek().filter(|Reverse(open)| open.end <= now)?;
        self.open.pop()
    }

    fn end(&mut self, lease: LimiterLease<'static>, used: Option<&[(u32, u64)]>) {
        let ended = match used {
            None => lease.commit().wait(),
            Some(used) => {
                let usage: Demand = self.limits.named(used).collect();
                lease.settle(usage).wait()
            }
        };
        self.tally.unsettled += u64::from(ended.is_err());
    }

    fn attempt_once(&mut self, call: SimCall) {
        match self.attempt(&call) {
            Ok(Attempt::Admitted(lease)) => {
                self.tally.came_of(&call, &SimOutcome::Admitted(Span::ZERO));
                self.hold(lease, call);
            }
            Ok(Attempt::Denied(status)) => self.tally.came_of(&call, &denied(&status)),
            Err(error) => self.tally.came_of(&call, &failed(&error, self.limits.units())),
        }
    }

    /// Takes the results of all waiters that have one now.
    fn serve(&mut self) {
        while let Some((call, result)) = self.waiters.next() {
            match result {
                Ok(lease) => {
                    let waited = self.clock.now().since(call.at);
                    self.tally.came_of(&call, &SimOutcome::Admitted(waited));
                    self.hold(lease, call);
                }
                Err(error) => self.tally.came_of(&call, &failed(&error, self.limits.units())),
            }
        }
    }

    /// Returns the future of a call that waits.
    fn acquire(&self, call: &SimCall, timeout: Option<Span>) -> SimAcquire {
        let limiter = self.limiter.clone();
        let limits = Arc::clone(&self.limits);
        let entity = self.entities.shared(call.entity);
        let resource = self.resources.shared(call.resource);
        let asked = call.demand.clone();
        Box::pin(async move {
            let demand: Demand = limits.named(&asked).collect();
            let mut acquire = limiter.acquire(&entity, &resource, demand);
            if let Some(timeout) = timeout {
                acquire = acquire.timeout(timeout.to_duration());
            }
            acquire.await.map(LimiterLease::into_owned)
        })
    }

    fn attempt(&self, call: &SimCall) -> Result<Attempt<LimiterLease<'static>, ChainStatus>, LimiterError> {
        let demand: Demand = self.limits.named(&call.demand).collect();
        let entity = self.entities.name(call.entity);
        let resource = self.resources.name(call.resource);
        Ok(match self.limiter.try_acquire(entity, resource, demand).wait()? {
            Attempt::Admitted(lease) => Attempt::Admitted(lease.into_owned()),
            Attempt::Denied(status) => Attempt::Denied(status),
        })
    }

    fn hold(&mut self, lease: LimiterLease<'static>, call: SimCall) {
        if call.lasts == Span::ZERO {
            return self.end(lease, call.used.as_deref());
        }
        self.count += 1;
        let end = self.clock.now() + call.lasts;
        self.open.push(Reverse(SimOpenCall { end, number: self.count, lease, used: call.used }));
    }
}

/// Returns the numbers of the limits that an entity has for a resource; `None` on an error, which the call will report.
fn own_limits(limiter: &Limiter, limits: &LimitNames, (entity, resource): (&str, &str)) -> Option<Vec<u32>> {
    let chain = limiter.catalog().chain(entity, resource).wait().ok()?;
    let own = chain.links.first()?.limits.iter();
    Some(own.filter_map(|limit| limits.number(limit.name().as_str())).collect())
}

fn denied(status: &ChainStatus) -> SimOutcome {
    let wait = status.retry_after().map(Span::covering);
    SimOutcome::Denied { limit: limit_of(status).unwrap_or_default(), wait }
}

/// Returns the limit that takes longest.
fn limit_of(status: &ChainStatus) -> Option<String> {
    status.limited_by().map(|(_, status)| status.limit().name().to_string())
}

fn failed(error: &LimiterError, units: &Units) -> SimOutcome {
    let kind = match error {
        // A call that cannot be admitted in time is denied at once.
        LimiterError::TimedOut { status, waited } if waited.is_zero() => return denied(status),
        LimiterError::TimedOut { status, .. } => return SimOutcome::TimedOut { limit: limit_of(status) },
        LimiterError::Demand { why: DemandError::Impossible { limit, .. }, .. } => {
            return SimOutcome::Impossible { limit: limit.to_string() };
        }
        LimiterError::Demand { why: DemandError::MissingAmount { .. }, .. } => "empty_demand",
        LimiterError::Demand { .. } => "bad_demand",
        LimiterError::Catalog(CatalogError::NoLimits { .. }) => "no_limits",
        LimiterError::Catalog(CatalogError::Name(_)) => "bad_name",
        _ => "other",
    };
    SimOutcome::Failed { kind, why: reworded(error, units).unwrap_or_else(|| error.to_string()) }
}

impl PartialEq for SimOpenCall {
    fn eq(&self, other: &SimOpenCall) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for SimOpenCall {}

impl PartialOrd for SimOpenCall {
    fn partial_cmp(&self, other: &SimOpenCall) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Orders by end; calls that end together are in the order of admission.
impl Ord for SimOpenCall {
    fn cmp(&self, other: &SimOpenCall) -> std::cmp::Ordering {
        (self.end, self.number).cmp(&(other.end, other.number))
    }
}
