//! Usage: what was used, by hour, day and month.

mod read;
mod summary;
mod time;

use std::collections::BTreeMap;

use tollgate_core::Tick;
use tollgate_store::records::Item;
use tollgate_store::usage::{Window, limit_of_child_field, limit_of_field};

use crate::{PageRequest, keys};

pub use summary::{LimitUsage, UsageSummary, WindowUsage};

/// Whose usage, of which windows.
///
/// ```
/// use tollgate_catalog::{UsageQuery, Window};
/// use tollgate_core::Tick;
///
/// let november = UsageQuery::of_entity("user-1", Window::Day)
///     .resource("gpt-4")
///     .from(Tick::from_secs(1_793_491_200))
///     .until(Tick::from_secs(1_796_083_200));
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

/// What an entity used of a resource in one window.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsageRow {
    /// The entity.
    pub entity: String,
    /// The resource.
    pub resource: String,
    /// How long the window is.
    pub window: Window,
    /// When it began.
    pub start: Tick,
    /// How much was used of each limit. Below zero if more was given back than taken in this window.
    pub amounts: BTreeMap<String, i64>,
    /// How many calls were admitted.
    pub events: u64,
    /// How much of that was used by calls of children, and theirs, which are counted there as well.
    pub child_amounts: BTreeMap<String, i64>,
    /// How many of the calls children made, and theirs.
    pub child_events: u64,
}

impl UsageQuery {
    /// The usage of an entity, of all resources unless one is named.
    pub fn of_entity(entity: impl Into<String>, window: Window) -> UsageQuery {
        UsageQuery::new(UsageSubject::Entity { entity: entity.into(), resource: None }, window)
    }

    /// The usage of a resource by all entities.
    pub fn of_resource(resource: impl Into<String>, window: Window) -> UsageQuery {
        UsageQuery::new(UsageSubject::Resource(resource.into()), window)
    }

    /// The usage of everything by all entities, unless a resource is named. Goes through all keys of the entities.
    pub fn of_all_entities(window: Window) -> UsageQuery {
        UsageQuery::new(UsageSubject::All, window)
    }

    fn new(whose: UsageSubject, window: Window) -> UsageQuery {
        UsageQuery { whose, window, from: Tick::ZERO, until: Tick::MAX, page: PageRequest::default() }
    }

    /// Only of this resource.
    pub fn resource(mut self, name: impl Into<String>) -> UsageQuery {
        match &mut self.whose {
            UsageSubject::Entity { resource, .. } => *resource = Some(name.into()),
            UsageSubject::Resource(resource) => *resource = name.into(),
            UsageSubject::All => self.whose = UsageSubject::Resource(name.into()),
        }
        self
    }

    /// Only windows that begin at this time or later.
    pub fn from(self, from: Tick) -> UsageQuery {
        UsageQuery { from, ..self }
    }

    /// Only windows that begin before this time.
    pub fn until(self, until: Tick) -> UsageQuery {
        UsageQuery { until, ..self }
    }

    /// Which part of the answer.
    pub fn page(self, page: PageRequest) -> UsageQuery {
        UsageQuery { page, ..self }
    }

    /// Whether its sums are over entities, so that calls which were charged to several of them must count once.
    fn is_over_entities(&self) -> bool {
        !matches!(self.whose, UsageSubject::Entity { .. })
    }

    fn wants(&self, start: Tick) -> bool {
        self.from <= start && start < self.until
    }
}

impl UsageRow {
    /// What a record says, if it is one of usage.
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

/// When the window of a record of usage began.
pub(crate) fn start_of(item: &Item) -> Option<Tick> {
    time::parse(item.text("window_start")?)
}
