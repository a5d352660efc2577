//! What records of the original say: what ours have another form for, and what they have none for.
//!
//! Records that are read as if they said less than they do would admit calls that were refused before. So everything in a
//! record that is not known here is found, whatever it is, before the layout is changed.

use std::collections::BTreeSet;

use tollgate_store::records::{Change, Fields, Item, ItemKey, Test, Value, Write};

use super::Finding;
use crate::limits::is_limit_field;
use crate::{DEFAULT_RESOURCE, keys};

/// Fields of limits, beside those of each limit.
const CONFIG_FIELDS: [&str; 5] = ["entity_id", "resource", "config_version", "on_unavailable", "disabled"];

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
const MEANINGS: [(&str, &str); 5] = [
    (
        "cascade",
        "a cascade policy for the resource; whether an entity cascades is the same for all resources here",
    ),
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
    disabled: BTreeSet<String>,
    entities: Vec<Switched>,
}

/// An entity that is disabled or enabled on a level of its own.
struct Switched {
    entity: String,
    /// `None` for all resources.
    resource: Option<String>,
    is_off: bool,
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
            self.writes.push(Write::Change(key.clone(), vec![shadow], vec![Test::Exists]));
        }
    }

    fn note_switch(&mut self, namespace: &str, item: &Item, what: &str) {
        let is_off = match item.fields.get("disabled") {
            None | Some(Value::Null) => return,
            Some(Value::Bool(is_off)) => *is_off,
            Some(other) => {
                let problem =
                    format!("disabled is {other:?}: calls that no limit counts for are not known here");
                return self.lose(namespace, what.into(), problem);
            }
        };
        let of_resource = item.key.sort.strip_prefix(keys::CONFIG_PREFIX);
        match (keys::resource_of(&item.key), keys::entity_of(&item.key), of_resource) {
            (Some(resource), _, _) if is_off => drop(self.disabled.insert(resource.into())),
            (_, Some(entity), Some(resource)) => {
                let resource = (resource != DEFAULT_RESOURCE).then(|| resource.to_owned());
                self.entities.push(Switched { entity: entity.into(), resource, is_off });
            }
            (None, None, _) if is_off => {
                self.lose(namespace, what.into(), "the system cannot be disabled as a whole here".into());
            }
            _ => {}
        }
    }

    /// What was switched off stays off. What was switched for one resource of one entity has no form here.
    pub(super) fn finish(&mut self, namespace: &str, ns: &str, at: &str) {
        let off = |key: ItemKey, field: &str, name: &str| {
            let item = Item::new(key).with(field, name).with("disabled", true).with("disabled_at", at);
            Write::Put(item, Vec::new())
        };
        for resource in &self.disabled {
            self.writes.push(off(keys::resource_switch(ns, resource), "resource", resource));
        }
        for Switched { entity, resource, is_off } in std::mem::take(&mut self.entities) {
            let is_carved_out = |resource: &String| self.disabled.contains(resource);
            let problem = match (&resource, is_off) {
                (None, true) => {
                    self.writes.push(off(keys::entity_switch(ns, &entity), "entity_id", &entity));
                    continue;
                }
                (Some(resource), true) => format!("it is disabled for resource {resource:?} only"),
                (Some(resource), false) if is_carved_out(resource) => {
                    format!("it may use resource {resource:?}, which is disabled for all others")
                }
                (None, false) if !self.disabled.is_empty() => {
                    "it may use resources that are disabled for all others".into()
                }
                (_, false) => continue,
            };
            self.lose(namespace, format!("entity {entity:?}"), problem);
        }
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
