//! What records of the original say: what ours have another form for, and what they have none for.
//!
//! Records that are read as if they said less than they do would admit calls that were refused before. So everything in a
//! record that is not known here is found, whatever it is, before the layout is changed.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_core::Tick;
use tollgate_store::records::{Change, Fields, Item, ItemKey, Test, Value, Write};

use super::Finding;
use crate::disable::{Switched, Switches};
use crate::limits::is_limit_field;
use crate::{DEFAULT_RESOURCE, keys};

/// Fields of limits, beside those of each limit.
const CONFIG_FIELDS: [&str; 6] =
    ["entity_id", "resource", "config_version", "on_unavailable", "disabled", "cascade"];

/// Fields of an entity, ours included: a migration may be run again.
const ENTITY_FIELDS: [&str; 8] =
    ["entity_id", "name", "parent_id", "cascade", "metadata", "created_at", "children", "deleting"];

/// Sort keys of records, or what they begin with.
const SORTS: [&str; 13] = [
    "#META",
    "#SWITCH",
    "#CONFIG",
    "#CONFIG_VERSION",
    "#RESOURCES",
    "#ENTITY_CONFIG_RESOURCES",
    "#USAGE#",
    "#AUDIT#",
    "#CONFIG#",
    "#MANAGED#",
    "#DONE#",
    "#TICKET",
    "#PLACE#",
];

/// What fields mean that the original has and ours have not.
const MEANINGS: [(&str, &str); 4] = [
    ("audit_retention_days", "how long audit events are kept; that is a setting of each program here"),
    ("sched", "limits that change by a schedule"),
    ("rsched", "a quota that is reset by a schedule; set a quota with a calendar instead"),
    ("sched_tz", "the time zone of a schedule"),
];

/// What the records of one namespace say that ours say otherwise, or not at all.
#[derive(Default)]
pub(super) struct Foreign {
    /// What has no form here.
    pub(super) lost: Vec<Finding>,
    /// The writes that say the rest in ours.
    pub(super) writes: Vec<Write>,
    /// What is said of entities and resources by ours.
    switches: BTreeMap<Switched, Switches>,
    /// Entities that are enabled on a level of their own: for one resource, or for all.
    enabled: Vec<(String, Option<String>)>,
    /// The limits that become shadow limits, by their record.
    shadows: BTreeMap<ItemKey, Vec<Change>>,
    /// The resources that have a record of limits.
    resources: BTreeSet<String>,
    /// How many entities have a record of limits, by resource.
    entity_limits: BTreeMap<String, i64>,
}

impl Foreign {
    /// Looks at a key: of records that are not known, that is all there is to see.
    pub(super) fn note_key(&mut self, namespace: &str, key: &ItemKey) {
        let is_known = |sort: &str| key.sort == sort || sort.ends_with('#') && key.sort.starts_with(sort);
        if !key.partition.ends_with("/SECRET") && !SORTS.iter().any(|sort| is_known(sort)) {
            let what = format!("record {:?} {:?}", key.partition, key.sort);
            self.lose(namespace, what, "records of this kind are not known here".into());
        }
    }

    /// Looks at an entity or at limits.
    pub(super) fn note(&mut self, namespace: &str, item: &Item) {
        let is_entity = keys::is_entity(&item.key);
        let known: &[&str] = if is_entity { &ENTITY_FIELDS } else { &CONFIG_FIELDS };
        let what = super::inspect::named(&item.key);
        for (field, value) in item.fields.iter().filter(|(_, value)| **value != Value::Null) {
            match field.strip_suffix("_soft").and_then(|rest| rest.strip_prefix("l_")) {
                _ if known.contains(&field.as_str()) => {}
                _ if !is_entity && is_limit_field(field) => {}
                Some(limit) if !is_entity => self.soften(&item.key, limit, value),
                _ => self.lose(namespace, what.clone(), meaning(field)),
            }
        }
        if !is_entity {
            self.note_switch(namespace, item, &what);
        }
    }

    /// A soft limit of the original counts and never refuses, which is a shadow limit here.
    fn soften(&mut self, key: &ItemKey, limit: &str, value: &Value) {
        if *value == Value::Bool(true) {
            let shadow = Change::Set(format!("l_{limit}_sh"), true.into());
            self.shadows.entry(key.clone()).or_default().push(shadow);
        }
    }

    /// Corrects the lists of what has limits, as they are now, by the records that were found: not every program of the
    /// original keeps them.
    pub(super) fn list<'a>(&mut self, ns: &str, lists: impl Iterator<Item = &'a Item>) {
        let (resources, counts) = (keys::resources(ns), keys::entity_config_resources(ns));
        let said: BTreeMap<&ItemKey, &Fields> = lists.map(|item| (&item.key, &item.fields)).collect();
        let listed = said.get(&resources).and_then(|fields| fields.get("resources"));
        let found = (!self.resources.is_empty()).then(|| Value::Set(self.resources.clone()));
        if listed != found.as_ref() {
            let change = match found {
                Some(found) => Change::Set("resources".into(), found),
                None => Change::Remove("resources".into()),
            };
            self.writes.push(Write::Change(resources, vec![change], Vec::new()));
        }
        let counted = said.get(&counts).copied().into_iter().flatten();
        let counted = counted.filter_map(|(resource, value)| match value {
            Value::Int(count) => Some((resource.as_str(), *count)),
            _ => None,
        });
        let counted: BTreeMap<&str, i64> = counted.collect();
        let resources: BTreeSet<&str> =
            counted.keys().copied().chain(self.entity_limits.keys().map(String::as_str)).collect();
        let corrected = |resource: &str| {
            let count = self.entity_limits.get(resource).copied().unwrap_or(0);
            let is_wrong = counted.get(resource).copied().unwrap_or(0) != count;
            is_wrong.then(|| Change::Set(resource.into(), count.into()))
        };
        let changes: Vec<Change> = resources.into_iter().filter_map(corrected).collect();
        if !changes.is_empty() {
            self.writes.push(Write::Change(counts, changes, Vec::new()));
        }
    }

    /// Notes what is said beside the limits of a level: whether it is disabled, and whether calls cascade.
    fn note_switch(&mut self, namespace: &str, item: &Item, what: &str) {
        let mut said = |field: &str, meaning: &str| match item.fields.get(field) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(is_on)) => Some(*is_on),
            Some(other) => {
                self.lose(namespace, what.into(), format!("{field} is {other:?}: {meaning}"));
                None
            }
        };
        let is_off = said("disabled", "calls that no limit counts for are not known here");
        let cascade = said("cascade", "it must be true or false");
        let of_resource = item.key.sort.strip_prefix(keys::CONFIG_PREFIX);
        match (keys::resource_of(&item.key), keys::entity_of(&item.key), of_resource) {
            (Some(resource), _, _) => {
                self.resources.insert(resource.into());
                let switches = self.switches.entry(Switched::Resource(resource.into())).or_default();
                switches.is_off |= is_off == Some(true);
                switches.set_cascade(None, cascade);
            }
            (None, Some(entity), Some(resource)) => {
                *self.entity_limits.entry(resource.into()).or_default() += 1;
                let resource = Some(resource).filter(|resource| *resource != DEFAULT_RESOURCE);
                let switches = self.switches.entry(Switched::Entity(entity.into())).or_default();
                switches.set_cascade(resource, cascade);
                match (is_off, resource) {
                    (Some(true), None) => switches.is_off = true,
                    (Some(true), Some(resource)) => switches.set_access(resource, Some(false)),
                    (Some(false), _) => self.enabled.push((entity.into(), resource.map(str::to_owned))),
                    (None, _) => {}
                }
            }
            _ if is_off == Some(true) => {
                self.lose(namespace, what.into(), "the system cannot be disabled as a whole here".into());
            }
            _ => {}
        }
    }

    /// What was switched stays as it was. An entity that is enabled for all resources is no exception here, and one that is
    /// disabled has none.
    pub(super) fn finish(&mut self, namespace: &str, ns: &str, now: Tick) {
        let is_off =
            |(switched, it): (&Switched, &Switches)| matches!(switched, Switched::Resource(_)) && it.is_off;
        let resources_are_off = self.switches.iter().any(is_off);
        for (entity, resource) in std::mem::take(&mut self.enabled) {
            let switches = self.switches.entry(Switched::Entity(entity.clone())).or_default();
            let problem = match resource {
                Some(resource) if switches.is_off => format!("it is disabled, but for resource {resource:?}"),
                Some(resource) => {
                    switches.set_access(&resource, Some(true));
                    continue;
                }
                None if resources_are_off => "it may use resources that are disabled for all others".into(),
                None => continue,
            };
            self.lose(namespace, format!("entity {entity:?}"), problem);
        }
        let said = self.switches.iter().filter(|(_, switches)| **switches != Switches::default());
        let write = |(switched, switches): (&Switched, &Switches)| {
            Write::Put(switched.item(ns, switches, None, now), Vec::new())
        };
        self.writes.extend(said.map(write).collect::<Vec<_>>());
        // Last, and each record once: a stray is in the index from then on, which lags behind, so a migration that is run again
        // at once may not find it.
        let shadows = std::mem::take(&mut self.shadows).into_iter();
        self.writes.extend(shadows.map(|(key, changes)| Write::Change(key, changes, vec![Test::Exists])));
    }

    pub(super) fn lose(&mut self, namespace: &str, what: String, problem: String) {
        self.lost.push(Finding { namespace: Some(namespace.into()), what, problem });
    }
}

/// What a field means that has no form here.
fn meaning(field: &str) -> String {
    let suffix = field.rsplit_once('_').map_or(field, |(_, suffix)| suffix);
    let known =
        MEANINGS.iter().find(|(name, _)| *name == field || *name == suffix && field.starts_with("l_"));
    match known {
        Some((_, meaning)) => format!("field {field:?}: {meaning}"),
        None if field.starts_with("w_") => {
            format!(
                "field {field:?}: a limit for a window that begins with the first use; set a quota instead"
            )
        }
        None => format!("field {field:?} is not known here"),
    }
}

/// Whether a record is one that [`Foreign::note`] has to see.
pub(super) fn is_told(key: &ItemKey) -> bool {
    let is_config = key.sort.starts_with(keys::CONFIG_PREFIX) && keys::entity_of(key).is_some();
    keys::is_entity(key) || keys::is_config(key) || is_config
}

/// The fields of a record of usage that say how much was used, and how often.
pub(super) fn sums(fields: &Fields) -> Vec<Change> {
    let sum = |(field, value): (&String, &Value)| {
        let is_sum = field == "total_events" || tollgate_store::usage::limit_of_field(field).is_some();
        match value {
            Value::Int(amount) if is_sum => Some(Change::Add(field.clone(), *amount)),
            _ => None,
        }
    };
    fields.iter().filter_map(sum).collect()
}
