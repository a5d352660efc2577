//! Counts of a namespace: how many entities, limits, events and buckets it has.
//!
//! Every function here reads all keys of the namespace, so these are for operators, not for calls.

use std::collections::{BTreeSet, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use tollgate_store::records::{GETS_MAX, Index, ItemKey, Page, Query};
use tollgate_store::usage::{Window, iso, usage_key, usage_partition};
use tollgate_store::{Reply, Scope};

use crate::disable::Switches;
use crate::{Catalog, PageRequest, Result, keys, name};

/// How many pages of keys are scanned for one page of entities. If they have too few entities, the
/// page is short.
const SCANS_MAX: usize = 100;

/// How many buckets are requested at once.
const BUCKETS_PAGE: usize = 1_000;

/// The counts of a namespace.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{NewEntity, Registry};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// catalog.create_entity(NewEntity::new("user-1")).wait()?;
/// let counts = catalog.counts().wait()?;
/// assert_eq!((counts.entities, counts.audit_events), (1, 1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Entities that were created.
    pub entities: u64,
    /// Levels of entities with limits.
    pub entity_limits: u64,
    /// Resources with limits.
    pub resource_limits: u64,
    /// 1 if the system has limits or a policy for a store that does not answer, else 0.
    pub system_limits: u64,
    /// Entities and resources with switches: disabled, with exceptions, or with a cascade policy.
    pub disabled: u64,
    /// Audit events.
    pub audit_events: u64,
    /// Records of usage, of all windows.
    pub usage_records: u64,
    /// Buckets. Those that are full may be missing.
    pub buckets: u64,
}

impl Catalog {
    /// Returns the ids of the entities that were created, in their order. A page may be short even
    /// if more follow.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An error of the store.
    pub fn entities(&self, page: PageRequest) -> Reply<'_, Result<Page<String>>> {
        Reply::later(async move {
            let wanted = page.limit.max(1);
            let prefix = keys::entity_partition(self.namespace_id(), "");
            let mut query = page.query(self.namespace_id().into(), prefix);
            let mut found = Vec::new();
            for _ in 0..SCANS_MAX {
                query.limit = wanted - found.len();
                let Page { items, next } = self.backend().find(Index::Namespace, &query).await?;
                let entities = items.iter().filter(|key| keys::is_entity(key)).filter_map(keys::entity_of);
                found.extend(entities.map(str::to_owned));
                query.after = next;
                if query.after.is_none() || found.len() >= wanted {
                    break;
                }
            }
            Ok(Page { items: found, next: query.after })
        })
    }

    /// Returns the disabled resources, in the order of their names.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An error of the store.
    pub fn disabled_resources(&self) -> Reply<'_, Result<Vec<String>>> {
        Reply::later(async move {
            let switched = self.switched_resources().await?.into_iter();
            Ok(switched.filter(|(_, it)| it.is_off).map(|(resource, _)| resource).collect())
        })
    }

    /// Returns the resources with switches, in the order of their names.
    pub(crate) async fn switched_resources(&self) -> Result<Vec<(String, Switches)>> {
        let mut switches = Vec::new();
        let prefix = keys::resource_partition(self.namespace_id(), "");
        self.each_key(&prefix, |key| {
            if keys::is_switch(key) {
                switches.push(key.clone());
            }
        })
        .await?;
        let mut found = Vec::new();
        for keys in switches.chunks(GETS_MAX) {
            for item in self.backend().get_many(keys).await?.into_iter().flatten() {
                let resource = keys::resource_of(&item.key).map(str::to_owned);
                found.extend(resource.map(|resource| (resource, Switches::of(&item))));
            }
        }
        Ok(found)
    }

    /// Returns the counts of the namespace. Usage that is in no record yet counts as the records
    /// that it will be in.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An error of the store.
    pub fn counts(&self) -> Reply<'_, Result<Counts>> {
        Reply::later(async move {
            let mut counts = Counts::default();
            // Before the records are read, so that records that a store writes meanwhile are
            // counted once. A namespace may have millions, so only their hashes are stored.
            let mut unwritten = HashSet::new();
            self.unwritten_usage(Scope::All, |key| {
                unwritten.insert(hash_of(&key));
            })
            .await?;
            self.each_key("", |key| {
                counts.add(key);
                unwritten.remove(&hash_of(key));
            })
            .await?;
            counts.usage_records += unwritten.len() as u64;
            let mut after = None;
            loop {
                let page =
                    self.backend().buckets(self.namespace_id(), Scope::All, after, BUCKETS_PAGE).await?;
                counts.buckets += page.items.len() as u64;
                match page.next {
                    Some(next) => after = Some(next),
                    None => return Ok(counts),
                }
            }
        })
    }

    /// Returns the counts of one entity, which need not have been created. Usage that is in no
    /// record yet counts as the records that it will be in.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
    pub fn counts_of_entity<'a>(&'a self, id: &'a str) -> Reply<'a, Result<Counts>> {
        Reply::later(async move {
            name::ENTITY.check(id)?;
            let mut counts = Counts::default();
            let ns = self.namespace_id();
            // Before the records are read, so that records that a store writes meanwhile are
            // counted once.
            let mut found = BTreeSet::new();
            self.unwritten_usage(Scope::Entity(id), |key| {
                found.insert(key);
            })
            .await?;
            for partition in [keys::entity_partition(ns, id), usage_partition(ns, id)] {
                found.extend(self.keys_of(Query::all(partition)).await?);
            }
            found.iter().for_each(|key| counts.add(key));
            counts.buckets = self.all_buckets(Scope::Entity(id)).await?.len() as u64;
            Ok(counts)
        })
    }

    /// Passes the keys of the records that pending usage of a scope will be in to `seen`, some of
    /// them twice.
    async fn unwritten_usage(&self, scope: Scope<'_>, mut seen: impl FnMut(ItemKey)) -> Result<()> {
        let (ns, mut after) = (self.namespace_id(), None);
        loop {
            let page = self.backend().activity(ns, scope, after).await?;
            for active in &page.items {
                let (entity, resource) = (&active.entity, &active.resource);
                for hour in active.hours() {
                    let key =
                        |window: Window| usage_key(ns, entity, resource, window, &iso(window.start(hour)));
                    Window::ALL.map(key).into_iter().for_each(&mut seen);
                }
            }
            after = page.next;
            if after.is_none() {
                return Ok(());
            }
        }
    }

    /// Passes every key of the namespace whose partition starts with a prefix to `seen`.
    pub(crate) async fn each_key(&self, prefix: &str, mut seen: impl FnMut(&ItemKey)) -> Result<()> {
        let mut query = Query::prefix(self.namespace_id(), prefix);
        loop {
            let page = self.backend().find(Index::Namespace, &query).await?;
            page.items.iter().for_each(&mut seen);
            match page.next {
                Some(next) => query.after = Some(next),
                None => return Ok(()),
            }
        }
    }
}

fn hash_of(key: &ItemKey) -> u64 {
    let mut hasher = DefaultHasher::new();
    key.hash(&mut hasher);
    hasher.finish()
}

impl Counts {
    fn add(&mut self, key: &ItemKey) {
        let (is_entity, is_resource) = (keys::entity_of(key).is_some(), keys::resource_of(key).is_some());
        let count = match key.sort.as_str() {
            _ if keys::is_entity(key) => &mut self.entities,
            _ if keys::is_switch(key) => &mut self.disabled,
            sort if is_entity && sort.starts_with(keys::CONFIG_PREFIX) => &mut self.entity_limits,
            _ if keys::usage_of(key).is_some() => &mut self.usage_records,
            _ if is_resource && keys::is_config(key) => &mut self.resource_limits,
            _ if keys::is_config(key) => &mut self.system_limits,
            sort if sort.starts_with(keys::AUDIT_PREFIX) => &mut self.audit_events,
            _ => return,
        };
        *count += 1;
    }
}
