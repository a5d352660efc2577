//! A set in a store: all callers that open it there share its bucket.

mod acquire;
mod ask;
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
use tollgate_store::{Backend, Clock, Key, Mutex, Op, PerProcess, Step, generation};

use self::join::JoinedLimits;
use crate::limiter::Heartbeats;
use crate::store_client::StoreClient;

/// The second part of the key of every set, behind its name.
pub(super) const KIND: &str = "limit-set";

/// How often limits are read again because other processes have changed them meanwhile.
const STALE_MAX: usize = 16;

/// Where a set is in a store, and what is cached of it.
pub(crate) struct StoredBacking {
    pub(crate) store: StoreClient,
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
        let known = Mutex::new(JoinedLimits::of_named(namespace, name, &named));
        let known = PerProcess::of(generation().into(), known);
        StoredBacking {
            store: StoreClient::new(backend, namespace, settings.timeout),
            name: name.into(),
            key: Key::new(&[name, KIND]),
            settings,
            named,
            known,
            is_open: AtomicBool::new(false),
            cooling: AtomicU64::new(0),
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        self.store.clock()
    }

    /// What this process knows of the set. A forked child begins with what its parent knew, unless a thread of the parent was
    /// just changing that.
    fn known(&self) -> &Mutex<JoinedLimits> {
        self.known.get_or(generation().into(), |parent| match parent.try_lock() {
            Some(known) => Mutex::new(known.clone()),
            None => Mutex::new(JoinedLimits::of_named(&self.store.namespace, &self.name, &self.named)),
        })
    }

    /// Caches until when a cooldown lasts, if one does.
    fn cache_cooldown(&self, until: Option<Tick>) {
        self.cooling.store(until.map_or(0, Tick::as_micros), Ordering::Relaxed);
    }

    /// Returns whether a cooldown lasts, as far as cached.
    pub(crate) fn is_cooling(&self) -> bool {
        self.clock().now().as_micros() < self.cooling.load(Ordering::Relaxed)
    }

    pub(crate) fn step<'s>(&'s self, limits: &'s Limits, op: Op<'s>) -> Step<'s> {
        self.store.step(&self.key, limits, op)
    }
}
