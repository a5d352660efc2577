//! Disabling of entities and resources, and exceptions.

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::Access;

use crate::context::Context;
use crate::output::{Answer, Output, TextPage};
use crate::views::action_label;

/// What is disabled or enabled.
pub(super) enum DisableTarget {
    /// An entity.
    Entity(String),
    /// A resource.
    Resource(String),
    /// A resource for an entity, and its new setting.
    Access(String, String, Option<Access>),
}

/// Whether to disable or enable.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Toggle {
    /// Disable.
    Off,
    /// Enable.
    On,
}

/// Disables or enables a target.
pub(super) fn toggle(context: &Context, target: DisableTarget, toggle: Toggle) -> Result<Output> {
    let changed = context.change(|catalog| {
        Ok(match (&target, toggle) {
            (DisableTarget::Entity(id), Toggle::Off) => catalog.disable_entity(id),
            (DisableTarget::Entity(id), Toggle::On) => catalog.enable_entity(id),
            (DisableTarget::Resource(name), Toggle::Off) => catalog.disable_resource(name),
            (DisableTarget::Resource(name), Toggle::On) => catalog.enable_resource(name),
            (DisableTarget::Access(id, resource, access), _) => catalog.set_access(id, resource, *access),
        }
        .wait()?)
    })?;
    let (entity, resource, inherited) = match target {
        DisableTarget::Entity(id) => (Some(id), None, false),
        DisableTarget::Resource(name) => (None, Some(name), false),
        DisableTarget::Access(id, name, access) => (Some(id), Some(name), access.is_none()),
    };
    Ok(Output::new(DisableAnswer {
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        entity,
        resource,
        disabled: toggle == Toggle::Off,
        changed,
        inherited,
    }))
}

#[derive(Serialize)]
struct DisableAnswer {
    dry_run: bool,
    namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    entity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    disabled: bool,
    changed: bool,
    /// Whether the setting of an entity and a resource was removed.
    #[serde(skip)]
    inherited: bool,
}

impl Answer for DisableAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        let what = match (&self.entity, &self.resource) {
            (Some(entity), Some(resource)) => format!("entity {entity} for resource {resource}"),
            (Some(entity), None) => format!("entity {entity}"),
            (None, resource) => format!("resource {}", resource.as_deref().unwrap_or_default()),
        };
        if self.inherited {
            if !self.changed {
                return page.line(format_args!("{what} is neither enabled nor disabled"));
            }
            let action = action_label(self.dry_run, "removed", "remove");
            return page.line(format_args!("{action} the setting of {what}"));
        }
        let (done, to_do) = if self.disabled { ("disabled", "disable") } else { ("enabled", "enable") };
        if self.changed {
            page.line(format_args!("{} {what}", action_label(self.dry_run, done, to_do)));
        } else {
            page.line(format_args!("{what} is already {done}"));
        }
    }
}
