//! Costs: a demand, resolved against the limits it is for.

use crate::inline_vec::INLINE;
use crate::{InlineVec, Limits};

/// The number of limits that [`SmallCosts`] and [`Packed`] support. Most sets have no more.
pub(crate) const SMALL: usize = 4;

/// Receives the amounts that a demand takes, each with the index of its limit in the set.
// Hidden: it only lets `Limits::resolve_into` write both `Costs` and `SmallCosts`.
#[doc(hidden)]
pub trait CostSink {
    /// Returns true if the limit at `index` has an amount, even if that amount is 0.
    fn takes(&self, index: usize) -> bool;

    /// Records `amount` for the limit at `index`, which the demand did not name.
    fn take(&mut self, index: usize, amount: u64);

    /// Records `amount` for the limit at `index`, which the demand named.
    fn take_explicit(&mut self, index: usize, amount: u64);
}

/// The amounts that a demand takes, by the index of each limit in its set.
///
/// ```
/// use std::time::Duration;
/// use tollgate_core::{Limit, Limits, demand};
///
/// let limits = Limits::new([
///     Limit::calls(100, Duration::from_secs(60)),
///     Limit::per_minute("tpm", 1_000),
/// ])?;
/// let costs = limits.costs(&demand! { tpm: 400 })?;
/// assert_eq!(costs.amounts(), [1, 400]);
/// assert!(costs.is_explicit(1) && !costs.is_explicit(0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    amounts: InlineVec<u64>,
    /// One bit for each limit that has an amount. A bucket can have 33 limits, so 32 bits do not
    /// suffice.
    taken: u64,
    explicit: u64,
    is_of_child: bool,
}

impl Costs {
    /// Returns costs that take nothing from `limits` limits.
    #[inline(always)]
    pub fn none(limits: usize) -> Costs {
        Costs { amounts: InlineVec::new(limits), taken: 0, explicit: 0, is_of_child: false }
    }

    /// Sets the amount of the [cooldown](crate::Limit::cooldown) of `limits`, which no demand can
    /// name. Returns the costs unchanged if `limits` have no cooldown.
    #[must_use]
    pub fn of_cooldown(mut self, limits: &Limits, amount: u64) -> Costs {
        if let Some(index) = limits.iter().position(crate::Limit::is_cooldown) {
            self.take(index, amount);
        }
        self
    }

    /// Marks the costs as those of a call that a bucket of a child entity is charged for as well:
    /// usage reports count it as made by a child.
    #[must_use]
    pub fn of_child(mut self) -> Costs {
        self.is_of_child = true;
        self
    }

    /// Returns true if a child made the call, so that another bucket is charged for it as well.
    #[inline]
    pub fn is_of_child(&self) -> bool {
        self.is_of_child
    }

    /// Returns the number of limits.
    #[inline]
    pub fn len(&self) -> usize {
        self.amounts.len()
    }

    /// Returns true if there are no limits.
    pub fn is_empty(&self) -> bool {
        self.amounts.is_empty()
    }

    /// Returns the amount for the limit at `index`; 0 if the demand does not take from it.
    #[inline]
    pub fn amount(&self, index: usize) -> u64 {
        self.amounts[index]
    }

    /// Returns all amounts, in the order of the limits.
    #[inline]
    pub fn amounts(&self) -> &[u64] {
        &self.amounts
    }

    /// Returns all amounts as an array if there are at most [`INLINE`] limits.
    #[inline(always)]
    pub(crate) fn inline(&self) -> Option<&[u64; INLINE]> {
        self.amounts.inline()
    }

    /// Returns true if the limit at `index` has an amount, even if that amount is 0.
    #[inline(always)]
    pub fn takes(&self, index: usize) -> bool {
        self.taken >> index & 1 == 1
    }

    /// Returns one bit for each limit, by its index, whose amount is above 0.
    pub fn mask(&self) -> u64 {
        let amounts = self.amounts().iter().enumerate();
        amounts.filter(|(_, amount)| **amount > 0).fold(0, |mask, (index, _)| mask | 1 << index)
    }

    /// Returns true if the demand named the limit at `index`; false if it takes from that limit
    /// implicitly.
    #[inline]
    pub fn is_explicit(&self, index: usize) -> bool {
        self.explicit >> index & 1 == 1
    }

    /// Returns only the amounts that the demand named, without the implicit 1 of call limits and
    /// resources.
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

    /// Subtracts the amounts of `other`.
    pub fn sub(&mut self, other: &Costs) {
        for (sum, amount) in self.amounts.iter_mut().zip(other.amounts()) {
            *sum = sum.saturating_sub(*amount);
        }
    }

    /// Returns the same costs for the limits `to`, matched by name. Amounts are dropped for limits
    /// that `to` does not have, and for limits that became a resource or ceased to be one, because
    /// only a resource is released.
    #[must_use]
    pub fn remapped(&self, from: &Limits, to: &Limits) -> Costs {
        let mut remapped = Costs { is_of_child: self.is_of_child, ..Costs::none(to.len()) };
        for (index, limit) in from.iter().enumerate().filter(|(index, _)| self.takes(*index)) {
            let new_index =
                to.index(limit.name()).filter(|index| to[*index].is_resource() == limit.is_resource());
            match new_index {
                Some(new) if self.is_explicit(index) => remapped.take_explicit(new, self.amount(index)),
                Some(new) => remapped.take(new, self.amount(index)),
                None => {}
            }
        }
        remapped
    }

    /// Returns the costs in fixed size if there are at most [`SmallCosts::LIMITS`] limits.
    // Hidden: the fast path of sibling crates.
    #[doc(hidden)]
    #[inline(always)]
    pub fn small(&self) -> Option<SmallCosts> {
        let amounts = *self.amounts.inline()?.first_chunk()?;
        let (taken, explicit) = (self.taken as u32, self.explicit as u32);
        (self.len() <= SMALL).then_some(SmallCosts { amounts, taken, explicit })
    }

    /// Returns the costs in 20 bytes, for storage in a lease; `None` for more than four limits or
    /// amounts of 2^32 and above.
    // Hidden: the fast path of sibling crates.
    #[doc(hidden)]
    #[inline(always)]
    pub fn pack(&self) -> Option<Packed> {
        self.small()?.pack()
    }

    /// Sets the amounts to the packed ones. The costs must be empty before.
    // Hidden: the fast path of sibling crates.
    #[doc(hidden)]
    #[inline(always)]
    pub fn unpack(&mut self, packed: &Packed) {
        for (amount, packed) in self.amounts.iter_mut().zip(packed.amounts) {
            *amount = packed.into();
        }
        (self.taken, self.explicit) = (packed.masks >> 8 & 0xF, packed.masks & 0xF);
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

/// Costs of at most [`SmallCosts::LIMITS`] limits in fixed size: the compiler needs no length
/// checks, no heap and no drop.
// Hidden: the fast path of sibling crates.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SmallCosts {
    amounts: [u64; SMALL],
    taken: u32,
    explicit: u32,
}

impl SmallCosts {
    /// The number of limits that fit. Amounts for limits beyond it are dropped.
    pub const LIMITS: usize = SMALL;

    /// Returns the amounts, one for each limit and 0 past the last limit.
    #[inline(always)]
    pub fn amounts(&self) -> &[u64; SMALL] {
        &self.amounts
    }

    /// Returns the costs in three words; see [`Costs::pack`].
    #[inline(always)]
    pub fn pack(&self) -> Option<Packed> {
        let [one, two, three, four] = self.amounts;
        if (one | two | three | four) >> 32 != 0 {
            return None;
        }
        let amounts = [one as u32, two as u32, three as u32, four as u32];
        Some(Packed { amounts, masks: u64::from(self.taken << 8 | self.explicit) })
    }

    /// Returns the same costs for `limits` limits.
    pub fn to_costs(&self, limits: usize) -> Costs {
        let mut costs = Costs::none(limits);
        for (slot, amount) in costs.amounts.iter_mut().zip(self.amounts) {
            *slot = amount;
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
        if let Some(slot) = self.amounts.get_mut(index) {
            *slot = amount;
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
    /// Returns the amount for the limit at `index`; 0 if the demand does not take from it.
    #[inline(always)]
    pub fn amount(&self, index: usize) -> u64 {
        self.amounts.get(index).copied().map_or(0, u64::from)
    }

    /// Returns the amounts, one for each limit and 0 past the last limit.
    #[inline(always)]
    pub fn amounts(&self) -> [u64; 4] {
        self.amounts.map(u64::from)
    }
}

/// Costs of up to four limits, packed into three words.
// Hidden: the fast path of sibling crates.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    amounts: [u32; SMALL],
    /// The bits of limits that have an amount, and the bits of those that were named. They share
    /// one word because copying a word right after writing it in pieces stalls the processor (no
    /// store forwarding).
    masks: u64,
}
