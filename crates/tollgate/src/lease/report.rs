//! Reports of usage, and their validation.

use tollgate_core::{AMOUNT_MAX, AsDemand, BadAmount, Costs, DemandError, Kind, Limits, Name, Packed};

use super::Lease;
use crate::LeaseError;

/// Which limits were reported, and how the usage differs from the reservation.
#[derive(Clone, Copy, Default)]
pub(super) struct UsageReport {
    /// One bit for each limit that was reported.
    pub(super) limits: u32,
    /// Whether any amount differs from what was reserved.
    pub(super) differs: bool,
    /// Whether any amount is more than what was reserved.
    pub(super) is_over: bool,
}

/// A reservation, packed or not.
pub(super) trait Reserved {
    fn amount(&self, index: usize) -> u64;
}

impl Reserved for Costs {
    fn amount(&self, index: usize) -> u64 {
        Costs::amount(self, index)
    }
}

impl Reserved for Packed {
    #[inline(always)]
    fn amount(&self, index: usize) -> u64 {
        Packed::amount(self, index)
    }
}

impl UsageReport {
    /// Notes what was used of the limit at `index`, unless it cannot have been.
    #[inline(always)]
    fn note(
        &mut self,
        limits: &Limits,
        costs: &impl Reserved,
        used: &mut [u64],
        index: usize,
        amount: u64,
    ) -> bool {
        let reserved = costs.amount(index);
        if amount > reserved && matches!(limits[index].kind(), Kind::Calls(_)) {
            return false;
        }
        self.differs |= amount != reserved;
        self.is_over |= amount > reserved;
        self.limits |= 1 << index;
        used[index] = amount;
        true
    }
}

impl Lease<'_> {
    /// Notes what was used, to count when the lease ends. The last report of a limit counts.
    ///
    /// # Errors
    ///
    /// [`LeaseError`] if the report is not valid; what is valid in it is noted all the same.
    pub fn report(&mut self, usage: impl AsDemand) -> Result<(), LeaseError> {
        self.note_with(|lease, costs, used, noted| lease.note(lease.foreign(), costs, used, noted, &usage))
    }

    /// Adds to what was used, to count when the lease ends. Never denied: what is used beyond what was taken becomes debt. A
    /// negative amount gives back, down to nothing used.
    ///
    /// ```
    /// use tollgate::{demand, Limit, LimitSet};
    ///
    /// let set = LimitSet::new([Limit::per_minute("tpm", 1_000)])?;
    /// let mut lease = set.acquire(demand! { tpm: 500 }).wait()?;
    /// lease.adjust([("tpm", 1_500)])?;
    /// lease.commit().wait()?;
    /// assert_eq!(set.peek().wait()?.limits[0].available(), -1_000);
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`LeaseError`] if a name is no limit, or if there are more calls than were taken; what is valid is noted all the same.
    pub fn adjust<'n>(&mut self, by: impl IntoIterator<Item = (&'n str, i64)>) -> Result<(), LeaseError> {
        self.note_with(|lease, costs, used, noted| lease.note_by(costs, used, noted, by))
    }

    fn note_with(
        &mut self,
        note: impl FnOnce(&Self, &Costs, &mut [u64], &mut UsageReport) -> Option<Box<LeaseError>>,
    ) -> Result<(), LeaseError> {
        let costs = self.costs();
        let (mut used, mut noted) = self.used_so_far(&costs);
        let wrong = note(self, &costs, &mut used, &mut noted);
        self.extra().reported = Some((used, noted));
        self.ends_on_drop.set(true);
        wrong.map_or(Ok(()), |error| Err(*error))
    }

    /// The limits of which an amount was taken on purpose and no usage was reported yet. They are charged as they were taken.
    pub fn unreported(&self) -> Vec<Name> {
        let reported = self.extra.0.as_ref().and_then(|extra| extra.reported.as_ref());
        let (names, costs, noted) =
            (self.names(), self.costs(), reported.map_or(0, |(_, noted)| noted.limits));
        let wants = |index: &usize| {
            costs.is_explicit(*index) && !names[*index].is_resource() && noted >> index & 1 == 0
        };
        (0..costs.len()).filter(wants).map(|index| names[index].name().clone()).collect()
    }

    /// Notes the usage of each limit. Returns an error for what is not valid, which is left as it was. `foreign` has a bit for
    /// each limit that the program does not name.
    #[inline(always)]
    pub(super) fn note(
        &self,
        foreign: u64,
        costs: &impl Reserved,
        used: &mut [u64],
        noted: &mut UsageReport,
        usage: &impl AsDemand,
    ) -> Option<Box<LeaseError>> {
        let (limits, broken) = (self.names(), usage.bad_amount());
        let mut wrong = broken.map(|(name, why)| bad_amount(name, why));
        for (name, amount) in (0..usage.len()).map(|index| usage.part(index)) {
            // An invalid amount reads as 0. Beside one, a 0 is ignored, and the reservation stays charged.
            if amount == 0 && broken.is_some() {
                continue;
            }
            let index = limits.index_of(name).filter(|index| foreign >> index & 1 == 0);
            let is_noted = index.is_some_and(|index| noted.note(limits, costs, used, index, amount));
            if !is_noted && wrong.is_none() {
                wrong = self.refuse(costs, index, name.as_str(), amount);
            }
        }
        wrong
    }

    /// Returns the error of a report that could not be noted; `None` if the set skips unknown names.
    #[cold]
    fn refuse(
        &self,
        costs: &impl Reserved,
        index: Option<usize>,
        name: &str,
        used: u64,
    ) -> Option<Box<LeaseError>> {
        let Some(index) = index else {
            return self.set().skip_unknown(name).err().map(|error| Box::new(LeaseError::Usage(error)));
        };
        let limit = self.names()[index].name().clone();
        Some(Box::new(LeaseError::TooManyCalls { limit, used, reserved: costs.amount(index) }))
    }

    /// Adds to what was used of each limit, as [`note`](Lease::note) notes it.
    pub(super) fn note_by<'n>(
        &self,
        costs: &Costs,
        used: &mut [u64],
        noted: &mut UsageReport,
        by: impl IntoIterator<Item = (&'n str, i64)>,
    ) -> Option<Box<LeaseError>> {
        let mut wrong = None;
        for (name, by) in by {
            let index = self.names().index(name).filter(|index| self.foreign() >> index & 1 == 0);
            let before = index.map_or(0, |index| used[index]);
            let amount = before.saturating_add_signed(by).min(AMOUNT_MAX);
            let is_noted = index.is_some_and(|index| noted.note(self.names(), costs, used, index, amount));
            if !is_noted && wrong.is_none() {
                wrong = self.refuse(costs, index, name, amount);
            }
        }
        wrong
    }
}

#[cold]
fn bad_amount(name: &str, why: BadAmount) -> Box<LeaseError> {
    Box::new(LeaseError::Usage(DemandError::BadAmount { name: name.into(), why: Box::new(why) }))
}
