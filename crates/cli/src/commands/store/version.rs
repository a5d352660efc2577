//! The version of this program, and that of the records in the store.

use anyhow::Result;
use serde::Serialize;

use crate::context::Context;
use crate::output::{Answer, Cell, Output, Page};
use crate::store::is_there;

/// Shows versions. A store that is not there is not made for it.
pub(in crate::commands) fn version(context: &Context) -> Result<Output> {
    let record = match is_there(&context.settings) {
        true => Some(context.registry()?.version().wait()?),
        false => None,
    };
    Ok(Output::new(VersionAnswer {
        version: env!("CARGO_PKG_VERSION"),
        store: context.settings.store.value.to_string(),
        schema_version: record.as_ref().map(|record| record.schema_version.clone()),
        client_min_version: record.map(|record| record.client_min_version),
    }))
}

#[derive(Serialize)]
struct VersionAnswer {
    version: &'static str,
    store: String,
    schema_version: Option<String>,
    client_min_version: Option<String>,
}

impl Answer for VersionAnswer {
    fn text(&self, page: &mut Page) {
        let schema = match (&self.schema_version, &self.client_min_version) {
            (Some(schema), Some(client)) => {
                format!("{schema}, for version {client} of this program or later")
            }
            _ => "none, the store is not there yet".into(),
        };
        page.fields([
            ("tollgate", Cell::from(self.version)),
            ("store", (&self.store).into()),
            ("schema", schema.into()),
        ]);
    }
}
