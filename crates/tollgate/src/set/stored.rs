//! The sets of a store, for programs that look after them without knowing their limits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate_core::{LimitsError, Ready, Status, Tick};
use tollgate_store::records::{Cursor, Page};
use tollgate_store::{Backend, BucketStatus, Reply, Scope, StoreError};

use super::remote::KIND;
use super::{LimitSet, SETS_NAMESPACE};
use crate::limiter::STORE_TIMEOUT;

/// The limit sets that are kept in one namespace of a store.
///
/// A store keeps the bucket of a set, and with it the limits in force. It forgets buckets that are full, so a set that was
/// idle for long may be missing until it is used again.
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate::{demand, Limit, LimitSet, Memory, StoredSets};
///
/// let store = Arc::new(Memory::default());
/// let limits = [Limit::per_minute("rpm", 500)];
/// let blue = LimitSet::builder().limits(limits).store(store.clone()).name("openai/blue").build()?;
/// drop(blue.try_acquire(demand! { rpm: 1 }).wait()?);
///
/// let sets = StoredSets::new(store);
/// assert_eq!(sets.list(None, 100).wait()?.items[0].name, "openai/blue");
/// sets.open("openai/blue").wait()?.expect("it is in use").cool_down(Duration::from_secs(30)).wait()?;
/// assert!(blue.peek().wait()?.cooling_until.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct StoredSets {
    store: Arc<dyn Backend>,
    namespace: String,
    timeout: Duration,
}

/// A set as it stands in its store.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct StoredSet {
    /// Its name.
    pub name: String,
    /// Each limit in force.
    pub limits: Vec<Status>,
    /// The end of the cooldown, if one lasts.
    pub cooling_until: Option<Tick>,
}

impl StoredSets {
    /// The sets of a store that are in the usual namespace, [`SETS_NAMESPACE`].
    pub fn new(store: Arc<dyn Backend>) -> StoredSets {
        StoredSets { store, namespace: SETS_NAMESPACE.into(), timeout: STORE_TIMEOUT }
    }

    /// Those of another namespace.
    #[must_use]
    pub fn namespace(self, namespace: impl Into<String>) -> StoredSets {
        StoredSets { namespace: namespace.into(), ..self }
    }

    /// How long the store may take to answer a set that is opened here.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> StoredSets {
        StoredSets { timeout, ..self }
    }

    /// The sets in use, by name, at most `limit` of them behind `after`.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// The store's.
    pub fn list(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Reply<'_, Result<Page<StoredSet>, StoreError>> {
        Reply::later(async move {
            let scope = Scope::Resource(KIND);
            let Page { items, next } = self.store.buckets(&self.namespace, scope, after, limit).await?;
            Ok(Page { items: items.into_iter().map(StoredSet::from).collect(), next })
        })
    }

    /// How the set of this name stands; `None` if none is in use.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// The store's.
    pub fn get<'a>(&'a self, name: &'a str) -> Reply<'a, Result<Option<StoredSet>, StoreError>> {
        Reply::later(async move {
            let scope = Scope::Bucket(name, KIND);
            let page = self.store.buckets(&self.namespace, scope, None, 1).await?;
            Ok(page.items.into_iter().next().map(StoredSet::from))
        })
    }

    /// Opens the set of this name with the limits that are in force; `None` if none is in use.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// The store's.
    pub fn open<'a>(&'a self, name: &'a str) -> Reply<'a, Result<Option<LimitSet>, StoreError>> {
        Reply::later(async move {
            let Some(set) = self.get(name).await? else { return Ok(None) };
            let limits = set.limits.iter().map(|status| status.limit().clone());
            let built = self.build(name, limits.collect());
            built.map(Some).map_err(|why| StoreError::Refused(format!("the limits of set {name:?}: {why}")))
        })
    }

    /// Opens the set of this name with no limits, though it may not be in use: a cooldown that it is given holds for every
    /// process that opens it with its limits.
    ///
    /// # Errors
    ///
    /// [`LimitsError::Unnamed`].
    pub fn open_idle(&self, name: &str) -> Result<LimitSet, LimitsError> {
        self.build(name, Vec::new())
    }

    fn build(&self, name: &str, limits: Vec<tollgate_core::Limit>) -> Result<LimitSet, LimitsError> {
        let builder = LimitSet::builder().limits(limits).store(Arc::clone(&self.store)).name(name);
        builder.namespace(self.namespace.clone()).timeout(self.timeout).build()
    }
}

impl From<BucketStatus> for StoredSet {
    fn from(BucketStatus { entity: name, limits, .. }: BucketStatus) -> StoredSet {
        let (cooldowns, limits): (Vec<Status>, Vec<Status>) =
            limits.into_iter().partition(|status| status.limit().is_cooldown());
        let cooling_until = cooldowns.first().and_then(|status| match status.full() {
            Ready::Now => None,
            Ready::At(tick) => Some(tick),
            Ready::Unknown => Some(Tick::MAX),
        });
        StoredSet { name, limits, cooling_until }
    }
}

impl fmt::Debug for StoredSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSets").field("namespace", &self.namespace).finish_non_exhaustive()
    }
}
