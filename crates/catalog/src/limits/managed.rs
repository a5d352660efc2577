//! Managed sets: the levels of a namespace that one owner manages together, such as those of one
//! file.
//!
//! The owner can delete the levels of a set that it no longer names, and levels that were set by
//! hand are left alone.

use std::collections::BTreeSet;

use tollgate_store::Reply;
use tollgate_store::records::{Item, Query, Value};

use super::Level;
use crate::name::DEFAULT_RESOURCE;
use crate::{Catalog, Result, keys};

/// The field with the levels.
pub(super) const LEVELS: &str = "levels";

/// The field that counts the changes of the set.
pub(super) const REVISION: &str = "revision";

/// A managed set and its levels.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Level, LevelChange, Registry, Target};
/// use tollgate_core::{Limit, Limits};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// let limits = Limits::new([Limit::per_minute("rpm", 100)])?;
/// let changes = [LevelChange { level: Level::System, target: Target::Limits(&limits) }];
/// catalog.apply_limits(Some("limits.toml"), &changes).wait()?;
/// let sets = catalog.managed_sets().wait()?;
/// assert!(sets[0].name() == "limits.toml" && sets[0].manages(Level::System));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManagedSet {
    name: String,
    levels: BTreeSet<String>,
    revision: u64,
}

impl ManagedSet {
    /// Returns the name of the set.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns how often the set was changed, for [`Catalog::apply_limits_since`].
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the levels of the set, in their order.
    pub fn levels(&self) -> impl Iterator<Item = Level<'_>> {
        self.levels.iter().filter_map(|text| Level::from_managed(text))
    }

    /// Returns true if a level is in the set.
    pub fn manages(&self, level: Level<'_>) -> bool {
        self.levels.contains(&level.managed())
    }

    fn of(item: &Item) -> Option<ManagedSet> {
        let name = item.key.sort.strip_prefix(keys::MANAGED_PREFIX)?.to_owned();
        let levels = match item.fields.get(LEVELS) {
            Some(Value::Set(levels)) => levels.iter().cloned().collect(),
            _ => BTreeSet::new(),
        };
        let revision = item.int(REVISION).and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
        Some(ManagedSet { name, levels, revision })
    }
}

impl Catalog {
    /// Returns the managed sets of the namespace, in the order of their names.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An error of the store.
    pub fn managed_sets(&self) -> Reply<'_, Result<Vec<ManagedSet>>> {
        Reply::later(async move {
            let partition = keys::system_partition(self.namespace_id());
            let mut query = Query::prefix(partition, keys::MANAGED_PREFIX);
            let mut sets = Vec::new();
            loop {
                let page = self.backend().query(&query).await?;
                sets.extend(page.items.iter().filter_map(ManagedSet::of));
                match page.next {
                    Some(next) => query.after = Some(next),
                    None => return Ok(sets),
                }
            }
        })
    }
}

impl Level<'_> {
    /// Returns the level as in the record of a set. `#` is in no name.
    pub(super) fn managed(self) -> String {
        match self {
            Level::System => "SYSTEM".into(),
            Level::Resource(resource) => format!("RESOURCE#{resource}"),
            Level::Entity(entity) => format!("ENTITY#{entity}#{DEFAULT_RESOURCE}"),
            Level::EntityResource(entity, resource) => format!("ENTITY#{entity}#{resource}"),
        }
    }

    fn from_managed(text: &str) -> Option<Level<'_>> {
        if text == "SYSTEM" {
            return Some(Level::System);
        }
        if let Some(resource) = text.strip_prefix("RESOURCE#") {
            return Some(Level::Resource(resource));
        }
        let (entity, resource) = text.strip_prefix("ENTITY#")?.split_once('#')?;
        Some(match resource {
            DEFAULT_RESOURCE => Level::Entity(entity),
            resource => Level::EntityResource(entity, resource),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_level_reads_back_from_its_record() {
        let levels =
            [Level::System, Level::Resource("a/b"), Level::Entity("e:1"), Level::EntityResource("e", "a/b")];
        for level in levels {
            assert_eq!(Level::from_managed(&level.managed()), Some(level));
        }
        assert_eq!(Level::from_managed("PLANET#mars"), None);
    }
}
