//! A bucket: the state of all limits that share one key. The unit of atomicity.

use crate::express;
use crate::{Costs, Denial, Limits, Ready, Row, State, Status, Tick};

/// The state of all limits that share one key, as of one instant.
///
/// The instant never goes back: a clock that does is answered as of the last use, which mints nothing, and
/// time stands still until the clock has caught up.
#[derive(Clone, Debug, PartialEq)]
pub struct Bucket {
    stamp: Tick,
    states: States,
}

/// Two limits are the common case (requests and tokens) and need no allocation.
#[derive(Clone, Debug, PartialEq)]
enum States {
    Pair([State; 2]),
    Many(Box<[State]>),
}

/// Who holds what was taken of a resource, and until when if nobody hears of them.
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

/// What a demand comes to, as [`Bucket::quote`] writes it and [`Bucket::pay`] reads it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quote {
    left: express::Left,
    is_express: bool,
}

/// What came of something that was taken: how much of it was really used.
#[derive(Clone, Debug)]
pub struct Usage<'a> {
    /// When it was taken, as [`Bucket::take`] said.
    pub at: Tick,
    /// What was taken.
    pub reserved: &'a Costs,
    /// What was used of each limit, in the order of the limits. Resources are given back whatever it says.
    pub used: &'a [u64],
    /// Who held the resources.
    pub holder: Option<u128>,
}

/// What a settlement did, over all limits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settlement {
    /// One bit for each limit that got something back.
    pub refunded: u32,
    /// One bit for each limit of which more was used than taken.
    pub over_used: u32,
}

impl<'a> Take<'a> {
    /// Takes `costs` for somebody who is sure to give resources back.
    pub fn of(costs: &'a Costs) -> Take<'a> {
        Take { costs, holder: None }
    }
}

impl Usage<'_> {
    /// Which limits got something back, and of which more was used than taken.
    #[inline]
    fn settlement(&self, limits: &Limits) -> Settlement {
        let mut settlement = Settlement::default();
        for (index, (used, reserved)) in self.used.iter().zip(self.reserved.amounts()).enumerate() {
            let counts = u32::from(self.reserved.takes(index) && !limits[index].is_resource());
            settlement.refunded |= (counts & u32::from(used < reserved)) << index;
            settlement.over_used |= (counts & u32::from(used > reserved)) << index;
        }
        settlement
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
        let states = match &**limits {
            [] => States::Many(Box::default()),
            [one] => States::Pair([State::fresh(one), State(crate::state::Inner::Unbounded)]),
            [one, two] => States::Pair([State::fresh(one), State::fresh(two)]),
            many => States::Many(many.iter().map(State::fresh).collect()),
        };
        Bucket { stamp: now, states }
    }

    /// The instant the bucket is as of.
    pub fn stamp(&self) -> Tick {
        self.stamp
    }

    #[inline(always)]
    fn states(&self) -> &[State] {
        match &self.states {
            States::Pair(states) => states,
            States::Many(states) => states,
        }
    }

    #[inline(always)]
    fn states_mut(&mut self) -> &mut [State] {
        match &mut self.states {
            States::Pair(states) => states,
            States::Many(states) => states,
        }
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
        let mut quote = Quote::default();
        if self.quote(limits, now, take.costs, &mut quote) {
            return Ok(self.pay(limits, now, take, &quote));
        }
        Err(self.denial(limits, now, take.costs))
    }

    /// Whether all of `costs` fits at `now`; [`pay`](Bucket::pay) then takes it. In two halves, so that a chain
    /// can ask every bucket before it takes from any.
    #[inline(always)]
    pub fn quote(&self, limits: &Limits, now: Tick, costs: &Costs, quote: &mut Quote) -> bool {
        let elapsed = now.since(self.stamp).as_micros();
        let express = match (limits.express(), costs.inline()) {
            (Some(rules), Some(costs)) => {
                express::quote(rules, self.states(), elapsed, costs, &mut quote.left)
            }
            _ => None,
        };
        quote.is_express = express.is_some();
        quote.is_express || self.fits(limits, now, costs)
    }

    /// Takes what was quoted for the same limits, instant and costs, of a bucket that has not changed since.
    #[inline(always)]
    pub fn pay(&mut self, limits: &Limits, now: Tick, take: &Take<'_>, quote: &Quote) -> Tick {
        match (limits.express(), &take.holder) {
            (Some(rules), None) if quote.is_express => {
                express::pay(rules, self.states_mut(), &quote.left);
                self.stamp = now.max(self.stamp);
                self.stamp
            }
            _ => self.commit(limits, now, take),
        }
    }

    #[inline(never)]
    fn fits(&self, limits: &Limits, now: Tick, costs: &Costs) -> bool {
        let now = now.max(self.stamp);
        let mut rows = limits.iter().zip(self.states()).zip(costs.amounts());
        rows.all(|((limit, state), cost)| *cost == 0 || state.fits(limit, self.stamp, now, *cost))
    }

    #[inline(never)]
    fn commit(&mut self, limits: &Limits, now: Tick, take: &Take<'_>) -> Tick {
        let (then, now) = (self.stamp, now.max(self.stamp));
        let rows = limits.iter().zip(self.states_mut()).zip(take.costs.amounts());
        for ((limit, state), cost) in rows {
            state.advance(limit, then, now);
            state.charge(limit, now, *cost, take.holder);
        }
        self.stamp = now;
        now
    }

    /// Why `costs` does not fit, and when it would.
    #[cold]
    pub fn denial(&self, limits: &Limits, now: Tick, costs: &Costs) -> Denial {
        let then = now.max(self.stamp);
        let rows = Row::from_fn(limits.len(), |index| {
            self.states()[index].status(&limits[index], self.stamp, then, costs.amount(index))
        });
        let ready = rows.iter().fold(Ready::Now, |latest, row| latest.later(row.ready));
        Denial { limits: limits.clone(), now, rows, ready }
    }

    /// When `costs` will fit. They may be more than the capacities, as a sum over a queue is.
    pub fn ready(&self, limits: &Limits, now: Tick, costs: &Costs) -> Ready {
        let now = now.max(self.stamp);
        let rows = limits.iter().zip(self.states()).zip(costs.amounts());
        rows.fold(Ready::Now, |latest, ((limit, state), cost)| {
            latest.later(state.ready(limit, self.stamp, now, *cost))
        })
    }

    /// How every limit stands, without changing anything.
    pub fn peek(&self, limits: &Limits, now: Tick) -> Vec<Status> {
        let then = now.max(self.stamp);
        let rows = limits.iter().zip(self.states());
        rows.map(|(limit, state)| Status {
            limit: limit.clone(),
            state: state.status(limit, self.stamp, then, 0),
        })
        .collect()
    }

    /// Gives back what was not used, takes what was used beyond, and frees all resources.
    #[inline]
    pub fn settle(&mut self, limits: &Limits, now: Tick, usage: &Usage<'_>) -> Settlement {
        // Nothing is earned in no time, so an ordinary refund is one addition for each limit.
        if let (Some(rules), None, Some(reserved)) = (limits.express(), usage.holder, usage.reserved.inline())
            && now <= self.stamp
            && express::refund(rules, self.states_mut(), reserved, usage.used)
        {
            return usage.settlement(limits);
        }
        self.settle_each(limits, now, usage)
    }

    fn settle_each(&mut self, limits: &Limits, now: Tick, usage: &Usage<'_>) -> Settlement {
        let (then, now) = (self.stamp, now.max(self.stamp));
        for (index, (limit, state)) in limits.iter().zip(self.states_mut()).enumerate() {
            state.advance(limit, then, now);
            if !usage.reserved.takes(index) {
                continue;
            }
            let reserved = usage.reserved.amount(index);
            let used = if limit.is_resource() { 0 } else { usage.used[index] };
            if used < reserved {
                state.refund(limit, usage.at, now, reserved - used, usage.holder);
            } else if used > reserved {
                state.charge(limit, now, used - reserved, None);
            }
        }
        self.stamp = now;
        usage.settlement(limits)
    }

    /// As [`settle`](Bucket::settle), for usage that is counted in other limits than those now in force: it is
    /// carried over by name, and what is no longer limited is left out.
    pub fn settle_counted_in(
        &mut self,
        counted_in: &Limits,
        limits: &Limits,
        now: Tick,
        usage: &Usage<'_>,
    ) -> Settlement {
        if counted_in.same(limits) || limits.has_places_of(counted_in) {
            return self.settle(limits, now, usage);
        }
        let reserved = usage.reserved.moved(counted_in, limits);
        let mut used = Row::new(limits.len());
        for (limit, amount) in counted_in.iter().zip(usage.used) {
            if let Some(index) = limits.index(limit.name()) {
                used[index] = *amount;
            }
        }
        self.settle(limits, now, &Usage { reserved: &reserved, used: &used, ..usage.clone() })
    }

    /// Makes a holder expire later. `false` if it has expired already: what it held may be somebody else's.
    pub fn renew(&mut self, limits: &Limits, now: Tick, holder: Holder) -> bool {
        let now = now.max(self.stamp);
        let states = limits.len();
        self.states_mut()[..states].iter_mut().fold(false, |known, state| {
            state.expire(now);
            state.renew(holder) || known
        })
    }

    /// Drops holders that have expired, and says how many.
    pub fn expire(&mut self, now: Tick) -> usize {
        let now = now.max(self.stamp);
        self.states_mut().iter_mut().map(|state| state.expire(now)).sum()
    }

    /// Whether it says nothing at `now` that a fresh bucket would not say, so that it may be forgotten.
    pub fn is_fresh(&self, limits: &Limits, now: Tick) -> bool {
        // Before its own stamp it cannot tell: a fresh one would be as of an earlier time.
        now >= self.stamp
            && limits.iter().zip(self.states()).all(|(limit, state)| state.is_fresh(limit, self.stamp, now))
    }

    /// The bucket under changed limits: states are carried over by name, new names start fresh.
    pub fn adopt(&mut self, old: &Limits, new: &Limits, now: Tick) {
        let (then, now) = (self.stamp, now.max(self.stamp));
        let mut adopted = Bucket::fresh(new, now);
        for (limit, state) in old.iter().zip(self.states_mut()) {
            let Some(index) = new.index(limit.name()) else { continue };
            state.advance(limit, then, now);
            adopted.states_mut()[index] = state.clone().adopt(limit, &new[index], now);
        }
        *self = adopted;
    }
}
