//! Costs: a demand, resolved against the limits it is for.

use crate::{Limits, Row};

/// What a demand takes of each limit, by its place in the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    amounts: Row<u64>,
    taken: u32,
    explicit: u32,
}

impl Costs {
    /// Takes nothing of `limits` limits.
    #[inline(always)]
    pub fn none(limits: usize) -> Costs {
        Costs { amounts: Row::new(limits), taken: 0, explicit: 0 }
    }

    #[inline(always)]
    pub(crate) fn take(&mut self, index: usize, amount: u64) {
        self.amounts[index] = amount;
        self.taken |= 1 << index;
    }

    #[inline(always)]
    pub(crate) fn take_explicit(&mut self, index: usize, amount: u64) {
        self.take(index, amount);
        self.explicit |= 1 << index;
    }

    /// How many limits it is for.
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

    /// All amounts, as a row of their own.
    #[inline]
    pub fn row(&self) -> &Row<u64> {
        &self.amounts
    }

    /// Whether it takes of the limit at `index`, be it 0.
    #[inline(always)]
    pub fn takes(&self, index: usize) -> bool {
        self.taken >> index & 1 == 1
    }

    /// Whether the demand named the limit at `index`, rather than taking of it without a word.
    pub fn is_explicit(&self, index: usize) -> bool {
        self.explicit >> index & 1 == 1
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
        let mut moved = Costs::none(to.len());
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

    /// The costs in few bytes, to be kept for long; `None` for more than eight limits or amounts past 2^32.
    #[inline(always)]
    pub fn pack(&self) -> Option<Packed> {
        let amounts = self.amounts.inline()?;
        let too_large = amounts.iter().fold(0, |bits, amount| bits | amount >> 32);
        if too_large != 0 {
            return None;
        }
        Some(Packed {
            amounts: amounts.map(|amount| amount as u32),
            taken: self.taken,
            explicit: self.explicit,
        })
    }

    /// The costs that were packed, for `limits` limits.
    #[inline]
    pub fn unpack(packed: &Packed, limits: usize) -> Costs {
        let amounts = Row::from_inline(packed.amounts.map(u64::from), limits);
        Costs { amounts, taken: packed.taken, explicit: packed.explicit }
    }
}

/// Costs of up to eight limits, packed into 40 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Packed {
    amounts: [u32; 8],
    taken: u32,
    explicit: u32,
}
