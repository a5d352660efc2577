//! The keys of records: the layout of the table, in one place.
//!
//! `{ns}` is the id of a namespace; the namespace `_` has the registry. `#` occurs in no name, and `/` in no id of a
//! namespace, so that parts can be told apart.

use tollgate_store::records::{ItemKey, SECRET_PARTITION};

/// Where the registry of namespaces and the version of the records are.
pub(crate) const REGISTRY: &str = "_/SYSTEM#";

/// What the sort keys of namespaces by name start with.
pub(crate) const NAMESPACE_PREFIX: &str = "#NAMESPACE#";

/// What the sort keys of namespaces by id start with.
pub(crate) const NSID_PREFIX: &str = "#NSID#";

/// What the sort keys of an entity's limits start with.
pub(crate) const CONFIG_PREFIX: &str = "#CONFIG#";

/// What the sort keys of an entity's usage start with.
pub(crate) const USAGE_PREFIX: &str = "#USAGE#";

/// What the sort keys of audit events start with.
pub(crate) const AUDIT_PREFIX: &str = "#AUDIT#";

/// What the sort keys of managed sets of limits start with.
pub(crate) const MANAGED_PREFIX: &str = "#MANAGED#";

const META: &str = "#META";
const SWITCH: &str = "#SWITCH";
const CONFIG: &str = "#CONFIG";

/// The version of the records.
pub(crate) fn schema_version() -> ItemKey {
    ItemKey::new(REGISTRY, "#VERSION")
}

/// A namespace, by its name.
pub(crate) fn namespace_by_name(name: &str) -> ItemKey {
    ItemKey::new(REGISTRY, format!("{NAMESPACE_PREFIX}{name}"))
}

/// A namespace, by its id.
pub(crate) fn namespace_by_id(id: &str) -> ItemKey {
    ItemKey::new(REGISTRY, format!("{NSID_PREFIX}{id}"))
}

/// The partition of an entity.
pub(crate) fn entity_partition(ns: &str, entity: &str) -> String {
    format!("{ns}/ENTITY#{entity}")
}

/// What is known of an entity.
pub(crate) fn entity(ns: &str, entity: &str) -> ItemKey {
    ItemKey::new(entity_partition(ns, entity), META)
}

/// Whether the key is one of [`entity`].
pub(crate) fn is_entity(key: &ItemKey) -> bool {
    key.sort == META && entity_of(key).is_some()
}

/// The entity whose partition the record is in.
pub(crate) fn entity_of(key: &ItemKey) -> Option<&str> {
    key.partition.split_once('/')?.1.strip_prefix("ENTITY#")
}

/// The entity whose usage the record is of.
pub(crate) fn usage_of(key: &ItemKey) -> Option<&str> {
    let entity = key.partition.split_once('/')?.1.strip_prefix("USAGE#")?;
    key.sort.starts_with(USAGE_PREFIX).then_some(entity)
}

/// The resource whose partition the record is in.
pub(crate) fn resource_of(key: &ItemKey) -> Option<&str> {
    key.partition.split_once('/')?.1.strip_prefix("RESOURCE#")
}

/// The switches of an entity: there while something is said by them.
pub(crate) fn entity_switch(ns: &str, entity: &str) -> ItemKey {
    ItemKey::new(entity_partition(ns, entity), SWITCH)
}

/// Whether the key is one of [`entity_switch`] or [`resource_switch`].
pub(crate) fn is_switch(key: &ItemKey) -> bool {
    key.sort == SWITCH
}

/// Whether the key is one of [`resource_config`] or [`system_config`].
pub(crate) fn is_config(key: &ItemKey) -> bool {
    key.sort == CONFIG
}

/// The limits of an entity for a resource, or for all of them.
pub(crate) fn entity_config(ns: &str, entity: &str, resource: &str) -> ItemKey {
    ItemKey::new(entity_partition(ns, entity), format!("{CONFIG_PREFIX}{resource}"))
}

/// Where the limits of an entity are found by their resource.
pub(crate) fn entity_config_place(ns: &str, entity: &str, resource: &str) -> ItemKey {
    ItemKey::new(entity_config_partition(ns, resource), entity)
}

/// The partition of all entities with limits for a resource, in the index.
pub(crate) fn entity_config_partition(ns: &str, resource: &str) -> String {
    format!("{ns}/ENTITY_CONFIG#{resource}")
}

/// Where an entity is found by its parent.
pub(crate) fn child_place(ns: &str, parent: &str, child: &str) -> ItemKey {
    ItemKey::new(children_partition(ns, parent), format!("CHILD#{child}"))
}

/// The partition of the children of an entity, in the index.
pub(crate) fn children_partition(ns: &str, parent: &str) -> String {
    format!("{ns}/PARENT#{parent}")
}

/// The partition of a resource; in the index also that of its usage.
pub(crate) fn resource_partition(ns: &str, resource: &str) -> String {
    format!("{ns}/RESOURCE#{resource}")
}

/// The limits of a resource.
pub(crate) fn resource_config(ns: &str, resource: &str) -> ItemKey {
    ItemKey::new(resource_partition(ns, resource), CONFIG)
}

/// The switches of a resource: there while something is said by them.
pub(crate) fn resource_switch(ns: &str, resource: &str) -> ItemKey {
    ItemKey::new(resource_partition(ns, resource), SWITCH)
}

/// The limits of the system, and what else holds for all.
pub(crate) fn system_config(ns: &str) -> ItemKey {
    system(ns, CONFIG)
}

/// How often limits were changed.
pub(crate) fn config_version(ns: &str) -> ItemKey {
    system(ns, "#CONFIG_VERSION")
}

/// The set of resources that have limits.
pub(crate) fn resources(ns: &str) -> ItemKey {
    system(ns, "#RESOURCES")
}

/// How many entities have limits for each resource.
pub(crate) fn entity_config_resources(ns: &str) -> ItemKey {
    system(ns, "#ENTITY_CONFIG_RESOURCES")
}

/// The levels that a managed set has.
pub(crate) fn managed(ns: &str, set: &str) -> ItemKey {
    system(ns, &format!("{MANAGED_PREFIX}{set}"))
}

/// The partition of what holds for the whole namespace.
pub(crate) fn system_partition(ns: &str) -> String {
    format!("{ns}/SYSTEM#")
}

/// There once something that happens once has happened.
pub(crate) fn done(ns: &str, key: &str) -> ItemKey {
    system(ns, &format!("#DONE#{key}"))
}

/// There once a ticket was settled.
pub(crate) fn ticket(ns: &str, id: &str) -> ItemKey {
    ItemKey::new(format!("{ns}/TICKET#{id}"), "#TICKET")
}

/// The secrets that tokens of the namespace are sealed with. The partition holds nothing else, so that a policy can name
/// it; what is in it is shown by no `Debug` ([`ItemKey::is_secret`]).
pub(crate) fn secret(ns: &str) -> ItemKey {
    ItemKey::new(format!("{ns}/{SECRET_PARTITION}"), "#TOKENS")
}

/// The partition of those who wait.
pub(crate) fn waiting_partition(ns: &str) -> String {
    format!("{ns}/WAITING#")
}

/// One of the places for those who wait.
pub(crate) fn waiting(ns: &str, place: usize) -> ItemKey {
    ItemKey::new(waiting_partition(ns), format!("#PLACE#{place:03}"))
}

/// A limit set that programs share, by its name. Its namespace is one of buckets, which may have any name.
pub(crate) fn shared_set(namespace: &str, name: &str) -> ItemKey {
    ItemKey::new(shared_sets_partition(namespace), name)
}

pub(crate) fn shared_sets_partition(namespace: &str) -> String {
    format!("{namespace}/LIMIT_SETS#")
}

fn system(ns: &str, sort: &str) -> ItemKey {
    ItemKey::new(system_partition(ns), sort)
}

/// The partition of the audit events about a subject.
pub(crate) fn audit_partition(ns: &str, subject: &str) -> String {
    format!("{ns}/AUDIT#{subject}")
}

/// An audit event.
pub(crate) fn audit(ns: &str, subject: &str, id: &str) -> ItemKey {
    ItemKey::new(audit_partition(ns, subject), format!("{AUDIT_PREFIX}{id}"))
}
