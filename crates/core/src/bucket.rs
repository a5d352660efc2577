//! Buckets: the state of all limits that share one key, which is the unit of atomicity.

use std::borrow::Cow;

use crate::fast_bucket::{Credits, PlainRules};
use crate::{
    Costs, Denial, InlineVec, Limit, Limits, Packed, Ready, Shortage, SmallCosts, State, Status, Tick,
};

/// The state of all limits that share one key, as of one instant.
///
/// The instant never goes back. If a caller's clock does, the bucket answers as of its last use:
/// nothing is added, and time stands still until that clock has caught up.
///
/// ```
/// use tollgate_core::{Bucket, Limit, Limits, Span, Take, Tick, demand};
///
/// let limits = Limits::new([Limit::per_second("rps", 2)])?;
/// let costs = limits.costs(&demand! { rps: 1 })?;
/// let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
/// for _ in 0..2 {
///     bucket.take(&limits, Tick::ZERO, &Take::of(&costs)).expect("two fit");
/// }
/// assert!(bucket.take(&limits, Tick::ZERO, &Take::of(&costs)).is_err());
/// let later = Tick::ZERO + Span::from_millis(500);
/// assert_eq!(bucket.peek(&limits, later)[0].available(), 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    stamp: Tick,
    states: States,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum States {
    /// One credit for each limit; used whenever the limits and their states allow it.
    Plain(Credits),
    /// One state for each limit.
    General(Box<[State]>),
}

/// The holder of a resource, with the instant at which its hold expires unless it is renewed.
///
/// ```
/// use tollgate_core::{Bucket, Holder, Limit, Limits, Take, Tick, demand};
///
/// let limits = Limits::new([Limit::resource("slots", 1)])?;
/// let costs = limits.costs(&demand! { slots: 1 })?;
/// let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
/// let holder = Holder { id: 7, expires: Tick::from_secs(30) };
/// bucket.take(&limits, Tick::ZERO, &Take { costs: &costs, holder: Some(holder) })
///     .expect("the slot is free");
/// // The holder dies without a release: its slot is free again when the hold expires.
/// assert!(!bucket.fits(&limits, Tick::from_secs(29), &costs));
/// assert!(bucket.fits(&limits, Tick::from_secs(30), &costs));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holder {
    /// The id, unique among all holders.
    pub id: u128,
    /// The instant at which the hold expires.
    pub expires: Tick,
}

/// The arguments of [`Bucket::take`]: costs, and the holder of the resources among them.
///
/// ```
/// use tollgate_core::{Bucket, Limit, Limits, Take, Tick, demand};
///
/// let limits = Limits::new([Limit::per_minute("rpm", 10)])?;
/// let costs = limits.costs(&demand! { rpm: 3 })?;
/// let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
/// assert_eq!(bucket.take(&limits, Tick::from_secs(1), &Take::of(&costs)), Ok(Tick::from_secs(1)));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Take<'a> {
    /// The amount to take from each limit.
    pub costs: &'a Costs,
    /// The holder of the resources; `None` if the caller is sure to release them.
    pub holder: Option<Holder>,
}

/// The actual usage of a reservation, for [`Bucket::settle`].
///
/// ```
/// use tollgate_core::{Bucket, Limit, Limits, Take, Tick, Usage, demand};
///
/// let limits = Limits::new([Limit::per_minute("tpm", 1_000)])?;
/// let reserved = limits.costs(&demand! { tpm: 400 })?;
/// let mut bucket = Bucket::fresh(&limits, Tick::ZERO);
/// let at = bucket.take(&limits, Tick::ZERO, &Take::of(&reserved)).expect("400 fit");
/// let usage = Usage { at, reserved: &reserved, used: &[250], holder: None };
/// bucket.settle(&limits, Tick::ZERO, &usage);
/// assert_eq!(bucket.peek(&limits, Tick::ZERO)[0].available(), 750);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Usage<'a> {
    /// When it was taken, as [`Bucket::take`] returned it.
    pub at: Tick,
    /// The costs that were taken.
    pub reserved: &'a Costs,
    /// The amount used of each limit, in the order of the limits, also of limits that nothing was
    /// taken from. Resources are released whatever it is.
    pub used: &'a [u64],
    /// The id of the holder of the resources.
    pub holder: Option<u128>,
}

impl<'a> Take<'a> {
    /// Takes `costs` for a caller that is sure to release resources.
    pub fn of(costs: &'a Costs) -> Take<'a> {
        Take { costs, holder: None }
    }
}

impl Usage<'_> {
    fn settle_one(&self, index: usize, limit: &Limit, state: &mut State, now: Tick) {
        let reserved = self.reserved.amount(index);
        // A resource is released whatever was used of it.
        let used = if limit.is_resource() { 0 } else { self.used[index] };
        if used < reserved {
            state.refund(limit, self.at, now, reserved - used, self.holder);
        } else if used > reserved {
            state.charge(limit, now, used - reserved, None);
        }
    }

    /// Returns true if more was used of any limit than was taken.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.used.iter().zip(self.reserved.amounts()).any(|(used, reserved)| used > reserved)
    }
}

impl Bucket {
    /// Returns the bucket of unused limits, as of `now`.
    pub fn fresh(limits: &Limits, now: Tick) -> Bucket {
        let states = match limits.plain() {
            Some(rules) => States::Plain(rules.fresh()),
            None => States::General(limits.iter().map(State::fresh).collect()),
        };
        Bucket { stamp: now, states }
    }

    /// Returns the instant that the bucket is as of.
    pub fn stamp(&self) -> Tick {
        self.stamp
    }

    /// Creates a bucket with these states, one for each limit.
    pub(crate) fn of_states(limits: &Limits, stamp: Tick, states: Box<[State]>) -> Bucket {
        let mut bucket = Bucket { stamp, states: States::General(states) };
        bucket.change(limits, |_| ());
        bucket
    }

    /// Creates a bucket with these credits.
    pub(crate) fn plain(stamp: Tick, credits: Credits) -> Bucket {
        Bucket { stamp, states: States::Plain(credits) }
    }

    /// Replaces the credits in place. Returns false, with nothing changed, if they are not plain
    /// here, or not valid.
    #[inline]
    pub(crate) fn replace_credits(&mut self, rules: &PlainRules, stamp: Tick, credits: &[i64]) -> bool {
        let States::Plain(own) = &mut self.states else { return false };
        let is_replaced = rules.replace(own, credits);
        if is_replaced {
            self.stamp = stamp;
        }
        is_replaced
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

    /// Lets `change` update the states, and converts them back to plain credits if that is
    /// possible.
    fn change<R>(&mut self, limits: &Limits, change: impl FnOnce(&mut [State]) -> R) -> R {
        let mut states: Box<[State]> = match &mut self.states {
            // A custom rule may panic: `self` keeps the original states until `change` has
            // returned.
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

    /// Takes all costs, or nothing. Returns the instant at which they were taken, which a refund
    /// needs.
    ///
    /// # Errors
    ///
    /// Returns a [`Denial`] with the status of every limit; the bucket is unchanged.
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

    /// Takes `costs` if the bucket is plain and they fit, which is the common case. Otherwise
    /// changes nothing and returns `None`; the caller then uses [`take`](Bucket::take).
    // Hidden: the fast path of sibling crates.
    #[doc(hidden)]
    #[inline(always)]
    pub fn take_plain(&mut self, limits: &Limits, now: Tick, costs: &SmallCosts) -> Option<Tick> {
        let (States::Plain(credits), Some(rules)) = (&mut self.states, limits.plain()) else { return None };
        if !rules.take_small(credits, now.since(self.stamp).as_micros(), costs.amounts()) {
            return None;
        }
        self.stamp = now.max(self.stamp);
        Some(self.stamp)
    }

    /// Returns true if [`take_plain`](Bucket::take_plain) would take `costs` at `now`.
    // Hidden: the fast path of sibling crates.
    #[doc(hidden)]
    #[inline(always)]
    pub fn fits_plain(&self, limits: &Limits, now: Tick, costs: &SmallCosts) -> bool {
        match (&self.states, limits.plain()) {
            (States::Plain(credits), Some(rules)) => {
                rules.fits_small(credits, now.since(self.stamp).as_micros(), costs.amounts())
            }
            _ => false,
        }
    }

    /// Returns true if all of `costs` fit at `now`; [`commit`](Bucket::commit) then takes them. The
    /// two steps are separate so that a chain can check every bucket before it takes from any.
    #[inline(always)]
    pub fn fits(&self, limits: &Limits, now: Tick, costs: &Costs) -> bool {
        match (&self.states, limits.plain(), costs.inline()) {
            (States::Plain(credits), Some(rules), Some(costs)) => {
                rules.fits(credits, now.since(self.stamp).as_micros(), costs)
            }
            _ => self.fits_each(limits, now, costs),
        }
    }

    /// Takes costs that [fit](Bucket::fits) at the same instant. Returns the instant at which they
    /// were taken.
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
        let mut parts = limits.iter().zip(costs.amounts()).enumerate();
        parts.all(|(index, (limit, cost))| {
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

    /// Returns the denial of `costs`: the status of every limit, and when the costs will fit.
    #[cold]
    pub fn denial(&self, limits: &Limits, now: Tick, costs: &Costs) -> Denial {
        let then = now.max(self.stamp);
        let statuses = InlineVec::from_fn(limits.len(), |index| {
            self.state(limits, index).status(&limits[index], self.stamp, then, costs.amount(index))
        });
        let ready = statuses.iter().fold(Ready::Now, |latest, status| latest.later(status.ready));
        Denial { limits: limits.clone(), now, statuses, ready, claimed: 0, ahead: 0 }
    }

    /// Returns when `costs` will fit. They may exceed the capacities, as a sum over a queue does.
    pub fn ready(&self, limits: &Limits, now: Tick, costs: &Costs) -> Ready {
        let now = now.max(self.stamp);
        let ready = |index: usize| {
            self.state(limits, index).ready(&limits[index], self.stamp, now, costs.amount(index))
        };
        (0..limits.len()).map(ready).fold(Ready::Now, Ready::later)
    }

    /// Returns the limits that do not admit `costs` at `now`, and which of them take longest.
    pub fn shortage(&self, limits: &Limits, now: Tick, costs: &Costs) -> Shortage {
        let now = now.max(self.stamp);
        let ready = |index: usize| {
            let ready = self.state(limits, index).ready(&limits[index], self.stamp, now, costs.amount(index));
            (index, ready)
        };
        (0..limits.len()).map(ready).filter(|(_, ready)| *ready != Ready::Now).collect()
    }

    /// Returns the status of every limit, without changing the bucket.
    pub fn peek(&self, limits: &Limits, now: Tick) -> Vec<Status> {
        let then = now.max(self.stamp);
        let status = |(index, limit): (usize, &Limit)| {
            let state = self.state(limits, index).status(limit, self.stamp, then, 0);
            Status { limit: limit.clone(), state }
        };
        limits.iter().enumerate().map(status).collect()
    }

    /// Returns one bit for each limit, by its index, that has a warning at `now`: a
    /// [shadow](crate::LimitBuilder::shadow) limit that is in debt, where an enforced one would
    /// have denied, or a limit of which more than the [soft](crate::LimitBuilder::soft) level is in
    /// use.
    pub fn warnings(&self, limits: &Limits, now: Tick) -> u32 {
        if !limits.may_warn() {
            return 0;
        }
        let now = now.max(self.stamp);
        let has_warning = |(index, limit): &(usize, &Limit)| {
            limit.may_warn() && self.state(limits, *index).has_warning(limit, self.stamp, now)
        };
        limits.iter().enumerate().filter(has_warning).fold(0, |bits, (index, _)| bits | 1 << index)
    }

    /// Corrects a reservation to what was used: refunds the rest, charges the excess, and releases
    /// all resources.
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

    /// Settles packed costs like [`settle`](Bucket::settle) if the bucket is plain and nothing was
    /// used in excess, which is the common case. Otherwise returns false and changes nothing. It
    /// needs no time, because refunds of plain limits do not [depend on
    /// it](Limits::refunds_ignore_time).
    // Hidden: the fast path of sibling crates.
    #[doc(hidden)]
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

    /// Settles like [`settle`](Bucket::settle) usage that was reserved under other limits than the
    /// bucket has now: maps it by name, and drops usage of limits that no longer exist.
    #[inline]
    pub fn settle_counted_in(&mut self, counted_in: &Limits, limits: &Limits, now: Tick, usage: &Usage<'_>) {
        if counted_in.same(limits) || limits.same_layout(counted_in) {
            return self.settle(limits, now, usage);
        }
        let reserved = usage.reserved.remapped(counted_in, limits);
        let mut used = InlineVec::new(limits.len());
        for (limit, amount) in counted_in.iter().zip(usage.used) {
            if let Some(index) = limits.index(limit.name()) {
                used[index] = *amount;
            }
        }
        self.settle(limits, now, &Usage { reserved: &reserved, used: &used, ..usage.clone() })
    }

    /// Adds credit that no call had taken: repays debt first, and fills no limit beyond its
    /// capacity. Leaves resources unchanged, because only their holders can release them.
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

    /// Brings the bucket to `now`. Results for later instants do not change.
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

    /// Extends the hold of `holder`. Returns false if it has expired: another holder may have its
    /// share by now.
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

    /// Drops expired holders, and returns how many.
    pub fn expire(&mut self, limits: &Limits, now: Tick) -> usize {
        let now = now.max(self.stamp);
        let States::General(_) = &self.states else { return 0 };
        self.change(limits, |states| states.iter_mut().map(|state| state.expire(now)).sum())
    }

    /// Drops the holders for whose ids `keep` returns false, and returns how many: for stores that
    /// detect that a holder has died.
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

    /// Extends expired holders until `until` if `is_alive` returns true for their ids: for stores
    /// that detect that a holder is alive although it was not renewed in time by the store's clock.
    pub fn revive_holders(
        &mut self,
        limits: &Limits,
        now: Tick,
        until: Tick,
        mut is_alive: impl FnMut(u128) -> bool,
    ) {
        let (now, States::General(states)) = (now.max(self.stamp), &mut self.states) else { return };
        if !states.iter().any(|state| state.has_expired_holders(now)) {
            return;
        }
        let until = until.max(now);
        self.change(limits, |states| {
            states.iter_mut().for_each(|state| state.revive_holders(now, until, &mut is_alive));
        });
    }

    /// Releases all resources of all holders: for a copy of a bucket whose holders all belong to
    /// another process.
    pub fn free_resources(&mut self, limits: &Limits) {
        if !limits.have_resources() {
            return;
        }
        self.change(limits, |states| {
            let resources = limits.iter().zip(states).filter(|(limit, _)| limit.is_resource());
            resources.for_each(|(limit, state)| *state = State::fresh(limit));
        });
    }

    /// Returns true if the bucket equals a fresh one from `now` on, so that a store may drop it.
    pub fn is_fresh(&self, limits: &Limits, now: Tick) -> bool {
        let is_fresh =
            |(index, limit): (usize, &Limit)| self.state(limits, index).is_fresh(limit, self.stamp, now);
        // Before its stamp the bucket is not comparable: a fresh one would be as of an earlier
        // instant.
        now >= self.stamp && limits.iter().enumerate().all(is_fresh)
    }

    /// Converts the bucket to changed limits: carries states over by name; new names start fresh.
    pub fn adopt(&mut self, old: &Limits, new: &Limits, now: Tick) {
        let (then, now) = (self.stamp, now.max(self.stamp));
        let mut adopted = Bucket::fresh(new, now);
        adopted.change(new, |states| {
            for (index, limit) in old.iter().enumerate() {
                let Some(new_index) = new.index(limit.name()) else { continue };
                let mut state = self.state(old, index).into_owned();
                state.advance(limit, then, now);
                states[new_index] = state.adopt(limit, &new[new_index], now);
            }
        });
        *self = adopted;
    }
}
