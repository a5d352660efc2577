//! Heartbeats: while a lease is open, the store hears that its holder lives.

use std::sync::{Arc, Weak};

use tollgate_core::{Limits, Span, Tick};
use tollgate_store::{Alarm, Applied, Backend, Call, Clock, Done, Key, Op, Place, Step, StoreError, Term};

use crate::limiter::Heartbeats;
use crate::within::within;

/// How many beats fit into the time that a holder may be silent: two may be lost.
const BEATS: u64 = 3;

/// Beats for one lease, for as long as somebody has it.
pub(crate) struct Heart {
    backend: Arc<dyn Backend>,
    namespace: Arc<str>,
    buckets: Vec<(Key, Limits)>,
    term: Term,
}

impl Heart {
    /// Beats for these buckets, by itself unless that is left to the holder.
    pub(crate) fn start(
        backend: &Arc<dyn Backend>,
        namespace: &Arc<str>,
        buckets: Vec<(Key, Limits)>,
        term: Term,
        heartbeats: Heartbeats,
    ) -> Arc<Heart> {
        let (backend, namespace) = (Arc::clone(backend), Arc::clone(namespace));
        let heart = Arc::new(Heart { backend, namespace, buckets, term });
        if heartbeats == Heartbeats::Automatic {
            heart.beat_later(heart.backend.clock().now());
        }
        heart
    }

    fn beat_later(self: &Arc<Self>, now: Tick) {
        let pause = Span::from_micros((self.term.ttl.as_micros() / BEATS).max(1));
        let this: Arc<dyn Alarm> = self.clone();
        let alarm: Weak<dyn Alarm> = Arc::downgrade(&this);
        self.backend.clock().alarm(now + pause, alarm);
    }

    /// The steps that keep what is held for another term.
    fn steps(&self) -> Vec<Step<'_>> {
        let step = |(key, limits)| {
            let place = Place { namespace: &self.namespace, key, limits };
            Step { place, op: Op::Renew(self.term) }
        };
        self.buckets.iter().map(|(key, limits)| step((key, limits))).collect()
    }

    /// Beats once, and says whether the store still knew the holder.
    pub(crate) async fn beat(&self, timeout: std::time::Duration) -> Result<bool, StoreError> {
        let steps = self.steps();
        let call = Call { id: None, steps: &steps, metered: false };
        let answer = within(self.backend.clock(), timeout, self.backend.apply(&call)).await?;
        let Applied::Done(done) = answer else { return Ok(false) };
        Ok(done.iter().all(|done| *done == Done::Renewed(true)))
    }
}

impl Alarm for Heart {
    fn ring(self: Arc<Self>, _: Tick, clock: &Clock) {
        self.backend.hand_over(&Call { id: None, steps: &self.steps(), metered: false });
        self.beat_later(clock.now());
    }
}
