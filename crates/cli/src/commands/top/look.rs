//! How a namespace stands at one instant.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::Result;
use tollgate::catalog::{BucketStatus, PageRequest, UsageQuery, Waiter, Window};
use tollgate::store::Scope;
use tollgate::{Catalog, Status, StoredSet, StoredSets, Tick};

use crate::commands::set::all_sets;

/// How many buckets are asked for at once.
const BUCKETS_PAGE: usize = 1_000;

/// How many buckets are looked at. More say nothing to people, and take too long.
const BUCKETS_MAX: usize = 100_000;

/// Microseconds of an hour.
const HOUR: u64 = 3_600_000_000;

/// What was seen.
pub(super) struct Look {
    pub(super) at: Tick,
    pub(super) hour: Tick,
    /// By entity and resource.
    pub(super) rows: BTreeMap<(String, String), Row>,
    /// Who waits longest comes first.
    pub(super) waiters: Vec<Waiter>,
    /// The limit sets in use, whatever the namespace.
    pub(super) sets: Vec<StoredSet>,
}

/// An entity and a resource.
#[derive(Default)]
pub(super) struct Row {
    /// Calls that were admitted in this hour.
    pub(super) calls: u64,
    /// What was used in this hour.
    pub(super) used: BTreeMap<String, i64>,
    /// How each limit stands; nothing if the bucket is full and forgotten.
    pub(super) limits: Vec<Status>,
}

impl Look {
    /// Looks now.
    pub(super) fn at(catalog: &Catalog) -> Result<Look> {
        let at = catalog.backend().clock().now();
        let hour = Tick::from_micros(at.as_micros() / HOUR * HOUR);
        let waiters = catalog.waiters().wait()?;
        let sets = all_sets(&StoredSets::new(Arc::clone(catalog.backend())))?;
        let mut look = Look { at, hour, rows: BTreeMap::new(), waiters, sets };
        look.add_buckets(catalog)?;
        look.add_usage(catalog)?;
        look.rows.retain(|_, row| !row.is_idle());
        Ok(look)
    }

    fn add_buckets(&mut self, catalog: &Catalog) -> Result<()> {
        let mut after = None;
        loop {
            let page =
                catalog.backend().buckets(catalog.namespace_id(), Scope::All, after, BUCKETS_PAGE).wait()?;
            for BucketStatus { entity, resource, limits } in page.items {
                self.rows.entry((entity, resource)).or_default().limits = limits;
            }
            after = page.next.filter(|_| self.rows.len() < BUCKETS_MAX);
            if after.is_none() {
                return Ok(());
            }
        }
    }

    fn add_usage(&mut self, catalog: &Catalog) -> Result<()> {
        let mut page = PageRequest::default();
        loop {
            let query = UsageQuery::of_everybody(Window::Hour).from(self.hour).page(page.clone());
            let found = catalog.usage(query).wait()?;
            for usage in found.items {
                let row = self.rows.entry((usage.entity, usage.resource)).or_default();
                (row.calls, row.used) = (usage.events, usage.amounts);
            }
            match found.next {
                Some(next) => page = page.after(next),
                None => return Ok(()),
            }
        }
    }
}

impl Row {
    /// Whether nothing was used in this hour, and everything is left.
    fn is_idle(&self) -> bool {
        self.calls == 0 && self.limits.iter().all(|status| share_used(status) == 0.0)
    }

    /// The limit of which the smallest share is left, and how much of it is in use, from 0 to 1.
    pub(super) fn tightest(&self) -> Option<(&Status, f64)> {
        tightest(&self.limits)
    }

    /// What is held of resources, by limit: how many of how many.
    pub(super) fn held(&self) -> impl Iterator<Item = (&str, u64, u64)> {
        let resources = self.limits.iter().filter(|status| status.limit().is_resource());
        resources.filter_map(|status| {
            let capacity = status.limit().capacity();
            let free = u64::try_from(status.available()).unwrap_or(0);
            let held = capacity.saturating_sub(free);
            (held > 0 && !status.limit().is_unbounded())
                .then(|| (status.limit().name().as_str(), held, capacity))
        })
    }
}

/// The limit of which the smallest share is left, and how much of it is in use, from 0 to 1.
pub(super) fn tightest(limits: &[Status]) -> Option<(&Status, f64)> {
    let bounded = limits.iter().filter(|status| !status.limit().is_unbounded());
    let shares = bounded.map(|status| (status, share_used(status)));
    shares.max_by(|(_, one), (_, two)| one.total_cmp(two))
}

/// The share that is in use. What is used is subtracted as a whole number, so that a fifth is 0.2 and not a hair less.
fn share_used(status: &Status) -> f64 {
    let capacity = status.limit().capacity().max(1);
    let used = i128::from(capacity) - i128::from(status.available());
    (used as f64 / capacity as f64).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_the_number_that_people_would_write() {
        for (used, share) in [(0, "0.0"), (1, "0.1"), (2, "0.2"), (3, "0.3"), (7, "0.7"), (10, "1.0")] {
            let limit = tollgate::Limit::per_minute("rpm", 10);
            let set = tollgate::LimitSet::new([limit]).unwrap();
            drop(set.try_acquire(tollgate::demand! { rpm: used }).wait().unwrap());
            let status = set.peek().wait().unwrap().limits.remove(0);
            assert_eq!(serde_json::to_string(&share_used(&status)).unwrap(), share);
        }
    }
}
