//! `tollgate check`: finds problems in the store.

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::{CatalogError, Finding, Inspection};
use tollgate_open::StoreDamage;

use crate::context::Context;
use crate::exit::Exit;
use crate::output::{Answer, Output, TableCell, TextPage, TextTable, grouped, style};
use crate::store::damages;

/// Checks the whole store. Problems are an output with the exit code of a failure.
pub(in crate::commands) fn check(context: &Context) -> Result<Output> {
    context.require_store()?;
    let registry = context.existing_registry()?;
    let schema_version = registry.version().wait()?.schema_version;
    let mut problems: Vec<Problem> = damages(&context.settings)?.into_iter().map(Problem::from).collect();
    let (inspection, compatible) = match registry.inspect().wait() {
        Ok(inspection) => (inspection, true),
        Err(error) if is_other_version(&error) => {
            problems.push(Problem::version(&error));
            (Inspection::default(), false)
        }
        Err(error) => return Err(error.into()),
    };
    problems.extend(inspection.findings.into_iter().map(Problem::from));
    let exit = if problems.is_empty() { Exit::OK } else { Exit::FAILURE };
    let store = context.settings.store()?.value.to_string();
    let records = inspection.records;
    Ok(Output::new(CheckAnswer { store, compatible, schema_version, records, problems }).with_exit(exit))
}

fn is_other_version(error: &CatalogError) -> bool {
    matches!(
        error,
        CatalogError::TooNew { .. } | CatalogError::TooOld { .. } | CatalogError::ClientTooOld { .. }
    )
}

#[derive(Serialize)]
struct CheckAnswer {
    store: String,
    compatible: bool,
    schema_version: String,
    records: u64,
    problems: Vec<Problem>,
}

/// A problem with a record.
#[derive(Serialize)]
pub(super) struct Problem {
    namespace: Option<String>,
    what: String,
    problem: String,
}

impl Problem {
    fn version(error: &CatalogError) -> Problem {
        let hint = match error {
            CatalogError::TooOld { .. } => " (tollgate upgrade)",
            _ => "",
        };
        Problem { namespace: None, what: "the schema".into(), problem: format!("{error}{hint}") }
    }
}

impl From<StoreDamage> for Problem {
    fn from(damage: StoreDamage) -> Problem {
        Problem { namespace: None, what: damage.part.into(), problem: damage.problem }
    }
}

impl From<Finding> for Problem {
    fn from(finding: Finding) -> Problem {
        let Finding { namespace, what, problem, .. } = finding;
        Problem { namespace, what, problem }
    }
}

impl Answer for CheckAnswer {
    fn text(&self, page: &mut TextPage) {
        let result = match self.problems.len() {
            0 => TableCell::styled("ok", style::GOOD),
            1 => TableCell::styled("1 problem", style::BAD),
            count => TableCell::styled(format!("{} problems", grouped(count)), style::BAD),
        };
        page.fields([
            ("store", TableCell::name(&self.store)),
            ("schema", (&self.schema_version).into()),
            ("records", grouped(self.records).into()),
            ("result", result),
        ]);
        if self.problems.is_empty() {
            return;
        }
        page.gap();
        page.table(&table_of(&self.problems));
    }
}

/// Returns a table of problems.
pub(super) fn table_of(problems: &[Problem]) -> TextTable {
    let mut table = TextTable::new(["NAMESPACE", "WHAT", "PROBLEM"]).wrap(2).hide_empty(0);
    for Problem { namespace, what, problem } in problems {
        table.row([TableCell::name(namespace.as_deref().unwrap_or_default()), what.into(), problem.into()]);
    }
    table
}
