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
use crate::stats::{Call, Counter};
use crate::{Stats, Trouble};

/// Everything that a provider is.
pub(crate) struct Desk {
    pub(crate) settings: MockProviderBuilder,
    set: LimitSet,
    opened: Tick,
    counter: Counter,
    /// How many calls were admitted, which is what costs money.
    admitted: Mutex<u64>,
    /// Kept, because an alarm rings only as long as somebody has it.
    _changes: Vec<Arc<Changing>>,
}

/// What is to be done about a call.
pub(crate) enum Decision<'a> {
    /// Answer it at this time, and give back what it holds then.
    Answer { lease: Lease<'a>, at: Tick },
    /// A limit refuses it.
    Reject(Box<Denial>),
    /// It asks more than a limit ever has.
    TooLarge { asked: u64, limit: u64 },
    /// The money ran out.
    Exhausted,
    /// The key is not known.
    WrongKey,
    /// It meets an outage.
    Fail(Trouble),
}

impl Desk {
    pub(crate) fn open(settings: MockProviderBuilder) -> Result<Arc<Desk>, LimitsError> {
        let set =
            LimitSet::builder().limits(settings.rates.limits()).clock(settings.clock.clone()).build()?;
        let opened = settings.clock.now();
        let changes = changes(&settings, &set, opened)?;
        for change in &changes {
            let alarm: Arc<dyn Alarm> = change.clone();
            settings.clock.alarm(change.at, Arc::downgrade(&alarm));
        }
        let (counter, admitted) = (Counter::default(), Mutex::default());
        Ok(Arc::new(Desk { settings, set, opened, counter, admitted, _changes: changes }))
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
    pub(crate) fn begin(&self, key: &str) -> (u64, Call<'_>) {
        self.counter.begin(key)
    }

    /// An outage that meets a call.
    pub(crate) fn outage(&self, call: u64) -> Option<Trouble> {
        let age = self.clock().now().since(self.opened).to_duration();
        self.settings.outages.iter().find(|it| it.meets(call, age)).map(crate::Outage::trouble)
    }

    /// Whether a key may call.
    pub(crate) fn knows(&self, key: &str) -> bool {
        self.settings.keys.is_empty() || self.settings.keys.contains(key)
    }

    /// Decides about a call that will use so much.
    pub(crate) fn decide(&self, call: u64, key: &str, usage: Tokens) -> Decision<'_> {
        if let Some(trouble) = self.outage(call) {
            return Decision::Fail(trouble);
        }
        if !self.knows(key) {
            return Decision::WrongKey;
        }
        let mut admitted = self.admitted.lock();
        if self.settings.spend_cap.is_some_and(|cap| *admitted >= cap) {
            return Decision::Exhausted;
        }
        let demand = Demand::new().with(REQUESTS, 1_u64).with(TOKENS, usage.total);
        match self.set.try_acquire(demand).wait() {
            Ok(Attempt::Admitted(lease)) => {
                *admitted += 1;
                Decision::Answer { lease, at: self.clock().now() + Span::covering(self.latency(call)) }
            }
            Ok(Attempt::Denied(denial)) => Decision::Reject(denial),
            Err(AcquireError::Demand(DemandError::Impossible { asked, capacity, .. })) => {
                Decision::TooLarge { asked, limit: capacity }
            }
            // The store is memory and the names are ours, so what is left is an amount that is none.
            Err(_) => Decision::TooLarge { asked: usage.total, limit: tollgate::AMOUNT_MAX },
        }
    }

    fn latency(&self, call: u64) -> Duration {
        let micros = |time: &Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        let (low, high) = (micros(self.settings.latency.start()), micros(self.settings.latency.end()));
        Duration::from_micros(random::within(random::mix(self.settings.seed, call), low, high))
    }
}

/// A limit that changes at a time, by the clock's own alarm: nobody has to call for it.
struct Changing {
    set: LimitSet,
    at: Tick,
    limits: [LimitBuilder; 3],
}

impl Alarm for Changing {
    fn ring(self: Arc<Self>, _at: Tick, _clock: &Clock) {
        for limit in &self.limits {
            // They were checked when the desk was opened.
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
