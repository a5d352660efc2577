//! Where a call is decided: outage, key, money, limits.

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

/// Everything that a provider is.
pub(crate) struct ProviderState {
    pub(crate) settings: MockProviderBuilder,
    set: LimitSet,
    opened: Tick,
    counter: CallCounter,
    /// How many calls were admitted, which is what costs money.
    admitted: Mutex<u64>,
    /// Kept, because an alarm rings only as long as an owner holds it.
    _changes: Vec<Arc<Changing>>,
}

/// A call that may be answered.
pub(crate) struct Admitted<'a> {
    /// What it holds until then.
    pub(crate) lease: Lease<'a>,
    /// When it is answered.
    pub(crate) at: Tick,
}

/// Why a call is not answered.
pub(crate) enum MockRefusal {
    /// It meets an outage.
    Outage(OutageKind),
    /// Its key is not known.
    WrongKey,
    /// The money ran out.
    Exhausted,
    /// It asks more than a limit ever has.
    TooLarge { asked: u64, limit: u64 },
    /// A limit says not now.
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

    /// How the limits stand.
    pub(crate) fn standing(&self) -> SetStatus {
        self.set.peek().wait().expect("a set in this process always answers")
    }

    /// Counts a call that comes in.
    pub(crate) fn begin(&self, key: &str) -> (u64, OpenCall<'_>) {
        self.counter.begin(key)
    }

    /// Why a call is refused whatever it asks.
    pub(crate) fn turned_away(&self, call: u64, key: &str) -> Option<MockRefusal> {
        let age = self.clock().now().since(self.opened).to_duration();
        if let Some(outage) = self.settings.outages.iter().find(|outage| outage.meets(call, age)) {
            return Some(MockRefusal::Outage(outage.trouble()));
        }
        let known = self.settings.keys.is_empty() || self.settings.keys.contains(key);
        (!known).then_some(MockRefusal::WrongKey)
    }

    /// Admits a call that will use so much, or says why not.
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
            // The store is memory and the names are ours, so what is left is an amount that is not valid.
            Err(_) => Err(MockRefusal::TooLarge { asked: usage.total, limit: tollgate::AMOUNT_MAX }),
        }
    }

    fn latency(&self, call: u64) -> Duration {
        let micros = |time: &Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let (low, high) = (micros(self.settings.latency.start()), micros(self.settings.latency.end()));
        Duration::from_micros(random::within(random::mix(self.settings.seed, call), low, high))
    }
}

/// A limit that changes at a time, by the clock's own alarm: it needs no call.
struct Changing {
    set: LimitSet,
    at: Tick,
    limits: [LimitBuilder; 3],
}

impl Alarm for Changing {
    fn ring(self: Arc<Self>, _at: Tick, _clock: &Clock) {
        for limit in &self.limits {
            // They were checked when the provider was built.
            let _ = self.set.replace(limit.clone()).wait();
        }
    }
}

fn changes(
    settings: &MockProviderBuilder,
    set: &LimitSet,
    opened: Tick,
) -> Result<Vec<Arc<Changing>>, LimitsError> {
    let mut changes = settings.changes.clone();
    changes.sort_by_key(|change| change.after);
    let mut rates = settings.rates;
    let mut made = Vec::new();
    for change in changes {
        rates = rates.changed(change.rates);
        let limits = rates.limits();
        LimitSet::new(limits.clone())?;
        made.push(Arc::new(Changing { set: set.clone(), at: opened + Span::covering(change.after), limits }));
    }
    Ok(made)
}
