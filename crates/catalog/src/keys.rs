//! The keys of records: the layout of the table, in one place.
//!
//! `{ns}` is the id of a namespace; the namespace `_` has the registry. `#` occurs in no name, and
//! `/` in no id of a namespace, so that the parts of a key are unambiguous.

use tollgate_store::records::{ItemKey, SECRET_PARTITION};

/// The partition of the registry of namespaces and of the schema version.
pub(crate) const REGISTRY: &str = "_/SYSTEM#";

/// The prefix of the sort keys of namespaces by name.
pub(crate) const NAMESPACE_PREFIX: &str = "#NAMESPACE#";

/// The prefix of the sort keys of namespaces by id.
pub(crate) const NSID_PREFIX: &str = "#NSID#";

/// The prefix of the sort keys of an entity's limits.
pub(crate) const CONFIG_PREFIX: &str = "#CONFIG#";

/// The prefix of the sort keys of an entity's usage.
pub(crate) const USAGE_PREFIX: &str = "#USAGE#";

/// The prefix of the sort keys of audit events.
pub(crate) const AUDIT_PREFIX: &str = "#AUDIT#";

/// The prefix of the sort keys of managed sets.
pub(crate) const MANAGED_PREFIX: &str = "#MANAGED#";

const META: &str = "#META";
const SWITCH: &str = "#SWITCH";
const CONFIG: &str = "#CONFIG";

/// The sort key of the version of the config.
const CONFIG_VERSION: &str = "#CONFIG_VERSION";

/// The sort key of the limits of an entity for all resources.
const DEFAULT_CONFIG: &str = "#CONFIG#_default_";

/// The keys of the records that limits and switches of an entity and a resource are in: the parts, each once.
pub(crate) struct ChainKeys {
    entity: Box<str>,
    resource: Box<str>,
    system: Box<str>,
    /// The sort key of the limits of the entity for the resource.
    config: Box<str>,
}

impl ChainKeys {
    /// The number of records.
    pub(crate) const LEN: usize = 7;

    pub(crate) fn new(ns: &str, entity: &str, resource: &str) -> ChainKeys {
        ChainKeys {
            entity: entity_partition(ns, entity).into(),
            resource: resource_partition(ns, resource).into(),
            system: system_partition(ns).into(),
            config: [CONFIG_PREFIX, resource].concat().into(),
        }
    }

    /// Returns the partition and the sort key of each record, those of a partition one behind the other: the entity, its
    /// switches, its limits for the resource and for all; the switches and the limits of the resource; those of the system.
    pub(crate) fn parts(&self) -> [(&str, &str); ChainKeys::LEN] {
        let ChainKeys { entity, resource, system, config } = self;
        [
            (entity, META),
            (entity, SWITCH),
            (entity, config),
            (entity, DEFAULT_CONFIG),
            (resource, SWITCH),
            (resource, CONFIG),
            (system, CONFIG),
        ]
    }

    /// Returns the key of the version of the config.
    pub(crate) fn config_version(&self) -> ItemKey {
        ItemKey::new(&*self.system, CONFIG_VERSION)
    }
}

/// Returns the key of the schema version of the records.
pub(crate) fn schema_version() -> ItemKey {
    ItemKey::new(REGISTRY, "#VERSION")
}

/// Returns the key of a namespace, by its name.
pub(crate) fn namespace_by_name(name: &str) -> ItemKey {
    ItemKey::new(REGISTRY, format!("{NAMESPACE_PREFIX}{name}"))
}

/// Returns the key of a namespace, by its id.
pub(crate) fn namespace_by_id(id: &str) -> ItemKey {
    ItemKey::new(REGISTRY, format!("{NSID_PREFIX}{id}"))
}

/// Returns the partition of an entity.
pub(crate) fn entity_partition(ns: &str, entity: &str) -> String {
    // Joined rather than formatted, here and below where a chain is read: a format allocates twice.
    [ns, "/ENTITY#", entity].concat()
}

/// Returns the key of an entity.
pub(crate) fn entity(ns: &str, entity: &str) -> ItemKey {
    ItemKey::new(entity_partition(ns, entity), META)
}

/// Returns true if the key is one of [`entity`].
pub(crate) fn is_entity(key: &ItemKey) -> bool {
    key.sort == META && entity_of(key).is_some()
}

/// Returns the entity whose partition the record is in.
pub(crate) fn entity_of(key: &ItemKey) -> Option<&str> {
    key.partition.split_once('/')?.1.strip_prefix("ENTITY#")
}

/// Returns the entity of a record of usage.
pub(crate) fn usage_of(key: &ItemKey) -> Option<&str> {
    let entity = key.partition.split_once('/')?.1.strip_prefix("USAGE#")?;
    key.sort.starts_with(USAGE_PREFIX).then_some(entity)
}

/// Returns the resource whose partition the record is in.
pub(crate) fn resource_of(key: &ItemKey) -> Option<&str> {
    key.partition.split_once('/')?.1.strip_prefix("RESOURCE#")
}

/// Returns the key of the switches of an entity. The record exists while one of them is set.
pub(crate) fn entity_switch(ns: &str, entity: &str) -> ItemKey {
    ItemKey::new(entity_partition(ns, entity), SWITCH)
}

/// Returns true if the key is one of [`entity_switch`] or [`resource_switch`].
pub(crate) fn is_switch(key: &ItemKey) -> bool {
    key.sort == SWITCH
}

/// Returns true if the key is one of [`resource_config`] or [`system_config`].
pub(crate) fn is_config(key: &ItemKey) -> bool {
    key.sort == CONFIG
}

/// Returns the key of the limits of an entity for a resource, or for all of them.
pub(crate) fn entity_config(ns: &str, entity: &str, resource: &str) -> ItemKey {
    ItemKey::new(entity_partition(ns, entity), [CONFIG_PREFIX, resource].concat())
}

/// Returns the index key of the limits of an entity, by resource.
pub(crate) fn entity_config_index_key(ns: &str, entity: &str, resource: &str) -> ItemKey {
    ItemKey::new(entity_config_partition(ns, resource), entity)
}

/// Returns the index partition of all entities with limits for a resource.
pub(crate) fn entity_config_partition(ns: &str, resource: &str) -> String {
    format!("{ns}/ENTITY_CONFIG#{resource}")
}

/// Returns the index key of an entity, by its parent.
pub(crate) fn child_index_key(ns: &str, parent: &str, child: &str) -> ItemKey {
    ItemKey::new(children_partition(ns, parent), format!("CHILD#{child}"))
}

/// Returns the index partition of the children of an entity.
pub(crate) fn children_partition(ns: &str, parent: &str) -> String {
    format!("{ns}/PARENT#{parent}")
}

/// Returns the partition of a resource; in the index also that of its usage.
pub(crate) fn resource_partition(ns: &str, resource: &str) -> String {
    [ns, "/RESOURCE#", resource].concat()
}

/// Returns the key of the limits of a resource.
pub(crate) fn resource_config(ns: &str, resource: &str) -> ItemKey {
    ItemKey::new(resource_partition(ns, resource), CONFIG)
}

/// Returns the key of the switches of a resource. The record exists while one of them is set.
pub(crate) fn resource_switch(ns: &str, resource: &str) -> ItemKey {
    ItemKey::new(resource_partition(ns, resource), SWITCH)
}

/// Returns the key of the limits of the system, and of its other settings.
pub(crate) fn system_config(ns: &str) -> ItemKey {
    system(ns, CONFIG)
}

/// Returns the key of the version of the config, which counts changes of limits.
pub(crate) fn config_version(ns: &str) -> ItemKey {
    system(ns, CONFIG_VERSION)
}

/// Returns the key of the set of resources that have limits.
pub(crate) fn resources(ns: &str) -> ItemKey {
    system(ns, "#RESOURCES")
}

/// Returns the key of the numbers of entities that have limits, by resource.
pub(crate) fn entity_config_resources(ns: &str) -> ItemKey {
    system(ns, "#ENTITY_CONFIG_RESOURCES")
}

/// Returns the key of a managed set.
pub(crate) fn managed(ns: &str, set: &str) -> ItemKey {
    system(ns, &format!("{MANAGED_PREFIX}{set}"))
}

/// Returns the partition of records about the whole namespace.
pub(crate) fn system_partition(ns: &str) -> String {
    [ns, "/SYSTEM#"].concat()
}

/// Returns the key of an idempotent change, which exists once the change was made.
pub(crate) fn done(ns: &str, key: &str) -> ItemKey {
    system(ns, &format!("#DONE#{key}"))
}

/// Returns the key of a ticket, which exists once it was settled.
pub(crate) fn ticket(ns: &str, id: &str) -> ItemKey {
    ItemKey::new(format!("{ns}/TICKET#{id}"), "#TICKET")
}

/// Returns the key of the secrets that seal tokens of the namespace. The partition contains nothing
/// else, so that a policy can name it, and `Debug` shows nothing in it ([`ItemKey::is_secret`]).
pub(crate) fn secret(ns: &str) -> ItemKey {
    ItemKey::new(format!("{ns}/{SECRET_PARTITION}"), "#TOKENS")
}

/// Returns the partition of waiters.
pub(crate) fn waiting_partition(ns: &str) -> String {
    format!("{ns}/WAITING#")
}

/// Returns the key of a slot for a waiter.
pub(crate) fn waiting(ns: &str, slot: usize) -> ItemKey {
    ItemKey::new(waiting_partition(ns), format!("#PLACE#{slot:03}"))
}

/// Returns the key of a shared limit set, by its name. Its namespace is one of buckets, which may
/// have any name.
pub(crate) fn shared_set(namespace: &str, name: &str) -> ItemKey {
    ItemKey::new(shared_sets_partition(namespace), name)
}

pub(crate) fn shared_sets_partition(namespace: &str) -> String {
    format!("{namespace}/LIMIT_SETS#")
}

fn system(ns: &str, sort: &str) -> ItemKey {
    ItemKey::new(system_partition(ns), sort)
}

/// Returns the partition of the audit events about a subject.
pub(crate) fn audit_partition(ns: &str, subject: &str) -> String {
    format!("{ns}/AUDIT#{subject}")
}

/// Returns the key of an audit event.
pub(crate) fn audit(ns: &str, subject: &str, id: &str) -> ItemKey {
    ItemKey::new(audit_partition(ns, subject), format!("{AUDIT_PREFIX}{id}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DEFAULT_RESOURCE;

    #[test]
    fn the_keys_of_a_chain_are_those_of_its_records() {
        let (ns, entity, resource) = ("ns", "user-1", "gpt-4");
        let keys = ChainKeys::new(ns, entity, resource);
        let records = [
            super::entity(ns, entity),
            entity_switch(ns, entity),
            entity_config(ns, entity, resource),
            entity_config(ns, entity, DEFAULT_RESOURCE),
            resource_switch(ns, resource),
            resource_config(ns, resource),
            system_config(ns),
        ];
        assert_eq!(keys.parts().map(|(partition, sort)| ItemKey::new(partition, sort)), records);
        assert_eq!(keys.config_version(), config_version(ns));
    }
}
