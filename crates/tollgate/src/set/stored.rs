//! The sets of a store, for programs that look after them without knowing their limits.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use tollgate_catalog::{CatalogError, SharedSet};
use tollgate_core::{Costs, Denial, Limits, LimitsError, Ready, Status, Tick};
use tollgate_store::records::{Cursor, GETS_MAX, PAGE_MAX, Page, Query};
use tollgate_store::{Backend, BucketRef, BucketStatus, Key, Op, Reply, Scope, Step, StoreError};

use super::remote::{KIND, store_error};
use super::{LimitSet, SETS_NAMESPACE};
use crate::limiter::STORE_TIMEOUT;

/// What the cursor of a list starts with among sets that have a record, and among those that have none.
const RECORDED: &str = "recorded";
const UNRECORDED: &str = "unrecorded";

/// The limit sets that are kept in one namespace of a store.
///
/// A store keeps a record of the limits of each set, and a bucket with what was used of them. It forgets buckets that are
/// full, so a set that has no bucket is [idle](StoredSet::is_idle): all of its limits are full.
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
///
/// ```
/// use std::sync::Arc;
/// use tollgate::{demand, Limit, LimitSet, Memory, StoredSets};
///
/// let store = Arc::new(Memory::default());
/// let set = LimitSet::builder().limits([Limit::per_minute("rpm", 5)]).store(store.clone()).name("openai/blue").build()?;
/// set.acquire(demand! { rpm: 1 }).wait()?.commit().wait()?;
/// let found = StoredSets::new(store).get("openai/blue").wait()?.unwrap();
/// assert_eq!((found.name.as_str(), found.limits[0].available()), ("openai/blue", 4));
/// # Ok::<(), tollgate::Error>(())
/// ```
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
    pub fn store_timeout(self, timeout: Duration) -> StoredSets {
        StoredSets { timeout, ..self }
    }

    /// The sets that programs have opened, by name, then those that were only [cooled down](StoredSets::open_idle): at most
    /// `limit` of them behind `after`.
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
            let limit = limit.clamp(1, PAGE_MAX);
            match after.as_ref().map(Cursor::parts::<2>).transpose()? {
                Some([UNRECORDED, rest]) => self.list_unrecorded(cursor_of(rest), limit).await,
                Some([RECORDED, rest]) => self.list_recorded(cursor_of(rest), limit).await,
                None => self.list_recorded(None, limit).await,
                Some(_) => Err(StoreError::BadCall("the cursor is not from a list of sets".into())),
            }
        })
    }

    /// The sets that have a record, and, behind the last of them, those that have none.
    async fn list_recorded(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<StoredSet>, StoreError> {
        let query = Query { after, limit, ..Query::all(SharedSet::partition(&self.namespace)) };
        let page = self.store.query(&query).await.map_err(store_error)?;
        let sets: Result<Vec<SharedSet>, CatalogError> =
            page.items.iter().map(SharedSet::of_record).collect();
        let mut items = self.statuses(&sets.map_err(unreadable)?).await?;
        if let Some(Cursor(rest)) = page.next {
            return Ok(Page { items, next: Some(Cursor::of(&[RECORDED, &rest])) });
        }
        if items.len() == limit {
            return Ok(Page { items, next: Some(Cursor::of(&[UNRECORDED, ""])) });
        }
        let others = self.list_unrecorded(None, limit - items.len()).await?;
        items.extend(others.items);
        Ok(Page { items, next: others.next })
    }

    /// The sets that have a bucket and no record: those that were cooled down before a program opened them, and those whose
    /// record was lost.
    async fn list_unrecorded(
        &self,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page<StoredSet>, StoreError> {
        let page = self.store.buckets(&self.namespace, Scope::Resource(KIND), after, limit).await?;
        let mut items = Vec::new();
        for buckets in page.items.chunks(GETS_MAX) {
            let key = |bucket: &BucketStatus| SharedSet::new(&self.namespace, &bucket.entity).key().clone();
            let keys: Vec<_> = buckets.iter().map(key).collect();
            let records = self.store.get_many(&keys).await.map_err(store_error)?;
            let unrecorded = buckets.iter().zip(records).filter(|(_, record)| record.is_none());
            items.extend(unrecorded.map(|(bucket, _)| StoredSet::from(bucket.clone())));
        }
        Ok(Page { items, next: page.next.map(|Cursor(rest)| Cursor::of(&[UNRECORDED, &rest])) })
    }

    /// How sets stand under the limits that their records say: one that has no bucket is full.
    async fn statuses(&self, sets: &[SharedSet]) -> Result<Vec<StoredSet>, StoreError> {
        let mut stored = Vec::new();
        for sets in sets.chunks(GETS_MAX) {
            let places: Vec<SetPlace> = sets.iter().map(SetPlace::of).collect();
            let steps: Vec<Step<'_>> = places.iter().map(|place| place.step(&self.namespace)).collect();
            let asked = self.store.evaluate(&steps).await?;
            stored.extend(sets.iter().zip(asked).map(|(set, asked)| StoredSet::asked(set.name(), &asked)));
        }
        Ok(stored)
    }

    /// How the set of this name stands; `None` if no program has opened it, and no cooldown lasts.
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
            let keys = [SharedSet::new(&self.namespace, name).key().clone()];
            let records = self.store.get_many(&keys).await.map_err(store_error)?;
            if let Some(record) = records.into_iter().next().flatten() {
                let set = SharedSet::of_record(&record).map_err(unreadable)?;
                return Ok(self.statuses(&[set]).await?.into_iter().next());
            }
            let scope = Scope::Bucket(name, KIND);
            let page = self.store.buckets(&self.namespace, scope, None, 1).await?;
            Ok(page.items.into_iter().next().map(StoredSet::from))
        })
    }

    /// Opens the set of this name with the limits that are in force; `None` if no set has this name.
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

    /// Opens the set of this name with no limits, whether a program has opened it or not: a cooldown that it is given holds
    /// for every process that opens it with its limits.
    ///
    /// # Errors
    ///
    /// [`LimitsError::Unnamed`].
    pub fn open_idle(&self, name: &str) -> Result<LimitSet, LimitsError> {
        self.build(name, Vec::new())
    }

    fn build(&self, name: &str, limits: Vec<tollgate_core::Limit>) -> Result<LimitSet, LimitsError> {
        let builder = LimitSet::builder().limits(limits).store(Arc::clone(&self.store)).name(name);
        builder.namespace(self.namespace.clone()).store_timeout(self.timeout).build()
    }
}

/// Where a set is, and a take of nothing there, which asks how the set stands.
struct SetPlace {
    key: Key,
    limits: Limits,
    nothing: Costs,
}

impl SetPlace {
    fn of(set: &SharedSet) -> SetPlace {
        let limits = set.in_force();
        SetPlace { key: Key::new(&[set.name(), KIND]), nothing: Costs::none(limits.len()), limits }
    }

    fn step<'a>(&'a self, namespace: &'a str) -> Step<'a> {
        let place = BucketRef { namespace, key: &self.key, limits: &self.limits };
        Step { place, op: Op::Take { costs: &self.nothing, term: None } }
    }
}

fn cursor_of(rest: &str) -> Option<Cursor> {
    (!rest.is_empty()).then(|| Cursor(rest.into()))
}

fn unreadable(why: CatalogError) -> StoreError {
    StoreError::Refused(why.to_string())
}

impl StoredSet {
    fn asked(name: &str, asked: &Denial) -> StoredSet {
        let (limits, cooling_until) = (asked.statuses().collect(), asked.cooling_until());
        StoredSet { name: name.into(), limits, cooling_until }
    }

    /// Whether all limits are full and no cooldown lasts. A store forgets such a set, its limits aside.
    pub fn is_idle(&self) -> bool {
        self.cooling_until.is_none() && self.limits.iter().all(|status| status.full() == Ready::Now)
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
