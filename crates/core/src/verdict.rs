//! What came of a demand: denial with the status of every limit, and when it would pass.

use std::fmt;
use std::time::Duration;

use crate::{InlineVec, Limit, Limits, Tick};

/// When a demand will fit, if no other caller takes or gives back in the meantime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ready {
    /// It fits now.
    #[default]
    Now,
    /// It fits at this tick, and not a tick earlier.
    At(Tick),
    /// That depends on other callers giving back, so it is not known.
    Unknown,
}

impl Ready {
    /// Ready at `tick`, where the end of time is never.
    pub(crate) fn at(tick: Tick) -> Ready {
        if tick == Tick::MAX { Ready::Unknown } else { Ready::At(tick) }
    }

    /// Returns the later of the two; what is not known is later than everything.
    pub fn later(self, other: Ready) -> Ready {
        match (self, other) {
            (Ready::Unknown, _) | (_, Ready::Unknown) => Ready::Unknown,
            (Ready::Now, ready) | (ready, Ready::Now) => ready,
            (Ready::At(one), Ready::At(two)) => Ready::At(one.max(two)),
        }
    }

    /// How long that is from `now`, if it is known.
    pub fn wait(self, now: Tick) -> Option<Duration> {
        match self {
            Ready::Now => Some(Duration::ZERO),
            Ready::At(tick) => Some(tick.since(now).to_duration()),
            Ready::Unknown => None,
        }
    }
}

/// The limits that do not admit a demand, one bit for each by its place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// All of them.
    pub short: u64,
    /// Those that will take longest.
    pub slowest: u64,
    /// When the slowest admit it.
    pub ready: Ready,
}

impl FromIterator<(usize, Ready)> for Shortage {
    /// Collects places of limits that do not admit a demand, with when they will.
    fn from_iter<I: IntoIterator<Item = (usize, Ready)>>(refusing: I) -> Shortage {
        refusing.into_iter().fold(Shortage::default(), |Shortage { short, slowest, ready }, (index, at)| {
            let (bit, later) = (1_u64 << index, ready.later(at));
            let slowest = match (later == ready, later == at) {
                (true, true) => slowest | bit,
                (true, false) => slowest,
                (false, _) => bit,
            };
            Shortage { short: short | bit, slowest, ready: later }
        })
    }
}

/// How one limit stands towards a demand.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    pub(crate) limit: Limit,
    pub(crate) state: LimitStatus,
}

/// The numbers of a [`Status`], without its limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LimitStatus {
    pub(crate) available: i64,
    pub(crate) requested: u64,
    pub(crate) ready: Ready,
    pub(crate) full: Ready,
}

impl Status {
    /// The limit.
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// How much could be had now, in whole units. Below zero it is debt. `i64::MAX` if unbounded.
    pub fn available(&self) -> i64 {
        self.state.available
    }

    /// How much the demand asks; 0 if it does not name the limit.
    pub fn requested(&self) -> u64 {
        self.state.requested
    }

    /// Whether the limit refuses the demand.
    pub fn is_exceeded(&self) -> bool {
        self.state.ready != Ready::Now
    }

    /// When the limit alone would admit the demand.
    pub fn ready(&self) -> Ready {
        self.state.ready
    }

    /// Returns when the limit will be full again if no caller takes anything.
    pub fn full(&self) -> Ready {
        self.state.full
    }
}

/// A refusal: the status of every limit, and when all of them would admit the demand.
#[derive(Clone, PartialEq)]
pub struct Denial {
    pub(crate) limits: Limits,
    pub(crate) now: Tick,
    pub(crate) rows: InlineVec<LimitStatus>,
    pub(crate) ready: Ready,
    /// The limits that waiters ahead claim, one bit for each by its place.
    pub(crate) claimed: u64,
    /// How many waiters are known to be ahead.
    pub(crate) ahead: u32,
}

impl Denial {
    /// The status of every limit, in the order of the set.
    pub fn statuses(&self) -> impl Iterator<Item = Status> + '_ {
        let rows = self.limits.iter().zip(self.rows.iter()).filter(|(limit, _)| !limit.is_cooldown());
        rows.map(|(limit, state)| Status { limit: limit.clone(), state: *state })
    }

    /// The limit that will take longest, which is what to show when there is room for one.
    ///
    /// `None` if no limit refuses: the demand was refused for another reason, such as a cooldown or a queue.
    pub fn limited_by(&self) -> Option<Status> {
        let refusing = self.statuses().filter(Status::is_exceeded);
        refusing.reduce(|slowest, status| {
            let as_slow = slowest.ready().later(status.ready()) == slowest.ready();
            if as_slow { slowest } else { status }
        })
    }

    /// The limits that refuse, a [cooldown](Limit::cooldown) among them, by their places in [`limits`](Denial::limits).
    pub fn shortage(&self) -> Shortage {
        let refusing = self.rows.iter().enumerate().filter(|(_, row)| row.ready != Ready::Now);
        refusing.map(|(index, row)| (index, row.ready)).collect()
    }

    /// When all limits would admit it.
    pub fn ready(&self) -> Ready {
        self.ready
    }

    /// How long until then, if it is known. Admitted after this wait, and not a microsecond earlier, if no waiter is
    /// ahead; behind others it is the least that it can be.
    pub fn wait(&self) -> Option<Duration> {
        self.ready.wait(self.now)
    }

    /// When it could pass at the earliest, if others give back what they hold as soon as they can: a resource that is held
    /// until its holder expires may be free at any time.
    pub fn earliest(&self) -> Ready {
        let rows = || self.limits.iter().zip(self.rows.iter());
        if !rows().any(|(limit, row)| limit.is_resource() && row.ready != Ready::Now) {
            return self.ready;
        }
        let of_time = rows().filter(|(limit, _)| !limit.is_resource());
        of_time.fold(Ready::Now, |latest, (_, row)| latest.later(row.ready))
    }

    /// The end of the [cooldown](Limit::cooldown), if one lasts.
    pub fn cooling_until(&self) -> Option<Tick> {
        let (_, row) = self.limits.iter().zip(self.rows.iter()).find(|(limit, _)| limit.is_cooldown())?;
        match row.full {
            Ready::Now => None,
            Ready::At(tick) => Some(tick),
            Ready::Unknown => Some(Tick::MAX),
        }
    }

    /// The limits that it is about.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// The refusal of a demand that was made to several buckets at once: the status of every limit of each. `None` if
    /// there are none, or if two of them have a limit of one name.
    pub fn joined(denials: &[Denial]) -> Option<Denial> {
        let limits = denials.iter().flat_map(|denial| denial.limits.iter().cloned());
        let limits = Limits::new(limits.collect::<Vec<_>>()).ok()?;
        let rows: Vec<LimitStatus> = denials.iter().flat_map(|denial| denial.rows.iter().copied()).collect();
        let ready = denials.iter().map(Denial::ready).fold(Ready::Now, Ready::later);
        let now = denials.iter().map(Denial::now).max()?;
        let (claimed, _) = denials.iter().fold((0, 0), |(claimed, before), denial| {
            (claimed | denial.claimed << before, before + denial.limits.len())
        });
        let ahead = denials.iter().map(Denial::ahead).max()?;
        Some(Denial {
            limits,
            now,
            rows: InlineVec::from_fn(rows.len(), |index| rows[index]),
            ready,
            claimed,
            ahead,
        })
    }

    /// The instant of the refusal.
    pub fn now(&self) -> Tick {
        self.now
    }

    /// The same refusal, not to be retried before `ready`: for stores that know of another reason.
    #[must_use]
    pub fn not_before(self, ready: Ready) -> Denial {
        Denial { ready: self.ready.later(ready), ..self }
    }

    /// The same refusal behind waiters that claim the limit at this place. When they are served is not known.
    #[must_use]
    pub fn behind_claim(self, place: usize) -> Denial {
        Denial { claimed: self.claimed | 1 << place, ..self }.not_before(Ready::Unknown)
    }

    /// The same refusal of a waiter that has so many others ahead.
    #[must_use]
    pub fn add_prefetch(self, ahead: u32) -> Denial {
        Denial { ahead, ..self }
    }

    /// How many waiters are known to be ahead: those of other processes, if the store keeps their order. 0 if it is not known.
    pub fn ahead(&self) -> u32 {
        self.ahead
    }

    /// The limits that waiters ahead claim, one bit for each by its place in [`limits`](Denial::limits): the demand is refused
    /// for their sake, whether the limits themselves admit it or not.
    pub fn claimed(&self) -> u64 {
        self.claimed
    }
}

impl fmt::Debug for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Denial").field("wait", &self.wait()).field("statuses", &&*self.rows).finish()
    }
}

/// `tpm has 200 of the 400 asked; retry in 12s`.
impl fmt::Display for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.limited_by() {
            Some(status) => {
                let (limit, asked) = (status.limit(), status.limit().show(status.requested()));
                match u64::try_from(status.available()) {
                    Ok(left) => write!(f, "{} has {} of the {asked} asked", limit.name(), limit.show(left))?,
                    Err(_) => {
                        let debt = limit.show(status.available().unsigned_abs());
                        write!(f, "{} is {debt} in debt, {asked} asked", limit.name())?;
                    }
                }
            }
            None => f.write_str("no limit refuses, but others are ahead or a cooldown lasts")?,
        }
        match self.wait() {
            Some(wait) => write!(f, "; retry in {wait:?}"),
            None => f.write_str("; retry when something was given back"),
        }
    }
}

impl std::error::Error for Denial {}
