//! A set in a store: all callers that open it there share its bucket.

mod ask;
mod attempt;
mod change;
mod join;
mod unavailable;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

pub(crate) use join::InForce;
pub(super) use join::{NamedLimits, store_error};
use tollgate_catalog::OnUnavailable;
use tollgate_core::{Limits, Tick};
use tollgate_store::{
    Backend, BucketRef, Clock, Key, Mutex, Op, OpId, PerProcess, Reach, Step, Store, StoreError, Transaction,
    TxnOutcome, generation,
};

use self::join::JoinedLimits;
use crate::admission::Admission;
use crate::fallback::StoreHealth;
use crate::limiter::Heartbeats;
use crate::timeout::with_timeout;

/// The second part of the key of every set, behind its name.
pub(super) const KIND: &str = "limit-set";

/// How often limits are looked up anew because others have changed them meanwhile.
const STALE_MAX: usize = 16;

/// Where a set is in a store, and what is cached of it.
pub(crate) struct StoredBacking {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) namespace: Arc<str>,
    pub(crate) name: Box<str>,
    pub(crate) key: Key,
    pub(crate) settings: StoredSettings,
    /// What this program says about the set.
    named: NamedLimits,
    /// The limits of all programs that share it, as far as cached.
    known: PerProcess<Mutex<JoinedLimits>>,
    /// Whether the limits that this program names are joined to those.
    is_open: AtomicBool,
    /// Until when a cooldown lasts, as far as cached.
    cooling: AtomicU64,
    away: StoreHealth,
}

/// What was said about a set in a store.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredSettings {
    pub(crate) timeout: Duration,
    pub(crate) on_unavailable: OnUnavailable,
    pub(crate) local_share: u8,
    pub(crate) heartbeats: Heartbeats,
}

impl StoredBacking {
    pub(super) fn new(
        backend: Arc<dyn Backend>,
        namespace: &str,
        name: &str,
        named: NamedLimits,
        settings: StoredSettings,
    ) -> StoredBacking {
        let known = Mutex::new(JoinedLimits::unheard(namespace, name, &named));
        let known = PerProcess::of(generation().into(), known);
        StoredBacking {
            backend,
            namespace: namespace.into(),
            name: name.into(),
            key: Key::new(&[name, KIND]),
            settings,
            named,
            known,
            is_open: AtomicBool::new(false),
            cooling: AtomicU64::new(0),
            away: StoreHealth::default(),
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.backend.clock()
    }

    /// What this process knows of the set. A forked child begins with what its parent knew, unless a thread of the parent was
    /// just changing that.
    fn known(&self) -> &Mutex<JoinedLimits> {
        self.known.get_or(generation().into(), |parent| match parent.try_lock() {
            Some(known) => Mutex::new(known.clone()),
            None => Mutex::new(JoinedLimits::unheard(&self.namespace, &self.name, &self.named)),
        })
    }

    /// Caches until when a cooldown lasts, if one does.
    fn hear_cooling(&self, until: Option<Tick>) {
        self.cooling.store(until.map_or(0, Tick::as_micros), Ordering::Relaxed);
    }

    /// Returns whether a cooldown lasts, as far as cached.
    pub(crate) fn is_cooling(&self) -> bool {
        self.clock().now().as_micros() < self.cooling.load(Ordering::Relaxed)
    }

    pub(crate) fn step<'s>(&'s self, limits: &'s Limits, op: Op<'s>) -> Step<'s> {
        Step { place: BucketRef { namespace: &self.namespace, key: &self.key, limits }, op }
    }

    /// The store of a lease: the set's, or the memory that stands in for it.
    pub(crate) fn store_of(&self, is_local: bool) -> &dyn Store {
        if is_local { self.away.local(self.clock()) } else { &*self.backend }
    }

    /// Applies one step to the bucket of the set.
    pub(crate) async fn apply(&self, step: Step<'_>) -> Result<TxnOutcome, StoreError> {
        let steps = [step];
        let call = Transaction { id: self.call_id(), steps: &steps, metered: false };
        with_timeout(self.clock(), self.settings.timeout, self.backend.apply(&call)).await
    }

    /// As [`apply`](Self::apply), for a caller that waits its turn.
    async fn apply_in_turn(&self, step: Step<'_>, turn: &Admission<'_>) -> Result<TxnOutcome, StoreError> {
        let steps = [step];
        let call = Transaction { id: self.call_id(), steps: &steps, metered: false };
        with_timeout(self.clock(), self.settings.timeout, turn.apply(&call)).await
    }

    /// An id for a call whose reply can be lost: only ever on the way from another host.
    fn call_id(&self) -> Option<OpId> {
        (self.backend.reach() == Reach::Fleet).then(|| OpId(self.backend.new_holder_id()))
    }
}

/// Limits change faster than they can be read.
fn unsettled() -> StoreError {
    StoreError::Unavailable(Duration::ZERO, "limits change faster than they can be read".into())
}
