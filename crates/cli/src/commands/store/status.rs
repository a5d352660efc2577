//! `tollgate status`.

use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use tollgate::Clock;
use tollgate::catalog::VersionRecord;
use tollgate::store::StoreClock;
use tollgate_open::redacted;

use crate::context::Context;
use crate::duration_text;
use crate::exit::Exit;
use crate::output::{Answer, Output, TableCell, TextPage, TextTable, grouped, style};
use crate::views::{CountsView, NamespaceView};

/// Shows the store. An unavailable store is an output, too, with its exit code.
pub(in crate::commands) fn status(context: &Context) -> Result<Output> {
    let store = context.settings.store()?.value.to_string();
    match found(context) {
        Ok(found) => {
            Ok(Output::new(StatusAnswer { store, reachable: true, error: None, found: Some(found) }))
        }
        Err(error) => {
            let exit = Exit::of(&error);
            // A store with records of another version is reachable.
            let reachable = exit != Exit::UNAVAILABLE;
            let error = Some(redacted(&format!("{error:#}")).into_owned());
            Ok(Output::new(StatusAnswer { store, reachable, error, found: None }).with_exit(exit))
        }
    }
}

fn found(context: &Context) -> Result<StatusFound> {
    context.require_store()?;
    let store = context.store()?;
    let registry = context.existing_registry()?;
    let VersionRecord { schema_version, client_min_version, .. } = registry.version().wait()?;
    // The second call has nothing to set up, so it shows the latency of a call.
    let before = store.clock().now();
    registry.version().wait()?;
    let latency = store.clock().now().since(before);
    let clock_ahead = store.clock().now().since(Clock::system().now()).as_micros();
    let mut namespaces = Vec::new();
    for namespace in registry.list().wait()? {
        let counts = registry.open(&namespace.name).wait()?.counts().wait()?;
        namespaces.push(NamespaceCounts { namespace: namespace.into(), counts: counts.into() });
    }
    Ok(StatusFound {
        latency_us: latency.as_micros(),
        clock_ahead_us: if clock_ahead > StoreClock::TOLERANCE { clock_ahead } else { 0 },
        schema_version,
        client_min_version,
        namespaces,
        deleted_namespaces: registry.orphans().wait()?.len(),
    })
}

#[derive(Serialize)]
struct StatusAnswer {
    store: String,
    reachable: bool,
    error: Option<String>,
    #[serde(flatten)]
    found: Option<StatusFound>,
}

#[derive(Serialize)]
struct StatusFound {
    latency_us: u64,
    clock_ahead_us: u64,
    schema_version: String,
    client_min_version: String,
    namespaces: Vec<NamespaceCounts>,
    deleted_namespaces: usize,
}

#[derive(Serialize)]
struct NamespaceCounts {
    #[serde(flatten)]
    namespace: NamespaceView,
    counts: CountsView,
}

impl Answer for StatusAnswer {
    fn text(&self, page: &mut TextPage) {
        let Some(found) = &self.found else {
            let error = self.error.as_deref().unwrap_or_default();
            let reachable = if self.reachable { "yes" } else { "no" };
            return page.fields([
                ("store", TableCell::name(&self.store)),
                ("reachable", TableCell::styled(reachable, style::BAD)),
                ("error", error.into()),
            ]);
        };
        let latency = duration_text::roughly(Duration::from_micros(found.latency_us));
        let namespaces = format!(
            "{} in use, {} deleted",
            grouped(found.namespaces.len()),
            grouped(found.deleted_namespaces)
        );
        let mut fields = vec![
            ("store", TableCell::name(&self.store)),
            ("reachable", TableCell::styled("yes", style::GOOD)),
            ("latency", latency.into()),
        ];
        if found.clock_ahead_us > 0 {
            let ahead = duration_text::roughly(Duration::from_micros(found.clock_ahead_us));
            let ahead = format!("{ahead} ahead of this host's");
            fields.push(("clock", TableCell::styled(ahead, style::WARN)));
        }
        fields.extend([("schema", (&found.schema_version).into()), ("namespaces", namespaces.into())]);
        page.fields(fields);
        if !found.namespaces.is_empty() {
            page.gap();
            page.table(&found.table());
        }
    }
}

impl StatusFound {
    fn table(&self) -> TextTable {
        let headings = ["NAMESPACE", "ENTITIES", "LIMITS", "DISABLED", "BUCKETS", "USAGE", "EVENTS"];
        let mut table = (1..headings.len()).fold(TextTable::new(headings), TextTable::right);
        for NamespaceCounts { namespace, counts } in &self.namespaces {
            let CountsView { entities, disabled, buckets, usage_records, audit_events, .. } = counts;
            let [entities, limits, disabled, buckets, usage, events] =
                [entities, &counts.limits(), disabled, buckets, usage_records, audit_events]
                    .map(|count| TableCell::from(grouped(count)));
            table.row([TableCell::name(&namespace.name), entities, limits, disabled, buckets, usage, events]);
        }
        table
    }
}
