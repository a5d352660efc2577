//! Who changed what, and when.

use anyhow::Result;
use serde::Serialize;
use serde_json::Value as Json;
use tollgate::catalog::{AuditEvent, Cursor, Page as CatalogPage, Subject};
use tollgate::store::records::{Fields, Value};

use crate::args::{AuditCommand, AuditListArgs};
use crate::context::Context;
use crate::output::{Answer, Cell, Output, Page, Table};

/// Does what a command about audit events says.
pub(super) fn run(context: &Context, command: AuditCommand) -> Result<Output> {
    let AuditCommand::List(args) = command;
    list(context, &args)
}

fn list(context: &Context, args: &AuditListArgs) -> Result<Output> {
    let catalog = context.catalog()?;
    let mut page = args.page.request();
    page.newest_first = !args.oldest_first;
    let subject = match (&args.entity, &args.resource, args.system) {
        (Some(entity), ..) => Some(Subject::Entity(entity)),
        (None, Some(resource), _) => Some(Subject::Resource(resource)),
        (None, None, true) => Some(Subject::System),
        (None, None, false) => None,
    };
    let found = match subject {
        Some(subject) => catalog.audit(subject, page).wait(),
        None => catalog.audit_of_all(page).wait(),
    };
    let CatalogPage { items, next } = found.map_err(|why| args.page.explain(why))?;
    let next = next.map(|Cursor(text)| text);
    context.note_next(&next);
    Ok(Output::new(ListAnswer {
        namespace: context.settings.namespace.value.clone(),
        events: items.into_iter().map(EventView::from).collect(),
        next,
    }))
}

#[derive(Serialize)]
struct ListAnswer {
    namespace: String,
    events: Vec<EventView>,
    next: Option<String>,
}

#[derive(Serialize)]
struct EventView {
    id: String,
    timestamp: String,
    principal: String,
    action: String,
    subject: String,
    resource: Option<String>,
    details: Json,
}

impl From<AuditEvent> for EventView {
    fn from(event: AuditEvent) -> EventView {
        let AuditEvent { id, subject, timestamp, action, principal, resource, details, .. } = event;
        let details = json(&Value::Map(details));
        EventView { id, timestamp, principal, action: action.name().into(), subject, resource, details }
    }
}

fn json(value: &Value) -> Json {
    match value {
        Value::Bool(yes) => Json::from(*yes),
        Value::Int(number) => Json::from(*number),
        Value::Text(text) => Json::from(text.as_str()),
        Value::Set(members) => members.iter().map(String::as_str).collect(),
        Value::Map(fields) => Json::Object(object(fields)),
        _ => Json::Null,
    }
}

fn object(fields: &Fields) -> serde_json::Map<String, Json> {
    fields.iter().map(|(name, value)| (name.clone(), json(value))).collect()
}

impl Answer for ListAnswer {
    fn text(&self, page: &mut Page) {
        let mut table = Table::new(["TIME", "WHO", "WHAT", "ABOUT", "DETAILS"]).wrap(4).hide_empty(4);
        for event in &self.events {
            let about = match (&event.resource, event.subject.starts_with('$')) {
                (Some(resource), false) => format!("{} {resource}", event.subject),
                _ => event.subject.clone(),
            };
            table.row([
                Cell::faint(&event.timestamp),
                Cell::from(&event.principal),
                event.action.replace('_', " ").into(),
                Cell::name(about),
                details(&event.details).into(),
            ]);
        }
        page.table_or(&table, "no events");
    }
}

/// What else is to be known, in one line. Limits already say their names.
fn details(details: &Json) -> String {
    let Json::Object(fields) = details else { return String::new() };
    let said = fields.iter().filter(|(_, value)| !value.is_null());
    let part = |(name, value): (&String, &Json)| match value {
        Json::Object(limits) => limits.values().map(plain).collect::<Vec<_>>().join("; "),
        value => format!("{}={}", name.replace('_', "-"), plain(value)),
    };
    said.map(part).collect::<Vec<_>>().join(" ")
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}
