//! `tollgate namespace`.

use anyhow::{Context as _, Result};
use serde::Serialize;
use tollgate::catalog::{Namespace, PurgeProgress};

use crate::args::NamespaceCommand;
use crate::context::Context;
use crate::output::{Answer, Output, TableCell, TextPage, counted, grouped};
use crate::views::{CountsView, NamespaceView, action_label, namespace_table};

/// Runs a command for namespaces.
pub(super) fn run(context: &Context, command: NamespaceCommand) -> Result<Output> {
    match command {
        NamespaceCommand::Register { names } => register(context, &names),
        NamespaceCommand::List => list(context),
        NamespaceCommand::Show { name } => show(context, &name),
        NamespaceCommand::Delete { name } => delete(context, &name),
        NamespaceCommand::Recover { id } => recover(context, &id),
        NamespaceCommand::Orphans => orphans(context),
        NamespaceCommand::Purge { id } => purge(context, &id),
    }
}

fn register(context: &Context, names: &[String]) -> Result<Output> {
    let registry = context.registry()?;
    let mut registered = Vec::new();
    let existing = registry.list().wait()?;
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for namespace in registry.register_all(&names).wait()? {
        let is_new = existing.iter().all(|other| other.id != namespace.id);
        registered.push(Registered { new: is_new, namespace: namespace.into() });
    }
    Ok(Output::new(RegisterAnswer { dry_run: context.dry_run, namespaces: registered }))
}

fn list(context: &Context) -> Result<Output> {
    let namespaces = views(context.existing_registry()?.list().wait()?);
    let nothing = "no namespaces; the first command that writes registers one";
    Ok(Output::new(NamespaceListAnswer { namespaces, nothing }))
}

fn orphans(context: &Context) -> Result<Output> {
    let namespaces = views(context.existing_registry()?.orphans().wait()?);
    Ok(Output::new(NamespaceListAnswer { namespaces, nothing: "no deleted namespaces" }))
}

fn show(context: &Context, name: &str) -> Result<Output> {
    let registry = context.existing_registry()?;
    let namespace = registry.get(name).wait()?;
    let namespace = namespace.with_context(|| format!("there is no namespace {name:?}"))?;
    let counts = registry.open(name).wait()?.counts().wait()?;
    Ok(Output::new(NamespaceShowAnswer { namespace: namespace.into(), counts: counts.into() }))
}

fn delete(context: &Context, name: &str) -> Result<Output> {
    let registry = context.existing_registry()?;
    if let Some(there) = registry.get(name).wait()? {
        let contents = || Ok(CountsView::from(registry.counts(&there.id).wait()?).as_contents());
        context.confirm_deletion(format_args!("namespace {name}"), contents)?;
    }
    let namespace = registry.delete(name).wait()?;
    if !context.dry_run {
        let how = format!("to recover it: tollgate namespace recover {}", namespace.id);
        context.queue_note(how);
    }
    Ok(changed(context, namespace, NamespaceChange::Deleted))
}

fn recover(context: &Context, id: &str) -> Result<Output> {
    let namespace = context.existing_registry()?.recover(id).wait()?;
    Ok(changed(context, namespace, NamespaceChange::Recovered))
}

fn changed(context: &Context, namespace: Namespace, change: NamespaceChange) -> Output {
    Output::new(ChangeAnswer { dry_run: context.dry_run, namespace: namespace.into(), change })
}

fn purge(context: &Context, id: &str) -> Result<Output> {
    let registry = context.existing_registry()?;
    let orphans = registry.orphans().wait()?;
    let orphan = orphans.iter().find(|orphan| orphan.id == id).with_context(|| {
        format!("no deleted namespace has the id {id:?}; `tollgate namespace orphans` lists them")
    })?;
    let contents = || Ok(CountsView::from(registry.counts(id).wait()?).as_contents() + ", permanently");
    context.confirm_deletion(format_args!("namespace {} ({id})", orphan.name), contents)?;
    let mut progress = context.progress();
    let report = |done: PurgeProgress| {
        let buckets = grouped(done.buckets);
        let records = grouped(done.records);
        progress.show(format_args!("purging: {buckets} buckets and {records} records deleted"));
    };
    let purged = registry.purge(id, report).wait()?;
    Ok(Output::new(PurgeAnswer {
        dry_run: context.dry_run,
        buckets: purged.buckets,
        records: purged.records,
        namespace: purged.namespace.into(),
    }))
}

fn views(namespaces: Vec<Namespace>) -> Vec<NamespaceView> {
    namespaces.into_iter().map(NamespaceView::from).collect()
}

#[derive(Serialize)]
struct RegisterAnswer {
    dry_run: bool,
    namespaces: Vec<Registered>,
}

#[derive(Serialize)]
struct Registered {
    new: bool,
    #[serde(flatten)]
    namespace: NamespaceView,
}

#[derive(Serialize)]
struct NamespaceListAnswer {
    namespaces: Vec<NamespaceView>,
    #[serde(skip)]
    nothing: &'static str,
}

#[derive(Serialize)]
struct NamespaceShowAnswer {
    namespace: NamespaceView,
    counts: CountsView,
}

#[derive(Serialize)]
struct ChangeAnswer {
    dry_run: bool,
    namespace: NamespaceView,
    #[serde(skip)]
    change: NamespaceChange,
}

enum NamespaceChange {
    Deleted,
    Recovered,
}

#[derive(Serialize)]
struct PurgeAnswer {
    dry_run: bool,
    namespace: NamespaceView,
    buckets: u64,
    records: u64,
}

impl Answer for RegisterAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        for Registered { new, namespace: NamespaceView { name, id, .. } } in &self.namespaces {
            match (new, self.dry_run) {
                (false, _) => page.line(format_args!("namespace {name} exists already, with id {id}")),
                // The id would differ.
                (true, true) => {
                    page.line(format_args!("{} namespace {name}", action_label(true, "", "register")))
                }
                (true, false) => {
                    let registered = action_label(false, "registered", "");
                    page.line(format_args!("{registered} namespace {name}, with id {id}"));
                }
            }
        }
    }
}

impl Answer for NamespaceListAnswer {
    fn text(&self, page: &mut TextPage) {
        page.table_or(&namespace_table(&self.namespaces), self.nothing);
    }
}

impl Answer for NamespaceShowAnswer {
    fn text(&self, page: &mut TextPage) {
        let NamespaceView { name, id, status, created_at, .. } = &self.namespace;
        page.fields([
            ("namespace", TableCell::name(name)),
            ("id", id.into()),
            ("status", status.into()),
            ("created", created_at.into()),
        ]);
        page.gap();
        self.counts.text(page);
    }
}

impl Answer for ChangeAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        let NamespaceView { name, id, .. } = &self.namespace;
        let action = match self.change {
            NamespaceChange::Deleted => action_label(self.dry_run, "deleted", "delete"),
            NamespaceChange::Recovered => action_label(self.dry_run, "recovered", "recover"),
        };
        page.line(format_args!("{action} namespace {name}, with id {id}"));
    }
}

impl Answer for PurgeAnswer {
    fn is_echo(&self) -> bool {
        !self.dry_run
    }

    fn text(&self, page: &mut TextPage) {
        let count = |number: u64, one: &str, many: &str| {
            counted(usize::try_from(number).unwrap_or(usize::MAX), one, many)
        };
        let buckets = count(self.buckets, "bucket", "buckets");
        let records = count(self.records, "record", "records");
        let NamespaceView { name, id, .. } = &self.namespace;
        let action = action_label(self.dry_run, "purged", "purge");
        page.line(format_args!("{action} namespace {name}, with id {id}: {buckets} and {records}"));
    }
}
