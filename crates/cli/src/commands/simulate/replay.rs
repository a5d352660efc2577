//! Calls made again, on a clock that stands where each of them was made.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use foldhash::fast::RandomState;
use tollgate::catalog::CatalogError;
use tollgate::limiter::{AcquireError, Attempt, Lease, Standing};
use tollgate::{Demand, DemandError, Limiter, ManualClock, Ready, Span, Tick};

use super::log::{LoggedCall, Millis, Time};
use super::names::{LimitNames, Names, Numbered};
use super::roots::Roots;
use super::tally::{Outcome, Tally};

/// A call to be made.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The line of the log.
    pub(super) line: u64,
    pub(super) at: Tick,
    pub(super) entity: u32,
    pub(super) resource: u32,
    pub(super) demand: Numbered,
    pub(super) used: Option<Numbered>,
    pub(super) lasts: Span,
}

/// What those do who cannot be admitted at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Patience {
    /// They are refused.
    None,
    /// They wait, for at most so long if that is said.
    Waits(Option<Span>),
}

/// A replay under way.
pub(super) struct Replay {
    limiter: Limiter,
    hands: ManualClock,
    limits: LimitNames,
    entities: Names,
    resources: Names,
    roots: Roots,
    patience: Patience,
    /// Calls that were admitted and have not ended.
    open: BinaryHeap<Reverse<Open>>,
    queues: HashMap<Place, Queue, RandomState>,
    /// When somebody who waits is to be asked again.
    retries: BinaryHeap<Reverse<(Tick, u64, Place)>>,
    count: u64,
    /// What came of the calls.
    pub(super) tally: Tally,
}

/// A replay that has ended: what came of the calls, by the numbers of names.
pub(super) struct Replayed {
    pub(super) tally: Tally,
    pub(super) entities: Names,
    pub(super) resources: Names,
}

/// Where callers stand in one queue: those who are charged together at the top, for one resource.
type Place = (u32, u32);

/// Those who wait at a place, and when the first is to be asked again: other retries are of the past.
#[derive(Default)]
struct Queue {
    calls: VecDeque<Call>,
    due: Option<Tick>,
}

struct Open {
    end: Tick,
    number: u64,
    lease: Lease<'static>,
    used: Option<Numbered>,
    place: Option<Place>,
}

impl Replay {
    /// One that starts with the first call. What is asked of other `limits` is left out.
    pub(super) fn new(
        limiter: Limiter,
        hands: ManualClock,
        limits: LimitNames,
        roots: Roots,
        patience: Patience,
        tally: Tally,
    ) -> Replay {
        Replay {
            limiter,
            hands,
            limits,
            entities: Names::default(),
            resources: Names::default(),
            roots,
            patience,
            open: BinaryHeap::new(),
            queues: HashMap::default(),
            retries: BinaryHeap::new(),
            count: 0,
            tally,
        }
    }

    /// The limits there are.
    pub(super) fn limits(&self) -> &LimitNames {
        &self.limits
    }

    /// Makes the next call, after everything that happens before it.
    pub(super) fn make(&mut self, line: u64, logged: &LoggedCall<'_>) {
        let call = self.call(line, logged);
        self.advance(call.at);
        self.hands.set(call.at);
        self.tally.arrived(&call);
        if let Patience::None = self.patience {
            return self.attempt_once(call);
        }
        let place = self.place(&call);
        let queue = self.queues.entry(place).or_default();
        queue.calls.push_back(call);
        if queue.calls.len() == 1 {
            self.serve(place);
        }
    }

    /// A call as it is made. One that comes before its time is made now.
    fn call(&mut self, line: u64, logged: &LoggedCall<'_>) -> Call {
        let (Time(at), now) = (logged.time, self.hands.now());
        self.tally.out_of_order += u64::from(at < now);
        // What is too long is as long as can be.
        let micros = (logged.duration_ms.map_or(0.0, |Millis(millis)| millis) * 1e3).round() as u64;
        Call {
            line,
            at: at.max(now),
            entity: self.entities.number(&logged.entity.0),
            resource: self.resources.number(&logged.resource.0),
            demand: self.limits.numbered(&logged.demand),
            used: logged.used.as_ref().map(|used| self.limits.numbered(used)),
            lasts: Span::from_micros(micros),
        }
    }

    /// Lets time go on until everybody who waits had their turn, and every call has ended.
    pub(super) fn finish(mut self) -> Replayed {
        self.advance(Tick::MAX);
        let Replay { queues, mut tally, entities, resources, .. } = self;
        for call in queues.into_values().flat_map(|queue| queue.calls) {
            tally.came_of(&call, &Outcome::Never);
        }
        Replayed { tally, entities, resources }
    }

    /// Everything that happens until `now`, in its order: calls end before others are asked again.
    fn advance(&mut self, now: Tick) {
        loop {
            let end = self.open.peek().map_or(Tick::MAX, |Reverse(open)| open.end);
            let retry = self.retries.peek().map_or(Tick::MAX, |Reverse((at, ..))| *at);
            if end.min(retry) > now || end.min(retry) == Tick::MAX {
                return;
            }
            self.hands.set(end.min(retry));
            if end <= retry {
                self.end_first();
            } else {
                self.retry_first();
            }
        }
    }

    fn retry_first(&mut self) {
        let Some(Reverse((at, _, place))) = self.retries.pop() else { return };
        if let Some(queue) = self.queues.get_mut(&place).filter(|queue| queue.due == Some(at)) {
            queue.due = None;
            self.serve(place);
        }
    }

    fn end_first(&mut self) {
        let Some(Reverse(Open { lease, used, place, .. })) = self.open.pop() else { return };
        self.end(lease, used.as_deref());
        if let Some(place) = place {
            self.serve(place);
        }
    }

    fn end(&mut self, lease: Lease<'static>, used: Option<&[(u32, u64)]>) {
        let ended = match used {
            None => lease.commit().wait(),
            Some(used) => {
                let usage: Demand<'_> = self.limits.named(used).collect();
                lease.settle(usage).wait()
            }
        };
        self.tally.unsettled += u64::from(ended.is_err());
    }

    fn attempt_once(&mut self, call: Call) {
        match self.attempt(&call) {
            Ok(Attempt::Admitted(lease)) => {
                self.tally.came_of(&call, &Outcome::Admitted(Span::ZERO));
                self.hold(lease, call, None);
            }
            Ok(Attempt::Refused(standing)) => self.tally.came_of(&call, &refused(&standing)),
            Err(error) => self.tally.came_of(&call, &failed(&error)),
        }
    }

    /// Admits those at the head of a queue, as many as pass now, and says when to ask the next again.
    fn serve(&mut self, place: Place) {
        while let Some(call) = self.queues.get(&place).and_then(|queue| queue.calls.front()).cloned() {
            let waited = self.hands.now().since(call.at);
            let is_late = matches!(self.patience, Patience::Waits(Some(timeout)) if waited > timeout);
            let attempt = if is_late { None } else { Some(self.attempt(&call)) };
            match attempt {
                None => self.tally.came_of(&call, &Outcome::TimedOut),
                Some(Ok(Attempt::Admitted(lease))) => {
                    self.tally.came_of(&call, &Outcome::Admitted(waited));
                    self.hold(lease, call, Some(place));
                }
                Some(Ok(Attempt::Refused(standing))) if self.stays(&call, standing.ready()) => {
                    self.ask_again(place, standing.ready());
                    return;
                }
                Some(Ok(Attempt::Refused(standing))) => self.tally.came_of(&call, &refused(&standing)),
                Some(Err(error)) => self.tally.came_of(&call, &failed(&error)),
            }
            if let Some(queue) = self.queues.get_mut(&place) {
                queue.calls.pop_front();
            }
        }
        self.queues.remove(&place);
    }

    fn ask_again(&mut self, place: Place, ready: Ready) {
        let Some(queue) = self.queues.get_mut(&place) else { return };
        let due = if let Ready::At(at) = ready { Some(at) } else { None };
        if due != queue.due {
            queue.due = due;
            self.count += 1;
            self.retries.extend(due.map(|at| Reverse((at, self.count, place))));
        }
    }

    /// Whether a caller goes on waiting. One whose wait cannot fit is told at once.
    fn stays(&self, call: &Call, ready: Ready) -> bool {
        let Patience::Waits(Some(timeout)) = self.patience else { return true };
        let deadline = call.at + timeout;
        match ready {
            Ready::At(at) => at <= deadline,
            _ => self.hands.now() < deadline,
        }
    }

    fn attempt(&self, call: &Call) -> Result<Attempt<'static>, AcquireError> {
        let demand: Demand<'_> = self.limits.named(&call.demand).collect();
        let (entity, resource) = (self.entities.name(call.entity), self.resources.name(call.resource));
        Ok(match self.limiter.try_acquire(entity, resource, demand).wait()? {
            Attempt::Admitted(lease) => Attempt::Admitted(lease.into_owned()),
            Attempt::Refused(standing) => Attempt::Refused(standing),
        })
    }

    fn hold(&mut self, lease: Lease<'static>, call: Call, place: Option<Place>) {
        if call.lasts == Span::ZERO {
            return self.end(lease, call.used.as_deref());
        }
        self.count += 1;
        let end = self.hands.now() + call.lasts;
        self.open.push(Reverse(Open { end, number: self.count, lease, used: call.used, place }));
    }

    fn place(&mut self, call: &Call) -> Place {
        match self.roots.of(self.entities.name(call.entity)) {
            None => (call.entity, call.resource),
            Some(root) => (self.entities.number(root), call.resource),
        }
    }
}

fn refused(standing: &Standing) -> Outcome {
    let limit = standing.limited_by().map(|(_, status)| status.limit().name().to_string());
    let wait = standing.retry_after().map(Span::covering);
    Outcome::Refused { limit: limit.unwrap_or_default(), wait }
}

fn failed(error: &AcquireError) -> Outcome {
    let kind = match error {
        AcquireError::Demand { why: DemandError::Impossible { limit, .. }, .. } => {
            return Outcome::Impossible { limit: limit.to_string() };
        }
        AcquireError::Demand { why: DemandError::MissingAmount { .. }, .. } => "empty_demand",
        AcquireError::Demand { .. } => "bad_demand",
        AcquireError::Catalog(CatalogError::NoLimits { .. }) => "no_limits",
        AcquireError::Catalog(CatalogError::Name(_)) => "bad_name",
        _ => "other",
    };
    Outcome::Failed { kind, why: error.to_string() }
}

impl PartialEq for Open {
    fn eq(&self, other: &Open) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Open {}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Open) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// By when they end; those that end together in the order in which they were admitted.
impl Ord for Open {
    fn cmp(&self, other: &Open) -> std::cmp::Ordering {
        (self.end, self.number).cmp(&(other.end, other.number))
    }
}
