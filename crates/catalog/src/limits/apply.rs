//! Changes to the limits of several levels in one transaction.

use std::collections::{BTreeMap, HashSet};

use tollgate_core::Limits;
use tollgate_store::Reply;
use tollgate_store::records::{Change, Fields, Item, ItemKey, Test, WRITES_MAX, Write};

use super::managed::{LEVELS, REVISION};
use super::{Level, OnUnavailable, refuse_empty};
use crate::audit::Action;
use crate::transaction::{ATTEMPTS_MAX, Commit, RecordTxn};
use crate::{Catalog, CatalogError, Result, keys, name};

/// The writes that all changes of a transaction share: the check of the namespace, the version of
/// the config, both lists of levels with limits, and the managed set.
const SHARED_WRITES: usize = 5;

/// The most levels that can be changed together: each has a record and an audit event.
pub const LEVELS_MAX: usize = (WRITES_MAX - SHARED_WRITES) / 2;

/// A level and its new limits.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Level, LevelChange, Registry, Target};
/// use tollgate_core::{Limit, Limits};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// let change = |entity| LevelChange { level: Level::Entity(entity), target: Target::Limits(&limits) };
/// catalog.apply_limits(None, &[change("user-1"), change("user-2")]).wait()?;
/// assert!(catalog.limits(Level::Entity("user-2")).wait()?.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct LevelChange<'a> {
    /// The level.
    pub level: Level<'a>,
    /// The new limits.
    pub target: Target<'a>,
}

/// The new limits of a level.
///
/// # Examples
///
/// ```
/// use tollgate_catalog::Target;
/// use tollgate_core::Limits;
///
/// /// Returns the target of a level by a file that may not name it.
/// fn target(in_file: Option<&Limits>) -> Target<'_> {
///     in_file.map_or(Target::Nothing, Target::Limits)
/// }
///
/// assert!(matches!(target(None), Target::Nothing));
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// These limits, instead of the stored ones. Other settings of the system stay.
    Limits(&'a Limits),
    /// These limits of the system, which may be empty with a policy for a store that does not
    /// answer.
    System(&'a Limits, Option<OnUnavailable>),
    /// No limits.
    Nothing,
    /// The stored ones: only the managed set of the level changes.
    Unchanged,
}

impl Catalog {
    /// Changes the limits of several levels, all of them or none. Each change has its own audit
    /// event.
    ///
    /// With a `set`, the levels belong to that [managed set](crate::ManagedSet) from now on, except
    /// those with [`Target::Nothing`], which the set gives up.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate_catalog::{Level, LevelChange, Registry, Target};
    /// use tollgate_core::{Limit, Limits};
    /// use tollgate_store::Memory;
    ///
    /// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
    /// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
    /// let changes = [
    ///     LevelChange { level: Level::System, target: Target::Limits(&limits) },
    ///     LevelChange { level: Level::Entity("user-1"), target: Target::Nothing },
    /// ];
    /// catalog.apply_limits(Some("limits.toml"), &changes).wait()?;
    /// assert!(catalog.limits(Level::System).wait()?.is_some());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// [`CatalogError::EmptyLimits`], [`CatalogError::Invalid`] for more than [`LEVELS_MAX`] levels
    /// or a level that is named twice, an invalid name, a deleted namespace, or an error of the
    /// store.
    pub fn apply_limits<'a>(
        &'a self,
        set: Option<&'a str>,
        changes: &'a [LevelChange<'a>],
    ) -> Reply<'a, Result<()>> {
        Reply::later(async move { self.apply(set.map(|name| InSet { name, seen: None }), changes).await })
    }

    /// Changes limits like [`apply_limits`](Catalog::apply_limits), if the set still has the
    /// [revision](crate::ManagedSet::revision) that was `seen`; 0 is that of a set that does not
    /// exist yet. Returns the new revision.
    ///
    /// So a caller that computes its changes from a set, and makes them in several calls, does not
    /// mix them with those of another caller at the same time. A call without any change claims the
    /// set for a caller that is about to change it.
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing.
    ///
    /// # Errors
    ///
    /// [`CatalogError::SetChanged`] if the set has changed, and then this call changed nothing;
    /// otherwise as [`apply_limits`](Catalog::apply_limits).
    pub fn apply_limits_since<'a>(
        &'a self,
        set: &'a str,
        seen: u64,
        changes: &'a [LevelChange<'a>],
    ) -> Reply<'a, Result<u64>> {
        Reply::later(async move {
            self.apply(Some(InSet { name: set, seen: Some(seen) }), changes).await?;
            Ok(seen + 1)
        })
    }

    async fn apply(&self, set: Option<InSet<'_>>, changes: &[LevelChange<'_>]) -> Result<()> {
        set.map_or(Ok(()), |set| name::MANAGED_SET.check(set.name))?;
        check(changes)?;
        for _ in 0..ATTEMPTS_MAX {
            if let Commit::Done = self.try_apply(set, changes).await? {
                return Ok(());
            }
        }
        Err(CatalogError::Contended(format!("{} levels", changes.len())))
    }

    /// Makes the changes. It fails if a level was set or deleted since it was read.
    async fn try_apply(&self, set: Option<InSet<'_>>, changes: &[LevelChange<'_>]) -> Result<Commit> {
        let ns = self.namespace_id();
        let wanted: Vec<ItemKey> = changes.iter().map(|change| change.level.key(ns)).collect();
        let stored: BTreeMap<ItemKey, Item> =
            self.get_all(&wanted).await?.into_iter().map(|item| (item.key.clone(), item)).collect();
        let mut tx = self.transaction();
        let mut lists = Lists::default();
        let mut is_changed = false;
        for (change, key) in changes.iter().zip(wanted) {
            let before = stored.get(&key);
            is_changed |= self.add_change(&mut tx, &mut lists, change, before)?;
        }
        if is_changed {
            tx.config_changed();
        }
        tx.extend(lists.writes(ns));
        let Some(set) = set else { return tx.commit().await };
        let write = tx.push(Write::Change(keys::managed(ns, set.name), managed_by(changes), set.tests()));
        match tx.commit().await? {
            Commit::Failed(failed) if failed == write => Err(CatalogError::SetChanged(set.name.into())),
            commit => Ok(commit),
        }
    }

    /// Adds the writes of one change, without the shared ones. Returns true if there are any.
    fn add_change(
        &self,
        tx: &mut RecordTxn<'_>,
        lists: &mut Lists,
        change: &LevelChange<'_>,
        before: Option<&Item>,
    ) -> Result<bool> {
        let level = change.level;
        let still = if before.is_some() { Test::Exists } else { Test::Absent };
        match (change.target, level) {
            (Target::Unchanged, _) => return Ok(false),
            (Target::Nothing, _) if before.is_none() => return Ok(false),
            (Target::Nothing, _) => {
                tx.push(Write::Delete(level.key(self.namespace_id()), vec![still]));
                lists.record(level, -1);
                tx.audit(level.subject(), Action::LimitsDeleted, level.resource(), Fields::new())?;
            }
            (Target::Limits(limits), Level::System) => {
                tx.push(self.system_write(before, limits, None)?);
                tx.audit_limits(level, limits, None)?;
            }
            (Target::System(limits, policy), _) => {
                tx.push(self.system_write(before, limits, Some(policy))?);
                tx.audit_limits(level, limits, policy)?;
            }
            (Target::Limits(limits), _) => {
                tx.push(Write::Put(self.config_item(level, limits)?, vec![still]));
                lists.record(level, i64::from(before.is_none()));
                tx.audit_limits(level, limits, None)?;
            }
        }
        Ok(true)
    }
}

/// The managed set of the changes, and the revision it must have.
#[derive(Clone, Copy)]
struct InSet<'a> {
    name: &'a str,
    seen: Option<u64>,
}

impl InSet<'_> {
    /// Returns the test of the revision. A revision only grows, so one that is not larger is the
    /// same.
    fn tests(self) -> Vec<Test> {
        let seen = self.seen.map(|seen| i64::try_from(seen).unwrap_or(i64::MAX));
        seen.map(|seen| Test::AtMost(REVISION.into(), seen)).into_iter().collect()
    }
}

/// The changes to the lists of levels with limits.
#[derive(Default)]
struct Lists {
    resources: Vec<Change>,
    counts: BTreeMap<String, i64>,
}

impl Lists {
    /// Records that a level has limits now and had none (1), has none any more (-1), or has other
    /// ones (0).
    fn record(&mut self, level: Level<'_>, by: i64) {
        if let Some((_, resource)) = level.entity() {
            *self.counts.entry(resource.into()).or_default() += by;
        } else if let Some(resource) = level.resource() {
            let (list, resource) = ("resources".into(), resource.into());
            let is_listed = by >= 0;
            self.resources.push(if is_listed {
                Change::Include(list, resource)
            } else {
                Change::Exclude(list, resource)
            });
        }
    }

    fn writes(self, ns: &str) -> impl Iterator<Item = Write> {
        let counts: Vec<Change> = self
            .counts
            .into_iter()
            .filter(|(_, by)| *by != 0)
            .map(|(resource, by)| Change::Add(resource, by))
            .collect();
        let lists = [(keys::resources(ns), self.resources), (keys::entity_config_resources(ns), counts)];
        let is_changed_list = |(_, changes): &(ItemKey, Vec<Change>)| !changes.is_empty();
        lists
            .into_iter()
            .filter(is_changed_list)
            .map(|(key, changes)| Write::Change(key, changes, Vec::new()))
    }
}

fn managed_by(changes: &[LevelChange<'_>]) -> Vec<Change> {
    let change = |change: &LevelChange<'_>| {
        let (field, level) = (LEVELS.to_owned(), change.level.managed());
        match change.target {
            Target::Nothing => Change::Exclude(field, level),
            _ => Change::Include(field, level),
        }
    };
    changes.iter().map(change).chain([Change::Add(REVISION.into(), 1)]).collect()
}

fn check(changes: &[LevelChange<'_>]) -> Result<()> {
    if changes.len() > LEVELS_MAX {
        let valid = format!("at most {LEVELS_MAX}");
        return Err(CatalogError::Invalid {
            what: "the number of levels",
            value: changes.len().to_string(),
            valid,
        });
    }
    let mut seen = HashSet::new();
    for LevelChange { level, target } in changes {
        level.check()?;
        if !seen.insert(*level) {
            let (value, valid) = (format!("{level}, twice"), "each level once".into());
            return Err(CatalogError::Invalid { what: "a level", value, valid });
        }
        match target {
            Target::Limits(limits) | Target::System(limits, None) if limits.is_empty() => {
                return Err(refuse_empty(*level));
            }
            Target::System(..) if *level != Level::System => {
                let (value, valid) = (level.to_string(), "the system".into());
                return Err(CatalogError::Invalid {
                    what: "a level that says what to do without the store",
                    value,
                    valid,
                });
            }
            _ => {}
        }
    }
    Ok(())
}
