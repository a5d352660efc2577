//! Sums of usage.

use std::collections::BTreeMap;

use tollgate_core::Tick;
use tollgate_store::Reply;

use super::{UsageQuery, UsageRow};
use crate::{Catalog, PageRequest, Result};

/// Usage summed over all windows.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Registry, UsageQuery, Window};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// let summary = catalog.usage_summary(UsageQuery::of_all_entities(Window::Day)).wait()?;
/// for (limit, usage) in &summary.limits {
///     println!("{limit}: {} in all, {:.1} a day", usage.total, usage.average());
/// }
/// assert_eq!(summary.events, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageSummary {
    /// The number of windows with usage.
    pub windows: u64,
    /// When the first of them began.
    pub first: Option<Tick>,
    /// When the last of them began.
    pub last: Option<Tick>,
    /// The number of admitted calls.
    pub events: u64,
    /// The usage of each limit.
    pub limits: BTreeMap<String, LimitUsage>,
}

/// Usage of one limit, summed over all windows.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Registry, UsageQuery, Window};
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{BucketRef, Key, Memory, Op, Step, Transaction};
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// # let (key, limits) = (Key::new(&["user-1", "gpt-4"]), Limits::new([Limit::per_minute("tpm", 1_000)])?);
/// # let costs = limits.costs(&demand! { tpm: 40 })?;
/// # let place = BucketRef { namespace: catalog.namespace_id(), key: &key, limits: &limits };
/// # let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// # catalog.backend().apply(&Transaction { id: None, steps: &steps, metered: true }).wait()?;
/// // A call of the user has taken 40 tokens.
/// let summary = catalog.usage_summary(UsageQuery::of_entity("user-1", Window::Month)).wait()?;
/// let tokens = summary.limits["tpm"];
/// assert_eq!((tokens.total, tokens.max, tokens.average()), (40, 40, 40.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitUsage {
    /// The sum.
    pub total: i64,
    /// The number of windows in which it was used.
    pub windows: u64,
    /// The least usage in one of them.
    pub min: i64,
    /// The most usage in one of them.
    pub max: i64,
}

impl LimitUsage {
    /// Returns the average usage of a window, of those in which it was used.
    pub fn average(&self) -> f64 {
        self.total as f64 / self.windows.max(1) as f64
    }
}

/// Usage in one window, summed over entities and resources; [`Catalog::usage_by_window`] returns
/// it.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Registry, UsageQuery, Window};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// for (start, usage) in catalog.usage_by_window(UsageQuery::of_all_entities(Window::Day)).wait()? {
///     println!("{start:?}: {} calls", usage.events);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct WindowUsage {
    /// The number of admitted calls.
    pub events: u64,
    /// The amount of each limit.
    pub amounts: BTreeMap<String, i64>,
}

impl Catalog {
    /// Returns the usage of all windows of a query together, as of now. The page of the query is
    /// ignored. A sum over entities counts a call once, with the entity that made it; that of one
    /// entity includes the calls of its children.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
    pub fn usage_summary(&self, query: UsageQuery) -> Reply<'_, Result<UsageSummary>> {
        Reply::later(async move { Ok(UsageSummary::of(&self.usage_by_window(query).await?)) })
    }

    /// Returns the usage of each window of a query, by its beginning, as of now. The page of the
    /// query is ignored. A sum over entities counts a call once, with the entity that made it; that
    /// of one entity includes the calls of its children.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
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
    /// Returns the row without the usage of descendants.
    fn without_children(mut self) -> UsageRow {
        self.events = self.events.saturating_sub(self.child_events);
        for (limit, of_children) in &self.child_amounts {
            let own = self.amounts.get(limit).map(|amount| amount.saturating_sub(*of_children));
            match own {
                // A limit that only descendants used is counted with them.
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
