//! `tollgate audit`: lists changes.

use anyhow::Result;
use serde::Serialize;
use serde_json::Value as Json;
use tollgate::catalog::{AuditEvent, Cursor, DEFAULT_RESOURCE, Page as CatalogPage, Subject};
use tollgate::store::records::{Fields, Value};

use crate::args::{AuditCommand, AuditListArgs};
use crate::context::Context;
use crate::output::{Answer, Output, TableCell, TextPage, TextTable};

/// Runs a command for audit events.
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
    Ok(Output::new(AuditListAnswer {
        namespace: context.settings.namespace.value.clone(),
        events: items.into_iter().map(EventView::from).collect(),
        next,
    }))
}

#[derive(Serialize)]
struct AuditListAnswer {
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

impl Answer for AuditListAnswer {
    fn text(&self, page: &mut TextPage) {
        let mut table = TextTable::new(["TIME", "PRINCIPAL", "CHANGE"]).wrap(2);
        for event in &self.events {
            table.row([
                TableCell::from(&event.timestamp),
                TableCell::name(&event.principal),
                event.sentence().into(),
            ]);
        }
        page.table_or(&table, "no events");
    }
}

impl EventView {
    /// Formats the event as a sentence.
    fn sentence(&self) -> String {
        let about = self.about();
        let action = match self.action.as_str() {
            "entity_created" => format!("created {about}"),
            "entity_deleted" => format!("deleted {about}"),
            "limits_set" => format!("set limits for {about}"),
            "limits_deleted" => format!("deleted limits for {about}"),
            "parent_set" => format!("moved {about}"),
            "cascade_set" => format!("set the cascade of {about}"),
            "name_set" => format!("renamed {about}"),
            "disabled" | "enabled" | "reset" => format!("{} {about}", self.action),
            "topped_up" => format!("topped up {about}"),
            "secret_rotated" => "rotated the secret that seals tickets".into(),
            other => format!("{} {about}", other.replace('_', " ")),
        };
        match self.details() {
            details if details.is_empty() => action,
            details => format!("{action}: {details}"),
        }
    }

    fn about(&self) -> String {
        let resource = self.resource.as_deref().filter(|resource| *resource != DEFAULT_RESOURCE);
        match (self.subject.as_str(), resource) {
            ("$SYSTEM", _) => "the system".into(),
            (subject, _) if subject.starts_with('$') => {
                format!("resource {}", subject.trim_start_matches("$RESOURCE:"))
            }
            (entity, Some(resource)) => format!("entity {entity}, resource {resource}"),
            (entity, None) => format!("entity {entity}"),
        }
    }

    /// Formats the details on one line, without defaults. The texts of limits contain their names.
    fn details(&self) -> String {
        let Json::Object(fields) = &self.details else { return String::new() };
        let is_shown = |name: &str, value: &Json| match value {
            Json::Null | Json::Bool(false) => self.action == "cascade_set",
            Json::Object(fields) => !fields.is_empty(),
            value => name != "name" || value != self.subject.as_str(),
        };
        let part = |(name, value): (&String, &Json)| match value {
            Json::Object(fields) if name == "metadata" => metadata(fields),
            Json::Object(limits) => limits.values().map(limit_text).collect::<Vec<_>>().join("; "),
            Json::Null if self.action == "cascade_set" => "unset".into(),
            value => format!("{} {}", name.trim_end_matches("_id").replace('_', " "), plain(value)),
        };
        let shown = fields.iter().filter(|(name, value)| is_shown(name, value));
        shown.map(part).collect::<Vec<_>>().join(", ")
    }
}

fn metadata(fields: &serde_json::Map<String, Json>) -> String {
    let pairs: Vec<String> = fields.iter().map(|(name, value)| format!("{name}={}", plain(value))).collect();
    format!("metadata {}", pairs.join(" "))
}

/// Formats a limit. Events of zae-limiter have its numbers instead of a text.
fn limit_text(limit: &Json) -> String {
    let number = |field: &str| limit.get(field).and_then(Json::as_u64);
    let numbers = [number("capacity"), number("refill_amount"), number("refill_period_seconds")];
    match (limit.get("name").and_then(Json::as_str), numbers) {
        (Some(name), [Some(capacity), Some(amount), Some(seconds)]) if capacity == amount => {
            format!("{name}: {amount} per {seconds}s")
        }
        (Some(name), [Some(capacity), Some(amount), Some(seconds)]) => {
            format!("{name}: {amount} per {seconds}s, burst {capacity}")
        }
        _ => plain(limit),
    }
}

fn plain(value: &Json) -> String {
    match value {
        Json::String(text) => text.clone(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sentence(action: &str, details: Json) -> String {
        let text = String::new();
        let event = EventView {
            id: text.clone(),
            timestamp: text.clone(),
            principal: text,
            action: action.into(),
            subject: "key-1".into(),
            resource: None,
            details,
        };
        event.sentence()
    }

    #[test]
    fn events_of_zae_limiter_read_like_ours() {
        let created =
            json!({"name": "key-1", "parent_id": "acme", "cascade": true, "metadata": {"plan": "gold"}});
        let said = sentence("entity_created", created);
        assert_eq!(said, "created entity key-1: cascade true, metadata plan=gold, parent acme");
        let created = json!({"name": "key-1", "parent_id": null, "cascade": false, "metadata": {}});
        assert_eq!(sentence("entity_created", created), "created entity key-1");
        let limit = |name: &str, capacity: u64| json!({"name": name, "capacity": capacity, "refill_amount": 50, "refill_period_seconds": 60});
        let limits = json!({"limits": {"0": limit("rpm", 50), "1": limit("tpm", 80)}});
        let said = sentence("limits_set", limits);
        assert_eq!(said, "set limits for entity key-1: rpm: 50 per 60s; tpm: 50 per 60s, burst 80");
        let limits = json!({"limits": {"rpm": "rpm: 50 per 60s"}});
        assert_eq!(sentence("limits_set", limits), "set limits for entity key-1: rpm: 50 per 60s");
    }
}
