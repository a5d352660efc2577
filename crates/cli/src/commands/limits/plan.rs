//! Plans: the changes from the stored limits to those of a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;
use tollgate::Catalog;
use tollgate::catalog::{Entity, LEVELS_MAX, ManagedSet};

use super::stored::{stored, stored_levels};
use crate::limits_file::{EntityPart, LevelConfig, LimitsFile, LimitsFileError};
use crate::views::OwnedLevel;

/// The changes that apply a file.
pub(in crate::commands) struct LimitsPlan {
    /// The managed set.
    pub(super) set: String,
    /// The revision of the set when the plan was made.
    pub(super) revision: u64,
    /// Entities to be created or changed, parents first.
    pub(super) entities: Vec<EntityStep>,
    /// Levels that change, those that get limits first.
    pub(super) levels: Vec<LevelStep>,
    /// Levels that equal the file, and become managed.
    pub(super) adopted: Vec<OwnedLevel>,
    /// The number of levels and entities that equal the file.
    pub(super) unchanged: usize,
    /// Levels with limits that are in neither file nor set.
    pub(super) unmanaged: Vec<OwnedLevel>,
}

/// A change of a level.
pub(super) struct LevelStep {
    pub(super) level: OwnedLevel,
    pub(super) before: Option<LevelConfig>,
    pub(super) after: Option<LevelConfig>,
    /// Whether the set manages it already.
    pub(super) is_managed: bool,
}

/// A change of an entity.
pub(super) struct EntityStep {
    pub(super) id: String,
    pub(super) before: Option<Entity>,
    /// The parts that change.
    pub(super) after: EntityPart,
}

impl LimitsPlan {
    /// Compares the stored limits with a file.
    ///
    /// # Errors
    ///
    /// [`LimitsFileError`] if the file cannot be applied: a parent does not exist, or another set manages a level.
    pub(in crate::commands) fn new(
        catalog: &Catalog,
        file: &Path,
        wanted: &LimitsFile,
    ) -> Result<LimitsPlan> {
        let sets = catalog.managed_sets().wait()?;
        check_owners(file, wanted, &sets)?;
        let mine = sets.iter().find(|set| set.name() == wanted.set);
        let is_mine = |level: &OwnedLevel| mine.is_some_and(|set| set.manages(level.level()));
        let managed = mine.into_iter().flat_map(ManagedSet::levels).map(OwnedLevel::of);
        let of_interest: BTreeSet<OwnedLevel> = wanted.levels.keys().cloned().chain(managed).collect();
        let entities = entity_steps(catalog, file, wanted)?;
        let mut plan = LimitsPlan {
            set: wanted.set.clone(),
            revision: mine.map_or(0, ManagedSet::revision),
            unchanged: entities_wanted(wanted)
                .filter(|id| entities.iter().all(|step| step.id != **id))
                .count(),
            entities,
            levels: Vec::new(),
            adopted: Vec::new(),
            unmanaged: Vec::new(),
        };
        let unmanaged = stored_levels(catalog)?.into_iter().filter(|level| !of_interest.contains(level));
        plan.unmanaged = unmanaged.collect();
        for level in of_interest {
            let before = stored(catalog, level.level())?;
            let after = wanted.levels.get(&level).cloned();
            let is_managed = is_mine(&level);
            if before != after {
                plan.levels.push(LevelStep { level, before, after, is_managed });
            } else if after.is_some() {
                plan.unchanged += 1;
                plan.adopted.extend((!is_managed).then_some(level));
            } else {
                // Another process deleted it: the set only has to stop managing it.
                plan.levels.push(LevelStep { level, before, after, is_managed });
            }
        }
        plan.levels.sort_by_key(|step| step.after.is_none());
        Ok(plan)
    }

    /// Returns the steps that change stored limits.
    pub(super) fn changes(&self) -> impl Iterator<Item = &LevelStep> {
        self.levels.iter().filter(|step| step.before != step.after)
    }

    /// Returns whether nothing changes.
    pub(super) fn is_empty(&self) -> bool {
        self.changes().next().is_none() && self.entities.is_empty()
    }

    /// Returns the number of transactions. One is added before entities are changed, to claim the revision of the set.
    pub(super) fn transactions(&self) -> usize {
        let by_hand = |step: &EntityStep| step.transactions();
        let entities: usize = self.entities.iter().map(by_hand).sum();
        usize::from(entities > 0) + entities + self.levels_written().div_ceil(LEVELS_MAX)
    }

    /// Returns the number of levels that are written.
    pub(super) fn levels_written(&self) -> usize {
        self.levels.len() + self.adopted.len()
    }
}

impl EntityStep {
    fn transactions(&self) -> usize {
        let EntityPart { name, parent, cascade } = &self.after;
        match self.before {
            None => 1,
            Some(_) => {
                usize::from(name.is_some()) + usize::from(parent.is_some()) + usize::from(cascade.is_some())
            }
        }
    }
}

fn check_owners(file: &Path, wanted: &LimitsFile, sets: &[ManagedSet]) -> Result<()> {
    for set in sets.iter().filter(|set| set.name() != wanted.set) {
        if let Some(level) = wanted.levels.keys().find(|level| set.manages(level.level())) {
            let name = set.name();
            let why = format!(
                "{} is managed by set {name:?}, and this is set {:?}; remove it from this file, or from the other set first",
                level.name(),
                wanted.set
            );
            return Err(LimitsFileError::of_file(file, why).into());
        }
    }
    Ok(())
}

/// Returns the entities that a file names as parents.
fn parents(wanted: &LimitsFile) -> BTreeSet<&str> {
    wanted.entities.values().filter_map(|part| part.parent.as_deref()).collect()
}

/// Returns the entities that a file creates if they do not exist. Those that it only has limits for are not among them.
fn entities_wanted(wanted: &LimitsFile) -> impl Iterator<Item = &String> {
    let parents = parents(wanted);
    let is_wanted =
        move |(id, part): &(&String, &EntityPart)| !part.is_empty() || parents.contains(id.as_str());
    wanted.entities.iter().filter(is_wanted).map(|(id, _)| id)
}

fn entity_steps(catalog: &Catalog, file: &Path, wanted: &LimitsFile) -> Result<Vec<EntityStep>> {
    let parents = parents(wanted);
    let mut steps = BTreeMap::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for (id, part) in &wanted.entities {
        let before = catalog.entity(id).wait()?;
        match &before {
            Some(_) => known.insert(id),
            None if part.is_empty() && !parents.contains(id.as_str()) => continue,
            None => false,
        };
        let after = changed_parts(before.as_ref(), part);
        if before.is_none() || !after.is_empty() {
            steps.insert(id.as_str(), EntityStep { id: id.clone(), before, after });
        }
    }
    for parent in parents {
        if steps.contains_key(parent) || known.contains(parent) {
            continue;
        }
        if catalog.entity(parent).wait()?.is_none() {
            let why = format!("the parent {parent:?} does not exist; also write [entity.\"{parent}\"]");
            return Err(LimitsFileError::of_file(file, why).into());
        }
    }
    parents_first(file, steps)
}

/// Returns the parts of an entity that change.
fn changed_parts(before: Option<&Entity>, part: &EntityPart) -> EntityPart {
    let Some(before) = before else { return part.clone() };
    EntityPart {
        name: part.name.clone().filter(|name| *name != before.name),
        parent: part.parent.clone().filter(|parent| Some(parent) != before.parent.as_ref()),
        cascade: part.cascade.filter(|cascade| *cascade != before.cascades),
    }
}

/// Returns the steps in an order in which no entity is created before its parent.
fn parents_first(file: &Path, mut steps: BTreeMap<&str, EntityStep>) -> Result<Vec<EntityStep>> {
    let mut ordered = Vec::new();
    while !steps.is_empty() {
        let waits = |step: &EntityStep| {
            let parent = step.after.parent.as_deref().and_then(|parent| steps.get(parent));
            parent.is_some_and(|parent| parent.before.is_none())
        };
        let ready: Vec<&str> = steps.iter().filter(|(_, step)| !waits(step)).map(|(id, _)| *id).collect();
        if ready.is_empty() {
            let names: Vec<&str> = steps.into_keys().collect();
            let why =
                format!("{} are each other's parents; one of them must be at the top", names.join(", "));
            return Err(LimitsFileError::of_file(file, why).into());
        }
        ordered.extend(ready.into_iter().filter_map(|id| steps.remove(id)));
    }
    Ok(ordered)
}
