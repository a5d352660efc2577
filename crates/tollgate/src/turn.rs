//! Taking turns for the buckets of a store: who may ask it, who waits, and until when.

use std::time::Duration;

use tollgate_core::{Denial, Ready, Span, Tick};
use tollgate_store::{Backend, Key, Priority, Reach, RoomFull, Ticket};

/// How soon one who waits looks again where others give back that cannot poke it, at first and at last. Where processes
/// share the lines, only those cannot who died.
const LOOK_AGAIN: [Span; 2] = [Span::from_millis(5), Span::from_millis(200)];

/// How patient somebody is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Patience {
    pub(crate) waits: bool,
    pub(crate) priority: Priority,
    pub(crate) deadline: Option<Tick>,
    /// How many may wait for one bucket.
    pub(crate) waiters_max: usize,
}

/// One who wants something of a store.
pub(crate) struct Turn<'a> {
    backend: &'a dyn Backend,
    namespace: &'a str,
    patience: Patience,
    since: Tick,
    ticket: Option<Ticket<'a>>,
    looks: u32,
}

/// What to do about a denial.
pub(crate) enum Turned {
    /// Give up: it does not wait, or would wait in vain.
    InVain,
    /// Ask again: what was given back before it stood in line poked nobody.
    Again,
    /// Wait until poked, and no later than this.
    Wait(Option<Tick>),
}

impl<'a> Turn<'a> {
    pub(crate) fn new(backend: &'a dyn Backend, namespace: &'a str, patience: Patience) -> Turn<'a> {
        let since = backend.clock().now();
        Turn { backend, namespace, patience, since, ticket: None, looks: 0 }
    }

    /// How long ago it came.
    pub(crate) fn so_far(&self) -> Duration {
        self.backend.clock().now().since(self.since).to_duration()
    }

    /// How long it has waited, if it has.
    pub(crate) fn waited(&self) -> Option<Duration> {
        self.ticket.is_some().then(|| self.so_far())
    }

    /// Whether somebody waits for these buckets whom this one may not overtake. One who waits then stands in line.
    pub(crate) fn is_held_up<'k, I>(&mut self, keys: impl FnOnce() -> I) -> Result<bool, RoomFull>
    where
        I: Iterator<Item = &'k Key>,
    {
        let room = self.backend.room();
        let Patience { waits, priority, waiters_max, .. } = self.patience;
        if self.ticket.is_none() && room.is_quiet() {
            return Ok(false);
        }
        let keys: Vec<Key> = keys().cloned().collect();
        if self.ticket.is_none() {
            let now = self.backend.clock().now();
            let is_ahead = |key: &Key| room.is_ahead(self.namespace, key, priority, now).is_some();
            if !keys.iter().any(is_ahead) {
                return Ok(false);
            }
            if !waits {
                return Ok(true);
            }
        }
        let ticket = self.ticket.get_or_insert_with(|| room.ticket(priority, self.since));
        // In this order: what happens from here on pokes, what happened before is seen.
        ticket.listen();
        Ok(!ticket.may_ask(self.namespace, &keys, waiters_max)?)
    }

    /// While others are ahead: until when to wait, or to give up.
    pub(crate) fn in_line(&self) -> Turned {
        let Patience { waits, deadline, .. } = self.patience;
        let now = self.backend.clock().now();
        if waits && deadline.is_none_or(|deadline| now < deadline) {
            return Turned::Wait(deadline);
        }
        Turned::InVain
    }

    /// What to do about having been denied by these buckets.
    pub(crate) fn denied(&mut self, keys: &[&Key], denials: &[Denial]) -> Result<Turned, RoomFull> {
        let now = self.backend.clock().now();
        let latest = |of: fn(&Denial) -> Ready| denials.iter().map(of).fold(Ready::Now, Ready::later);
        if !self.patience.waits || self.is_in_vain(latest(Denial::earliest), now) {
            return Ok(Turned::InVain);
        }
        let ready = latest(Denial::ready);
        // Only for the slowest: whoever cannot use the others before then must not keep them from those who can.
        let slowest: Vec<&Key> = keys
            .iter()
            .zip(denials)
            .filter(|(_, denial)| denial.ready() == ready)
            .map(|(key, _)| *key)
            .collect();
        let room = self.backend.room();
        let ticket = self.ticket.get_or_insert_with(|| room.ticket(self.patience.priority, self.since));
        let is_new = ticket.stand(self.namespace, slowest.iter().copied(), self.patience.waiters_max)?;
        ticket.stand_only(self.namespace, &slowest);
        if is_new {
            return Ok(Turned::Again);
        }
        Ok(Turned::Wait(self.look_again(ready, now)))
    }

    /// Whether a wait behind others is sure to be in vain, going by what the store would say to this one alone.
    pub(crate) fn is_too_late(&self, denial: &Denial) -> bool {
        self.is_in_vain(denial.earliest(), self.backend.clock().now())
    }

    fn is_in_vain(&self, earliest: Ready, now: Tick) -> bool {
        self.patience.deadline.is_some_and(|deadline| match earliest {
            Ready::At(earliest) => earliest > deadline || deadline <= now,
            Ready::Now | Ready::Unknown => deadline <= now,
        })
    }

    /// When to ask again if nobody pokes: when it is said to pass, at the deadline, and, where others take and give back
    /// unseen, ever more seldom in between. Not at the same instants as other processes.
    fn look_again(&mut self, ready: Ready, now: Tick) -> Option<Tick> {
        let ready = match ready {
            Ready::At(tick) => Some(tick.max(now)),
            Ready::Now => Some(now),
            Ready::Unknown => None,
        };
        let look = (self.backend.reach() != Reach::Process).then(|| {
            let [first, last] = LOOK_AGAIN.map(Span::as_micros);
            let first = if self.backend.room().is_shared() { last } else { first };
            let pause = first.saturating_mul(1 << self.looks.min(10)).min(last);
            self.looks += 1;
            now + Span::from_micros(pause - jitter(now, pause / 2))
        });
        [ready, look, self.patience.deadline].into_iter().flatten().min()
    }

    /// Waits until it is poked, or until `due`.
    ///
    /// # Cancel safety
    ///
    /// Dropping it loses nothing.
    pub(crate) async fn poked(&self, due: Option<Tick>) {
        if let Some(ticket) = &self.ticket {
            ticket.poked(self.backend.clock(), due).await;
        }
    }

    /// The same refusal, behind those who wait already.
    pub(crate) fn behind(&self, key: &Key, denial: Denial) -> Denial {
        behind(self.backend, self.namespace, key, self.patience.priority, denial)
    }
}

/// A refusal of a newcomer, behind those who wait already.
pub(crate) fn behind(
    backend: &dyn Backend,
    namespace: &str,
    key: &Key,
    priority: Priority,
    denial: Denial,
) -> Denial {
    let ahead = backend.room().is_ahead(namespace, key, priority, backend.clock().now());
    denial.not_before(ahead.map_or(Ready::Now, |due| due.map_or(Ready::Unknown, Ready::At)))
}

/// A number below `bound` that other processes are unlikely to come upon at the same time.
fn jitter(now: Tick, bound: u64) -> u64 {
    let seed = now.as_micros() ^ u64::from(std::process::id()).rotate_left(32);
    seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(29) % bound.max(1)
}
