//! The ramp: the growth of the pace until a limit is known.

use tollgate::{Span, Tick};

use super::{PaceRate, TIMER};

/// How many calls may start before the first reply.
pub(super) const FIRST: u64 = 10;

/// How long the ramp waits for a first reply before it starts more calls without one: a provider
/// may take minutes, first calls may be lost, and refusals mostly arrive sooner.
const PATIENCE: Span = Span::from_secs(2);

/// The pace of those calls: slow enough that a provider that takes long to refuse does not refuse
/// too many of them.
const WITHOUT_REPLY: PaceRate = PaceRate::of(7, PATIENCE);

/// The factor by which the pace grows with every round trip.
const GROWTH: u64 = 2;

/// The ramp starts a few calls in the first round trip and twice as many in each that follows,
/// spread over it.
///
/// All at once would be faster and less informative: a burst that is refused shows that the bucket
/// is small, not that the rate is low.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Ramp {
    started: u64,
    pace: Option<PaceRate>,
    next: Tick,
    rises: Tick,
}

impl Ramp {
    pub(super) fn pace(&self) -> Option<PaceRate> {
        self.pace
    }

    /// Returns when the next call may start.
    pub(super) fn ready(&self, now: Tick) -> Tick {
        match self.pace {
            None if self.started < FIRST => now,
            _ => self.next.max(now),
        }
    }

    /// Counts a start. The pace rises if it was what delayed calls.
    pub(super) fn start(&mut self, now: Tick, latency: Option<Span>, held_back: bool) {
        self.started += 1;
        if self.pace.is_none() {
            let wait = if self.started <= FIRST { PATIENCE } else { WITHOUT_REPLY.time_of(1) };
            self.next = now + wait;
        }
        let (Some(pace), Some(latency)) = (self.pace, latency) else { return };
        let one = pace.time_of(1);
        self.next = self.next.max(now - one.max(TIMER)) + one;
        if now >= self.rises && held_back {
            self.pace = Some(pace.scaled(GROWTH, 1));
            self.rises = now + latency;
        }
    }

    /// Records a reply. The first one shows how long a round trip is.
    pub(super) fn reply(&mut self, now: Tick, latency: Span) {
        if self.pace.is_none() {
            self.pace = Some(PaceRate::of(self.started.max(1) * GROWTH, latency));
            self.next = now;
            self.rises = now + latency;
        }
    }
}
