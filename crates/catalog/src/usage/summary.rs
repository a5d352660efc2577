//! Usage, summed up.

use std::collections::BTreeMap;

use tollgate_core::Tick;
use tollgate_store::Reply;

use super::{UsageQuery, UsageRow};
use crate::{Catalog, PageRequest, Result};

/// What was used in all windows together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageSummary {
    /// In how many windows something was used.
    pub windows: u64,
    /// When the first of them began.
    pub first: Option<Tick>,
    /// When the last of them began.
    pub last: Option<Tick>,
    /// How many calls were admitted.
    pub events: u64,
    /// Each limit.
    pub limits: BTreeMap<String, LimitUsage>,
}

/// What was used of one limit in all windows together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitUsage {
    /// The sum.
    pub total: i64,
    /// In how many windows it was used.
    pub windows: u64,
    /// The least that was used in one of them.
    pub min: i64,
    /// The most that was used in one of them.
    pub max: i64,
}

impl LimitUsage {
    /// What was used in a window on average, of those in which it was used.
    pub fn average(&self) -> f64 {
        self.total as f64 / self.windows.max(1) as f64
    }
}

/// What was used in one window, over entities and resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowUsage {
    /// How many calls were admitted.
    pub events: u64,
    /// How much was used of each limit.
    pub amounts: BTreeMap<String, i64>,
}

impl Catalog {
    /// What was used in all windows of a query together, as of now. The page of the query is ignored. A sum over entities
    /// counts a call once, with the entity that made it; that of one entity has the calls of its children in it.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed, except that a table of DynamoDB has brought its records up to date.
    ///
    /// # Errors
    ///
    /// A name that is not valid, or the store's.
    pub fn usage_summary(&self, query: UsageQuery) -> Reply<'_, Result<UsageSummary>> {
        Reply::later(async move { Ok(UsageSummary::of(&self.usage_by_window(query).await?)) })
    }

    /// What was used in each window of a query, by its beginning, as of now. The page of the query is ignored. A sum over
    /// entities counts a call once, with the entity that made it; that of one entity has the calls of its children in it.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed, except that a table of DynamoDB has brought its records up to date.
    ///
    /// # Errors
    ///
    /// A name that is not valid, or the store's.
    pub fn usage_by_window(&self, query: UsageQuery) -> Reply<'_, Result<BTreeMap<Tick, WindowUsage>>> {
        Reply::later(async move {
            query.check()?;
            let query = query.page(PageRequest::default());
            let mut windows: BTreeMap<Tick, WindowUsage> = BTreeMap::new();
            let is_over_entities = query.is_over_entities();
            let add = |row: UsageRow| {
                let row = if is_over_entities { row.without_children() } else { row };
                if row.events > 0 || !row.amounts.is_empty() {
                    windows.entry(row.start).or_default().add(row);
                }
            };
            self.each_usage(&query, add).await?;
            Ok(windows)
        })
    }
}

impl UsageRow {
    /// What the entity used by calls of its own.
    fn without_children(mut self) -> UsageRow {
        self.events = self.events.saturating_sub(self.child_events);
        for (limit, of_children) in &self.child_amounts {
            let own = self.amounts.get(limit).map(|amount| amount.saturating_sub(*of_children));
            match own {
                // A limit that was used by children only is counted with them.
                Some(0) | None => drop(self.amounts.remove(limit)),
                Some(own) => drop(self.amounts.insert(limit.clone(), own)),
            }
        }
        self
    }
}

impl WindowUsage {
    fn add(&mut self, row: UsageRow) {
        self.events = self.events.saturating_add(row.events);
        for (limit, amount) in row.amounts {
            let sum = self.amounts.entry(limit).or_default();
            *sum = sum.saturating_add(amount);
        }
    }
}

impl UsageSummary {
    fn of(windows: &BTreeMap<Tick, WindowUsage>) -> UsageSummary {
        let mut summary = UsageSummary {
            windows: windows.len() as u64,
            first: windows.keys().next().copied(),
            last: windows.keys().next_back().copied(),
            ..UsageSummary::default()
        };
        for sums in windows.values() {
            summary.events = summary.events.saturating_add(sums.events);
            for (limit, amount) in &sums.amounts {
                let fresh = LimitUsage { total: 0, windows: 0, min: i64::MAX, max: i64::MIN };
                let usage = summary.limits.entry(limit.clone()).or_insert(fresh);
                usage.total = usage.total.saturating_add(*amount);
                usage.windows += 1;
                usage.min = usage.min.min(*amount);
                usage.max = usage.max.max(*amount);
            }
        }
        summary
    }
}
