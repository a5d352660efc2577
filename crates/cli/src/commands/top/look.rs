//! How a namespace stands at one instant.

use std::collections::BTreeMap;

use anyhow::Result;
use tollgate::catalog::{BucketStatus, PageRequest, UsageQuery, Waiter, Window};
use tollgate::store::Scope;
use tollgate::{Catalog, Status, Tick};

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
        let mut look = Look { at, hour, rows: BTreeMap::new(), waiters };
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
        let bounded = self.limits.iter().filter(|status| !status.limit().is_unbounded());
        let shares = bounded.map(|status| (status, share_used(status)));
        shares.max_by(|(_, one), (_, two)| one.total_cmp(two))
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

fn share_used(status: &Status) -> f64 {
    let capacity = status.limit().capacity().max(1) as f64;
    (1.0 - status.available() as f64 / capacity).clamp(0.0, 1.0)
}
