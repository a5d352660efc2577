//! The switches of an entity or a resource, and their record.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_core::Tick;
use tollgate_store::records::{Item, ItemKey, Test, Value, Write};

use crate::keys;

const REVISION: &str = "revision";
const DISABLED: &str = "disabled";
const DISABLED_AT: &str = "disabled_at";
const CASCADE: &str = "cascade";

/// The fields with the resources that an entity may use, and may not use, by exception.
const ACCESS: [&str; 2] = ["on_resources", "off_resources"];

/// The fields with the resources for which an entity cascades, and does not.
const CASCADES: [&str; 2] = ["cascade_resources", "no_cascade_resources"];

/// The subject of switches: an entity or a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum SwitchSubject {
    Entity(String),
    Resource(String),
}

/// The switches of an entity, or of a resource as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    /// True if the entity or the resource is disabled.
    pub(crate) is_off: bool,
    /// Of an entity: the resources that it may use or not, by exception.
    pub(super) access: Exceptions,
    /// Whether calls are charged to parents: those of an entity to all resources, or those of all
    /// entities to a resource.
    pub(crate) cascade: Option<bool>,
    /// Of an entity: the same for single resources.
    pub(super) cascades: Exceptions,
}

/// Exceptions for single resources, one way or the other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Exceptions {
    on: BTreeSet<String>,
    off: BTreeSet<String>,
}

impl Exceptions {
    fn of(item: &Item, [on, off]: [&str; 2]) -> Exceptions {
        let resources = |field: &str| match item.fields.get(field) {
            Some(Value::Set(resources)) => resources.clone(),
            _ => BTreeSet::new(),
        };
        Exceptions { on: resources(on), off: resources(off) }
    }

    fn put(&self, item: &mut Item, [on, off]: [&str; 2]) {
        for (field, resources) in [(on, &self.on), (off, &self.off)] {
            if !resources.is_empty() {
                item.fields.insert(field.into(), Value::Set(resources.clone()));
            }
        }
    }

    /// Returns the exception for one resource.
    pub(crate) fn get(&self, resource: &str) -> Option<bool> {
        match (self.off.contains(resource), self.on.contains(resource)) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => None,
        }
    }

    pub(crate) fn set(&mut self, resource: &str, value: Option<bool>) {
        self.off.remove(resource);
        self.on.remove(resource);
        match value {
            Some(true) => self.on.insert(resource.into()),
            Some(false) => self.off.insert(resource.into()),
            None => false,
        };
    }

    /// Returns all exceptions, by resource.
    pub(super) fn all<T>(self, [on, off]: [T; 2]) -> BTreeMap<String, T>
    where
        T: Copy,
    {
        let on = self.on.into_iter().map(|resource| (resource, on));
        on.chain(self.off.into_iter().map(|resource| (resource, off))).collect()
    }
}

impl Switches {
    /// Reads the switches of a record.
    pub(crate) fn of(item: &Item) -> Switches {
        let cascade = match item.fields.get(CASCADE) {
            Some(Value::Bool(cascade)) => Some(*cascade),
            _ => None,
        };
        let (access, cascades) = (Exceptions::of(item, ACCESS), Exceptions::of(item, CASCADES));
        Switches { is_off: item.is_set(DISABLED), access, cascade, cascades }
    }

    /// Returns whether calls of an entity to one resource are charged to its parent, too.
    pub(crate) fn cascade_for(&self, resource: &str) -> Option<bool> {
        self.cascades.get(resource).or(self.cascade)
    }

    /// Sets the exception for a resource.
    pub(crate) fn set_access(&mut self, resource: &str, access: Option<bool>) {
        self.access.set(resource, access);
    }

    /// Sets whether calls are charged to parents: all of an entity or a resource, or those of an
    /// entity to one resource.
    pub(crate) fn set_cascade(&mut self, resource: Option<&str>, cascade: Option<bool>) {
        match resource {
            Some(resource) => self.cascades.set(resource, cascade),
            None => self.cascade = cascade,
        }
    }

    fn is_empty(&self) -> bool {
        *self == Switches::default()
    }
}

impl SwitchSubject {
    pub(crate) fn key(&self, ns: &str) -> ItemKey {
        match self {
            SwitchSubject::Entity(id) => keys::entity_switch(ns, id),
            SwitchSubject::Resource(name) => keys::resource_switch(ns, name),
        }
    }

    /// Returns the write that replaces the record on condition that it has not changed since
    /// `stored` was read.
    pub(crate) fn write(&self, ns: &str, stored: Option<&Item>, after: &Switches, now: Tick) -> Write {
        let revision = stored.and_then(|item| item.int(REVISION)).unwrap_or(0);
        let tests = match stored {
            None => vec![Test::Absent],
            // A record that a migration wrote has no revision.
            Some(_) if revision == 0 => vec![Test::Exists, Test::AtMost(REVISION.into(), 0)],
            Some(_) => vec![Test::Is(REVISION.into(), revision.into())],
        };
        if after.is_empty() {
            return Write::Delete(self.key(ns), tests);
        }
        let mut item = self.item(ns, after, stored.and_then(|item| item.text(DISABLED_AT)), now);
        // By the time, so that a record that is deleted and created again has another revision.
        let now = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        item.fields.insert(REVISION.into(), now.max(revision.saturating_add(1)).into());
        Write::Put(item, tests)
    }

    /// Returns the record of the switches. `disabled_at` is when the subject was disabled; `None`
    /// if it is disabled now.
    pub(crate) fn item(&self, ns: &str, switches: &Switches, disabled_at: Option<&str>, now: Tick) -> Item {
        let item = Item::new(self.key(ns));
        let mut item = match self {
            SwitchSubject::Entity(id) => item.with("entity_id", id.as_str()),
            SwitchSubject::Resource(name) => item.with("resource", name.as_str()),
        };
        if switches.is_off {
            let since = disabled_at.map_or_else(|| tollgate_store::usage::iso(now), str::to_owned);
            item = item.with(DISABLED, true).with(DISABLED_AT, since);
        }
        if let Some(cascade) = switches.cascade {
            item = item.with(CASCADE, cascade);
        }
        switches.access.put(&mut item, ACCESS);
        switches.cascades.put(&mut item, CASCADES);
        item
    }
}
