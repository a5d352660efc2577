use tollgate_core::{Span, Tick};

use super::{HOUR, Sums, Window, iso};
use crate::records::{Change, Index, ItemKey, Value, Write};

/// How long a record of usage is kept after its window has begun.
pub const USAGE_KEPT: [(Window, Span); 3] = [
    (Window::Hour, Span::from_secs(90 * 86_400)),
    (Window::Day, Span::from_secs(400 * 86_400)),
    (Window::Month, Span::from_secs(3_660 * 86_400)),
];

impl Sums {
    /// The writes that add these to the records of the hour, the day and the month.
    pub fn writes(&self, namespace: &str, entity: &str, resource: &str) -> Vec<Write> {
        let at = Tick::from_micros(u64::from(self.hour()) * HOUR);
        let write = |(window, kept): (Window, Span)| {
            let start = window.start(at);
            let iso = iso(start);
            let text = |name: &str, text: &str| Change::Set(name.into(), Value::Text(text.into()));
            let mut changes = vec![
                text("entity_id", entity),
                text("resource", resource),
                text("window", window.name()),
                text("window_start", &iso),
                Change::Add("total_events".into(), self.events().into()),
                Change::Place(Index::Resource, usage_place(namespace, entity, resource, window, &iso)),
                Change::Expire(Some(start + kept)),
            ];
            let counted = self.limits().iter().zip(self.amounts()).filter(|(limit, _)| !limit.is_resource());
            changes.extend(counted.map(|(limit, sum)| Change::Add(used_field(limit.name()), *sum)));
            Write::Change(usage_key(namespace, entity, resource, window, &iso), changes, Vec::new())
        };
        USAGE_KEPT.map(write).into()
    }
}

/// Fields of a record of usage that are no limits.
const FIELDS: [&str; 6] = ["entity_id", "resource", "window", "window_start", "total_events", "ttl"];

/// The name of the field that says how much was used of a limit: that of the limit, unless it would be mistaken for
/// another field.
pub fn used_field(limit: &str) -> String {
    if FIELDS.contains(&limit) || limit.starts_with("u_") { format!("u_{limit}") } else { limit.into() }
}

/// The limit whose usage a field says, if it says one.
pub fn limit_of_field(field: &str) -> Option<&str> {
    if FIELDS.contains(&field) { None } else { Some(field.strip_prefix("u_").unwrap_or(field)) }
}

/// The partition of the usage of an entity. It is not that of the entity and its limits: whoever may count usage need not
/// be one who may change these.
pub fn usage_partition(namespace: &str, entity: &str) -> String {
    format!("{namespace}/USAGE#{entity}")
}

/// The key of a record of usage.
pub fn usage_key(namespace: &str, entity: &str, resource: &str, window: Window, iso: &str) -> ItemKey {
    let sort = format!("#USAGE#{resource}#{}#{iso}", window.name());
    ItemKey::new(usage_partition(namespace, entity), sort)
}

/// Where a record of usage stands in the index of its resource.
pub fn usage_place(namespace: &str, entity: &str, resource: &str, window: Window, iso: &str) -> ItemKey {
    let sort = format!("USAGE#{}#{iso}#{entity}", window.name());
    ItemKey::new(format!("{namespace}/RESOURCE#{resource}"), sort)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_field_of_its_own() {
        for limit in ["tpm", "window", "u_window", "u_", "ttl", "u_u_x"] {
            assert_eq!(limit_of_field(&used_field(limit)), Some(limit));
        }
        assert_eq!(limit_of_field("window"), None);
    }
}
