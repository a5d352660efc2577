//! Heartbeats: while a lease is open, the store hears that its holder lives.

use std::sync::{Arc, Weak};

use tollgate_core::{Limits, Span, Tick};
use tollgate_store::{Alarm, Call, Clock, Key, Op, Place, Step, Term};

use super::lease::Held;
use super::{Heartbeats, Shared};

/// How many beats fit into the time that a holder may be silent: two may be lost.
const BEATS: u64 = 3;

/// Beats for one lease, for as long as somebody has it.
pub(super) struct Heart {
    shared: Arc<Shared>,
    buckets: Vec<(Key, Limits)>,
    term: Term,
}

impl Heart {
    pub(super) fn start(shared: &Arc<Shared>, held: &[Held], term: Term) -> Arc<Heart> {
        let holding = held.iter().map(|held| &held.planned).filter(|planned| planned.holds_resources());
        let buckets = holding.map(|planned| (planned.key().clone(), planned.limits().clone())).collect();
        let heart = Arc::new(Heart { shared: Arc::clone(shared), buckets, term });
        if shared.settings.heartbeats == Heartbeats::Automatic {
            heart.beat_later(shared.clock.now());
        }
        heart
    }

    fn beat_later(self: &Arc<Self>, now: Tick) {
        let pause = Span::from_micros((self.term.ttl.as_micros() / BEATS).max(1));
        let this: Arc<dyn Alarm> = self.clone();
        let alarm: Weak<dyn Alarm> = Arc::downgrade(&this);
        self.shared.clock.alarm(now + pause, alarm);
    }

    /// The steps that keep what is held for another term.
    pub(super) fn steps(&self) -> Vec<Step<'_>> {
        let step = |(key, limits)| {
            let place = Place { namespace: &self.shared.namespace, key, limits };
            Step { place, op: Op::Renew(self.term) }
        };
        self.buckets.iter().map(|(key, limits)| step((key, limits))).collect()
    }
}

impl Alarm for Heart {
    fn ring(self: Arc<Self>, _: Tick, clock: &Clock) {
        self.shared.backend.hand_over(&Call { id: None, steps: &self.steps(), metered: false });
        self.beat_later(clock.now());
    }
}
