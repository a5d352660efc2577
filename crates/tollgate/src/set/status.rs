//! The status of a set: its limits, its waiters, its cooldown.

use tollgate_core::{Status, Tick};

/// The status of a set at one instant.
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limit, LimitSet};
///
/// let set = LimitSet::new([Limit::per_minute("rpm", 500)])?;
/// set.cool_down(Duration::from_secs(20)).wait()?;
/// let status = set.peek().wait()?;
/// assert_eq!(status.limit("rpm").unwrap().available(), 500);
/// assert!(status.cooling_until.is_some() && status.waiting == 0);
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct SetStatus {
    /// Each limit, in the order of the set; of one in a store, also those that only other programs name.
    pub limits: Vec<Status>,
    /// How many callers wait.
    pub waiting: usize,
    /// The end of the cooldown, if one lasts.
    pub cooling_until: Option<Tick>,
}

impl SetStatus {
    /// Returns the status of the limit with this name.
    pub fn limit(&self, name: &str) -> Option<&Status> {
        self.limits.iter().find(|status| status.limit().name() == name)
    }
}
