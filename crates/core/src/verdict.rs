//! Verdicts: a denial with the status of every limit, and when the demand would fit.

use std::fmt;
use std::time::Duration;

use crate::{InlineVec, Limit, Limits, Tick};

/// When a demand will fit, if no other caller takes or releases anything in the meantime.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Ready, Tick};
///
/// let ready = Ready::At(Tick::from_secs(5));
/// assert_eq!(ready.wait(Tick::from_secs(2)), Some(Duration::from_secs(3)));
/// assert_eq!(Ready::Now.later(ready), ready);
/// assert_eq!(Ready::Unknown.wait(Tick::ZERO), None);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ready {
    /// The demand fits now.
    #[default]
    Now,
    /// The demand fits at this tick, and not a tick earlier.
    At(Tick),
    /// The time is not known, because it depends on releases by other callers.
    Unknown,
}

impl Ready {
    /// Returns the readiness at `tick`; [`Tick::MAX`] is never reached, so it is unknown.
    pub(crate) fn at(tick: Tick) -> Ready {
        if tick == Tick::MAX { Ready::Unknown } else { Ready::At(tick) }
    }

    /// Returns the later of the two; [`Ready::Unknown`] is later than everything.
    pub fn later(self, other: Ready) -> Ready {
        match (self, other) {
            (Ready::Unknown, _) | (_, Ready::Unknown) => Ready::Unknown,
            (Ready::Now, ready) | (ready, Ready::Now) => ready,
            (Ready::At(one), Ready::At(two)) => Ready::At(one.max(two)),
        }
    }

    /// Returns the time from `now` until then, if it is known.
    pub fn wait(self, now: Tick) -> Option<Duration> {
        match self {
            Ready::Now => Some(Duration::ZERO),
            Ready::At(tick) => Some(tick.since(now).to_duration()),
            Ready::Unknown => None,
        }
    }
}

/// The limits that do not admit a demand, one bit for each, by its index.
///
/// ```
/// use tollgate_core::{Ready, Shortage, Tick};
///
/// let short = [(0, Ready::At(Tick::from_secs(1))), (2, Ready::At(Tick::from_secs(9)))];
/// let shortage: Shortage = short.into_iter().collect();
/// assert_eq!((shortage.short, shortage.slowest), (0b101, 0b100));
/// assert_eq!(shortage.ready, Ready::At(Tick::from_secs(9)));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shortage {
    /// All limits that do not admit the demand.
    pub short: u64,
    /// Those of them that take longest.
    pub slowest: u64,
    /// When the slowest admit the demand.
    pub ready: Ready,
}

impl FromIterator<(usize, Ready)> for Shortage {
    /// Collects the indexes of limits that do not admit a demand, with when each of them will.
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

/// The status of one limit for a demand.
///
/// ```
/// use tollgate_core::{Bucket, Limit, Limits, Ready, Tick};
///
/// let limits = Limits::new([Limit::per_minute("rpm", 10)])?;
/// let bucket = Bucket::fresh(&limits, Tick::ZERO);
/// let status = &bucket.peek(&limits, Tick::ZERO)[0];
/// assert_eq!((status.limit().name().as_str(), status.available()), ("rpm", 10));
/// assert_eq!(status.full(), Ready::Now);
/// # Ok::<(), tollgate_core::LimitsError>(())
/// ```
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
    /// Returns the limit.
    pub fn limit(&self) -> &Limit {
        &self.limit
    }

    /// Returns how much is available now, in whole units. A negative number is debt; an unbounded
    /// limit has `i64::MAX`.
    pub fn available(&self) -> i64 {
        self.state.available
    }

    /// Returns how much the demand asks; 0 if it does not take from the limit.
    pub fn requested(&self) -> u64 {
        self.state.requested
    }

    /// Returns true if the limit denies the demand.
    pub fn is_exceeded(&self) -> bool {
        self.state.ready != Ready::Now
    }

    /// Returns when the limit alone would admit the demand.
    pub fn ready(&self) -> Ready {
        self.state.ready
    }

    /// Returns when the limit will be full again if no caller takes from it.
    pub fn full(&self) -> Ready {
        self.state.full
    }
}

/// A denied demand: the status of every limit, and when all of them would admit it.
///
/// ```
/// use tollgate_core::{Bucket, Limit, Limits, Take, Tick, demand};
///
/// let limits = Limits::new([Limit::per_minute("tpm", 1_000)])?;
/// let costs = limits.costs(&demand! { tpm: 800 })?;
/// let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
/// bucket.take(&limits, Tick::ZERO, &Take::of(&costs)).expect("800 fit");
/// let denial = bucket.take(&limits, Tick::ZERO, &Take::of(&costs)).unwrap_err();
/// assert_eq!(denial.to_string(), "tpm has 200 of the 800 asked; retry in 36s");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, PartialEq)]
pub struct Denial {
    pub(crate) limits: Limits,
    pub(crate) now: Tick,
    pub(crate) statuses: InlineVec<LimitStatus>,
    pub(crate) ready: Ready,
    /// The limits that waiters ahead claim, one bit for each, by its index.
    pub(crate) claimed: u64,
    /// The number of waiters that are known to be ahead.
    pub(crate) ahead: u32,
}

impl Denial {
    /// Returns the status of every limit, in the order of the set.
    pub fn statuses(&self) -> impl Iterator<Item = Status> + '_ {
        let shown = self.limits.iter().zip(self.statuses.iter()).filter(|(limit, _)| !limit.is_cooldown());
        shown.map(|(limit, state)| Status { limit: limit.clone(), state: *state })
    }

    /// Returns the limit that takes longest, which is the one to show if there is room for only
    /// one.
    ///
    /// Returns `None` if no limit denies: the demand was denied for another reason, such as a
    /// cooldown or a queue.
    pub fn limited_by(&self) -> Option<Status> {
        let refusing = self.statuses().filter(Status::is_exceeded);
        refusing.reduce(|slowest, status| {
            let as_slow = slowest.ready().later(status.ready()) == slowest.ready();
            if as_slow { slowest } else { status }
        })
    }

    /// Returns the limits that deny, including a [cooldown](Limit::cooldown), by their indexes in
    /// [`limits`](Denial::limits).
    pub fn shortage(&self) -> Shortage {
        let refusing = self.statuses.iter().enumerate().filter(|(_, status)| status.ready != Ready::Now);
        refusing.map(|(index, status)| (index, status.ready)).collect()
    }

    /// Returns when all limits would admit the demand.
    pub fn ready(&self) -> Ready {
        self.ready
    }

    /// Returns the time until then, if it is known. If no waiter is ahead, the demand is admitted
    /// after this wait and not a microsecond earlier; behind waiters it is a lower bound.
    pub fn wait(&self) -> Option<Duration> {
        self.ready.wait(self.now)
    }

    /// Returns when the demand could fit at the earliest, if every holder releases now: a resource
    /// that is held until its holder expires may be free at any time.
    pub fn earliest(&self) -> Ready {
        let limits = || self.limits.iter().zip(self.statuses.iter());
        if !limits().any(|(limit, status)| limit.is_resource() && status.ready != Ready::Now) {
            return self.ready;
        }
        let timed = limits().filter(|(limit, _)| !limit.is_resource());
        timed.fold(Ready::Now, |latest, (_, status)| latest.later(status.ready))
    }

    /// Returns the end of the active [cooldown](Limit::cooldown), if there is one.
    pub fn cooling_until(&self) -> Option<Tick> {
        let (_, cooldown) =
            self.limits.iter().zip(self.statuses.iter()).find(|(limit, _)| limit.is_cooldown())?;
        match cooldown.full {
            Ready::Now => None,
            Ready::At(tick) => Some(tick),
            Ready::Unknown => Some(Tick::MAX),
        }
    }

    /// Returns the limits of the bucket that denied.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Joins the denials of a demand for several buckets: the status of every limit of each.
    /// Returns `None` if `denials` is empty, or if two of them have a limit of the same name.
    pub fn joined(denials: &[Denial]) -> Option<Denial> {
        let limits = denials.iter().flat_map(|denial| denial.limits.iter().cloned());
        let limits = Limits::new(limits.collect::<Vec<_>>()).ok()?;
        let all: Vec<LimitStatus> =
            denials.iter().flat_map(|denial| denial.statuses.iter().copied()).collect();
        let ready = denials.iter().map(Denial::ready).fold(Ready::Now, Ready::later);
        let now = denials.iter().map(Denial::now).max()?;
        let (claimed, _) = denials.iter().fold((0, 0), |(claimed, shift), denial| {
            (claimed | denial.claimed << shift, shift + denial.limits.len())
        });
        let ahead = denials.iter().map(Denial::ahead).max()?;
        Some(Denial {
            limits,
            now,
            statuses: InlineVec::from_fn(all.len(), |index| all[index]),
            ready,
            claimed,
            ahead,
        })
    }

    /// Returns the instant of the denial.
    pub fn now(&self) -> Tick {
        self.now
    }

    /// Sets the earliest retry to `ready` if that is later: for stores that deny for a reason of
    /// their own.
    #[must_use]
    pub fn not_before(self, ready: Ready) -> Denial {
        Denial { ready: self.ready.later(ready), ..self }
    }

    /// Marks the limit at `index` as claimed by waiters ahead. When they are served is not known.
    // Hidden: only stores build denials.
    #[doc(hidden)]
    #[must_use]
    pub fn behind_claim(self, index: usize) -> Denial {
        Denial { claimed: self.claimed | 1 << index, ..self }.not_before(Ready::Unknown)
    }

    /// Sets the number of waiters ahead.
    // Hidden: only stores build denials.
    #[doc(hidden)]
    #[must_use]
    pub fn with_ahead(self, ahead: u32) -> Denial {
        Denial { ahead, ..self }
    }

    /// Returns the number of waiters known to be ahead: those of other processes, if the store
    /// orders them. 0 if it is not known.
    pub fn ahead(&self) -> u32 {
        self.ahead
    }

    /// Returns the limits that waiters ahead claim, one bit for each, by its index in
    /// [`limits`](Denial::limits): the demand is denied on their behalf, whether the limits
    /// themselves admit it or not.
    pub fn claimed(&self) -> u64 {
        self.claimed
    }
}

impl fmt::Debug for Denial {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Denial").field("wait", &self.wait()).field("statuses", &&*self.statuses).finish()
    }
}

/// Writes `tpm has 200 of the 400 asked; retry in 12s`.
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
            None => f.write_str("no limit denies, but a waiter is ahead or a cooldown is active")?,
        }
        match self.wait() {
            Some(wait) => write!(f, "; retry in {wait:?}"),
            None => f.write_str("; retry after a release"),
        }
    }
}

impl std::error::Error for Denial {}
