//! `tollgate limits export`.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;

use super::stored_as_file;
use crate::atomic_write::write_atomically;
use crate::context::Context;
use crate::limits_file::print;
use crate::output::style::{self, paint};
use crate::output::{Answer, Output, TextPage, counted};
use crate::views::action_label;

/// Writes the stored limits, or those of a managed set, to a file or to stdout.
pub(super) fn export(context: &Context, file: Option<&Path>, set: Option<&str>) -> Result<Output> {
    let catalog = context.catalog()?;
    let sets = catalog.managed_sets().wait()?;
    let chosen = match set {
        None => None,
        Some(name) => match sets.iter().find(|set| set.name() == name) {
            Some(set) => Some(set),
            None if sets.is_empty() => {
                bail!("there is no managed set {name:?}; no file was applied here yet")
            }
            None => {
                let names: Vec<&str> = sets.iter().map(|set| set.name()).collect();
                bail!("there is no managed set {name:?}; there are {}", names.join(", "));
            }
        },
    };
    let mut stored = stored_as_file(&catalog, chosen)?;
    match (chosen, sets.as_slice()) {
        // So that the exported file can be applied unchanged.
        (None, [only]) => stored.set = only.name().into(),
        (None, [_, _, ..]) => {
            context.note("there are several managed sets; to apply one of them, export it with --set")
        }
        _ => {}
    }
    let text = print(&stored);
    if let Some(file) = file {
        if file.exists() {
            context.confirm(format_args!("overwrite {}", file.display()))?;
        }
        if !context.dry_run {
            write_atomically(file, &text).with_context(|| format!("{} cannot be written", file.display()))?;
        }
    }
    Ok(Output::new(ExportAnswer {
        dry_run: context.dry_run,
        namespace: context.settings.namespace.value.clone(),
        set: stored.set.clone(),
        file: file.map(|file| file.display().to_string()),
        levels: stored.levels.len(),
        entities: stored.entities.len(),
        toml: text,
    }))
}

#[derive(Serialize)]
struct ExportAnswer {
    dry_run: bool,
    namespace: String,
    set: String,
    file: Option<String>,
    levels: usize,
    entities: usize,
    toml: String,
}

impl Answer for ExportAnswer {
    fn is_echo(&self) -> bool {
        self.file.is_some() && !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        let levels = counted(self.levels, "level", "levels");
        let entities = counted(self.entities, "entity", "entities");
        match &self.file {
            None => page.verbatim(self.toml.trim_end()),
            Some(file) => {
                let action = action_label(self.dry_run, "wrote", "write");
                let file = paint(style::NAME, file);
                page.line(format_args!("{action} {file}: {levels}, {entities}"));
            }
        }
    }
}
