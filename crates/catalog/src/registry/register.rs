//! Registering, finding, deleting and recovering namespaces.

use tollgate_store::Reply;
use tollgate_store::records::{Query, RecordsError, Test, Write};

use super::{Namespace, NamespaceStatus, Registry};
use crate::token::Secrets;
use crate::transaction::ATTEMPTS_MAX;
use crate::{CatalogError, Result, keys, name, random};

impl Registry {
    /// Registers a namespace. One that is registered already stays as it is.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the namespace is registered completely or not at all.
    ///
    /// # Errors
    ///
    /// An invalid name, records of another schema version, or an error of the store.
    pub fn register<'a>(&'a self, name: &'a str) -> Reply<'a, Result<Namespace>> {
        Reply::later(async move {
            name::NAMESPACE.check(name)?;
            self.check_version().await?;
            self.register_valid(name).await
        })
    }

    /// Registers several namespaces. Nothing is registered unless all names are valid.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, some may be registered; register them again to continue.
    ///
    /// # Errors
    ///
    /// As [`register`](Registry::register).
    pub fn register_all<'a>(&'a self, names: &'a [&'a str]) -> Reply<'a, Result<Vec<Namespace>>> {
        Reply::later(async move {
            names.iter().try_for_each(|name| name::NAMESPACE.check(name))?;
            self.check_version().await?;
            let mut namespaces = Vec::with_capacity(names.len());
            for name in names {
                namespaces.push(self.register_valid(name).await?);
            }
            Ok(namespaces)
        })
    }

    /// Returns the active namespaces, in the order of their names.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, except that an unused store gets its schema version.
    ///
    /// # Errors
    ///
    /// Records of another schema version, or an error of the store.
    pub fn list(&self) -> Reply<'_, Result<Vec<Namespace>>> {
        Reply::later(async move {
            let all = self.list_records(keys::NAMESPACE_PREFIX).await?;
            Ok(all.into_iter().filter(|it| it.status == NamespaceStatus::Active).collect())
        })
    }

    /// Returns the active namespace of a name, if there is one.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, except that an unused store gets its schema version.
    ///
    /// # Errors
    ///
    /// An invalid name, records of another schema version, or an error of the store.
    pub fn get<'a>(&'a self, name: &'a str) -> Reply<'a, Result<Option<Namespace>>> {
        Reply::later(async move {
            name::NAMESPACE.check(name)?;
            self.check_version().await?;
            self.find(name).await
        })
    }

    /// Deletes a namespace: its name is free, and nothing in it can be changed any more. Its
    /// records stay until it is purged. Returns the namespace as it is now; its id is needed to
    /// recover it.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// [`NamespaceNotFound`](CatalogError::NamespaceNotFound), an invalid name, records of another
    /// schema version, or an error of the store.
    pub fn delete<'a>(&'a self, name: &'a str) -> Reply<'a, Result<Namespace>> {
        Reply::later(async move {
            name::NAMESPACE.check(name)?;
            self.check_version().await?;
            for _ in 0..ATTEMPTS_MAX {
                let Some(mut namespace) = self.find(name).await? else {
                    return Err(CatalogError::NamespaceNotFound(name.into()));
                };
                namespace.status = NamespaceStatus::Deleted;
                namespace.deleted_at = Some(self.now_text());
                // While it is active the name is its own, so one test suffices.
                let writes = [
                    Write::Delete(keys::namespace_by_name(name), Vec::new()),
                    namespace.change_status(NamespaceStatus::Active),
                ];
                if self.write(&writes).await?.is_ok() {
                    return Ok(namespace);
                }
            }
            Err(CatalogError::Contended(format!("namespace {name:?}")))
        })
    }

    /// Recovers a deleted namespace under its old name.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// [`NamespaceNotFound`](CatalogError::NamespaceNotFound),
    /// [`NamespaceStatus`](CatalogError::NamespaceStatus) if it is in use or being purged,
    /// [`NamespaceTaken`](CatalogError::NamespaceTaken), an invalid id, records of another schema
    /// version, or an error of the store.
    pub fn recover<'a>(&'a self, id: &'a str) -> Reply<'a, Result<Namespace>> {
        Reply::later(async move {
            for _ in 0..ATTEMPTS_MAX {
                let mut namespace = self.by_id(id).await?;
                if namespace.status != NamespaceStatus::Deleted {
                    return Err(namespace.refuse("deleted"));
                }
                if let Some(Namespace { name, id, .. }) = self.find(&namespace.name).await? {
                    return Err(CatalogError::NamespaceTaken { name, id });
                }
                namespace.status = NamespaceStatus::Active;
                namespace.deleted_at = None;
                let by_name = namespace.item(keys::namespace_by_name(&namespace.name));
                let writes = [
                    Write::Put(by_name, vec![Test::Absent]),
                    namespace.change_status(NamespaceStatus::Deleted),
                ];
                if self.write(&writes).await?.is_ok() {
                    return Ok(namespace);
                }
            }
            Err(CatalogError::Contended(format!("namespace {id:?}")))
        })
    }

    /// Returns the namespaces that were deleted and not purged completely, in the order of their
    /// ids.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, except that an unused store gets its schema version.
    ///
    /// # Errors
    ///
    /// Records of another schema version, or an error of the store.
    pub fn orphans(&self) -> Reply<'_, Result<Vec<Namespace>>> {
        Reply::later(async move {
            let all = self.list_records(keys::NSID_PREFIX).await?;
            Ok(all.into_iter().filter(|it| it.status != NamespaceStatus::Active).collect())
        })
    }

    async fn register_valid(&self, name: &str) -> Result<Namespace> {
        for _ in 0..ATTEMPTS_MAX {
            if let Some(registered) = self.find(name).await? {
                return Ok(registered);
            }
            let namespace = Namespace {
                id: random::namespace_id()?,
                name: name.into(),
                status: NamespaceStatus::Active,
                created_at: self.now_text(),
                deleted_at: None,
            };
            let secret = keys::secret(&namespace.id);
            let writes = [
                namespace.item(keys::namespace_by_name(name)),
                namespace.item(keys::namespace_by_id(&namespace.id)),
                Secrets::first()?.item(secret, namespace.created_at.clone()),
            ]
            .map(|item| Write::Put(item, vec![Test::Absent]));
            if self.write(&writes).await?.is_ok() {
                return Ok(namespace);
            }
        }
        Err(CatalogError::Contended(format!("namespace {name:?}")))
    }

    async fn find(&self, name: &str) -> Result<Option<Namespace>> {
        let item = self.read(keys::namespace_by_name(name)).await?;
        let namespace = item.as_ref().map(Namespace::of).transpose()?;
        Ok(namespace.filter(|namespace| namespace.status == NamespaceStatus::Active))
    }

    pub(super) async fn by_id(&self, id: &str) -> Result<Namespace> {
        name::NAMESPACE_ID.check(id)?;
        self.check_version().await?;
        let item = self.read(keys::namespace_by_id(id)).await?;
        item.as_ref().map(Namespace::of).unwrap_or_else(|| Err(CatalogError::NamespaceNotFound(id.into())))
    }

    async fn list_records(&self, prefix: &str) -> Result<Vec<Namespace>> {
        self.check_version().await?;
        self.all_namespaces(prefix).await
    }

    pub(super) async fn all_namespaces(&self, prefix: &str) -> Result<Vec<Namespace>> {
        let mut query = Query::prefix(keys::REGISTRY, prefix);
        let mut all = Vec::new();
        loop {
            let page = self.backend().query(&query).await?;
            all.extend(page.items.iter().map(Namespace::of).collect::<Result<Vec<_>>>()?);
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(all),
            }
        }
    }

    /// Makes the writes. The inner error is the index of the write whose test failed.
    pub(super) async fn write(&self, writes: &[Write]) -> Result<std::result::Result<(), usize>> {
        match self.backend().write(writes).await {
            Ok(()) => Ok(Ok(())),
            Err(RecordsError::Failed(write)) => Ok(Err(write)),
            Err(error) => Err(error.into()),
        }
    }
}
