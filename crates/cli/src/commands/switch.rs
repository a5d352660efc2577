//! Switches: entities and resources that nobody may use for now.

use anyhow::Result;
use serde::Serialize;

use crate::context::Context;
use crate::output::{Answer, Output, Page};
use crate::views::deed;

/// What can be switched off.
pub(super) enum Switch {
    /// An entity.
    Entity(String),
    /// A resource.
    Resource(String),
}

/// Which way.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Turn {
    /// Nobody may use it.
    Off,
    /// Everybody may again.
    On,
}

/// Switches something off or on.
pub(super) fn turn(context: &Context, switch: Switch, turn: Turn) -> Result<Output> {
    let changed = context.change(|catalog| {
        Ok(match (&switch, turn) {
            (Switch::Entity(id), Turn::Off) => catalog.disable_entity(id),
            (Switch::Entity(id), Turn::On) => catalog.enable_entity(id),
            (Switch::Resource(name), Turn::Off) => catalog.disable_resource(name),
            (Switch::Resource(name), Turn::On) => catalog.enable_resource(name),
        }
        .wait()?)
    })?;
    let (entity, resource) = match switch {
        Switch::Entity(id) => (Some(id), None),
        Switch::Resource(name) => (None, Some(name)),
    };
    Ok(Output::new(TurnAnswer {
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        entity,
        resource,
        disabled: turn == Turn::Off,
        changed,
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
}

impl Answer for TurnAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut Page) {
        let what = match (&self.entity, &self.resource) {
            (Some(entity), _) => format!("entity {entity}"),
            (None, resource) => format!("resource {}", resource.as_deref().unwrap_or_default()),
        };
        let (done, to_do) = if self.disabled { ("disabled", "disable") } else { ("enabled", "enable") };
        if self.changed {
            page.line(format_args!("{} {what}", deed(self.dry_run, done, to_do)));
        } else {
            page.line(format_args!("{what} was {done} already"));
        }
    }
}
