//! `tollgate upgrade`: migrates the records to the layout of this version.

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::{Migrated, MigrationPlan};

use super::check::{Problem, table_of};
use crate::args::UpgradeArgs;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{Answer, Output, TextPage, counted, grouped};
use crate::views::action_label;

/// Migrates the records.
pub(in crate::commands) fn upgrade(context: &Context, args: &UpgradeArgs) -> Result<Output> {
    context.require_store()?;
    let registry = context.registry()?;
    let plan = registry.migration().wait()?;
    let lost = plan.as_ref().map(|plan| plan.lost.clone()).unwrap_or_default();
    let is_refused = !lost.is_empty() && !args.drop_unknown;
    let migrated = match &plan {
        Some(plan) if !is_refused => {
            context.confirm(question(plan))?;
            registry.migrate_anyway().wait()?
        }
        _ => Vec::new(),
    };
    let secrets = if is_refused { 0 } else { registry.make_secrets().wait()? };
    Ok(Output::new(UpgradeAnswer {
        dry_run: context.dry_run,
        schema_version: registry.version().wait()?.schema_version,
        refused: is_refused,
        unknown: lost.into_iter().map(Problem::from).collect(),
        migrations: migrated.into_iter().map(MigrationView::from).collect(),
        secrets,
    })
    .with_exit(if is_refused { Exit::FAILURE } else { Exit::OK }))
}

fn question(plan: &MigrationPlan) -> String {
    let MigrationPlan { from, to, .. } = plan;
    format!(
        "migrate from schema {from} to {to}, which cannot be undone: programs for {from} cannot use the store afterwards"
    )
}

#[derive(Serialize)]
struct UpgradeAnswer {
    dry_run: bool,
    schema_version: String,
    refused: bool,
    unknown: Vec<Problem>,
    migrations: Vec<MigrationView>,
    /// The number of namespaces that got a secret.
    secrets: u64,
}

#[derive(Serialize)]
struct MigrationView {
    from: String,
    to: String,
    records: u64,
}

impl From<Migrated> for MigrationView {
    fn from(migrated: Migrated) -> MigrationView {
        let Migrated { from, to, records, .. } = migrated;
        MigrationView { from, to, records }
    }
}

impl Answer for UpgradeAnswer {
    fn text(&self, page: &mut TextPage) {
        if !self.unknown.is_empty() {
            let entries = counted(self.unknown.len(), "entry", "entries");
            page.line(format_args!("{entries} of the records cannot be represented by this version:"));
            page.gap();
            page.table(&table_of(&self.unknown));
            page.gap();
        }
        if self.refused {
            return page.line("nothing was changed; --drop-unknown drops them");
        }
        if self.migrations.is_empty() && self.secrets == 0 {
            return page.line(format_args!("nothing to do: the schema is {}", self.schema_version));
        }
        for MigrationView { from, to, records } in &self.migrations {
            let action = action_label(self.dry_run, "migrated", "migrate");
            page.line(format_args!("{action} from schema {from} to {to}: {} records", grouped(records)));
        }
        if self.secrets > 0 {
            let action = action_label(self.dry_run, "created", "create");
            let secrets = grouped(self.secrets);
            page.line(format_args!(
                "{action} secrets that seal tickets, for namespaces without one: {secrets}"
            ));
        }
    }
}
