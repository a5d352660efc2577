//! The catalog of one namespace.

use std::fmt;
use std::sync::Arc;

use tollgate_core::{Span, Tick};
use tollgate_store::Backend;
use tollgate_store::records::{GETS_MAX, Index, Item, ItemKey, Page, Query};

use crate::cache::{Cache, CacheStats};
use crate::token;
use crate::transaction::RecordTxn;
use crate::ulid::Ulids;
use crate::{CatalogError, Namespace, Result, keys, name};

/// The catalog of one namespace. Cloning is cheap, and clones share one cache.
///
/// [`Registry::open`](crate::Registry::open) opens it. Every operation returns a
/// [`Reply`](tollgate_store::Reply), which tasks await and threads wait for.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Level, Registry};
/// use tollgate_core::{Limit, Limits};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// let catalog = catalog.acting_as("alice")?;
/// catalog.set_limits(Level::System, &Limits::new([Limit::per_minute("rpm", 100)])?).wait()?;
/// assert_eq!((catalog.namespace_name(), catalog.principal()), ("default", "alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Catalog {
    shared: Arc<CatalogShared>,
    principal: Arc<str>,
}

pub(crate) struct CatalogShared {
    pub(crate) backend: Arc<dyn Backend>,
    pub(crate) namespace: Namespace,
    pub(crate) cache: Cache,
    pub(crate) ulids: Arc<Ulids>,
    pub(crate) audit_retention: Option<Span>,
    pub(crate) secrets: token::CachedSecrets,
}

impl Catalog {
    pub(crate) fn new(shared: CatalogShared, principal: Arc<str>) -> Catalog {
        Catalog { shared: Arc::new(shared), principal }
    }

    /// Returns the id of the namespace, under which its buckets and records are stored.
    pub fn namespace_id(&self) -> &str {
        &self.shared.namespace.id
    }

    /// Returns the name of the namespace.
    pub fn namespace_name(&self) -> &str {
        &self.shared.namespace.name
    }

    /// Returns the store.
    pub fn backend(&self) -> &Arc<dyn Backend> {
        &self.shared.backend
    }

    /// Returns the same catalog for another principal: audit events name the principal that made a
    /// change.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Name`] if the name is not valid.
    pub fn acting_as(&self, principal: &str) -> Result<Catalog> {
        name::PRINCIPAL.check(principal)?;
        Ok(Catalog { shared: Arc::clone(&self.shared), principal: principal.into() })
    }

    /// Returns the principal that audit events name for changes through this catalog.
    pub fn principal(&self) -> &str {
        &self.principal
    }

    /// Clears the cache, so that every record is read again.
    pub fn invalidate(&self) {
        self.shared.cache.clear();
    }

    /// Returns the hits and misses of the cache.
    pub fn cache_stats(&self) -> CacheStats {
        self.shared.cache.stats()
    }

    pub(crate) fn shared(&self) -> &CatalogShared {
        &self.shared
    }

    pub(crate) fn now(&self) -> Tick {
        self.backend().clock().now()
    }

    pub(crate) fn transaction(&self) -> RecordTxn<'_> {
        RecordTxn::new(self)
    }

    pub(crate) fn namespace_gone(&self) -> CatalogError {
        let Namespace { name, id, .. } = self.shared.namespace.clone();
        CatalogError::NamespaceGone { name, id }
    }

    /// Reads a record from the store.
    pub(crate) async fn get(&self, key: ItemKey) -> Result<Option<Item>> {
        let keys = [key];
        Ok(self.backend().get_many(&keys).await?.pop().flatten())
    }

    /// Reads any number of records from the store. Missing ones are left out.
    pub(crate) async fn get_all(&self, keys: &[ItemKey]) -> Result<Vec<Item>> {
        let mut items = Vec::with_capacity(keys.len());
        for keys in keys.chunks(GETS_MAX) {
            items.extend(self.backend().get_many(keys).await?.into_iter().flatten());
        }
        Ok(items)
    }

    /// Returns the entities whose records an index has.
    pub(crate) async fn find_entities(&self, index: Index, query: Query) -> Result<Page<String>> {
        let Page { items, next } = self.backend().find(index, &query).await?;
        let entities = items.iter().filter_map(keys::entity_of).map(str::to_owned);
        Ok(Page { items: entities.collect(), next })
    }
}

impl fmt::Debug for Catalog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut it = f.debug_struct("Catalog");
        it.field("namespace", &self.shared.namespace).field("principal", &self.principal);
        it.finish_non_exhaustive()
    }
}
