//! The queue in front of a bucket: who waits, in what order, and what became of them.
//!
//! A waiter's rank is the instant it came plus the patience of its priority. The least rank goes first, so
//! within a priority it is first come, first served, and a more patient waiter is passed over by less patient
//! ones only for as long as its patience lasts. That is one ordered map, and starvation has a bound that can be
//! read off.

use std::collections::{BTreeMap, BTreeSet};
use std::task::Waker;
use std::time::Duration;

use tollgate_core::{Costs, DemandError, Denial, Span, Tick};

use crate::cell::Term;

/// How many may wait for one bucket unless the request says otherwise.
pub const WAITERS_MAX: usize = 1_000_000;

/// How long a waiter of each priority may be passed over, from [`Priority::Interactive`] to [`Priority::Batch`].
pub const PATIENCE: [Duration; 3] = [Duration::ZERO, Duration::from_secs(5), Duration::from_secs(60)];

/// Who goes first when several wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Priority {
    /// Somebody looks at a screen: passed over by nobody who came later.
    Interactive,
    /// The usual: passed over by interactive ones for at most 5 seconds.
    #[default]
    Normal,
    /// Whenever there is room: passed over by others for at most a minute.
    Batch,
}

impl Priority {
    fn patience(self) -> Span {
        Span::covering(PATIENCE[self as usize])
    }
}

/// The place of a waiter in the queue. The least goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rank {
    /// When it came, and for how long it may be passed over.
    pub due: Tick,
    /// Of those who are due at the same time, who came first.
    pub ticket: u64,
}

impl Rank {
    /// Of one who came at `since`.
    pub(crate) fn new(priority: Priority, since: Tick, ticket: u64) -> Rank {
        Rank { due: since + priority.patience(), ticket }
    }

    /// Of one who comes now, and so stands behind everybody of the same due time.
    pub(crate) fn newcomer(priority: Priority, now: Tick) -> Rank {
        Rank::new(priority, now, u64::MAX)
    }
}

pub(crate) struct Waiter {
    pub(crate) costs: Costs,
    pub(crate) term: Option<Term>,
    pub(crate) since: Tick,
    pub(crate) deadline: Option<Tick>,
    pub(crate) waker: Waker,
}

/// What became of a waiter. The grant is the commit: what is granted has been taken.
pub(crate) enum Fate {
    Granted { at: Tick, costs: Costs, waited: Span },
    TimedOut { denial: Box<Denial>, waited: Span },
    Impossible(DemandError),
    Gone,
}

#[derive(Default)]
pub(crate) struct Queue {
    waiting: BTreeMap<Rank, Waiter>,
    deadlines: BTreeSet<(Tick, Rank)>,
    fates: BTreeMap<Rank, Fate>,
    /// The sum of what everybody waits for, so that a newcomer's wait can be told without asking each.
    total: Option<Costs>,
    tickets: u64,
}

impl Queue {
    pub(crate) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Whether nobody waits and nobody has yet to hear what became of them.
    pub(crate) fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.fates.is_empty()
    }

    pub(crate) fn head(&self) -> Option<(Rank, &Waiter)> {
        self.waiting.first_key_value().map(|(rank, waiter)| (*rank, waiter))
    }

    /// Whether somebody waits who may not be overtaken by a newcomer of this priority.
    pub(crate) fn is_ahead_of(&self, priority: Priority, now: Tick) -> bool {
        let newcomer = Rank::newcomer(priority, now);
        self.head().is_some_and(|(head, _)| head < newcomer)
    }

    /// The costs of everybody whom a newcomer of this priority would wait behind.
    pub(crate) fn costs_ahead_of(&self, priority: Priority, now: Tick, limits: usize) -> Costs {
        let newcomer = Rank::newcomer(priority, now);
        let mut sum = Costs::none(limits);
        let is_last = self.waiting.last_key_value().is_none_or(|(last, _)| *last < newcomer);
        match &self.total {
            Some(total) if is_last => sum.add(total),
            _ => self.waiting.range(..newcomer).for_each(|(_, waiter)| sum.add(&waiter.costs)),
        }
        sum
    }

    pub(crate) fn push(&mut self, priority: Priority, waiter: Waiter) -> Rank {
        self.tickets += 1;
        let rank = Rank::new(priority, waiter.since, self.tickets);
        match &mut self.total {
            Some(total) => total.add(&waiter.costs),
            None => self.total = Some(waiter.costs.clone()),
        }
        if let Some(deadline) = waiter.deadline {
            self.deadlines.insert((deadline, rank));
        }
        self.waiting.insert(rank, waiter);
        rank
    }

    /// Takes a waiter out; `None` if it does not wait any more.
    pub(crate) fn remove(&mut self, rank: Rank) -> Option<Waiter> {
        let waiter = self.waiting.remove(&rank)?;
        if let Some(deadline) = waiter.deadline {
            self.deadlines.remove(&(deadline, rank));
        }
        if let Some(total) = &mut self.total {
            total.sub(&waiter.costs);
        }
        if self.waiting.is_empty() {
            self.total = None;
        }
        Some(waiter)
    }

    /// Takes a waiter out and leaves word of what became of it. Answers whom to wake.
    pub(crate) fn decide(&mut self, rank: Rank, fate: impl FnOnce(Waiter) -> (Fate, Waker)) -> Option<Waker> {
        let waiter = self.remove(rank)?;
        let (fate, waker) = fate(waiter);
        self.fates.insert(rank, fate);
        Some(waker)
    }

    /// Makes `waker` the one to wake, and answers the one it replaces: to be dropped when no lock is held,
    /// because it may be the last of a task that waits here, too.
    pub(crate) fn leave_waker(&mut self, rank: Rank, waker: &Waker) -> Option<Waker> {
        let waiter = self.waiting.get_mut(&rank).filter(|waiter| !waiter.waker.will_wake(waker))?;
        Some(std::mem::replace(&mut waiter.waker, waker.clone()))
    }

    /// What became of the waiter, told once.
    pub(crate) fn forget(&mut self, rank: Rank) -> Option<Fate> {
        self.fates.remove(&rank)
    }

    /// The next deadline.
    pub(crate) fn next_deadline(&self) -> Option<Tick> {
        self.deadlines.first().map(|(deadline, _)| *deadline)
    }

    /// Somebody whose deadline has passed.
    pub(crate) fn overdue(&self, now: Tick) -> Option<Rank> {
        self.deadlines.first().filter(|(deadline, _)| *deadline <= now).map(|(_, rank)| *rank)
    }

    /// Everybody who waits, in order.
    pub(crate) fn ranks(&self) -> Vec<Rank> {
        self.waiting.keys().copied().collect()
    }

    pub(crate) fn waiter(&self, rank: Rank) -> Option<&Waiter> {
        self.waiting.get(&rank)
    }

    /// Changes all costs that the queue remembers, when the limits they are counted in have changed places.
    pub(crate) fn for_each_costs(&mut self, mut change: impl FnMut(&mut Costs)) {
        let granted = self.fates.values_mut().filter_map(|fate| match fate {
            Fate::Granted { costs, .. } => Some(costs),
            _ => None,
        });
        let waiting = self.waiting.values_mut().map(|waiter| &mut waiter.costs);
        waiting.chain(granted).chain(&mut self.total).for_each(&mut change);
    }
}
