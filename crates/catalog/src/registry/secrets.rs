//! The secrets of all namespaces of a store.

use tollgate_store::Reply;
use tollgate_store::records::GETS_MAX;

use super::{Namespace, NamespaceStatus, Registry};
use crate::token::{self, Secrets};
use crate::{Result, keys};

impl Registry {
    /// Makes the secrets of namespaces in use that have none, because an earlier version or another program registered
    /// them, and says how many it made.
    ///
    /// # Cancel safety
    ///
    /// Cancelled before it is done, some may be made; make them again to go on.
    ///
    /// # Errors
    ///
    /// [`NoSecret`](crate::CatalogError::NoSecret) without permission to write them, records of another version, or the
    /// store's.
    pub fn make_secrets(&self) -> Reply<'_, Result<u64>> {
        Reply::later(async move {
            let mut made = 0;
            for namespace in self.list().await? {
                made += u64::from(self.catalog(namespace).make_missing_secrets().await?);
            }
            Ok(made)
        })
    }

    /// The namespace that has sealed a token, deleted or not; `None` if none of this store has. For those who want to say
    /// why a token was refused: reads the secrets of all namespaces.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed, except that a store not used before gets its version.
    ///
    /// # Errors
    ///
    /// Records of another version, or the store's.
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
