//! A bucket: the state of all limits that share one key. The unit of atomicity.

use std::borrow::Cow;

use crate::fast_bucket::Credits;
use crate::{
    Costs, Denial, InlineVec, Limit, Limits, Packed, Ready, Shortage, SmallCosts, State, Status, Tick,
};

/// The state of all limits that share one key, as of one instant.
///
/// The instant never goes back: a clock that does is answered as of the last use, which mints nothing, and
/// time stands still until the clock has caught up.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    stamp: Tick,
    states: States,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum States {
    /// Whenever the limits and what happened to them allow it.
    Plain(Credits),
    /// One for each limit.
    General(Box<[State]>),
}

/// Who holds what was taken of a resource, and until when unless the holder is renewed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// Unique among all holders.
    pub id: u128,
    /// When the hold ends by itself.
    pub expires: Tick,
}

/// A demand to take.
#[derive(Clone, Debug)]
pub struct Take<'a> {
    /// What of which limit.
    pub costs: &'a Costs,
    /// Who holds the resources; `None` for one who is sure to give them back.
    pub holder: Option<Holder>,
}

/// What came of something that was taken: how much of it was really used.
#[derive(Clone, Debug)]
pub struct Usage<'a> {
    /// When it was taken, as [`Bucket::take`] said.
    pub at: Tick,
    /// What was taken.
    pub reserved: &'a Costs,
    /// What was used of each limit, in the order of the limits, be it that nothing was taken of it. Resources are
    /// given back whatever it says.
    pub used: &'a [u64],
    /// Who held the resources.
    pub holder: Option<u128>,
}

impl<'a> Take<'a> {
    /// Takes `costs` for a caller that is sure to give resources back.
    pub fn of(costs: &'a Costs) -> Take<'a> {
        Take { costs, holder: None }
    }
}

impl Usage<'_> {
    fn settle_one(&self, index: usize, limit: &Limit, state: &mut State, now: Tick) {
        let reserved = self.reserved.amount(index);
        // A resource is given back whatever was used of it.
        let used = if limit.is_resource() { 0 } else { self.used[index] };
        if used < reserved {
            state.refund(limit, self.at, now, reserved - used, self.holder);
        } else if used > reserved {
            state.charge(limit, now, used - reserved, None);
        }
    }

    /// Whether more was used of any limit than was taken.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.used.iter().zip(self.reserved.amounts()).any(|(used, reserved)| used > reserved)
    }
}

impl Bucket {
    /// A bucket of which nothing was used.
    pub fn fresh(limits: &Limits, now: Tick) -> Bucket {
        let states = match limits.plain() {
            Some(rules) => States::Plain(rules.fresh()),
            None => States::General(limits.iter().map(State::fresh).collect()),
        };
        Bucket { stamp: now, states }
    }

    /// The instant the bucket is as of.
    pub fn stamp(&self) -> Tick {
        self.stamp
    }

    /// A bucket with these states, one for each limit.
    pub(crate) fn of_states(limits: &Limits, stamp: Tick, states: Box<[State]>) -> Bucket {
        let mut bucket = Bucket { stamp, states: States::General(states) };
        bucket.change(limits, |_| ());
        bucket
    }

    /// A bucket with these credits.
    pub(crate) fn plain(stamp: Tick, credits: Credits) -> Bucket {
        Bucket { stamp, states: States::Plain(credits) }
    }

    pub(crate) fn states(&self) -> &States {
        &self.states
    }

    pub(crate) fn state(&self, limits: &Limits, index: usize) -> Cow<'_, State> {
        match (&self.states, limits.plain()) {
            (States::Plain(credits), Some(rules)) => Cow::Owned(rules.state(credits, index)),
            (States::Plain(_), None) => Cow::Owned(State::fresh(&limits[index])),
            (States::General(states), _) => Cow::Borrowed(&states[index]),
        }
    }

    /// Changes the states one by one, and makes them plain again if they can be.
    fn change<R>(&mut self, limits: &Limits, change: impl FnOnce(&mut [State]) -> R) -> R {
        let mut states: Box<[State]> = match &mut self.states {
            // A custom rule may panic: then the states are still there, as they were.
            States::General(states) if limits.have_custom() => states.clone(),
            States::General(states) => std::mem::take(states),
            States::Plain(_) => {
                (0..limits.len()).map(|index| self.state(limits, index).into_owned()).collect()
            }
        };
        let result = change(&mut states);
        self.states = match limits.plain().and_then(|rules| rules.credits_of(&states)) {
            Some(credits) => States::Plain(credits),
            None => States::General(states),
        };
        result
    }

    /// Takes all of it, or nothing. Answers when it was taken, which a refund will want to know.
    ///
    /// # Errors
    ///
    /// [`Denial`] with the status of every limit; the bucket is as it was.
    #[allow(
        clippy::result_large_err,
        reason = "a denial is a value, and allocates nothing for up to 8 limits"
    )]
    pub fn take(&mut self, limits: &Limits, now: Tick, take: &Take<'_>) -> Result<Tick, Denial> {
        if self.fits(limits, now, take.costs) {
            return Ok(self.commit(limits, now, take));
        }
        Err(self.denial(limits, now, take.costs))
    }

    /// Takes `costs` if the bucket is plain and they fit, which is the common case; otherwise does nothing, and
    /// [`take`](Bucket::take) knows more.
    #[inline(always)]
    pub fn take_plain(&mut self, limits: &Limits, now: Tick, costs: &SmallCosts) -> Option<Tick> {
        let (States::Plain(credits), Some(rules)) = (&mut self.states, limits.plain()) else { return None };
        if !rules.take_few(credits, now.since(self.stamp).as_micros(), costs.amounts()) {
            return None;
        }
        self.stamp = now.max(self.stamp);
        Some(self.stamp)
    }

    /// Returns whether [`take_plain`](Bucket::take_plain) would take `costs` at `now`.
    #[inline(always)]
    pub fn fits_plain(&self, limits: &Limits, now: Tick, costs: &SmallCosts) -> bool {
        match (&self.states, limits.plain()) {
            (States::Plain(credits), Some(rules)) => {
                rules.fits_few(credits, now.since(self.stamp).as_micros(), costs.amounts())
            }
            _ => false,
        }
    }

    /// Whether all of `costs` fits at `now`; [`commit`](Bucket::commit) then takes it. In two halves, so that a
    /// chain can ask every bucket before it takes from any.
    #[inline(always)]
    pub fn fits(&self, limits: &Limits, now: Tick, costs: &Costs) -> bool {
        match (&self.states, limits.plain(), costs.inline()) {
            (States::Plain(credits), Some(rules), Some(costs)) => {
                rules.fits(credits, now.since(self.stamp).as_micros(), costs)
            }
            _ => self.fits_each(limits, now, costs),
        }
    }

    /// Takes what was found to [fit](Bucket::fits) at the same instant. Answers when it was taken.
    #[inline(always)]
    pub fn commit(&mut self, limits: &Limits, now: Tick, take: &Take<'_>) -> Tick {
        match (&mut self.states, limits.plain(), take.costs.inline()) {
            (States::Plain(credits), Some(rules), Some(costs)) if take.holder.is_none() => {
                rules.take(credits, now.since(self.stamp).as_micros(), costs);
            }
            _ => self.take_each(limits, now, take),
        }
        self.stamp = now.max(self.stamp);
        self.stamp
    }

    #[inline(never)]
    fn fits_each(&self, limits: &Limits, now: Tick, costs: &Costs) -> bool {
        let now = now.max(self.stamp);
        let mut rows = limits.iter().zip(costs.amounts()).enumerate();
        rows.all(|(index, (limit, cost))| {
            *cost == 0 || self.state(limits, index).fits(limit, self.stamp, now, *cost)
        })
    }

    #[inline(never)]
    fn take_each(&mut self, limits: &Limits, now: Tick, take: &Take<'_>) {
        let (then, now) = (self.stamp, now.max(self.stamp));
        self.change(limits, |states| {
            for ((limit, state), cost) in limits.iter().zip(states).zip(take.costs.amounts()) {
                state.advance(limit, then, now);
                state.charge(limit, now, *cost, take.holder);
            }
        });
    }

    /// Why `costs` does not fit, and when it would.
    #[cold]
    pub fn denial(&self, limits: &Limits, now: Tick, costs: &Costs) -> Denial {
        let then = now.max(self.stamp);
        let rows = InlineVec::from_fn(limits.len(), |index| {
            self.state(limits, index).status(&limits[index], self.stamp, then, costs.amount(index))
        });
        let ready = rows.iter().fold(Ready::Now, |latest, row| latest.later(row.ready));
        Denial { limits: limits.clone(), now, rows, ready, claimed: 0, ahead: 0 }
    }

    /// When `costs` will fit. They may be more than the capacities, as a sum over a queue is.
    pub fn ready(&self, limits: &Limits, now: Tick, costs: &Costs) -> Ready {
        let now = now.max(self.stamp);
        let ready = |index: usize| {
            self.state(limits, index).ready(&limits[index], self.stamp, now, costs.amount(index))
        };
        (0..limits.len()).map(ready).fold(Ready::Now, Ready::later)
    }

    /// Which limits do not admit `costs` at `now`, and which of them will take longest.
    pub fn shortage(&self, limits: &Limits, now: Tick, costs: &Costs) -> Shortage {
        let now = now.max(self.stamp);
        let ready = |index: usize| {
            let ready = self.state(limits, index).ready(&limits[index], self.stamp, now, costs.amount(index));
            (index, ready)
        };
        (0..limits.len()).map(ready).filter(|(_, ready)| *ready != Ready::Now).collect()
    }

    /// How every limit stands, without changing anything.
    pub fn peek(&self, limits: &Limits, now: Tick) -> Vec<Status> {
        let then = now.max(self.stamp);
        let status = |(index, limit): (usize, &Limit)| {
            let state = self.state(limits, index).status(limit, self.stamp, then, 0);
            Status { limit: limit.clone(), state }
        };
        limits.iter().enumerate().map(status).collect()
    }

    /// One bit for each limit, by its place, that has something to remark at `now`: a
    /// [shadow](crate::LimitBuilder::shadow) limit that is in debt, where an enforced one would have refused, or
    /// more in use than the [soft](crate::LimitBuilder::soft) level.
    pub fn remarks(&self, limits: &Limits, now: Tick) -> u32 {
        if !limits.have_remarks() {
            return 0;
        }
        let now = now.max(self.stamp);
        let is_remarkable = |(index, limit): &(usize, &Limit)| {
            limit.has_remarks() && self.state(limits, *index).is_remarkable(limit, self.stamp, now)
        };
        limits.iter().enumerate().filter(is_remarkable).fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// Gives back what was not used, takes what was used beyond, and frees all resources.
    #[inline]
    pub fn settle(&mut self, limits: &Limits, now: Tick, usage: &Usage<'_>) {
        let elapsed = now.since(self.stamp).as_micros();
        let settled = match (&mut self.states, limits.plain()) {
            (States::Plain(credits), Some(rules)) if usage.holder.is_none() => {
                rules.settle(credits, elapsed, |index| usage.reserved.amount(index), usage.used)
            }
            _ => false,
        };
        if !settled {
            self.settle_each(limits, now, usage);
        }
        self.stamp = now.max(self.stamp);
    }

    /// As [`settle`](Bucket::settle), straight from packed costs, for the common case: `false`, with nothing changed, if
    /// it is not. There is no time to say, because what is plain can be given back [at any](Limits::refunds_ignore_time).
    #[inline]
    pub fn settle_packed(&mut self, limits: &Limits, packed: &Packed, used: &[u64; 4]) -> bool {
        let (States::Plain(credits), Some(rules)) = (&mut self.states, limits.plain()) else { return false };
        rules.refund(credits, &packed.amounts(), used)
    }

    #[inline(never)]
    fn settle_each(&mut self, limits: &Limits, now: Tick, usage: &Usage<'_>) {
        let (then, now) = (self.stamp, now.max(self.stamp));
        self.change(limits, |states| {
            for (index, (limit, state)) in limits.iter().zip(states).enumerate() {
                state.advance(limit, then, now);
                usage.settle_one(index, limit, state, now);
            }
        });
    }

    /// As [`settle`](Bucket::settle), for usage that is counted in other limits than those now in force: it is
    /// carried over by name, and what is no longer limited is left out.
    #[inline]
    pub fn settle_counted_in(&mut self, counted_in: &Limits, limits: &Limits, now: Tick, usage: &Usage<'_>) {
        if counted_in.same(limits) || limits.has_places_of(counted_in) {
            return self.settle(limits, now, usage);
        }
        let reserved = usage.reserved.moved(counted_in, limits);
        let mut used = InlineVec::new(limits.len());
        for (limit, amount) in counted_in.iter().zip(usage.used) {
            if let Some(index) = limits.index(limit.name()) {
                used[index] = *amount;
            }
        }
        self.settle(limits, now, &Usage { reserved: &reserved, used: &used, ..usage.clone() })
    }

    /// Gives credit that no call had taken: debt is repaid first, and no limit becomes more than full. Resources are
    /// left alone, because only the holder of one can give it back.
    pub fn top_up(&mut self, limits: &Limits, now: Tick, credit: &Costs) {
        let (then, now) = (self.stamp, now.max(self.stamp));
        self.change(limits, |states| {
            for ((limit, state), amount) in limits.iter().zip(states).zip(credit.amounts()) {
                state.advance(limit, then, now);
                state.top_up(limit, now, *amount);
            }
        });
        self.stamp = now;
    }

    /// Brings it to `now`: what it says about later times is the same, and it is not asked about earlier ones any more.
    pub fn advance(&mut self, limits: &Limits, now: Tick) {
        if now <= self.stamp {
            return;
        }
        let then = self.stamp;
        self.change(limits, |states| {
            limits.iter().zip(states).for_each(|(limit, state)| state.advance(limit, then, now));
        });
        self.stamp = now;
    }

    /// Makes a holder expire later. `false` if it has expired already: what it held may be another holder's.
    pub fn renew(&mut self, limits: &Limits, now: Tick, holder: Holder) -> bool {
        let now = now.max(self.stamp);
        let States::General(_) = &self.states else { return false };
        self.change(limits, |states| {
            states.iter_mut().fold(false, |known, state| {
                state.expire(now);
                state.renew(holder) || known
            })
        })
    }

    /// Drops holders that have expired, and says how many.
    pub fn expire(&mut self, limits: &Limits, now: Tick) -> usize {
        let now = now.max(self.stamp);
        let States::General(_) = &self.states else { return 0 };
        self.change(limits, |states| states.iter_mut().map(|state| state.expire(now)).sum())
    }

    /// Drops what is held by holders that `keep` does not want, and returns how many they were: for stores that can see
    /// that a holder is gone.
    pub fn retain_holders(
        &mut self,
        limits: &Limits,
        now: Tick,
        mut keep: impl FnMut(u128) -> bool,
    ) -> usize {
        let now = now.max(self.stamp);
        let States::General(_) = &self.states else { return 0 };
        self.change(limits, |states| {
            let retain = |state: &mut State| {
                state.expire(now);
                state.retain_holders(&mut keep)
            };
            states.iter_mut().map(retain).sum()
        })
    }

    /// Lets holders that have expired hold on until `until` if `lives` says so: for stores that can see that a holder
    /// is there though it was not renewed, whatever the clocks say.
    pub fn revive_holders(
        &mut self,
        limits: &Limits,
        now: Tick,
        until: Tick,
        mut lives: impl FnMut(u128) -> bool,
    ) {
        let (now, States::General(states)) = (now.max(self.stamp), &mut self.states) else { return };
        if !states.iter().any(|state| state.has_expired_holders(now)) {
            return;
        }
        let until = until.max(now);
        self.change(limits, |states| {
            states.iter_mut().for_each(|state| state.revive_holders(now, until, &mut lives));
        });
    }

    /// Frees all resources, whichever holders have them: for a copy of a bucket whose holders are all of another
    /// process.
    pub fn free_resources(&mut self, limits: &Limits) {
        if !limits.have_resources() {
            return;
        }
        self.change(limits, |states| {
            let held = limits.iter().zip(states).filter(|(limit, _)| limit.is_resource());
            held.for_each(|(limit, state)| *state = State::fresh(limit));
        });
    }

    /// Whether it says nothing at `now` that a fresh bucket would not say, so that it may be forgotten.
    pub fn is_fresh(&self, limits: &Limits, now: Tick) -> bool {
        let is_fresh =
            |(index, limit): (usize, &Limit)| self.state(limits, index).is_fresh(limit, self.stamp, now);
        // Before its own stamp it cannot tell: a fresh one would be as of an earlier time.
        now >= self.stamp && limits.iter().enumerate().all(is_fresh)
    }

    /// The bucket under changed limits: states are carried over by name, new names start fresh.
    pub fn adopt(&mut self, old: &Limits, new: &Limits, now: Tick) {
        let (then, now) = (self.stamp, now.max(self.stamp));
        let mut adopted = Bucket::fresh(new, now);
        adopted.change(new, |states| {
            for (index, limit) in old.iter().enumerate() {
                let Some(place) = new.index(limit.name()) else { continue };
                let mut state = self.state(old, index).into_owned();
                state.advance(limit, then, now);
                states[place] = state.adopt(limit, &new[place], now);
            }
        });
        *self = adopted;
    }
}
