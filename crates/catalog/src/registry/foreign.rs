//! Records of zae-limiter: what this program represents differently, and what it cannot represent.
//!
//! If a record were read as if it had fewer settings than it has, calls would be admitted that were
//! refused before. So every field and every record that is not known here is reported before the
//! schema is changed.

use std::collections::{BTreeMap, BTreeSet};

use tollgate_core::Tick;
use tollgate_store::records::{Change, Fields, Item, ItemKey, Test, Value, Write};

use super::Finding;
use crate::disable::{SwitchSubject, Switches};
use crate::limits::{is_limit_field, unreadable_limits};
use crate::{DEFAULT_RESOURCE, keys};

/// Fields of a record of limits, beside those of each limit.
const CONFIG_FIELDS: [&str; 6] =
    ["entity_id", "resource", "config_version", "on_unavailable", "disabled", "cascade"];

/// Fields of an entity, including those of this program: a migration may run again. `pgen` and `pinc` distinguish moves and
/// recreations of an entity for clients of zae-limiter, which refuse migrated records.
const ENTITY_FIELDS: [&str; 10] = [
    "entity_id",
    "name",
    "parent_id",
    "cascade",
    "metadata",
    "created_at",
    "children",
    "deleting",
    "pgen",
    "pinc",
];

/// Sort keys of records, or their prefixes. `#OP#` is the key of a reset or top-up of zae-limiter, which expires after three
/// days.
const SORTS: [&str; 14] = [
    "#OP#",
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

/// The meanings of fields of zae-limiter that this program does not have.
const MEANINGS: [(&str, &str); 4] = [
    ("audit_retention_days", "how long audit events are kept; that is a setting of each program here"),
    ("sched", "limits that change by a schedule"),
    ("rsched", "a quota that is reset by a schedule; set a quota with a calendar instead"),
    ("sched_tz", "the time zone of a schedule"),
];

/// The settings of one namespace that this program represents differently, or not at all.
#[derive(Default)]
pub(super) struct Foreign {
    /// What this program cannot represent.
    pub(super) lost: Vec<Finding>,
    /// The writes that represent the rest.
    pub(super) writes: Vec<Write>,
    /// The switches of entities and resources.
    switches: BTreeMap<SwitchSubject, Switches>,
    /// Entities that are enabled explicitly: for one resource, or for all.
    enabled: Vec<(String, Option<String>)>,
    /// The changes of limits, by their record: some become shadow limits, some are dropped.
    limits: BTreeMap<ItemKey, Vec<Change>>,
    /// The resources that have a record of limits.
    resources: BTreeSet<String>,
    /// How many entities have a record of limits, by resource.
    entity_limits: BTreeMap<String, i64>,
}

impl Foreign {
    /// Checks a key. Of records of an unknown kind only the key is known.
    pub(super) fn check_key(&mut self, namespace: &str, key: &ItemKey) {
        let is_known = |sort: &str| key.sort == sort || sort.ends_with('#') && key.sort.starts_with(sort);
        if !key.partition.ends_with("/SECRET") && !SORTS.iter().any(|sort| is_known(sort)) {
            let what = format!("record {:?} {:?}", key.partition, key.sort);
            self.add_lost(namespace, what, "records of this kind are not known here".into());
        }
    }

    /// Checks an entity or a record of limits.
    pub(super) fn check(&mut self, namespace: &str, item: &Item) {
        let is_entity = keys::is_entity(&item.key);
        let known: &[&str] = if is_entity { &ENTITY_FIELDS } else { &CONFIG_FIELDS };
        let what = super::inspect::named(&item.key);
        for (field, value) in item.fields.iter().filter(|(_, value)| **value != Value::Null) {
            match field.strip_suffix("_soft").and_then(|rest| rest.strip_prefix("l_")) {
                _ if known.contains(&field.as_str()) => {}
                _ if !is_entity && is_limit_field(field) => {}
                Some(limit) if !is_entity => self.add_shadow(&item.key, limit, value),
                _ => self.add_lost(namespace, what.clone(), meaning(field)),
            }
        }
        if !is_entity {
            self.check_switches(namespace, item, &what);
            self.check_limits(namespace, item, &what);
        }
    }

    /// Drops limits that cannot be read: one of them would make its level unreadable, and so all lists of levels.
    fn check_limits(&mut self, namespace: &str, item: &Item, what: &str) {
        for (limit, why, fields) in unreadable_limits(&item.fields) {
            self.add_lost(
                namespace,
                what.into(),
                format!("limit {limit:?} cannot be read without it: {why}"),
            );
            let removed = fields.into_iter().map(Change::Remove);
            self.limits.entry(item.key.clone()).or_default().extend(removed);
        }
    }

    /// Adds a soft limit of zae-limiter, which counts and never refuses: a shadow limit here.
    fn add_shadow(&mut self, key: &ItemKey, limit: &str, value: &Value) {
        if *value == Value::Bool(true) {
            let shadow = Change::Set(format!("l_{limit}_sh"), true.into());
            self.limits.entry(key.clone()).or_default().push(shadow);
        }
    }

    /// Corrects the lists of levels with limits by the records that were found: not every program
    /// of zae-limiter maintains them.
    pub(super) fn list<'a>(&mut self, ns: &str, lists: impl Iterator<Item = &'a Item>) {
        let (resources, counts) = (keys::resources(ns), keys::entity_config_resources(ns));
        let stored: BTreeMap<&ItemKey, &Fields> = lists.map(|item| (&item.key, &item.fields)).collect();
        let listed = stored.get(&resources).and_then(|fields| fields.get("resources"));
        let found = (!self.resources.is_empty()).then(|| Value::Set(self.resources.clone()));
        if listed != found.as_ref() {
            let change = match found {
                Some(found) => Change::Set("resources".into(), found),
                None => Change::Remove("resources".into()),
            };
            self.writes.push(Write::Change(resources, vec![change], Vec::new()));
        }
        let counted = stored.get(&counts).copied().into_iter().flatten();
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

    /// Adds the switches that are stored beside the limits of a level: whether it is disabled, and
    /// whether calls cascade.
    fn check_switches(&mut self, namespace: &str, item: &Item, what: &str) {
        let mut flag = |field: &str, meaning: &str| match item.fields.get(field) {
            None | Some(Value::Null) => None,
            Some(Value::Bool(is_on)) => Some(*is_on),
            Some(other) => {
                self.add_lost(namespace, what.into(), format!("{field} is {other:?}: {meaning}"));
                None
            }
        };
        let is_off = flag("disabled", "calls that no limit counts for are not known here");
        let cascade = flag("cascade", "it must be true or false");
        let of_resource = item.key.sort.strip_prefix(keys::CONFIG_PREFIX);
        match (keys::resource_of(&item.key), keys::entity_of(&item.key), of_resource) {
            (Some(resource), _, _) => {
                self.resources.insert(resource.into());
                let switches = self.switches.entry(SwitchSubject::Resource(resource.into())).or_default();
                switches.is_off |= is_off == Some(true);
                switches.set_cascade(None, cascade);
            }
            (None, Some(entity), Some(resource)) => {
                *self.entity_limits.entry(resource.into()).or_default() += 1;
                let resource = Some(resource).filter(|resource| *resource != DEFAULT_RESOURCE);
                let switches = self.switches.entry(SwitchSubject::Entity(entity.into())).or_default();
                switches.set_cascade(resource, cascade);
                match (is_off, resource) {
                    (Some(true), None) => switches.is_off = true,
                    (Some(true), Some(resource)) => switches.set_access(resource, Some(false)),
                    (Some(false), _) => self.enabled.push((entity.into(), resource.map(str::to_owned))),
                    (None, _) => {}
                }
            }
            _ if is_off == Some(true) => {
                self.add_lost(namespace, what.into(), "the system cannot be disabled as a whole here".into());
            }
            _ => {}
        }
    }

    /// Completes the writes: switches stay as they were. An entity that is enabled for all
    /// resources is no exception here, and one that is disabled has no exceptions.
    pub(super) fn finish(&mut self, namespace: &str, ns: &str, now: Tick) {
        let is_off = |(subject, it): (&SwitchSubject, &Switches)| {
            matches!(subject, SwitchSubject::Resource(_)) && it.is_off
        };
        let resources_are_off = self.switches.iter().any(is_off);
        for (entity, resource) in std::mem::take(&mut self.enabled) {
            let switches = self.switches.entry(SwitchSubject::Entity(entity.clone())).or_default();
            let problem = match resource {
                Some(resource) if switches.is_off => format!("it is disabled, but for resource {resource:?}"),
                Some(resource) => {
                    switches.set_access(&resource, Some(true));
                    continue;
                }
                None if resources_are_off => "it may use resources that are disabled for all others".into(),
                None => continue,
            };
            self.add_lost(namespace, format!("entity {entity:?}"), problem);
        }
        let set = self.switches.iter().filter(|(_, switches)| **switches != Switches::default());
        let write = |(subject, switches): (&SwitchSubject, &Switches)| {
            Write::Put(subject.item(ns, switches, None, now), Vec::new())
        };
        self.writes.extend(set.map(write).collect::<Vec<_>>());
        // Last, and each record once: an unindexed record is indexed from then on, and indexes lag
        // behind, so a migration that runs again at once may not find it.
        let limits = std::mem::take(&mut self.limits).into_iter();
        self.writes.extend(limits.map(|(key, changes)| Write::Change(key, changes, vec![Test::Exists])));
    }

    pub(super) fn add_lost(&mut self, namespace: &str, what: String, problem: String) {
        self.lost.push(Finding { namespace: Some(namespace.into()), what, problem });
    }
}

/// Describes a field that this program does not have.
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

/// Returns true if [`Foreign::check`] must see the record.
pub(super) fn is_checked(key: &ItemKey) -> bool {
    let is_config = key.sort.starts_with(keys::CONFIG_PREFIX) && keys::entity_of(key).is_some();
    keys::is_entity(key) || keys::is_config(key) || is_config
}

/// Returns the changes that add the amounts and the number of calls of a record of usage.
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
