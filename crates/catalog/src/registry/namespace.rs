//! Namespaces, and the records that say so.

use std::fmt;

use tollgate_store::records::{Change, Item, ItemKey, Test, Write};

use crate::{CatalogError, Result, keys};

/// A namespace: it has nothing in common with any other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Namespace {
    /// Its id, under which everything of it is stored.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Whether it is in use.
    pub status: NamespaceStatus,
    /// When it was registered, such as `2026-11-15T14:00:00Z`.
    pub created_at: String,
    /// When it was deleted.
    pub deleted_at: Option<String>,
}

/// Whether a namespace is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NamespaceStatus {
    /// In use.
    Active,
    /// Deleted, and can be recovered.
    Deleted,
    /// Being purged, or purged in part.
    Purging,
}

impl Namespace {
    pub(super) fn of(item: &Item) -> Result<Namespace> {
        let text = |field: &str| item.text(field).map(str::to_owned);
        let of_key = |prefix: &str| item.key.sort.strip_prefix(prefix).map(str::to_owned);
        let missing = |what: &str| CatalogError::bad_record(&item.key, format!("it says no {what}"));
        let status = text("status").ok_or_else(|| missing("status"))?;
        let status = NamespaceStatus::from_name(&status)
            .ok_or_else(|| CatalogError::bad_record(&item.key, format!("status is {status:?}")))?;
        // Others wrote less into a record, because its key says the rest.
        let id = text("namespace_id").or_else(|| of_key(keys::NSID_PREFIX));
        let name = text("namespace_name").or_else(|| text("namespace"));
        let name = name.or_else(|| of_key(keys::NAMESPACE_PREFIX));
        Ok(Namespace {
            id: id.ok_or_else(|| missing("namespace_id"))?,
            name: name.ok_or_else(|| missing("namespace_name"))?,
            status,
            created_at: text("created_at").unwrap_or_default(),
            deleted_at: text("deleted_at"),
        })
    }

    pub(super) fn item(&self, key: ItemKey) -> Item {
        Item::new(key)
            .with("namespace_id", self.id.as_str())
            .with("namespace_name", self.name.as_str())
            .with("status", self.status.name())
            .with("created_at", self.created_at.as_str())
            .with("deleted_at", self.deleted_at.clone())
    }

    /// The write that gives its record by id the status and the time it has here, if it had `from` until now.
    pub(super) fn change_status(&self, from: NamespaceStatus) -> Write {
        let changes = vec![
            Change::Set("status".into(), self.status.name().into()),
            Change::Set("deleted_at".into(), self.deleted_at.clone().into()),
        ];
        let was = Test::Is("status".into(), from.name().into());
        Write::Change(keys::namespace_by_id(&self.id), changes, vec![was])
    }

    pub(super) fn refuse(&self, valid: &'static str) -> CatalogError {
        CatalogError::NamespaceStatus { id: self.id.clone(), status: self.status, valid }
    }
}

impl NamespaceStatus {
    /// The name it has in records.
    pub fn name(self) -> &'static str {
        match self {
            NamespaceStatus::Active => "active",
            NamespaceStatus::Deleted => "deleted",
            NamespaceStatus::Purging => "purging",
        }
    }

    fn from_name(name: &str) -> Option<NamespaceStatus> {
        [NamespaceStatus::Active, NamespaceStatus::Deleted, NamespaceStatus::Purging]
            .into_iter()
            .find(|status| status.name() == name)
    }
}

impl fmt::Display for NamespaceStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
