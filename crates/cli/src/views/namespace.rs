use serde::Serialize;
use tollgate::catalog::{Namespace, NamespaceStatus};

use crate::output::{TableCell, TextTable, style};

/// A namespace.
#[derive(Serialize)]
pub(crate) struct NamespaceView {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) status: &'static str,
    pub(crate) created_at: String,
    pub(crate) deleted_at: Option<String>,
}

impl From<Namespace> for NamespaceView {
    fn from(namespace: Namespace) -> NamespaceView {
        let Namespace { id, name, status, created_at, deleted_at, .. } = namespace;
        NamespaceView { name, id, status: status.name(), created_at, deleted_at }
    }
}

/// Returns a table of namespaces.
pub(crate) fn namespace_table<'a>(namespaces: impl IntoIterator<Item = &'a NamespaceView>) -> TextTable {
    let mut table = TextTable::new(["NAME", "ID", "STATUS", "CREATED", "DELETED"]).hide_empty(4);
    for NamespaceView { name, id, status, created_at, deleted_at } in namespaces {
        let is_active = *status == NamespaceStatus::Active.name();
        let status = TableCell::styled(status, if is_active { style::GOOD } else { style::WARN });
        let deleted_at = deleted_at.as_deref().unwrap_or_default();
        table.row([
            TableCell::name(name),
            id.into(),
            status,
            TableCell::from(created_at),
            TableCell::from(deleted_at),
        ]);
    }
    table
}
