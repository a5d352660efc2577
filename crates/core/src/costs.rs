//! Costs: a demand, resolved against the limits it is for.

use crate::{Limits, Row};

/// What a demand takes of each limit, by its place in the set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Costs {
    amounts: Row<u64>,
    taken: u64,
    explicit: u64,
}

impl Costs {
    /// Takes nothing of `limits` limits.
    #[inline]
    pub(crate) fn none(limits: usize) -> Costs {
        Costs { amounts: Row::new(limits), taken: 0, explicit: 0 }
    }

    #[inline]
    pub(crate) fn take(&mut self, index: usize, amount: u64) {
        self.amounts[index] = amount;
        self.taken |= 1 << index;
    }

    #[inline]
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

    /// Whether it takes of the limit at `index`, be it 0.
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

    /// The same costs for limits in other places: by name, leaving out what is no longer there.
    #[must_use]
    pub fn moved(&self, from: &Limits, to: &Limits) -> Costs {
        let mut moved = Costs::none(to.len());
        for (index, limit) in from.iter().enumerate().filter(|(index, _)| self.takes(*index)) {
            match to.index(limit.name()) {
                Some(place) if self.is_explicit(index) => moved.take_explicit(place, self.amount(index)),
                Some(place) => moved.take(place, self.amount(index)),
                None => {}
            }
        }
        moved
    }
}
