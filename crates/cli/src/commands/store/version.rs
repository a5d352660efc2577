//! `tollgate version`: the version of this program and of the records in the store.

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::VersionRecord;
use tollgate_open::redacted;

use crate::context::Context;
use crate::output::{Answer, Output, TableCell, TextPage, style};
use crate::store::exists;

/// Shows versions. A missing store is not created, and an unavailable one does not prevent the version of this program from
/// being shown.
pub(in crate::commands) fn version(context: &Context) -> Result<Output> {
    let (record, error) = match record(context) {
        Ok(record) => (record, None),
        Err(why) => (None, Some(redacted(&format!("{why:#}")).into_owned())),
    };
    Ok(Output::new(VersionAnswer {
        version: env!("CARGO_PKG_VERSION"),
        store: context.settings.store().ok().map(|store| store.value.to_string()),
        schema_version: record.as_ref().map(|record| record.schema_version.clone()),
        client_min_version: record.map(|record| record.client_min_version),
        error,
    }))
}

fn record(context: &Context) -> Result<Option<VersionRecord>> {
    if !exists(&context.settings)? {
        return Ok(None);
    }
    Ok(Some(context.existing_registry()?.version().wait()?))
}

#[derive(Serialize)]
struct VersionAnswer {
    version: &'static str,
    /// `null` if the settings have no valid store.
    store: Option<String>,
    schema_version: Option<String>,
    client_min_version: Option<String>,
    /// Why the store cannot be used.
    error: Option<String>,
}

impl Answer for VersionAnswer {
    fn text(&self, page: &mut TextPage) {
        let schema = match (&self.schema_version, &self.client_min_version) {
            _ if self.error.is_some() => "unknown".into(),
            (Some(schema), Some(client)) => {
                format!("{schema}, for version {client} of this program or later")
            }
            _ => "none, the store does not exist yet".into(),
        };
        let fields = [
            ("tollgate", TableCell::from(self.version)),
            ("store", self.store.as_deref().unwrap_or("none").into()),
            ("schema", schema.into()),
        ];
        let Some(error) = &self.error else { return page.fields(fields) };
        let [tollgate, store, schema] = fields;
        page.fields([tollgate, store, schema, ("error", TableCell::styled(error, style::BAD))]);
    }
}
