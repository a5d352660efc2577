//! The registry: the namespaces of a store.
//!
//! A namespace has a name for people and an id for keys. Two records represent it, one by name and
//! one by id. Deleting it removes the first and marks the second; so the name is free at once,
//! nothing is lost yet, and every change to the namespace is refused, because each change checks
//! the second record.

mod builder;
mod foreign;
mod inspect;
mod migrate;
mod namespace;
mod purge;
mod register;
mod secrets;
mod takeover;
mod version;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tollgate_store::records::{Item, ItemKey};
use tollgate_store::{Backend, Reply};

use crate::cache::Cache;
use crate::catalog::CatalogShared;
use crate::ulid::Ulids;
use crate::{Catalog, CatalogError, Counts, Result};

use builder::CatalogSettings;

pub use builder::RegistryBuilder;
pub use inspect::{Finding, Inspection};
pub use migrate::{Migrated, MigrationPlan};
pub use namespace::{Namespace, NamespaceStatus};
pub use purge::{PurgeProgress, Purged};
pub use version::VersionRecord;

/// The registry of one store's namespaces. Cloning is cheap.
///
/// ```
/// use std::sync::Arc;
///
/// use tollgate_catalog::{Level, Registry};
/// use tollgate_core::{Limit, Limits};
/// use tollgate_store::Memory;
///
/// let registry = Registry::new(Arc::new(Memory::default()));
/// let catalog = registry.open_or_register("default").wait()?;
/// catalog.set_limits(Level::System, &Limits::new([Limit::per_minute("rpm", 100)])?).wait()?;
/// let chain = catalog.chain("user-1", "gpt-4").wait()?;
/// assert_eq!(chain.links[0].source.to_string(), "system");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Registry(Arc<RegistryInner>);

struct RegistryInner {
    backend: Arc<dyn Backend>,
    settings: CatalogSettings,
    ulids: Arc<Ulids>,
    /// True if the schema version of the records was found to be ours.
    version_checked: AtomicBool,
}

impl Registry {
    /// Returns the registry of a store, with default settings.
    pub fn new(backend: Arc<dyn Backend>) -> Registry {
        Registry::with_settings(backend, CatalogSettings::default())
    }

    /// Returns a builder with default settings.
    pub fn builder(backend: Arc<dyn Backend>) -> RegistryBuilder {
        RegistryBuilder::new(backend)
    }

    fn with_settings(backend: Arc<dyn Backend>, settings: CatalogSettings) -> Registry {
        let (ulids, version_checked) = (Arc::default(), AtomicBool::new(false));
        Registry(Arc::new(RegistryInner { backend, settings, ulids, version_checked }))
    }

    /// Opens a registered namespace. One without a secret to seal tokens with, because another
    /// program registered it, gets one if this principal may write it.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, except that an unused store gets its schema version, and a namespace
    /// without a secret may get one.
    ///
    /// # Errors
    ///
    /// [`NamespaceNotFound`](CatalogError::NamespaceNotFound), an invalid name, records of another
    /// schema version, or an error of the store.
    pub fn open<'a>(&'a self, name: &'a str) -> Reply<'a, Result<Catalog>> {
        Reply::later(async move {
            match self.get(name).await? {
                Some(namespace) => Ok(self.opened(namespace).await),
                None => Err(CatalogError::NamespaceNotFound(name.into())),
            }
        })
    }

    /// Opens a namespace, and registers it first if it does not exist.
    ///
    /// # Cancel safety
    ///
    /// As [`register`](Registry::register).
    ///
    /// # Errors
    ///
    /// An invalid name, records of another schema version, or an error of the store.
    pub fn open_or_register<'a>(&'a self, name: &'a str) -> Reply<'a, Result<Catalog>> {
        Reply::later(async move { Ok(self.opened(self.register(name).await?).await) })
    }

    async fn opened(&self, namespace: Namespace) -> Catalog {
        let catalog = self.catalog(namespace);
        catalog.prepare_secrets().await;
        catalog
    }

    /// Returns the counts of a namespace, active or deleted.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`NamespaceNotFound`](CatalogError::NamespaceNotFound), an invalid id, records of another
    /// schema version, or an error of the store.
    pub fn counts<'a>(&'a self, id: &'a str) -> Reply<'a, Result<Counts>> {
        Reply::later(async move { self.catalog(self.by_id(id).await?).counts().await })
    }

    fn catalog(&self, namespace: Namespace) -> Catalog {
        let CatalogSettings { cache_ttl, cache_max, audit_retention, principal, .. } = &self.0.settings;
        let shared = CatalogShared {
            backend: Arc::clone(&self.0.backend),
            namespace,
            cache: Cache::new(*cache_ttl, *cache_max),
            ulids: Arc::clone(&self.0.ulids),
            audit_retention: *audit_retention,
            secrets: Default::default(),
        };
        Catalog::new(shared, Arc::clone(principal))
    }

    fn backend(&self) -> &dyn Backend {
        &*self.0.backend
    }

    async fn read(&self, key: ItemKey) -> Result<Option<Item>> {
        let keys = [key];
        Ok(self.backend().get_many(&keys).await?.pop().flatten())
    }

    fn now_text(&self) -> String {
        tollgate_store::usage::iso(self.backend().clock().now())
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Registry").field("settings", &self.0.settings).finish_non_exhaustive()
    }
}
