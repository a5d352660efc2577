//! The stored limits as a limits file.

use anyhow::Result;
use tollgate::catalog::{Entity, ManagedSet, PageRequest, StoredLimits};
use tollgate::{Catalog, Level};

use crate::limits_file::{DEFAULT_SET, EntityPart, LevelConfig, LimitsFile};
use crate::views::OwnedLevel;

/// Returns the levels that have limits or a policy.
pub(super) fn stored_levels(catalog: &Catalog) -> Result<Vec<OwnedLevel>> {
    let mut levels = Vec::new();
    if stored(catalog, Level::System)?.is_some() {
        levels.push(OwnedLevel::system());
    }
    levels.extend(catalog.resources_with_limits().wait()?.into_iter().map(OwnedLevel::resource));
    for resource in catalog.resources_with_entity_limits().wait()?.into_keys() {
        let named = Some(resource.clone()).filter(|name| name != tollgate::catalog::DEFAULT_RESOURCE);
        each_page(|page| {
            let found = catalog.entities_with_limits(&resource, page).wait()?;
            levels.extend(found.items.into_iter().map(|entity| OwnedLevel::entity(entity, named.clone())));
            Ok(found.next)
        })?;
    }
    levels.sort();
    Ok(levels)
}

/// Returns what is stored on a level, unless it is empty.
pub(super) fn stored(catalog: &Catalog, level: Level<'_>) -> Result<Option<LevelConfig>> {
    let stored: Option<StoredLimits> = catalog.limits(level).wait()?;
    Ok(stored.map(LevelConfig::from).filter(|config| !config.is_empty()))
}

/// Returns all stored limits, or those of a managed set.
pub(in crate::commands) fn stored_as_file(catalog: &Catalog, set: Option<&ManagedSet>) -> Result<LimitsFile> {
    let mut file = LimitsFile::new(set.map_or(DEFAULT_SET, ManagedSet::name));
    let is_wanted = |level: &OwnedLevel| set.is_none_or(|set| set.manages(level.level()));
    for level in stored_levels(catalog)?.into_iter().filter(is_wanted) {
        if let Some(config) = stored(catalog, level.level())? {
            file.levels.insert(level, config);
        }
    }
    each_page(|page| {
        let found = catalog.entities(page).wait()?;
        for id in &found.items {
            if let Some(entity) =
                catalog.entity(id).wait()?.filter(|entity| set.is_none() || has_limits(&file, entity))
            {
                add_entity(&mut file, entity);
            }
        }
        Ok(found.next)
    })?;
    Ok(file)
}

fn has_limits(file: &LimitsFile, entity: &Entity) -> bool {
    let first = OwnedLevel::entity(entity.id.clone(), None);
    let next = file.levels.range(first..).next();
    next.is_some_and(|(level, _)| level.entity.as_deref() == Some(&entity.id))
}

/// Adds an entity, unless it has only defaults and no children.
fn add_entity(file: &mut LimitsFile, entity: Entity) {
    let cascade = entity.parent.is_some().then_some(entity.cascades);
    let name = Some(entity.name).filter(|name| *name != entity.id);
    let part = EntityPart { name, parent: entity.parent, cascade };
    if entity.children > 0 || !part.is_empty() {
        file.entities.insert(entity.id, part);
    }
}

fn each_page(mut read: impl FnMut(PageRequest) -> Result<Option<tollgate::catalog::Cursor>>) -> Result<()> {
    let mut page = PageRequest::default();
    while let Some(next) = read(page.clone())? {
        page = page.after(next);
    }
    Ok(())
}
