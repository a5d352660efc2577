//! What switches say, and the record that says it.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_core::Tick;
use tollgate_store::records::{Item, ItemKey, Test, Value, Write};

use crate::keys;

const REVISION: &str = "revision";
const DISABLED: &str = "disabled";
const DISABLED_AT: &str = "disabled_at";
const CASCADE: &str = "cascade";

/// The fields of resources that an entity alone may use, and may not.
const ACCESS: [&str; 2] = ["on_resources", "off_resources"];

/// The fields of resources that an entity cascades for, and does not.
const CASCADES: [&str; 2] = ["cascade_resources", "no_cascade_resources"];

/// What is switched: an entity or a resource.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Switched {
    Entity(String),
    Resource(String),
}

/// What is said of an entity, or of a resource as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Switches {
    /// Whether all of it is off.
    pub(crate) is_off: bool,
    /// Of an entity: the resources that it alone may use or not.
    pub(super) access: Exceptions,
    /// Whether calls are charged to parents: those of an entity to all resources, or those of all entities to a resource.
    pub(crate) cascade: Option<bool>,
    /// Of an entity: the same for single resources.
    pub(super) cascades: Exceptions,
}

/// What is said of single resources, one way or the other.
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

    /// What is said of one resource.
    pub(crate) fn get(&self, resource: &str) -> Option<bool> {
        match (self.off.contains(resource), self.on.contains(resource)) {
            (true, _) => Some(false),
            (false, true) => Some(true),
            (false, false) => None,
        }
    }

    pub(crate) fn set(&mut self, resource: &str, said: Option<bool>) {
        self.off.remove(resource);
        self.on.remove(resource);
        match said {
            Some(true) => self.on.insert(resource.into()),
            Some(false) => self.off.insert(resource.into()),
            None => false,
        };
    }

    /// All that is said, by resource.
    pub(super) fn all<T>(self, [on, off]: [T; 2]) -> BTreeMap<String, T>
    where
        T: Copy,
    {
        let on = self.on.into_iter().map(|resource| (resource, on));
        on.chain(self.off.into_iter().map(|resource| (resource, off))).collect()
    }
}

impl Switches {
    /// What a record says.
    pub(crate) fn of(item: &Item) -> Switches {
        let cascade = match item.fields.get(CASCADE) {
            Some(Value::Bool(cascade)) => Some(*cascade),
            _ => None,
        };
        let (access, cascades) = (Exceptions::of(item, ACCESS), Exceptions::of(item, CASCADES));
        Switches { is_off: item.is_set(DISABLED), access, cascade, cascades }
    }

    /// What an entity says of its calls to one resource: whether they are charged to its parent, too.
    pub(crate) fn cascade_for(&self, resource: &str) -> Option<bool> {
        self.cascades.get(resource).or(self.cascade)
    }

    /// Says that an entity may use a resource, whatever the resource's own switch says, or may not.
    pub(crate) fn set_access(&mut self, resource: &str, access: Option<bool>) {
        self.access.set(resource, access);
    }

    /// Says whether calls are charged to parents: all of an entity or a resource, or those to one resource of an entity.
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

impl Switched {
    pub(crate) fn key(&self, ns: &str) -> ItemKey {
        match self {
            Switched::Entity(id) => keys::entity_switch(ns, id),
            Switched::Resource(name) => keys::resource_switch(ns, name),
        }
    }

    /// The write that puts what is said in place of what was, if that is still the same.
    pub(crate) fn write(&self, ns: &str, there: Option<&Item>, after: &Switches, now: Tick) -> Write {
        let revision = there.and_then(|item| item.int(REVISION)).unwrap_or(0);
        let tests = match there {
            None => vec![Test::Absent],
            // A record that has none was written before there were any.
            Some(_) if revision == 0 => vec![Test::Exists, Test::AtMost(REVISION.into(), 0)],
            Some(_) => vec![Test::Is(REVISION.into(), revision.into())],
        };
        if after.is_empty() {
            return Write::Delete(self.key(ns), tests);
        }
        let mut item = self.item(ns, after, there.and_then(|item| item.text(DISABLED_AT)), now);
        // By the time, so that a record that is deleted and made anew has another one.
        let now = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
        item.fields.insert(REVISION.into(), now.max(revision.saturating_add(1)).into());
        Write::Put(item, tests)
    }

    /// The record that says it, of something that was disabled at an instant, or is now.
    pub(crate) fn item(&self, ns: &str, said: &Switches, disabled_at: Option<&str>, now: Tick) -> Item {
        let item = Item::new(self.key(ns));
        let mut item = match self {
            Switched::Entity(id) => item.with("entity_id", id.as_str()),
            Switched::Resource(name) => item.with("resource", name.as_str()),
        };
        if said.is_off {
            let since = disabled_at.map_or_else(|| tollgate_store::usage::iso(now), str::to_owned);
            item = item.with(DISABLED, true).with(DISABLED_AT, since);
        }
        if let Some(cascade) = said.cascade {
            item = item.with(CASCADE, cascade);
        }
        said.access.put(&mut item, ACCESS);
        said.cascades.put(&mut item, CASCADES);
        item
    }
}
