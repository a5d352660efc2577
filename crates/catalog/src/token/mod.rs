//! Tokens: texts that a namespace has sealed, so that it can verify them when they come back.
//!
//! A token is `tgl1.PAYLOAD.SEAL`, where the seal is the first half of an HMAC-SHA256 of everything
//! before it. The secret is a record of the namespace, in a partition of its own, so that every
//! process that may read it can verify what another has sealed, and no other process can seal. It
//! is read when the first token is sealed or verified, and cached as long as other records are.

#[cfg(any(test, fuzzing))]
pub mod fuzz;
mod seal;
mod secret;

use std::sync::Arc;

use tollgate_store::records::{Fields, Test, Write};
use tollgate_store::{Mutex, Reply, StoreError};

use crate::audit::{Action, Subject};
use crate::cache::CacheEpoch;
use crate::transaction::Commit;
use crate::{Catalog, CatalogError, Result, keys};

pub use seal::TOKEN_BYTES_MAX;
pub(crate) use secret::Secrets;

use seal::Sealed;

/// The secrets as they were last read.
#[derive(Default)]
pub(crate) struct CachedSecrets(Mutex<Option<(CacheEpoch, Arc<Secrets>)>>);

impl Catalog {
    /// Seals a text. Every process that may read the secret of the namespace can
    /// [unseal](Catalog::unseal) the token, and no other process can create one. The text is not
    /// encrypted.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, except that a namespace without a secret may get one.
    ///
    /// # Errors
    ///
    /// [`NoSecret`](CatalogError::NoSecret), [`Invalid`](CatalogError::Invalid) for a token longer
    /// than [`TOKEN_BYTES_MAX`], a deleted namespace, or an error of the store.
    pub fn seal<'a>(&'a self, payload: &'a str) -> Reply<'a, Result<String>> {
        Reply::later(async move {
            let secrets = match self.known_secrets() {
                Some(known) => known,
                None => self.read_or_make_secrets().await?,
            };
            let token = seal::seal(self.namespace_id(), &secrets, payload);
            if token.len() > TOKEN_BYTES_MAX {
                let (value, valid) = (token.len().to_string(), format!("at most {TOKEN_BYTES_MAX}"));
                return Err(CatalogError::Invalid { what: "the length of a token", value, valid });
            }
            Ok(token)
        })
    }

    /// Returns the text that was sealed. The seal is verified before the text is decoded.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing, except that a namespace without a secret may get one.
    ///
    /// # Errors
    ///
    /// [`NotAToken`](CatalogError::NotAToken), [`TokenRefused`](CatalogError::TokenRefused),
    /// [`NoSecret`](CatalogError::NoSecret), a deleted namespace, or an error of the store.
    pub fn unseal<'a>(&'a self, token: &'a str) -> Reply<'a, Result<String>> {
        Reply::later(async move {
            let sealed = Sealed::parse(token).map_err(CatalogError::NotAToken)?;
            let is_ours = |secrets: Arc<Secrets>| sealed.is_of(self.namespace_id(), &secrets);
            // Another process may have rotated the secret since it was read here.
            if !self.known_secrets().is_some_and(is_ours) && !is_ours(self.read_or_make_secrets().await?) {
                return Err(CatalogError::TokenRefused(self.namespace_name().into()));
            }
            sealed.payload().map_err(CatalogError::NotAToken)
        })
    }

    /// Creates a new secret, and returns its version. Tokens that were sealed with the previous one
    /// stay valid until the next rotation; older ones are refused from now on.
    ///
    /// Processes that have read the secret before go on sealing with it until they read it again,
    /// which takes no longer than the [cache's time to live](crate::RegistryBuilder::cache_ttl).
    /// Rotate twice within that time only to refuse what they seal.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// [`Contended`](CatalogError::Contended) if another process rotated it at the same time: then
    /// it was rotated once. A deleted namespace, or an error of the store.
    pub fn rotate_secret(&self) -> Reply<'_, Result<u64>> {
        Reply::later(async move {
            let key = keys::secret(self.namespace_id());
            let before = self.get(key.clone()).await?.as_ref().map(Secrets::of).transpose()?;
            let (after, was) = match before {
                None => (Secrets::first()?, Test::Absent),
                Some(before) => (before.rotated()?, Test::Is("version".into(), before.version.into())),
            };
            let mut tx = self.transaction();
            tx.push(Write::Put(after.item(key, tollgate_store::usage::iso(self.now())), vec![was]));
            let details = Fields::from([("version".to_owned(), after.version.into())]);
            tx.audit(Subject::System, Action::SecretRotated, None, details)?;
            tx.commit()
                .await?
                .expect_done(&format_args!("the secret of namespace {}", self.namespace_name()))?;
            Ok(u64::try_from(after.version).unwrap_or(0))
        })
    }

    /// Reads the secret or creates a missing one, if possible. Most callers that open a namespace
    /// seal nothing, so a principal that may neither read nor create a secret gets the error only
    /// when it needs one.
    pub(crate) async fn prepare_secrets(&self) {
        drop(self.read_or_make_secrets().await);
    }

    /// Creates the secret of a namespace that has none. Returns true if it did.
    pub(crate) async fn make_missing_secrets(&self) -> Result<bool> {
        if self.read_secrets().await?.is_some() {
            return Ok(false);
        }
        self.make_secrets().await.map(|_| true)
    }

    /// Returns the cached secrets, if they are still valid.
    fn known_secrets(&self) -> Option<Arc<Secrets>> {
        let (epoch, secrets) = self.shared().secrets.0.lock().clone()?;
        let (revision, cache) = (self.backend().revision(), &self.shared().cache);
        cache.holds(&epoch, epoch.expires, revision, self.now()).then_some(secrets)
    }

    async fn read_or_make_secrets(&self) -> Result<Arc<Secrets>> {
        match self.read_secrets().await? {
            Some(secrets) => Ok(secrets),
            None => self.make_secrets().await,
        }
    }

    async fn read_secrets(&self) -> Result<Option<Arc<Secrets>>> {
        let epoch = self.shared().cache.epoch(self.backend().revision(), self.now());
        let Some(item) = self.get(keys::secret(self.namespace_id())).await? else { return Ok(None) };
        let secrets = Arc::new(Secrets::of(&item)?);
        *self.shared().secrets.0.lock() = Some((epoch, Arc::clone(&secrets)));
        Ok(Some(secrets))
    }

    async fn make_secrets(&self) -> Result<Arc<Secrets>> {
        let first = Secrets::first()?;
        let item = first.item(keys::secret(self.namespace_id()), tollgate_store::usage::iso(self.now()));
        match self.write_without_notification(Write::Put(item, vec![Test::Absent])).await {
            // It is read again in either case: the stored secret is the one that holds, whichever
            // process created it.
            Ok(Commit::Done | Commit::Failed(_)) => self.read_secrets().await?.ok_or_else(|| {
                CatalogError::Contended(format!("the secret of namespace {}", self.namespace_name()))
            }),
            Err(CatalogError::Store(StoreError::Refused(why))) => {
                Err(CatalogError::NoSecret { namespace: self.namespace_name().into(), why })
            }
            Err(error) => Err(error),
        }
    }
}

/// Returns true if these secrets of a namespace have sealed a token.
pub(crate) fn is_sealed_by(token: &str, namespace: &str, secrets: &Secrets) -> bool {
    Sealed::parse(token).is_ok_and(|sealed| sealed.is_of(namespace, secrets))
}
