//! The queue in front of a bucket: its waiters, their order, and the results of their waits.
//!
//! A waiter's rank is the instant it came plus the patience of its priority. The least rank goes first, so
//! within a priority it is first come, first served, and a more patient waiter is passed over by less patient
//! ones only for as long as its patience lasts.
//!
//! The order holds for each limit, not for the bucket. A waiter *claims* the limit that it was found short of, until it is
//! granted, and a demand of a greater rank is held back by a claim on a limit that it takes from. Waiters that take
//! from the same limits are a [`WaiterClass`]: if the first of a class does not pass, none behind it does, because the first
//! claims a limit that all of them take from, or is held back by such a claim. So a look at the first of each class is a
//! look at all waiters, however many there are.
//!
//! A grant takes at once what the waiter asks for, and the waiter collects it when it is polled. One that does not within
//! [`REACTION_MAX`] would keep it from all others, for ever if it is a resource. So the grant is taken back, and the waiter
//! is *passed over*: it claims nothing and is granted nothing until it is polled, and then has the rank that it had.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;
use std::time::Duration;

use tollgate_core::{Costs, DemandError, Denial, Shortage, Span, Tick};

use crate::Taken;
use crate::bucket_cell::LeaseTerm;
#[cfg(not(loom))]
use crate::clock::Clock;

/// The number of callers that may wait for one bucket unless the request sets another one.
pub const WAITERS_MAX: usize = 1_000_000;

/// The time for which a waiter of each priority may be passed over, from [`Priority::Interactive`] to [`Priority::Batch`].
pub const PRIORITY_OFFSET: [Duration; 3] = [Duration::ZERO, Duration::from_secs(5), Duration::from_secs(60)];

/// How long a waiter may take to react, to a grant in memory or at the head of a wait queue, before others pass it. With
/// the time it takes to find that out, it holds them back for less than a second. By the clock of the system, whatever that
/// of the bucket or the store is: it is a thread or a task that takes this long, and it runs no faster when a test moves
/// another clock.
pub(crate) const REACTION_MAX: Span = Span::from_millis(750);

/// The priority of a waiter: how long others may overtake it.
///
/// # Examples
///
/// ```
/// use tollgate_core::Span;
/// use tollgate_store::Priority;
///
/// assert_eq!(Priority::default(), Priority::Normal);
/// assert_eq!(Priority::Normal.patience(), Span::from_secs(5));
/// assert!(Priority::Interactive.patience() < Priority::Batch.patience());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// For a user at a screen: passed over by no waiter that came later.
    Interactive,
    /// For most calls: passed over by interactive ones for at most 5 seconds.
    #[default]
    Normal,
    /// For work that has time: passed over by others for at most a minute.
    Batch,
}

impl Priority {
    /// Returns how long a waiter of this priority may be passed over.
    pub fn patience(self) -> Span {
        Span::covering(PRIORITY_OFFSET[self as usize])
    }
}

/// The place of a waiter in the queue. The least goes first.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Span, Tick};
/// use tollgate_store::{Clock, Priority, WaitQueues};
///
/// let (queues, clock, now) = (WaitQueues::default(), Clock::system(), Tick::from_secs(10));
/// let batch = queues.guard(&clock, Priority::Batch, now).rank();
/// let interactive = queues.guard(&clock, Priority::Interactive, now + Span::from_secs(59)).rank();
/// assert!(interactive < batch, "it overtakes a batch that has waited for less than a minute");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// The time at which it came plus the time for which it may be passed over.
    pub due: Tick,
    /// The order of arrival among those that are due at the same time.
    pub ticket: u64,
}

impl Rank {
    /// Returns the rank of a waiter that came at `since`.
    pub(crate) fn new(priority: Priority, since: Tick, ticket: u64) -> Rank {
        Rank { due: since + priority.patience(), ticket }
    }

    /// Returns the rank of a waiter that comes now, and so is behind all others of the same due time.
    pub(crate) fn newcomer(priority: Priority, now: Tick) -> Rank {
        Rank::new(priority, now, u64::MAX)
    }
}

pub(crate) struct QueuedWaiter {
    pub(crate) costs: Costs,
    pub(crate) term: Option<LeaseTerm>,
    pub(crate) since: Tick,
    pub(crate) deadline: Option<Tick>,
    pub(crate) waker: Waker,
}

/// The waiters that take from the same limits, in order.
struct WaiterClass {
    /// The limits they take from, one bit for each by its place.
    mask: u64,
    waiting: BTreeMap<Rank, QueuedWaiter>,
    /// The sum of what they wait for, so that a newcomer's wait can be computed without a look at each.
    total: Costs,
}

/// What became of a waiter. The grant is the commit: what is granted has been taken.
pub(crate) enum WaitResult {
    /// It has been granted since `since`, by the clock of the system. The waker of the waiter has been called.
    Granted {
        taken: Taken,
        waited: Span,
        waiter: QueuedWaiter,
        since: Tick,
    },
    TimedOut {
        denial: Box<Denial>,
        waited: Span,
    },
    Impossible(DemandError),
    Gone,
}

#[derive(Default)]
pub(crate) struct CellQueue {
    /// One for each combination of limits that waiters take from.
    classes: Vec<WaiterClass>,
    /// The limits that waiters claim. Only the first of a class gets to claim any, so there are few.
    claims: BTreeMap<Rank, u64>,
    deadlines: BTreeSet<(Tick, Rank)>,
    results: BTreeMap<Rank, WaitResult>,
    /// The grants among the results, the oldest first, by the clock of the system.
    uncollected: BTreeSet<(Tick, Rank)>,
    /// The waiters that did not collect a grant in time. They have no place in a class and claim nothing until they are
    /// polled, and no deadline: they have been woken, and would not notice.
    passed_over: BTreeMap<Rank, QueuedWaiter>,
    tickets: u64,
}

impl CellQueue {
    pub(crate) fn len(&self) -> usize {
        self.classes.iter().map(|class| class.waiting.len()).sum::<usize>() + self.passed_over.len()
    }

    /// Returns true if there is no waiter to serve. Those that were passed over are not served.
    pub(crate) fn is_empty(&self) -> bool {
        self.classes.is_empty()
    }

    /// Returns whether no waiter is left, and none has yet to collect its result.
    pub(crate) fn is_idle(&self) -> bool {
        self.classes.is_empty() && self.results.is_empty() && self.passed_over.is_empty()
    }

    /// The least rank behind `rank` that is the first of its class.
    pub(crate) fn next_first(&self, rank: Option<Rank>) -> Option<Rank> {
        let firsts = self.classes.iter().filter_map(|class| class.waiting.keys().next());
        firsts.filter(|first| rank.is_none_or(|rank| **first > rank)).min().copied()
    }

    /// Returns true if a waiter of a lesser rank claims one of these limits.
    pub(crate) fn is_claimed_before(&self, rank: Rank, mask: u64) -> bool {
        self.claims.range(..rank).any(|(_, claimed)| claimed & mask != 0)
    }

    /// Returns true if a waiter claims one of these limits that a newcomer of this priority may not overtake.
    pub(crate) fn is_ahead_of(&self, priority: Priority, now: Tick, mask: u64) -> bool {
        self.is_claimed_before(Rank::newcomer(priority, now), mask)
    }

    /// Claims a limit for a waiter that is short of some. Only if it is short of none that it claims already: until it
    /// has those, others may as well have the rest. So claims only grow, and only as far as it takes.
    pub(crate) fn claim(&mut self, rank: Rank, shortage: Shortage) {
        let claimed = self.claims.entry(rank).or_default();
        if *claimed & shortage.short == 0 {
            *claimed |= shortage.slowest;
        }
    }

    /// The costs of all waiters that are sure to pass before a newcomer of this priority that takes from these limits.
    ///
    /// Those that claim one of the limits are. So are those that take from no other: while one of them does not pass, it
    /// claims one of the limits, or is held back by a claim on one.
    pub(crate) fn costs_ahead_of(&self, priority: Priority, now: Tick, mask: u64, limits: usize) -> Costs {
        let newcomer = Rank::newcomer(priority, now);
        let mut sum = Costs::none(limits);
        let takes_no_other = |class: &&WaiterClass| class.mask & !mask == 0;
        for class in self.classes.iter().filter(takes_no_other) {
            match class.waiting.last_key_value() {
                Some((last, _)) if *last < newcomer => sum.add(&class.total),
                _ => class.waiting.range(..newcomer).for_each(|(_, waiter)| sum.add(&waiter.costs)),
            }
        }
        for (rank, _) in self.claims.range(..newcomer).filter(|(_, claimed)| *claimed & mask != 0) {
            let class = self.class_of(*rank).filter(|class| !takes_no_other(class));
            class.into_iter().for_each(|class| sum.add(&class.waiting[rank].costs));
        }
        sum
    }

    /// The costs of the first waiter that holds back one of this rank, which takes from these limits.
    pub(crate) fn first_ahead_of(&self, rank: Rank, mask: u64) -> Option<&Costs> {
        let (first, _) = self.claims.range(..rank).find(|(_, claimed)| *claimed & mask != 0)?;
        self.waiter(*first).map(|waiter| &waiter.costs)
    }

    pub(crate) fn push(&mut self, priority: Priority, waiter: QueuedWaiter) -> Rank {
        self.tickets += 1;
        let rank = Rank::new(priority, waiter.since, self.tickets);
        self.enqueue(rank, waiter);
        rank
    }

    fn enqueue(&mut self, rank: Rank, waiter: QueuedWaiter) {
        if let Some(deadline) = waiter.deadline {
            self.deadlines.insert((deadline, rank));
        }
        self.insert(rank, waiter);
    }

    fn insert(&mut self, rank: Rank, waiter: QueuedWaiter) {
        let mask = waiter.costs.mask();
        match self.classes.iter_mut().find(|class| class.mask == mask) {
            Some(class) => {
                class.total.add(&waiter.costs);
                class.waiting.insert(rank, waiter);
            }
            None => {
                let total = waiter.costs.clone();
                self.classes.push(WaiterClass { mask, waiting: BTreeMap::from([(rank, waiter)]), total });
            }
        }
    }

    fn class_of(&self, rank: Rank) -> Option<&WaiterClass> {
        self.classes.iter().find(|class| class.waiting.contains_key(&rank))
    }

    /// Takes a waiter out; `None` if it does not wait any more.
    pub(crate) fn remove(&mut self, rank: Rank) -> Option<QueuedWaiter> {
        if let Some(waiter) = self.passed_over.remove(&rank) {
            return Some(waiter);
        }
        let index = self.classes.iter().position(|class| class.waiting.contains_key(&rank))?;
        let class = &mut self.classes[index];
        let waiter = class.waiting.remove(&rank)?;
        class.total.sub(&waiter.costs);
        if class.waiting.is_empty() {
            self.classes.swap_remove(index);
        }
        self.claims.remove(&rank);
        if let Some(deadline) = waiter.deadline {
            self.deadlines.remove(&(deadline, rank));
        }
        Some(waiter)
    }

    /// Takes a waiter out and leaves word of what became of it. Answers whom to wake.
    pub(crate) fn complete(
        &mut self,
        rank: Rank,
        result: impl FnOnce(QueuedWaiter) -> (WaitResult, Waker),
    ) -> Option<Waker> {
        let waiter = self.remove(rank)?;
        let (result, waker) = result(waiter);
        self.results.insert(rank, result);
        Some(waker)
    }

    /// Takes a waiter out that has been granted what it asks, as of `taken.at`. Answers whom to wake.
    pub(crate) fn grant(&mut self, rank: Rank, taken: Taken, now: Tick) -> Option<Waker> {
        let since = system_now();
        self.uncollected.insert((since, rank));
        self.complete(rank, |mut waiter| {
            let waker = std::mem::replace(&mut waiter.waker, Waker::noop().clone());
            (WaitResult::Granted { taken, waited: now.since(waiter.since), waiter, since }, waker)
        })
    }

    /// When the oldest grant will have been left uncollected for too long, by the clock of the system.
    pub(crate) fn collected_by(&self) -> Option<Tick> {
        self.uncollected.first().map(|(since, _)| *since + REACTION_MAX)
    }

    /// Passes over a waiter that has not collected its grant in time, if there is one. Answers what the grant took, and
    /// when; the caller gives it back.
    pub(crate) fn pass_over(&mut self) -> Option<(Tick, &QueuedWaiter)> {
        let overdue = self.collected_by()?;
        if system_now() < overdue {
            return None;
        }
        let (_, rank) = self.uncollected.pop_first()?;
        let Some(WaitResult::Granted { taken, waiter, .. }) = self.results.remove(&rank) else { return None };
        Some((taken.at, self.passed_over.entry(rank).or_insert(waiter)))
    }

    /// Lets a waiter that was passed over take its place again, because it is polled. `false` if it was not passed over.
    pub(crate) fn take_place_again(&mut self, rank: Rank, waker: &Waker) -> bool {
        let Some(waiter) = self.passed_over.remove(&rank) else { return false };
        self.enqueue(rank, QueuedWaiter { waker: waker.clone(), ..waiter });
        true
    }

    /// Makes `waker` the one to wake, and answers the one it replaces: to be dropped when no lock is held,
    /// because it may be the last of a task that waits here, too.
    pub(crate) fn leave_waker(&mut self, rank: Rank, waker: &Waker) -> Option<Waker> {
        let waiter = self.classes.iter_mut().find_map(|class| class.waiting.get_mut(&rank))?;
        if waiter.waker.will_wake(waker) {
            return None;
        }
        Some(std::mem::replace(&mut waiter.waker, waker.clone()))
    }

    /// Returns what became of the waiter, once.
    pub(crate) fn take_result(&mut self, rank: Rank) -> Option<WaitResult> {
        let result = self.results.remove(&rank)?;
        if let WaitResult::Granted { since, .. } = &result {
            self.uncollected.remove(&(*since, rank));
        }
        Some(result)
    }

    /// The next deadline.
    pub(crate) fn next_deadline(&self) -> Option<Tick> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// A waiter whose deadline has passed.
    pub(crate) fn overdue(&self, now: Tick) -> Option<Rank> {
        self.deadlines.first().filter(|(deadline, _)| *deadline <= now).map(|(_, rank)| *rank)
    }

    /// All waiters, those that were passed over as well.
    pub(crate) fn ranks(&self) -> Vec<Rank> {
        let waiting = self.classes.iter().flat_map(|class| class.waiting.keys());
        waiting.chain(self.passed_over.keys()).copied().collect()
    }

    pub(crate) fn waiter(&self, rank: Rank) -> Option<&QueuedWaiter> {
        let waiting = self.classes.iter().find_map(|class| class.waiting.get(&rank));
        waiting.or_else(|| self.passed_over.get(&rank))
    }

    /// Changes all costs that the queue remembers, when the limits they are counted in have changed places. Claims, which
    /// are by place as well, are made anew by the next look at the queue.
    pub(crate) fn for_each_costs(&mut self, mut change: impl FnMut(&mut Costs)) {
        for result in self.results.values_mut() {
            if let WaitResult::Granted { waiter, .. } = result {
                change(&mut waiter.costs);
            }
        }
        self.passed_over.values_mut().for_each(|waiter| change(&mut waiter.costs));
        self.claims.clear();
        for (rank, mut waiter) in
            std::mem::take(&mut self.classes).into_iter().flat_map(|class| class.waiting)
        {
            change(&mut waiter.costs);
            self.insert(rank, waiter);
        }
    }
}

/// The clock that reactions go by. In a model no time passes for them.
fn system_now() -> Tick {
    #[cfg(loom)]
    return Tick::ZERO;
    #[cfg(not(loom))]
    Clock::system().now()
}
