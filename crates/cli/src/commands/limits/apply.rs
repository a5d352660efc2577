//! Making what is stored what a file says.

use std::path::Path;

use anyhow::{Context as _, Result};
use tollgate::catalog::{LEVELS_MAX, LevelChange, Target};
use tollgate::{Catalog, NewEntity};

use super::plan::{EntityStep, LevelStep, Plan};
use super::view::{ApplyAnswer, PlanAnswer};
use crate::context::Context;
use crate::limits_file::{self, Config};
use crate::output::{Output, Progress};
use crate::views::OwnedLevel;

/// Applies a file, after a look at all of it and a question.
pub(super) fn apply(context: &Context, file: &Path) -> Result<Output> {
    let wanted = limits_file::read(file)?;
    let rehearsed = context.rehearse(|catalog| {
        let plan = Plan::new(catalog, file, &wanted)?;
        carry_out(catalog, &plan, |_| {}).context("nothing was changed: the file cannot be applied")?;
        Ok(plan)
    })?;
    let plan = PlanAnswer::new(context, file, &rehearsed);
    if context.dry_run {
        return Ok(Output::new(ApplyAnswer::new(context, plan)));
    }
    if !rehearsed.is_empty() {
        context.show(&plan)?;
        let (changes, transactions) = (plan.changes_text(), plan.transactions_text());
        context.confirm(format_args!(
            "apply this to namespace {}: {changes}, in {transactions}",
            plan.namespace()
        ))?;
    }
    let done = context.change(|catalog| {
        let plan = Plan::new(catalog, file, &wanted)?;
        let mut progress = Progress::new(&context.terminal);
        carry_out(catalog, &plan, |done| {
            progress.show(format_args!("{done} of {} transactions", plan.transactions()));
        })?;
        Ok(plan)
    })?;
    Ok(Output::new(ApplyAnswer::new(context, PlanAnswer::new(context, file, &done))))
}

/// Takes the steps of a plan: entities first, each by itself, then the limits, as many in a transaction as fit. Says
/// how many transactions were made as it goes.
pub(in crate::commands) fn carry_out(
    catalog: &Catalog,
    plan: &Plan,
    mut made: impl FnMut(usize),
) -> Result<()> {
    let mut count = 0;
    for step in &plan.entities {
        step.carry_out(catalog).with_context(|| format!("entity {}", step.id))?;
        count += 1;
        made(count);
    }
    let changes = plan.levels.iter().map(LevelStep::change).chain(plan.adopted.iter().map(adoption));
    let changes: Vec<LevelChange<'_>> = changes.collect();
    for changes in changes.chunks(LEVELS_MAX) {
        catalog.apply_limits(Some(&plan.set), changes).wait()?;
        count += 1;
        made(count);
    }
    Ok(())
}

impl LevelStep {
    fn change(&self) -> LevelChange<'_> {
        let target = match &self.after {
            None => Target::Nothing,
            Some(Config { limits, on_unavailable }) if self.level == OwnedLevel::system() => {
                Target::System(limits, *on_unavailable)
            }
            Some(Config { limits, .. }) => Target::Limits(limits),
        };
        LevelChange { level: self.level.level(), target }
    }
}

fn adoption(level: &OwnedLevel) -> LevelChange<'_> {
    LevelChange { level: level.level(), target: Target::Unchanged }
}

impl EntityStep {
    fn carry_out(&self, catalog: &Catalog) -> Result<()> {
        let after = &self.after;
        if self.before.is_none() {
            let new = NewEntity::new(&self.id).cascades(after.cascade.unwrap_or(false));
            let new = after.name.iter().fold(new, NewEntity::name);
            let new = after.parent.iter().fold(new, NewEntity::parent);
            catalog.create_entity(new).wait()?;
            return Ok(());
        }
        if let Some(name) = &after.name {
            catalog.set_name(&self.id, name).wait()?;
        }
        if let Some(parent) = &after.parent {
            catalog.set_parent(&self.id, Some(parent)).wait()?;
        }
        if let Some(cascade) = after.cascade {
            catalog.set_cascades(&self.id, cascade).wait()?;
        }
        Ok(())
    }
}
