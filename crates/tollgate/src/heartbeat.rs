//! Heartbeats: while a lease is open, they renew what its holder has in the store.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use tollgate_core::{Limits, Span, Tick};
use tollgate_store::{
    Alarm, Backend, BucketRef, Clock, Key, LeaseTerm, Op, Reply, Step, StepOutcome, StoreError, Transaction,
    TxnOutcome, generation, join_all,
};

use crate::limiter::Heartbeats;
use crate::observe::Reporter;
use crate::timeout::with_timeout;
use crate::{Event, LeaseError};

/// Heartbeats for each lease TTL: two may be lost.
const BEATS: u64 = 3;

/// Sends heartbeats for one lease, for as long as a caller has it and the store knows its holder.
pub(crate) struct Heartbeat {
    backend: Arc<dyn Backend>,
    namespace: Arc<str>,
    buckets: Vec<(Key, Limits)>,
    term: LeaseTerm,
    reporter: Reporter,
    /// Whether the store reported that it does not know the holder any more.
    is_lost: AtomicBool,
    /// The process that took the lease.
    process: u32,
}

impl Heartbeat {
    /// Starts heartbeats for these buckets; by a timer, unless the holder sends them.
    pub(crate) fn start(
        backend: &Arc<dyn Backend>,
        namespace: &Arc<str>,
        buckets: Vec<(Key, Limits)>,
        term: LeaseTerm,
        heartbeats: Heartbeats,
        reporter: &Reporter,
    ) -> Arc<Heartbeat> {
        let heartbeat = Arc::new(Heartbeat {
            backend: Arc::clone(backend),
            namespace: Arc::clone(namespace),
            buckets,
            term,
            reporter: reporter.clone(),
            is_lost: AtomicBool::new(false),
            process: generation(),
        });
        if heartbeats == Heartbeats::Automatic {
            heartbeat.schedule_beat(heartbeat.backend.clock().now());
        }
        heartbeat
    }

    fn schedule_beat(self: &Arc<Self>, now: Tick) {
        let pause = Span::from_micros((self.term.ttl.as_micros() / BEATS).max(1));
        let this: Arc<dyn Alarm> = self.clone();
        let alarm: Weak<dyn Alarm> = Arc::downgrade(&this);
        self.backend.clock().alarm(now + pause, alarm);
    }

    /// Returns the steps that renew what is held for another term.
    fn steps(&self) -> Vec<Step<'_>> {
        let step = |(key, limits)| {
            let place = BucketRef { namespace: &self.namespace, key, limits };
            Step { place, op: Op::Renew(self.term) }
        };
        self.buckets.iter().map(|(key, limits)| step((key, limits))).collect()
    }

    /// Sends a heartbeat, and returns whether the store still knew the holder.
    pub(crate) async fn beat(&self, timeout: std::time::Duration) -> Result<bool, StoreError> {
        let steps = self.steps();
        let call = Transaction { id: None, steps: &steps, metered: false };
        Ok(self.note(&with_timeout(self.backend.clock(), timeout, self.backend.apply(&call)).await?))
    }

    /// Returns whether the store reported that it does not know the holder any more: what it held may be another's.
    pub(crate) fn is_lost(&self) -> bool {
        self.is_lost.load(Ordering::Acquire)
    }

    /// Notes the outcome of a heartbeat, and returns whether the store knew the holder. A loss is reported once.
    fn note(&self, applied: &TxnOutcome) -> bool {
        let is_known = match applied {
            TxnOutcome::Done(done) => done.iter().all(|done| *done == StepOutcome::Renewed(true)),
            _ => false,
        };
        if !is_known && !self.is_lost.swap(true, Ordering::AcqRel) {
            self.reporter.report(&Event::ExpiredLease);
        }
        is_known
    }
}

/// Waits for heartbeats that were all sent, and returns whether the store knew every holder.
pub(crate) fn all_alive<'b>(
    beats: impl Iterator<Item = Reply<'b, Result<bool, LeaseError>>>,
) -> Reply<'b, Result<bool, LeaseError>> {
    let beats: Vec<_> = beats.collect();
    Reply::later(async move {
        let answers: Result<Vec<bool>, LeaseError> = join_all(beats).await.into_iter().collect();
        Ok(answers?.into_iter().all(|is_alive| is_alive))
    })
}

impl Alarm for Heartbeat {
    fn ring(self: Arc<Self>, _: Tick, clock: &Clock) {
        if self.is_lost() || self.process != generation() {
            return;
        }
        let this = Arc::downgrade(&self);
        // A lease that has ended meanwhile sends no heartbeats, and is not lost.
        let callback = move |applied: &TxnOutcome| {
            if let Some(heartbeat) = this.upgrade() {
                heartbeat.note(applied);
            }
        };
        let call = Transaction { id: None, steps: &self.steps(), metered: false };
        self.backend.apply_detached_with(&call, Box::new(callback));
        self.schedule_beat(clock.now());
    }
}
