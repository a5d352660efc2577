//! Setting and deleting stored limits.
//!
//! All records that a change touches are changed in one transaction: the limits, the lists that
//! index them, the version of the namespace's config and the audit event. The lists are exact
//! because the transaction tests whether the record existed; a change that guessed wrong retries
//! with the other guess.

use tollgate_core::Limits;
use tollgate_store::Reply;
use tollgate_store::records::{Change, Fields, Index, Item, Test, Write};

use super::codec::{put_limits, read_config};
use super::{Level, OnUnavailable, StoredLimits, refuse_empty};
use crate::audit::Action;
use crate::transaction::{ATTEMPTS_MAX, Commit, RecordTxn};
use crate::{Catalog, CatalogError, Result, keys};

/// Fields of the system's record that are not limits, and stay when only its limits are set.
const OTHER_FIELDS: [&str; 2] = ["on_unavailable", "audit_retention_days"];

impl Catalog {
    /// Stores the limits of a level instead of the stored ones. Other settings of the system stay.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// [`CatalogError::EmptyLimits`], an invalid name, a deleted namespace, or an error of the
    /// store.
    pub fn set_limits<'a>(&'a self, level: Level<'a>, limits: &'a Limits) -> Reply<'a, Result<()>> {
        Reply::later(async move {
            level.check()?;
            if limits.is_empty() {
                return Err(refuse_empty(level));
            }
            match level {
                Level::System => self.put_system(limits, None).await,
                Level::Resource(_) => self.put_resource(level, limits).await,
                Level::Entity(_) | Level::EntityResource(..) => self.put_entity(level, limits).await,
            }
        })
    }

    /// Stores the limits of a level unless they are stored already. Returns true if they were not.
    /// It is for programs that declare their limits at each start, and should leave an audit event
    /// only if they changed.
    ///
    /// # Cancel safety
    ///
    /// As [`set_limits`](Catalog::set_limits).
    ///
    /// # Errors
    ///
    /// As [`set_limits`](Catalog::set_limits).
    pub fn ensure_limits<'a>(&'a self, level: Level<'a>, limits: &'a Limits) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            let stored = match self.limits(level).await {
                // An unreadable record is replaced.
                Err(CatalogError::BadRecord { .. }) => None,
                stored => stored?,
            };
            if !limits.is_empty() && stored.is_some_and(|stored| stored.has(limits)) {
                return Ok(false);
            }
            self.set_limits(level, limits).await.map(|()| true)
        })
    }

    /// Stores the limits of the system, and its policy for a store that does not answer. The policy
    /// may be set without limits; `None` removes it.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// As [`set_limits`](Catalog::set_limits).
    pub fn set_system_limits<'a>(
        &'a self,
        limits: &'a Limits,
        on_unavailable: Option<OnUnavailable>,
    ) -> Reply<'a, Result<()>> {
        Reply::later(async move {
            if limits.is_empty() && on_unavailable.is_none() {
                return Err(refuse_empty(Level::System));
            }
            self.put_system(limits, Some(on_unavailable)).await
        })
    }

    /// Returns the limits that are stored on a level, if any. They are always read from the store.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, an unreadable record, or an error of the store.
    pub fn limits<'a>(&'a self, level: Level<'a>) -> Reply<'a, Result<Option<StoredLimits>>> {
        Reply::later(async move {
            level.check()?;
            let item = self.get(level.key(self.namespace_id())).await?;
            item.as_ref().map(read_config).transpose()
        })
    }

    /// Deletes the limits of a level. Returns true if there were any.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, a deleted namespace, or an error of the store.
    pub fn delete_limits<'a>(&'a self, level: Level<'a>) -> Reply<'a, Result<bool>> {
        Reply::later(async move {
            level.check()?;
            Ok(self.delete_config(level, None).await? == Commit::Done)
        })
    }

    /// Deletes the limits of a level if they exist, and if the further check holds.
    pub(crate) async fn delete_config(&self, level: Level<'_>, check: Option<Write>) -> Result<Commit> {
        let ns = self.namespace_id();
        let mut tx = self.transaction();
        tx.push(Write::Delete(level.key(ns), vec![Test::Exists]));
        tx.extend(check);
        match level {
            Level::System => {}
            Level::Resource(resource) => {
                let change = Change::Exclude("resources".into(), resource.into());
                tx.push(Write::Change(keys::resources(ns), vec![change], Vec::new()));
            }
            Level::Entity(_) | Level::EntityResource(..) => tx.count_entity_config(level, -1),
        }
        tx.config_changed();
        tx.audit(level.subject(), Action::LimitsDeleted, level.resource(), Fields::new())?;
        tx.commit().await
    }

    async fn put_resource(&self, level: Level<'_>, limits: &Limits) -> Result<()> {
        let ns = self.namespace_id();
        let mut tx = self.transaction();
        tx.push(Write::Put(self.config_item(level, limits)?, Vec::new()));
        if let Some(resource) = level.resource() {
            let change = Change::Include("resources".into(), resource.into());
            tx.push(Write::Change(keys::resources(ns), vec![change], Vec::new()));
        }
        tx.record_limits(level, limits, None)?;
        tx.commit().await?.expect_done(&level)
    }

    async fn put_entity(&self, level: Level<'_>, limits: &Limits) -> Result<()> {
        let mut is_new = self.get(level.key(self.namespace_id())).await?.is_none();
        for _ in 0..ATTEMPTS_MAX {
            let test = if is_new { Test::Absent } else { Test::Exists };
            let mut tx = self.transaction();
            tx.push(Write::Put(self.config_item(level, limits)?, vec![test]));
            if is_new {
                tx.count_entity_config(level, 1);
            }
            tx.record_limits(level, limits, None)?;
            match tx.commit().await? {
                Commit::Done => return Ok(()),
                Commit::Failed(_) => is_new = !is_new,
            }
        }
        Err(CatalogError::Contended(level.to_string()))
    }

    /// Writes the system's record. An `on_unavailable` of `None` leaves the policy as it is.
    async fn put_system(&self, limits: &Limits, on_unavailable: Option<Option<OnUnavailable>>) -> Result<()> {
        let level = Level::System;
        for _ in 0..ATTEMPTS_MAX {
            let stored = self.get(level.key(self.namespace_id())).await?;
            let mut tx = self.transaction();
            tx.push(self.system_write(stored.as_ref(), limits, on_unavailable)?);
            tx.record_limits(level, limits, on_unavailable.flatten())?;
            if let Commit::Done = tx.commit().await? {
                return Ok(());
            }
        }
        Err(CatalogError::Contended(level.to_string()))
    }

    /// Returns the write that replaces the system's record on condition that it has not changed
    /// since `stored` was read.
    pub(super) fn system_write(
        &self,
        stored: Option<&Item>,
        limits: &Limits,
        on_unavailable: Option<Option<OnUnavailable>>,
    ) -> Result<Write> {
        let mut item = self.config_item(Level::System, limits)?;
        let others = OTHER_FIELDS
            .into_iter()
            .filter_map(|name| Some((name.to_owned(), stored?.fields.get(name)?.clone())));
        item.fields.extend(others);
        match on_unavailable {
            None => {}
            Some(Some(policy)) => {
                item.fields.insert("on_unavailable".into(), policy.name().into());
            }
            Some(None) => {
                item.fields.remove("on_unavailable");
            }
        }
        let version = stored.and_then(|item| item.int("config_version"));
        let next = item.int("config_version").unwrap_or(0).max(version.unwrap_or(0).saturating_add(1));
        item.fields.insert("config_version".into(), next.into());
        let test = match (stored, version) {
            (None, _) => Test::Absent,
            (Some(_), Some(version)) => Test::Is("config_version".into(), version.into()),
            (Some(_), None) => Test::Exists,
        };
        Ok(Write::Put(item, vec![test]))
    }

    /// Returns the record of limits on a level. All ways to store limits lead here, so it refuses
    /// limits that no record can represent.
    pub(super) fn config_item(&self, level: Level<'_>, limits: &Limits) -> Result<Item> {
        limits.check_storable()?;
        let ns = self.namespace_id();
        let now = self.now().as_micros();
        let mut item =
            Item::new(level.key(ns)).with("config_version", i64::try_from(now).unwrap_or(i64::MAX));
        if let Some(resource) = level.resource() {
            item = item.with("resource", resource);
        }
        if let Some((entity, resource)) = level.entity() {
            let index = keys::entity_config_index_key(ns, entity, resource);
            item = item.with("entity_id", entity).indexed(Index::Custom, index.partition, index.sort);
        }
        put_limits(&mut item.fields, limits);
        Ok(item)
    }
}

impl RecordTxn<'_> {
    /// Adds to the number of entities with limits for a resource.
    fn count_entity_config(&mut self, level: Level<'_>, by: i64) {
        if let Some((_, resource)) = level.entity() {
            let counts = keys::entity_config_resources(self.namespace_id());
            self.push(Write::Change(counts, vec![Change::Add(resource.into(), by)], Vec::new()));
        }
    }

    fn record_limits(
        &mut self,
        level: Level<'_>,
        limits: &Limits,
        on_unavailable: Option<OnUnavailable>,
    ) -> Result<()> {
        self.config_changed();
        self.audit_limits(level, limits, on_unavailable)
    }

    /// Adds the audit event of limits that are set.
    pub(super) fn audit_limits(
        &mut self,
        level: Level<'_>,
        limits: &Limits,
        on_unavailable: Option<OnUnavailable>,
    ) -> Result<()> {
        let text = |limit: &tollgate_core::Limit| (limit.name().to_string(), limit.to_string().into());
        let shown: Fields = limits.iter().map(text).collect();
        let mut details = Fields::from([("limits".into(), shown.into())]);
        if let Some(policy) = on_unavailable {
            details.insert("on_unavailable".into(), policy.name().into());
        }
        self.audit(level.subject(), Action::LimitsSet, level.resource(), details)
    }
}
