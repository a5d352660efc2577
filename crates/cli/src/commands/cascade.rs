//! Cascade policies: whether calls are charged to parents, for a resource, an entity, or both.

use anyhow::Result;
use serde::Serialize;
use tollgate::Cascade;

use crate::context::Context;
use crate::output::{Answer, Output, TextPage};
use crate::views::{LevelView, OwnedLevel, action_label};

/// Sets whether calls cascade on a level, or unsets it.
pub(super) fn set(context: &Context, level: &OwnedLevel, cascade: Option<bool>) -> Result<Output> {
    let policy = cascade.map(|is_on| if is_on { Cascade::On } else { Cascade::Off });
    let changed = context.change(|catalog| Ok(catalog.set_cascade(level.level(), policy).wait()?))?;
    Ok(Output::new(CascadeAnswer {
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        level: level.view(),
        cascade,
        changed,
        name: level.name(),
    }))
}

/// Converts a policy for JSON.
pub(super) fn is_on(cascade: Cascade) -> bool {
    cascade == Cascade::On
}

#[derive(Serialize)]
struct CascadeAnswer {
    dry_run: bool,
    namespace: String,
    #[serde(flatten)]
    level: LevelView,
    cascade: Option<bool>,
    changed: bool,
    #[serde(skip)]
    name: String,
}

impl Answer for CascadeAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        let name = &self.name;
        match (self.cascade, self.changed) {
            (Some(cascade), true) => {
                let action = action_label(self.dry_run, "set", "set");
                page.line(format_args!("{action} the cascade of {name}: {cascade}"));
            }
            (Some(cascade), false) => page.line(format_args!("the cascade of {name} is already {cascade}")),
            (None, true) => {
                let action = action_label(self.dry_run, "unset", "unset");
                page.line(format_args!("{action} the cascade of {name}"));
            }
            (None, false) => page.line(format_args!("the cascade of {name} is not set")),
        }
    }
}
