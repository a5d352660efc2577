use serde::Serialize;
use tollgate::Level;

/// A level of limits that owns its names.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnedLevel {
    /// The entity, if it is the level of one.
    pub(crate) entity: Option<String>,
    /// The resource, if it is the level of one.
    pub(crate) resource: Option<String>,
}

/// A level of limits in JSON.
#[derive(Serialize)]
pub(crate) struct LevelView {
    level: &'static str,
    entity: Option<String>,
    resource: Option<String>,
}

impl OwnedLevel {
    /// Returns the level of the system.
    pub(crate) fn system() -> OwnedLevel {
        OwnedLevel { entity: None, resource: None }
    }

    /// Returns the level of a resource.
    pub(crate) fn resource(resource: String) -> OwnedLevel {
        OwnedLevel { entity: None, resource: Some(resource) }
    }

    /// Returns the level of an entity, or of an entity and a resource.
    pub(crate) fn entity(entity: String, resource: Option<String>) -> OwnedLevel {
        OwnedLevel { entity: Some(entity), resource }
    }

    /// Converts a level of the catalog.
    pub(crate) fn of(level: Level<'_>) -> OwnedLevel {
        match level {
            Level::System => OwnedLevel::system(),
            Level::Resource(resource) => OwnedLevel::resource(resource.into()),
            Level::Entity(entity) => OwnedLevel::entity(entity.into(), None),
            Level::EntityResource(entity, resource) => {
                OwnedLevel::entity(entity.into(), Some(resource.into()))
            }
        }
    }

    /// Returns the level for the catalog.
    pub(crate) fn level(&self) -> Level<'_> {
        match (&self.entity, &self.resource) {
            (None, None) => Level::System,
            (None, Some(resource)) => Level::Resource(resource),
            (Some(entity), None) => Level::Entity(entity),
            (Some(entity), Some(resource)) => Level::EntityResource(entity, resource),
        }
    }

    /// Returns the level for JSON.
    pub(crate) fn view(&self) -> LevelView {
        let level = match self.level() {
            Level::System => "system",
            Level::Resource(_) => "resource",
            Level::Entity(_) => "entity_default",
            Level::EntityResource(..) => "entity",
        };
        LevelView { level, entity: self.entity.clone(), resource: self.resource.clone() }
    }

    /// Formats the level: `entity user-1, resource gpt-4`.
    pub(crate) fn name(&self) -> String {
        match (&self.entity, &self.resource) {
            (None, None) => "the system".into(),
            (None, Some(resource)) => format!("resource {resource}"),
            (Some(entity), None) => format!("entity {entity}"),
            (Some(entity), Some(resource)) => format!("entity {entity}, resource {resource}"),
        }
    }
}
