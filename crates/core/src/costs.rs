//! Costs: a demand, resolved against the limits it is for.

use crate::inline_vec::INLINE;
use crate::{InlineVec, Limits};

/// How many limits are few: what most sets have.
pub(crate) const FEW: usize = 4;

/// Where it is written down what a demand takes of each limit, by its place in the set.
pub trait CostSink {
    /// Whether something is taken of the limit at `index`, be it 0.
    fn takes(&self, index: usize) -> bool;

    /// Takes `amount` of the limit at `index` without its having been named.
    fn take(&mut self, index: usize, amount: u64);

    /// Takes `amount` of the limit at `index`, which was named.
    fn take_explicit(&mut self, index: usize, amount: u64);
}

/// What a demand takes of each limit, by its place in the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    amounts: InlineVec<u64>,
    /// One bit for each place, of which there may be more than 32.
    taken: u64,
    explicit: u64,
    is_of_child: bool,
}

impl Costs {
    /// Takes nothing of `limits` limits.
    #[inline(always)]
    pub fn none(limits: usize) -> Costs {
        Costs { amounts: InlineVec::new(limits), taken: 0, explicit: 0, is_of_child: false }
    }

    /// The same costs with so much of the [cooldown](crate::Limit::cooldown) of `limits`, which no demand can name; as
    /// they are if `limits` have no cooldown.
    #[must_use]
    pub fn of_cooldown(mut self, limits: &Limits, amount: u64) -> Costs {
        if let Some(index) = limits.iter().position(crate::Limit::is_cooldown) {
            self.take(index, amount);
        }
        self
    }

    /// The same costs for a call that another bucket further down is charged for: usage counts it as made by a child.
    #[must_use]
    pub fn of_child(mut self) -> Costs {
        self.is_of_child = true;
        self
    }

    /// Whether a child made the call, so that another bucket is charged for it as well.
    #[inline]
    pub fn is_of_child(&self) -> bool {
        self.is_of_child
    }

    /// How many limits it is for.
    #[inline]
    pub fn len(&self) -> usize {
        self.amounts.len()
    }

    /// Whether it is for no limit at all.
    pub fn is_empty(&self) -> bool {
        self.amounts.is_empty()
    }

    /// How much it takes of the limit at `index`; 0 if it leaves it alone.
    #[inline]
    pub fn amount(&self, index: usize) -> u64 {
        self.amounts[index]
    }

    /// All amounts, in the order of the limits.
    #[inline]
    pub fn amounts(&self) -> &[u64] {
        &self.amounts
    }

    /// All amounts in places of fixed size, if there are no more than those.
    #[inline(always)]
    pub(crate) fn inline(&self) -> Option<&[u64; INLINE]> {
        self.amounts.inline()
    }

    /// Whether it takes of the limit at `index`, be it 0.
    #[inline(always)]
    pub fn takes(&self, index: usize) -> bool {
        self.taken >> index & 1 == 1
    }

    /// One bit for each limit, by its place, that more than nothing is taken of.
    pub fn mask(&self) -> u64 {
        let amounts = self.amounts().iter().enumerate();
        amounts.filter(|(_, amount)| **amount > 0).fold(0, |mask, (index, _)| mask | 1 << index)
    }

    /// Whether the demand named the limit at `index`, rather than taking of it without a word.
    #[inline]
    pub fn is_explicit(&self, index: usize) -> bool {
        self.explicit >> index & 1 == 1
    }

    /// Only what the demand named, with nothing of the calls and resources that a demand takes one of otherwise.
    #[must_use]
    pub fn named(&self) -> Costs {
        let mut named = Costs { is_of_child: self.is_of_child, ..Costs::none(self.len()) };
        for index in (0..self.len()).filter(|index| self.is_explicit(*index)) {
            named.take_explicit(index, self.amount(index));
        }
        named
    }

    /// Adds the amounts of `other`, for sums over a queue.
    pub fn add(&mut self, other: &Costs) {
        for (sum, amount) in self.amounts.iter_mut().zip(other.amounts()) {
            *sum = sum.saturating_add(*amount);
        }
        self.taken |= other.taken;
    }

    /// Takes the amounts of `other` off again.
    pub fn sub(&mut self, other: &Costs) {
        for (sum, amount) in self.amounts.iter_mut().zip(other.amounts()) {
            *sum = sum.saturating_sub(*amount);
        }
    }

    /// The same costs for limits in other places: by name, leaving out what is no longer there, and what has
    /// become a resource or ceased to be one, because only a resource is given back.
    #[must_use]
    pub fn moved(&self, from: &Limits, to: &Limits) -> Costs {
        let mut moved = Costs { is_of_child: self.is_of_child, ..Costs::none(to.len()) };
        for (index, limit) in from.iter().enumerate().filter(|(index, _)| self.takes(*index)) {
            let place =
                to.index(limit.name()).filter(|place| to[*place].is_resource() == limit.is_resource());
            match place {
                Some(place) if self.is_explicit(index) => moved.take_explicit(place, self.amount(index)),
                Some(place) => moved.take(place, self.amount(index)),
                None => {}
            }
        }
        moved
    }

    /// The same costs, if the limits are few.
    #[inline(always)]
    pub fn few(&self) -> Option<SmallCosts> {
        let amounts = *self.amounts.inline()?.first_chunk()?;
        let (taken, explicit) = (self.taken as u32, self.explicit as u32);
        (self.len() <= FEW).then_some(SmallCosts { amounts, taken, explicit })
    }

    /// The costs in few bytes, to be kept for long; `None` for more than four limits or amounts past 2^32.
    #[inline(always)]
    pub fn pack(&self) -> Option<Packed> {
        self.few()?.pack()
    }

    /// Takes what was packed, into costs that take nothing yet.
    #[inline(always)]
    pub fn unpack(&mut self, packed: &Packed) {
        for (amount, packed) in self.amounts.iter_mut().zip(packed.amounts) {
            *amount = packed.into();
        }
        (self.taken, self.explicit) = ((packed.masks >> 8 & 0xF).into(), (packed.masks & 0xF).into());
    }
}

impl CostSink for Costs {
    #[inline(always)]
    fn takes(&self, index: usize) -> bool {
        Costs::takes(self, index)
    }

    #[inline(always)]
    fn take(&mut self, index: usize, amount: u64) {
        self.amounts[index] = amount;
        self.taken |= 1 << index;
    }

    #[inline(always)]
    fn take_explicit(&mut self, index: usize, amount: u64) {
        self.take(index, amount);
        self.explicit |= 1 << index;
    }
}

/// Costs of [few](SmallCosts::LIMITS) limits: nothing on the heap, no length to compare with, nothing to drop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmallCosts {
    amounts: [u64; FEW],
    taken: u32,
    explicit: u32,
}

impl SmallCosts {
    /// How many limits they may be for. What is taken of any beyond is lost.
    pub const LIMITS: usize = FEW;

    /// The amounts, one for each limit and 0 past them.
    #[inline(always)]
    pub fn amounts(&self) -> &[u64; FEW] {
        &self.amounts
    }

    /// As [`Costs::pack`].
    #[inline(always)]
    pub fn pack(&self) -> Option<Packed> {
        let [one, two, three, four] = self.amounts;
        if (one | two | three | four) >> 32 != 0 {
            return None;
        }
        let amounts = [one as u32, two as u32, three as u32, four as u32];
        Some(Packed { amounts, masks: self.taken << 8 | self.explicit })
    }

    /// The same costs for so many limits.
    pub fn to_costs(&self, limits: usize) -> Costs {
        let mut costs = Costs::none(limits);
        for (place, amount) in costs.amounts.iter_mut().zip(self.amounts) {
            *place = amount;
        }
        (costs.taken, costs.explicit) = (self.taken.into(), self.explicit.into());
        costs
    }
}

impl CostSink for SmallCosts {
    #[inline(always)]
    fn takes(&self, index: usize) -> bool {
        self.taken >> index & 1 == 1
    }

    #[inline(always)]
    fn take(&mut self, index: usize, amount: u64) {
        if let Some(place) = self.amounts.get_mut(index) {
            *place = amount;
            self.taken |= 1 << index;
        }
    }

    #[inline(always)]
    fn take_explicit(&mut self, index: usize, amount: u64) {
        self.take(index, amount);
        self.explicit |= 1 << index;
    }
}

impl Packed {
    /// How much it takes of the limit at `index`; 0 if it leaves it alone.
    #[inline(always)]
    pub fn amount(&self, index: usize) -> u64 {
        self.amounts.get(index).copied().map_or(0, u64::from)
    }

    /// The amounts, one for each limit and 0 past them.
    #[inline(always)]
    pub fn amounts(&self) -> [u64; 4] {
        self.amounts.map(u64::from)
    }
}

/// Costs of up to four limits, packed into 20 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    amounts: [u32; FEW],
    /// What is taken and what of that was named. In one number: bytes that were just written are slow to move.
    masks: u32,
}
