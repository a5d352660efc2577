//! Namespaces, and their records.

use std::fmt;

use tollgate_store::records::{Change, Item, ItemKey, Test, Write};

use crate::{CatalogError, Result, keys};

/// A namespace, which shares nothing with any other.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{NamespaceStatus, Registry};
/// use tollgate_store::Memory;
///
/// let registry = Registry::new(Arc::new(Memory::default()));
/// let namespace = registry.register("default").wait()?;
/// assert_eq!((&*namespace.name, namespace.status), ("default", NamespaceStatus::Active));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Namespace {
    /// The id, under which its buckets and records are stored.
    pub id: String,
    /// The name.
    pub name: String,
    /// The status.
    pub status: NamespaceStatus,
    /// When it was registered, such as `2026-11-15T14:00:00Z`.
    pub created_at: String,
    /// When it was deleted.
    pub deleted_at: Option<String>,
}

/// The status of a namespace.
///
/// ```
/// use tollgate_catalog::NamespaceStatus;
///
/// assert_eq!(NamespaceStatus::Purging.to_string(), "purging");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NamespaceStatus {
    /// It is in use.
    Active,
    /// It was deleted, and can be recovered.
    Deleted,
    /// It is being purged, or was purged in part.
    Purging,
}

impl Namespace {
    pub(super) fn of(item: &Item) -> Result<Namespace> {
        let text = |field: &str| item.text(field).map(str::to_owned);
        let of_key = |prefix: &str| item.key.sort.strip_prefix(prefix).map(str::to_owned);
        let missing = |what: &str| CatalogError::bad_record(&item.key, format!("it has no {what}"));
        let status = text("status").ok_or_else(|| missing("status"))?;
        let status = NamespaceStatus::from_name(&status)
            .ok_or_else(|| CatalogError::bad_record(&item.key, format!("status is {status:?}")))?;
        // Records of other programs have fewer fields, because the key has the rest.
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

    /// Returns the write that gives the record by id the status and the time of this value, if its
    /// status was `from`.
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
    /// Returns the name of the status in records.
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
