//! `tollgate limits apply`.

use std::path::Path;

use anyhow::{Context as _, Result};
use tollgate::catalog::{CatalogError, LEVELS_MAX, LevelChange, Target};
use tollgate::{Catalog, NewEntity};

use super::plan::{EntityStep, LevelStep, LimitsPlan};
use super::view::{ApplyAnswer, PlanAnswer};
use crate::context::Context;
use crate::limits_file::{self, LevelConfig};
use crate::output::{Output, grouped};
use crate::views::OwnedLevel;

/// Applies a file, after a dry run of all of it and a question.
pub(super) fn apply(context: &Context, file: &Path) -> Result<Output> {
    let wanted = limits_file::read(file)?;
    let tried = context.try_change(|catalog| {
        let plan = LimitsPlan::new(catalog, file, &wanted)?;
        carry_out(catalog, &plan, |_| {}).context("nothing was changed: the file cannot be applied")?;
        Ok(plan)
    })?;
    let plan = PlanAnswer::new(context, file, &tried);
    if context.dry_run {
        return Ok(Output::new(ApplyAnswer::new(context, plan)));
    }
    if !tried.is_empty() {
        context.show(&plan)?;
        context.confirm(format_args!("apply this to namespace {}", plan.namespace()))?;
    }
    let done = context.change_after_dry_run(|catalog| {
        let plan = LimitsPlan::new(catalog, file, &wanted)?;
        if plan.revision != tried.revision {
            // The plan that the user confirmed is outdated.
            let changed = CatalogError::SetChanged(plan.set.clone());
            return Err(anyhow::Error::from(changed).context("nothing was changed: plan and apply again"));
        }
        let mut progress = context.progress();
        let mut so_far = AppliedPlan::default();
        let carried_out = carry_out(catalog, &plan, |made| {
            so_far = made;
            progress.show(format_args!("{} of {} transactions", made.transactions, plan.transactions()));
        });
        carried_out.with_context(|| so_far.summary(&plan))?;
        Ok(plan)
    })?;
    Ok(Output::new(ApplyAnswer::new(context, PlanAnswer::new(context, file, &done))))
}

/// The progress of a plan.
#[derive(Clone, Copy, Default)]
pub(in crate::commands) struct AppliedPlan {
    transactions: usize,
    entities: usize,
    levels: usize,
}

impl AppliedPlan {
    /// Describes a plan that was not completed. The next run makes only the missing changes.
    fn summary(self, plan: &LimitsPlan) -> String {
        let entities = match plan.entities.len() {
            0 => String::new(),
            count => format!("{} of {count} entities and ", grouped(self.entities)),
        };
        let levels = grouped(self.levels);
        let of = grouped(plan.levels_written());
        format!("{entities}{levels} of {of} levels were written; apply it again to complete it")
    }
}

/// Carries out a plan: entities first, one by one, then the limits, as many in a transaction as fit. Reports its progress
/// after each transaction.
///
/// # Errors
///
/// [`CatalogError::SetChanged`] if another process changes the set meanwhile: two files would be mixed.
pub(in crate::commands) fn carry_out(
    catalog: &Catalog,
    plan: &LimitsPlan,
    mut report: impl FnMut(AppliedPlan),
) -> Result<()> {
    let mut made = AppliedPlan::default();
    let mut revision = plan.revision;
    if !plan.entities.is_empty() {
        revision = catalog.apply_limits_since(&plan.set, revision, &[]).wait()?;
        made.transactions += 1;
    }
    for step in &plan.entities {
        step.carry_out(catalog).with_context(|| format!("entity {}", step.id))?;
        made = AppliedPlan { transactions: made.transactions + 1, entities: made.entities + 1, ..made };
        report(made);
    }
    let changes = plan.levels.iter().map(LevelStep::change).chain(plan.adopted.iter().map(adoption));
    let changes: Vec<LevelChange<'_>> = changes.collect();
    for changes in changes.chunks(LEVELS_MAX) {
        revision = catalog.apply_limits_since(&plan.set, revision, changes).wait()?;
        made =
            AppliedPlan { transactions: made.transactions + 1, levels: made.levels + changes.len(), ..made };
        report(made);
    }
    Ok(())
}

impl LevelStep {
    fn change(&self) -> LevelChange<'_> {
        let target = match &self.after {
            None => Target::Nothing,
            Some(LevelConfig { limits, on_unavailable }) if self.level == OwnedLevel::system() => {
                Target::System(limits, *on_unavailable)
            }
            Some(LevelConfig { limits, .. }) => Target::Limits(limits),
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits_file::LimitsFile;

    #[test]
    fn concurrent_applies_of_one_set_do_not_mix_and_report_their_progress() {
        let limiter = tollgate::Limiter::in_memory().unwrap();
        let catalog = limiter.catalog();
        let mut wanted = LimitsFile::new("prod");
        let limits = tollgate::Limits::new([tollgate::Limit::per_minute("rpm", 5)]).unwrap();
        for index in 0..LEVELS_MAX + 13 {
            let config = LevelConfig { limits: limits.clone(), on_unavailable: None };
            wanted.levels.insert(OwnedLevel::resource(format!("r{index}")), config);
        }
        let plan = LimitsPlan::new(catalog, Path::new("limits.toml"), &wanted).unwrap();
        let mut so_far = AppliedPlan::default();
        let carried_out = carry_out(catalog, &plan, |made| {
            so_far = made;
            catalog.apply_limits(Some("prod"), &[]).wait().unwrap();
        });
        let why = carried_out.unwrap_err();
        assert_eq!(why.downcast_ref(), Some(&CatalogError::SetChanged("prod".into())));
        assert_eq!(so_far.summary(&plan), "47 of 60 levels were written; apply it again to complete it");
        let again = LimitsPlan::new(catalog, Path::new("limits.toml"), &wanted).unwrap();
        assert_eq!(again.levels_written(), 13);
        carry_out(catalog, &again, |_| {}).unwrap();
        assert!(LimitsPlan::new(catalog, Path::new("limits.toml"), &wanted).unwrap().is_empty());
    }
}
