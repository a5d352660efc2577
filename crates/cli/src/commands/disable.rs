//! Switches: entities and resources that may not be used for now, and exceptions.

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::Access;

use crate::context::Context;
use crate::output::{Answer, Output, TextPage};
use crate::views::action_label;

/// What can be switched off.
pub(super) enum Switch {
    /// An entity.
    Entity(String),
    /// A resource.
    Resource(String),
    /// A resource for an entity, and what is to be said of that.
    Access(String, String, Option<Access>),
}

/// Which way.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Toggle {
    /// No caller may use it.
    Off,
    /// Callers may use it again.
    On,
}

/// Switches something off or on.
pub(super) fn turn(context: &Context, switch: Switch, turn: Toggle) -> Result<Output> {
    let changed = context.change(|catalog| {
        Ok(match (&switch, turn) {
            (Switch::Entity(id), Toggle::Off) => catalog.disable_entity(id),
            (Switch::Entity(id), Toggle::On) => catalog.enable_entity(id),
            (Switch::Resource(name), Toggle::Off) => catalog.disable_resource(name),
            (Switch::Resource(name), Toggle::On) => catalog.enable_resource(name),
            (Switch::Access(id, resource, access), _) => catalog.set_access(id, resource, *access),
        }
        .wait()?)
    })?;
    let (entity, resource, inherited) = match switch {
        Switch::Entity(id) => (Some(id), None, false),
        Switch::Resource(name) => (None, Some(name), false),
        Switch::Access(id, name, access) => (Some(id), Some(name), access.is_none()),
    };
    Ok(Output::new(TurnAnswer {
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        entity,
        resource,
        disabled: turn == Toggle::Off,
        changed,
        inherited,
    }))
}

#[derive(Serialize)]
struct TurnAnswer {
    dry_run: bool,
    namespace: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    entity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<String>,
    disabled: bool,
    changed: bool,
    /// Whether what was said of an entity and a resource was taken back.
    #[serde(skip)]
    inherited: bool,
}

impl Answer for TurnAnswer {
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
            let deed = action_label(self.dry_run, "took back", "take back");
            return match self.changed {
                true => page.line(format_args!("{deed} what was said of {what}")),
                false => page.line(format_args!("nothing was said of {what}")),
            };
        }
        let (done, to_do) = if self.disabled { ("disabled", "disable") } else { ("enabled", "enable") };
        if self.changed {
            page.line(format_args!("{} {what}", action_label(self.dry_run, done, to_do)));
        } else {
            page.line(format_args!("{what} was {done} already"));
        }
    }
}
