//! Decisions about calls: outage, key, spend cap, limits.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tollgate::store::Alarm;
use tollgate::{
    AcquireError, Attempt, Clock, Demand, DemandError, Denial, Lease, LimitBuilder, LimitSet, LimitsError,
    SetStatus, Span, Tick,
};
use tollgate_provider::Tokens;

use crate::builder::{MockProviderBuilder, REQUESTS, TOKENS};
use crate::random;
use crate::stats::{CallCounter, OpenCall};
use crate::{OutageKind, Stats};

/// The state of a provider.
pub(crate) struct ProviderState {
    pub(crate) settings: MockProviderBuilder,
    set: LimitSet,
    opened: Tick,
    counter: CallCounter,
    /// The number of admitted calls, which count towards the spend cap.
    admitted: Mutex<u64>,
    /// Keeps the changes alive, because the clock only holds weak references to its alarms.
    _changes: Vec<Arc<ScheduledChange>>,
}

/// A call that is answered.
pub(crate) struct Admitted<'a> {
    /// The lease that the call holds until then.
    pub(crate) lease: Lease<'a>,
    /// When the call is answered.
    pub(crate) at: Tick,
}

/// Why a call is not answered.
pub(crate) enum MockRefusal {
    /// The call is part of an outage.
    Outage(OutageKind),
    /// The key is unknown.
    WrongKey,
    /// The account is exhausted.
    Exhausted,
    /// The call asks for more than a limit can ever give.
    TooLarge { asked: u64, limit: u64 },
    /// A limit denies the call.
    Denied(Box<Denial>),
}

impl ProviderState {
    pub(crate) fn open(settings: MockProviderBuilder) -> Result<Arc<ProviderState>, LimitsError> {
        let set =
            LimitSet::builder().limits(settings.rates.limits()).clock(settings.clock.clone()).build()?;
        let opened = settings.clock.now();
        let changes = changes(&settings, &set, opened)?;
        for change in &changes {
            let alarm: Arc<dyn Alarm> = change.clone();
            settings.clock.alarm(change.at, Arc::downgrade(&alarm));
        }
        let (counter, admitted) = (CallCounter::default(), Mutex::default());
        Ok(Arc::new(ProviderState { settings, set, opened, counter, admitted, _changes: changes }))
    }

    pub(crate) fn stats(&self) -> Stats {
        self.counter.stats()
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.settings.clock
    }

    /// Returns the state of the limits.
    pub(crate) fn limits(&self) -> SetStatus {
        self.set.peek().wait().expect("a set in this process always answers")
    }

    /// Counts a call that arrives.
    pub(crate) fn begin(&self, key: &str) -> (u64, OpenCall<'_>) {
        self.counter.begin(key)
    }

    /// Returns why a call is refused before its request is considered.
    pub(crate) fn precheck(&self, call: u64, key: &str) -> Option<MockRefusal> {
        let age = self.clock().now().since(self.opened).to_duration();
        if let Some(outage) = self.settings.outages.iter().find(|outage| outage.applies_to(call, age)) {
            return Some(MockRefusal::Outage(outage.kind()));
        }
        let known = self.settings.keys.is_empty() || self.settings.keys.contains(key);
        (!known).then_some(MockRefusal::WrongKey)
    }

    /// Admits a call with this usage, or returns why not.
    pub(crate) fn admit(&self, call: u64, usage: Tokens) -> Result<Admitted<'_>, MockRefusal> {
        let mut admitted = self.admitted.lock();
        if self.settings.spend_cap.is_some_and(|cap| *admitted >= cap) {
            return Err(MockRefusal::Exhausted);
        }
        let demand = Demand::new().with(REQUESTS, 1_u64).with(TOKENS, usage.total);
        match self.set.try_acquire(demand).wait() {
            Ok(Attempt::Admitted(lease)) => {
                *admitted += 1;
                Ok(Admitted { lease, at: self.clock().now() + Span::covering(self.latency(call)) })
            }
            Ok(Attempt::Denied(denial)) => Err(MockRefusal::Denied(denial)),
            Err(AcquireError::Demand(DemandError::Impossible { asked, capacity, .. })) => {
                Err(MockRefusal::TooLarge { asked, limit: capacity })
            }
            // The store is in memory and the names are known, so only an invalid amount remains.
            Err(_) => Err(MockRefusal::TooLarge { asked: usage.total, limit: tollgate::AMOUNT_MAX }),
        }
    }

    fn latency(&self, call: u64) -> Duration {
        let micros = |time: &Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let (low, high) = (micros(self.settings.latency.start()), micros(self.settings.latency.end()));
        Duration::from_micros(random::within(random::mix(self.settings.seed, call), low, high))
    }
}

/// A scheduled change of the limits, applied by an alarm of the clock: it needs no call.
struct ScheduledChange {
    set: LimitSet,
    at: Tick,
    limits: [LimitBuilder; 3],
}

impl Alarm for ScheduledChange {
    fn ring(self: Arc<Self>, _at: Tick, _clock: &Clock) {
        for limit in &self.limits {
            // The limits were validated when the provider was built.
            let _ = self.set.replace(limit.clone()).wait();
        }
    }
}

fn changes(
    settings: &MockProviderBuilder,
    set: &LimitSet,
    opened: Tick,
) -> Result<Vec<Arc<ScheduledChange>>, LimitsError> {
    let mut changes = settings.changes.clone();
    changes.sort_by_key(|change| change.after);
    let mut rates = settings.rates;
    let mut made = Vec::new();
    for change in changes {
        rates = rates.changed(change.rates);
        let limits = rates.limits();
        LimitSet::new(limits.clone())?;
        made.push(Arc::new(ScheduledChange {
            set: set.clone(),
            at: opened + Span::covering(change.after),
            limits,
        }));
    }
    Ok(made)
}
