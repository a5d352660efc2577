//! Cascade policies: whether calls are charged to parents, for a resource, an entity, or both.

use anyhow::Result;
use serde::Serialize;
use tollgate::Cascade;

use crate::context::Context;
use crate::output::{Answer, Output, TextPage};
use crate::views::{LevelView, OwnedLevel, action_label};

/// Says whether calls cascade on a level, or takes back what was said.
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

/// A policy as programs see it.
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
                let deed = action_label(self.dry_run, "set", "set");
                page.line(format_args!("{deed} the cascade of {name}: {cascade}"));
            }
            (Some(cascade), false) => page.line(format_args!("the cascade of {name} was {cascade} already")),
            (None, true) => {
                let deed = action_label(self.dry_run, "took back", "take back");
                page.line(format_args!("{deed} what was said of the cascade of {name}"));
            }
            (None, false) => page.line(format_args!("nothing was said of the cascade of {name}")),
        }
    }
}
