//! The version of this program, and that of the records in the store.

use anyhow::Result;
use serde::Serialize;
use tollgate::catalog::VersionRecord;

use crate::context::Context;
use crate::output::{Answer, Output, TableCell, TextPage, style};
use crate::settings::redacted;
use crate::store::is_there;

/// Shows versions. A store that is not there is not made for it, and one that cannot be used is no reason to keep quiet
/// about this program.
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
    match is_there(&context.settings)? {
        true => Ok(Some(context.registry_if_there()?.version().wait()?)),
        false => Ok(None),
    }
}

#[derive(Serialize)]
struct VersionAnswer {
    version: &'static str,
    /// `null` if the settings say nothing that is one.
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
            _ => "none, the store is not there yet".into(),
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
