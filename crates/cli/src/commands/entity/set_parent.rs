//! `tollgate entity set-parent`.

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::args::EntitySetParentArgs;
use crate::context::Context;
use crate::output::{Answer, Output, TextPage};
use crate::views::{EntityView, action_label};

/// Sets or removes the parent of an entity, and sets whether it cascades if that is asked for.
pub(super) fn set_parent(context: &Context, args: EntitySetParentArgs) -> Result<Output> {
    let EntitySetParentArgs { entity, parent, none: _, cascade } = args;
    let (changed, now) = context.change(|catalog| {
        let mut changed = catalog.set_parent(&entity, parent.as_deref()).wait()?;
        if let Some(cascades) = cascade {
            changed |= catalog.set_cascades(&entity, cascades).wait()?;
        }
        let now = catalog.entity(&entity).wait()?;
        Ok((changed, now.with_context(|| format!("entity {entity:?} was deleted meanwhile"))?))
    })?;
    Ok(Output::new(MoveAnswer {
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        entity: now.into(),
        changed,
    }))
}

#[derive(Serialize)]
struct MoveAnswer {
    dry_run: bool,
    namespace: String,
    entity: EntityView,
    changed: bool,
}

impl Answer for MoveAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        let id = &self.entity.id;
        let target = match self.entity.parent_text() {
            parent if parent.is_empty() => "to the top".to_owned(),
            parent => format!("under {parent}"),
        };
        if self.changed {
            page.line(format_args!("{} entity {id} {target}", action_label(self.dry_run, "moved", "move")));
        } else {
            let current = if target == "to the top" { "at the top" } else { &target };
            page.line(format_args!("entity {id} is already {current}"));
        }
    }
}
