//! The keys of the catalog's records, written out: tables of the original have them, so they may not change.

use tollgate_store::records::{ItemKey, SECRET_PARTITION};

const REGISTRY: &str = "_/SYSTEM#";

pub(super) fn namespace_by_name(name: &str) -> ItemKey {
    ItemKey::new(REGISTRY, format!("#NAMESPACE#{name}"))
}

pub(super) fn namespace_by_id(id: &str) -> ItemKey {
    ItemKey::new(REGISTRY, format!("#NSID#{id}"))
}

pub(super) fn entity(ns: &str, entity: &str) -> ItemKey {
    ItemKey::new(format!("{ns}/ENTITY#{entity}"), "#META")
}

pub(super) fn entity_config(ns: &str, entity: &str, resource: &str) -> ItemKey {
    ItemKey::new(format!("{ns}/ENTITY#{entity}"), format!("#CONFIG#{resource}"))
}

pub(super) fn resource_config(ns: &str, resource: &str) -> ItemKey {
    ItemKey::new(format!("{ns}/RESOURCE#{resource}"), "#CONFIG")
}

pub(super) fn system_config(ns: &str) -> ItemKey {
    system(ns, "#CONFIG")
}

pub(super) fn config_version(ns: &str) -> ItemKey {
    system(ns, "#CONFIG_VERSION")
}

pub(super) fn resources(ns: &str) -> ItemKey {
    system(ns, "#RESOURCES")
}

pub(super) fn entity_config_resources(ns: &str) -> ItemKey {
    system(ns, "#ENTITY_CONFIG_RESOURCES")
}

pub(super) fn secret(ns: &str) -> ItemKey {
    ItemKey::new(format!("{ns}/{SECRET_PARTITION}"), "#TOKENS")
}

fn system(ns: &str, sort: &str) -> ItemKey {
    ItemKey::new(format!("{ns}/SYSTEM#"), sort)
}
