//! Usage: what was consumed, by hour, day and month.

mod read;
mod summary;
mod time;

use std::collections::BTreeMap;

use tollgate_core::Tick;
use tollgate_store::records::Item;
use tollgate_store::usage::{Window, limit_of_child_field, limit_of_field};

use crate::{PageRequest, keys};

pub use summary::{LimitUsage, UsageSummary, WindowUsage};

/// A query of usage: the subject, and the windows.
///
/// ```
/// use tollgate_catalog::{UsageQuery, Window};
/// use tollgate_core::Tick;
///
/// let november = UsageQuery::of_entity("user-1", Window::Day)
///     .resource("gpt-4")
///     .from(Tick::from_secs(1_793_491_200))
///     .until(Tick::from_secs(1_796_083_200));
/// # let _ = november;
/// ```
#[derive(Clone, Debug)]
#[must_use = "a query does nothing until it is asked"]
pub struct UsageQuery {
    whose: UsageSubject,
    window: Window,
    from: Tick,
    until: Tick,
    page: PageRequest,
}

#[derive(Clone, Debug)]
enum UsageSubject {
    Entity { entity: String, resource: Option<String> },
    Resource(String),
    All,
}

/// The usage of a resource by an entity in one window.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Registry, UsageQuery, Window};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// let page = catalog.usage(UsageQuery::of_entity("user-1", Window::Hour)).wait()?;
/// for row in &page.items {
///     println!("{}: {} calls, {:?}", row.resource, row.events, row.amounts);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageRow {
    /// The id of the entity.
    pub entity: String,
    /// The resource.
    pub resource: String,
    /// The length of the window.
    pub window: Window,
    /// When the window began.
    pub start: Tick,
    /// The amount of each limit. It is below zero if more was given back than taken in this window.
    pub amounts: BTreeMap<String, i64>,
    /// The number of admitted calls.
    pub events: u64,
    /// The part of the amounts that calls of descendants used, which is counted with them as well.
    pub child_amounts: BTreeMap<String, i64>,
    /// The number of calls that descendants made.
    pub child_events: u64,
}

impl UsageQuery {
    /// Queries the usage of an entity, of all resources unless one is named.
    pub fn of_entity(entity: impl Into<String>, window: Window) -> UsageQuery {
        UsageQuery::new(UsageSubject::Entity { entity: entity.into(), resource: None }, window)
    }

    /// Queries the usage of a resource by all entities.
    pub fn of_resource(resource: impl Into<String>, window: Window) -> UsageQuery {
        UsageQuery::new(UsageSubject::Resource(resource.into()), window)
    }

    /// Queries the usage of all resources by all entities, unless a resource is named. It reads the
    /// keys of all entities.
    pub fn of_all_entities(window: Window) -> UsageQuery {
        UsageQuery::new(UsageSubject::All, window)
    }

    fn new(whose: UsageSubject, window: Window) -> UsageQuery {
        UsageQuery { whose, window, from: Tick::ZERO, until: Tick::MAX, page: PageRequest::default() }
    }

    /// Restricts the query to a resource.
    pub fn resource(mut self, name: impl Into<String>) -> UsageQuery {
        match &mut self.whose {
            UsageSubject::Entity { resource, .. } => *resource = Some(name.into()),
            UsageSubject::Resource(resource) => *resource = name.into(),
            UsageSubject::All => self.whose = UsageSubject::Resource(name.into()),
        }
        self
    }

    /// Restricts the query to windows that begin at this time or later.
    pub fn from(self, from: Tick) -> UsageQuery {
        UsageQuery { from, ..self }
    }

    /// Restricts the query to windows that begin before this time.
    pub fn until(self, until: Tick) -> UsageQuery {
        UsageQuery { until, ..self }
    }

    /// Sets the page.
    pub fn page(self, page: PageRequest) -> UsageQuery {
        UsageQuery { page, ..self }
    }

    /// Returns true if the sums are over entities, so that calls which were charged to several of
    /// them must count once.
    fn is_over_entities(&self) -> bool {
        !matches!(self.whose, UsageSubject::Entity { .. })
    }

    fn wants(&self, start: Tick) -> bool {
        self.from <= start && start < self.until
    }
}

impl UsageRow {
    /// Reads a record, if it is one of usage.
    fn of(item: &Item) -> Option<UsageRow> {
        let windows = [Window::Hour, Window::Day, Window::Month];
        let name = item.text("window")?;
        let amounts = |limit_of: fn(&str) -> Option<&str>| {
            let fields = item.fields.keys().filter_map(|field| Some((limit_of(field)?, item.int(field)?)));
            fields.map(|(limit, amount)| (limit.to_owned(), amount)).collect()
        };
        let events = |field: &str| item.int(field).and_then(|it| u64::try_from(it).ok()).unwrap_or(0);
        Some(UsageRow {
            entity: keys::usage_of(&item.key)?.to_owned(),
            resource: item.text("resource")?.to_owned(),
            window: windows.into_iter().find(|window| window.name() == name)?,
            start: start_of(item)?,
            amounts: amounts(limit_of_field),
            events: events("total_events"),
            child_amounts: amounts(limit_of_child_field),
            child_events: events("#total_events"),
        })
    }
}

/// Returns when the window of a record of usage began.
pub(crate) fn start_of(item: &Item) -> Option<Tick> {
    time::parse(item.text("window_start")?)
}
