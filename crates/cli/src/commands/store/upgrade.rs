//! Bringing the records to the layout of this version.

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::Migrated;

use crate::context::Context;
use crate::output::{Answer, Output, Page, grouped};
use crate::views::deed;

/// Migrates the records.
pub(in crate::commands) fn upgrade(context: &Context) -> Result<Output> {
    context.must_be_there()?;
    let registry = context.registry()?;
    let migrated = registry.migrate().wait()?;
    let secrets = registry.make_secrets().wait()?;
    Ok(Output::new(UpgradeAnswer {
        dry_run: context.dry_run,
        schema_version: registry.version().wait()?.schema_version,
        migrations: migrated.into_iter().map(MigrationView::from).collect(),
        secrets,
    }))
}

#[derive(Serialize)]
struct UpgradeAnswer {
    dry_run: bool,
    schema_version: String,
    migrations: Vec<MigrationView>,
    /// Of how many namespaces the secret was made.
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
    fn text(&self, page: &mut Page) {
        if self.migrations.is_empty() && self.secrets == 0 {
            return page.line(format_args!("nothing to do: the schema is {}", self.schema_version));
        }
        for MigrationView { from, to, records } in &self.migrations {
            let deed = deed(self.dry_run, "migrated", "migrate");
            page.line(format_args!("{deed} from schema {from} to {to}: {} records", grouped(records)));
        }
        if self.secrets > 0 {
            let (deed, secrets) = (deed(self.dry_run, "made", "make"), grouped(self.secrets));
            page.line(format_args!(
                "{deed} secrets that seal tickets, for namespaces that had none: {secrets}"
            ));
        }
    }
}
