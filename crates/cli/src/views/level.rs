use serde::Serialize;
use tollgate::Level;

/// Where limits are stored, with names of its own.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct OwnedLevel {
    /// The entity, if it is the level of one.
    pub(crate) entity: Option<String>,
    /// The resource, if it is the level of one.
    pub(crate) resource: Option<String>,
}

/// Where limits are stored.
#[derive(Serialize)]
pub(crate) struct LevelView {
    level: &'static str,
    entity: Option<String>,
    resource: Option<String>,
}

impl OwnedLevel {
    /// For everything.
    pub(crate) fn system() -> OwnedLevel {
        OwnedLevel { entity: None, resource: None }
    }

    /// For a resource.
    pub(crate) fn resource(resource: String) -> OwnedLevel {
        OwnedLevel { entity: None, resource: Some(resource) }
    }

    /// For an entity, and only one resource if one is named.
    pub(crate) fn entity(entity: String, resource: Option<String>) -> OwnedLevel {
        OwnedLevel { entity: Some(entity), resource }
    }

    /// The one that the catalog means.
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

    /// The same for the catalog.
    pub(crate) fn level(&self) -> Level<'_> {
        match (&self.entity, &self.resource) {
            (None, None) => Level::System,
            (None, Some(resource)) => Level::Resource(resource),
            (Some(entity), None) => Level::Entity(entity),
            (Some(entity), Some(resource)) => Level::EntityResource(entity, resource),
        }
    }

    /// The same for programs.
    pub(crate) fn view(&self) -> LevelView {
        let level = match self.level() {
            Level::System => "system",
            Level::Resource(_) => "resource",
            Level::Entity(_) => "entity_default",
            Level::EntityResource(..) => "entity",
        };
        LevelView { level, entity: self.entity.clone(), resource: self.resource.clone() }
    }

    /// The same for people: `entity user-1, resource gpt-4`.
    pub(crate) fn name(&self) -> String {
        match (&self.entity, &self.resource) {
            (None, None) => "the system".into(),
            (None, Some(resource)) => format!("resource {resource}"),
            (Some(entity), None) => format!("entity {entity}"),
            (Some(entity), Some(resource)) => format!("entity {entity}, resource {resource}"),
        }
    }
}
