//! The secrets of all namespaces of a store.

use tollgate_store::Reply;
use tollgate_store::records::GETS_MAX;

use super::{Namespace, NamespaceStatus, Registry};
use crate::token::{self, Secrets};
use crate::{Result, keys};

impl Registry {
    /// Creates the secrets of active namespaces that have none, because another program registered
    /// them, and returns how many it created.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, some may be created; call it again to continue.
    ///
    /// # Errors
    ///
    /// [`NoSecret`](crate::CatalogError::NoSecret) without permission to write them, records of
    /// another schema version, or an error of the store.
    pub fn make_secrets(&self) -> Reply<'_, Result<u64>> {
        Reply::later(async move {
            let mut made = 0;
            for namespace in self.list().await? {
                made += u64::from(self.catalog(namespace).make_missing_secrets().await?);
            }
            Ok(made)
        })
    }

    /// Returns the namespace that has sealed a token, deleted or not; `None` if no namespace of
    /// this store has. It reads the secrets of all namespaces, and is for error messages that
    /// explain why a token was refused.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, except that an unused store gets its schema version.
    ///
    /// # Errors
    ///
    /// Records of another schema version, or an error of the store.
    pub fn namespace_of_token<'a>(&'a self, token: &'a str) -> Reply<'a, Result<Option<Namespace>>> {
        Reply::later(async move {
            self.check_version().await?;
            let mut all = self.all_namespaces(keys::NSID_PREFIX).await?;
            all.retain(|it| it.status != NamespaceStatus::Purging);
            for some in all.chunks(GETS_MAX) {
                let keys: Vec<_> = some.iter().map(|it| keys::secret(&it.id)).collect();
                let found = self.backend().get_many(&keys).await?;
                for (namespace, item) in some.iter().zip(&found) {
                    let secrets = item.as_ref().and_then(|item| Secrets::of(item).ok());
                    if secrets.is_some_and(|secrets| token::is_sealed_by(token, &namespace.id, &secrets)) {
                        return Ok(Some(namespace.clone()));
                    }
                }
            }
            Ok(None)
        })
    }
}
