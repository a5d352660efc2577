use tollgate_core::Costs;

use crate::usage::Caller;

/// Takes and what they used of each limit.
///
/// ```
/// use tollgate_store::prefetch::UsageDelta;
///
/// assert!(UsageDelta::default().is_nothing());
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsageDelta {
    /// The number of takes.
    pub events: i64,
    /// The amount used of each limit; nothing of limits beyond its end.
    pub amounts: Vec<i64>,
    /// The kind of callers that took.
    pub caller: Caller,
}

impl UsageDelta {
    /// Returns true if there is nothing to count.
    pub fn is_nothing(&self) -> bool {
        self.events == 0 && self.amounts.iter().all(|amount| *amount == 0)
    }

    /// Counts a take.
    pub fn add_take(&mut self, costs: &Costs) {
        self.caller = Caller::of(costs);
        self.add(1, costs.amounts().iter().map(|cost| signed(*cost)));
    }

    /// Removes a take that was counted.
    pub fn remove_take(&mut self, costs: &Costs) {
        self.caller = Caller::of(costs);
        self.add(-1, costs.amounts().iter().map(|cost| -signed(*cost)));
    }

    pub(super) fn add(&mut self, events: i64, amounts: impl Iterator<Item = i64>) {
        self.events += events;
        for (place, amount) in amounts.enumerate() {
            if self.amounts.len() <= place {
                self.amounts.push(0);
            }
            self.amounts[place] = self.amounts[place].saturating_add(amount);
        }
    }
}

pub(super) fn signed(amount: u64) -> i64 {
    i64::try_from(amount).unwrap_or(i64::MAX)
}
