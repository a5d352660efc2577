use std::ops::{Deref, DerefMut};

use tollgate_core::{BUCKET_LIMITS_MAX, Costs, Limits, Tick, Usage};

use super::HOUR;

/// The kind of callers that used something.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::usage::Caller;
///
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// let costs = limits.costs(&demand! { rpm: 1 })?;
/// assert_eq!(Caller::of(&costs), Caller::Own);
/// assert_eq!(Caller::of(&costs.of_child()), Caller::Child, "what a parent is charged for a child");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Caller {
    /// The entity itself.
    #[default]
    Own,
    /// Its children, and theirs: each of their calls is counted with the child as well.
    Child,
}

impl Caller {
    /// Returns the kind of caller that these costs are charged for.
    #[inline]
    pub fn of(costs: &Costs) -> Caller {
        if costs.is_of_child() { Caller::Child } else { Caller::Own }
    }
}

/// That what was used in an hour was used by children.
const OF_CHILDREN: u32 = 1 << 31;

/// Returns the hour of `at` as sums store it: counted since the epoch, with a mark for what children used.
#[inline]
pub fn marked_hour(at: Tick, caller: Caller) -> u32 {
    let hour = (at.as_micros() / HOUR) as u32 & !OF_CHILDREN;
    if caller == Caller::Child { hour | OF_CHILDREN } else { hour }
}

/// The usage of each limit in one hour, by the entity itself or by its children.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Span, Tick, demand};
/// use tollgate_store::usage::{Caller, Sums, UsageRetention};
///
/// let (limits, at) = (Limits::new([Limit::per_minute("tpm", 1_000)])?, Tick::from_secs(7_200));
/// let mut sums = Sums::new(&limits, at, Caller::Own);
/// for tokens in [600, 250] {
///     sums.add_take(&limits.costs(&demand! { tpm: tokens })?);
/// }
/// assert_eq!((sums.events(), sums.amounts()), (2, &[850][..]));
/// // An event of the next hour does not belong to them: they are written for an hour, a day and a month.
/// assert!(!sums.covers(&limits, at + Span::from_secs(3_600), Caller::Own));
/// assert_eq!(sums.writes("app", "user-1", "gpt-4", &UsageRetention::FOREVER).len(), 3);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sums {
    /// The hour as of [`marked_hour`].
    hour: u32,
    events: u32,
    limits: Limits,
    amounts: SumAmounts,
}

/// One number for each limit. Two of them need no allocation: most buckets count requests and tokens, and there are
/// many.
#[derive(Clone, Debug, PartialEq)]
enum SumAmounts {
    Few([i64; 2], u8),
    Many(Box<[i64]>),
}

impl SumAmounts {
    fn of(amounts: &[i64]) -> SumAmounts {
        match *amounts {
            [] => SumAmounts::Few([0, 0], 0),
            [one] => SumAmounts::Few([one, 0], 1),
            [one, two] => SumAmounts::Few([one, two], 2),
            _ => SumAmounts::Many(amounts.into()),
        }
    }
}

impl Deref for SumAmounts {
    type Target = [i64];

    #[inline]
    fn deref(&self) -> &[i64] {
        match self {
            SumAmounts::Few(amounts, len) => &amounts[..usize::from(*len).min(2)],
            SumAmounts::Many(amounts) => amounts,
        }
    }
}

impl DerefMut for SumAmounts {
    #[inline]
    fn deref_mut(&mut self) -> &mut [i64] {
        match self {
            SumAmounts::Few(amounts, len) => &mut amounts[..usize::from(*len).min(2)],
            SumAmounts::Many(amounts) => amounts,
        }
    }
}

impl Sums {
    /// Returns sums of nothing used of `limits` yet, in the hour of `at`.
    pub fn new(limits: &Limits, at: Tick, caller: Caller) -> Sums {
        Sums {
            hour: marked_hour(at, caller),
            events: 0,
            limits: limits.clone(),
            amounts: SumAmounts::of(&[0; BUCKET_LIMITS_MAX][..limits.len()]),
        }
    }

    /// Returns sums that were stored before, to continue with; `None` if there is not one amount for each limit.
    pub fn restored(limits: Limits, hour: u32, events: u32, amounts: &[i64]) -> Option<Sums> {
        let fits = limits.len() == amounts.len();
        fits.then(|| Sums { hour, events, limits, amounts: SumAmounts::of(amounts) })
    }

    /// Makes these the sums of the same limits that were stored before, as [`restored`](Sums::restored) returns them. False,
    /// with nothing changed, if there is not one amount for each limit.
    #[inline]
    pub fn restore(&mut self, hour: u32, events: u32, amounts: &[i64]) -> bool {
        let fits = amounts.len() == self.amounts.len();
        if fits {
            (self.hour, self.events) = (hour, events);
            self.amounts.copy_from_slice(amounts);
        }
        fits
    }

    /// Returns the hour as a [marked](marked_hour) number, to be [restored](Sums::restored) from.
    pub fn hour(&self) -> u32 {
        self.hour
    }

    /// Returns when the hour began.
    pub fn starts(&self) -> Tick {
        Tick::from_micros(u64::from(self.hour & !OF_CHILDREN) * HOUR)
    }

    /// Returns the kind of callers.
    pub fn caller(&self) -> Caller {
        if self.hour & OF_CHILDREN == 0 { Caller::Own } else { Caller::Child }
    }

    /// Returns the number of takes.
    pub fn events(&self) -> u32 {
        self.events
    }

    /// Returns the limits that the amounts belong to.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Returns the amount used of each limit. It is below zero if more was given back than taken in this hour.
    pub fn amounts(&self) -> &[i64] {
        &self.amounts
    }

    /// Returns true if nothing was counted.
    pub fn is_empty(&self) -> bool {
        self.events == 0 && self.amounts.iter().all(|amount| *amount == 0)
    }

    /// Returns true if an event at `at` under `limits` can be added to these as they are.
    #[inline]
    pub fn covers(&self, limits: &Limits, at: Tick, caller: Caller) -> bool {
        self.limits.same(limits) && self.is_open(at, caller)
    }

    /// Continues under other limits, if they have the same names in the same places and it is the same hour: amounts
    /// belong to names. Otherwise it changes nothing and returns false.
    pub fn adopt(&mut self, limits: &Limits, at: Tick, caller: Caller) -> bool {
        let fits = self.is_open(at, caller) && limits.same_layout(&self.limits);
        if fits {
            self.limits = limits.clone();
        }
        fits
    }

    /// Continues under limits that it cannot [adopt](Sums::adopt), in another hour or for other callers, and returns the sums
    /// from before, which have to be written. Within the hour the number of takes is kept, so that it is that of the whole
    /// hour.
    #[must_use]
    pub fn roll_over(&mut self, limits: &Limits, at: Tick, caller: Caller) -> Sums {
        let mut before = std::mem::replace(self, Sums::new(limits, at, caller));
        if before.is_open(at, caller) {
            std::mem::swap(&mut self.events, &mut before.events);
        }
        before
    }

    /// Returns true if there is room for another event, at `at`.
    #[inline]
    fn is_open(&self, at: Tick, caller: Caller) -> bool {
        self.hour == marked_hour(at, caller) && self.events < u32::MAX
    }

    /// Returns true if `at` is in their hour.
    #[inline]
    pub fn is_of_hour(&self, at: Tick) -> bool {
        at.as_micros() / HOUR == u64::from(self.hour & !OF_CHILDREN)
    }

    /// Sets them to zero, in the same hour of the same limits.
    pub fn clear(&mut self) {
        self.events = 0;
        self.amounts.fill(0);
    }

    /// Adds what was taken, which is counted in their limits.
    #[inline]
    pub fn add_take(&mut self, costs: &Costs) {
        self.add_amounts(costs.amounts());
    }

    /// Adds a take of so much of each limit.
    #[inline]
    pub fn add_amounts(&mut self, amounts: &[u64]) {
        self.events += 1;
        self.add(amounts.iter().map(|amount| signed(*amount)));
    }

    /// Adds what a settlement changes, which is counted in their limits.
    #[inline]
    pub fn add_settlement(&mut self, usage: &Usage<'_>) {
        self.add_difference(usage.reserved.amounts(), usage.used);
    }

    /// Adds what was used of each limit beyond what was reserved, which is negative if it was less.
    #[inline]
    pub fn add_difference(&mut self, reserved: &[u64], used: &[u64]) {
        let amounts = used.iter().zip(reserved);
        self.add(amounts.map(|(used, reserved)| signed(*used) - signed(*reserved)));
    }

    /// Adds so many takes and what they used, which is counted in their limits.
    pub fn add_reported(&mut self, events: i64, amounts: &[i64]) {
        let sum = i64::from(self.events).saturating_add(events);
        self.events = sum.clamp(0, i64::from(u32::MAX)) as u32;
        self.add(amounts.iter().copied());
    }

    #[inline]
    fn add(&mut self, amounts: impl Iterator<Item = i64>) {
        let sums = self.amounts.iter_mut().zip(amounts);
        if !self.limits.have_resources() {
            return sums.for_each(|(sum, amount)| *sum = sum.saturating_add(amount));
        }
        let used_up = self.limits.iter().zip(sums).filter(|(limit, _)| !limit.is_resource());
        used_up.for_each(|(_, (sum, amount))| *sum = sum.saturating_add(amount));
    }
}

#[inline]
fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_five_words() {
        assert_eq!(size_of::<Option<Sums>>(), 40);
    }
}
