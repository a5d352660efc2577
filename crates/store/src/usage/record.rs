use super::{Caller, Sums, UsageRetention, Window, iso};
use crate::records::{Change, Index, Item, ItemKey, Value, Write};

impl Sums {
    /// Returns the writes that add these to the records of the hour, the day and the month, which are kept for as long as
    /// `kept` sets.
    pub fn writes(&self, namespace: &str, entity: &str, resource: &str, kept: &UsageRetention) -> Vec<Write> {
        Window::ALL.map(|window| self.write(window, (namespace, entity, resource), kept)).into()
    }

    /// Returns the record of usage at a key as it would be with these added, or as it is if they belong to another.
    pub fn added_to(&self, key: &ItemKey, there: Option<Item>, kept: &UsageRetention) -> Option<Item> {
        let (Some(bucket), Some(window)) = (bucket_of_usage(key), window_of_usage(key)) else { return there };
        let write = (!self.is_empty()).then(|| self.write(window, bucket, kept));
        match write.filter(|write| write.key() == key) {
            Some(write) => write.applied(there),
            None => there,
        }
    }

    fn write(&self, window: Window, bucket: (&str, &str, &str), kept: &UsageRetention) -> Write {
        let (namespace, entity, resource) = bucket;
        let start = window.start(self.starts());
        let iso = iso(start);
        let text = |name: &str, text: &str| Change::Set(name.into(), Value::Text(text.into()));
        let mut changes = vec![
            text("entity_id", entity),
            text("resource", resource),
            text("window", window.name()),
            text("window_start", &iso),
            Change::Add("total_events".into(), self.events().into()),
            Change::Place(Index::Resource, usage_place(namespace, entity, resource, window, &iso)),
            Change::Expire(kept.expiry(window, start)),
        ];
        let counted = self.limits().iter().zip(self.amounts()).filter(|(limit, _)| !limit.is_resource());
        for (limit, sum) in counted {
            changes.push(Change::Add(used_field(limit.name()), *sum));
            if self.caller() == Caller::Child {
                changes.push(Change::Add(child_field(limit.name()), *sum));
            }
        }
        if self.caller() == Caller::Child {
            changes.push(Change::Add(CHILD_EVENTS.into(), self.events().into()));
        }
        Write::Change(usage_key(namespace, entity, resource, window, &iso), changes, Vec::new())
    }
}

/// What the sort keys of records of usage start with.
const PREFIX: &str = "#USAGE#";

/// Fields of a record of usage that are no limits.
const FIELDS: [&str; 6] = ["entity_id", "resource", "window", "window_start", "total_events", "ttl"];

/// Returns the name of the field with the usage of a limit: that of the limit, unless it would be mistaken for
/// another field.
pub fn used_field(limit: &str) -> String {
    if FIELDS.contains(&limit) || limit.starts_with("u_") { format!("u_{limit}") } else { limit.into() }
}

/// What the names of fields start with that say how much of another field is of children. No limit is named like that.
const CHILD: char = '#';

/// The field that says how many calls were made by children.
const CHILD_EVENTS: &str = "#total_events";

/// Returns the name of the field with the usage of a limit by children.
pub fn child_field(limit: &str) -> String {
    format!("{CHILD}{}", used_field(limit))
}

/// Returns the limit whose usage by children a field has, if it has that of one.
pub fn limit_of_child_field(field: &str) -> Option<&str> {
    field.strip_prefix(CHILD).and_then(limit_of_field)
}

/// Returns the limit whose usage a field has, if it has that of one.
pub fn limit_of_field(field: &str) -> Option<&str> {
    if FIELDS.contains(&field) || field.starts_with(CHILD) {
        None
    } else {
        Some(field.strip_prefix("u_").unwrap_or(field))
    }
}

/// Returns the partition of the usage of an entity. It is not that of the entity and its limits: a client with permission
/// to count usage needs none to change these.
pub fn usage_partition(namespace: &str, entity: &str) -> String {
    format!("{namespace}/USAGE#{entity}")
}

/// Returns the key of a record of usage.
pub fn usage_key(namespace: &str, entity: &str, resource: &str, window: Window, iso: &str) -> ItemKey {
    let sort = format!("{PREFIX}{resource}#{}#{iso}", window.name());
    ItemKey::new(usage_partition(namespace, entity), sort)
}

/// Returns the namespace, the entity and the resource of a record of usage, by its key.
pub fn bucket_of_usage(key: &ItemKey) -> Option<(&str, &str, &str)> {
    let (namespace, entity) = key.partition.split_once("/USAGE#")?;
    let (resource, ..) = parts_of_usage(key)?;
    Some((namespace, entity, resource))
}

/// Returns the window of a record of usage, by its key.
fn window_of_usage(key: &ItemKey) -> Option<Window> {
    let (_, name, _) = parts_of_usage(key)?;
    Window::ALL.into_iter().find(|window| window.name() == name)
}

/// The resource, the window and its start.
fn parts_of_usage(key: &ItemKey) -> Option<(&str, &str, &str)> {
    let (rest, start) = key.sort.strip_prefix(PREFIX)?.rsplit_once('#')?;
    let (resource, window) = rest.rsplit_once('#')?;
    Some((resource, window, start))
}

/// Returns the place of a record of usage in the index of its resource.
pub fn usage_place(namespace: &str, entity: &str, resource: &str, window: Window, iso: &str) -> ItemKey {
    let sort = format!("USAGE#{}#{iso}#{entity}", window.name());
    ItemKey::new(format!("{namespace}/RESOURCE#{resource}"), sort)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::{Limit, Limits, Span, Tick};

    #[test]
    fn sums_are_added_to_the_records_of_their_windows_only() {
        let limits = Limits::new([Limit::per_minute("tpm", 100)]).unwrap();
        let mut sums = Sums::new(&limits, Tick::from_secs(1_772_323_200), Caller::Own);
        sums.add_take(&limits.costs(&tollgate_core::demand! { tpm: 7 }).unwrap());
        let kept = UsageRetention::new(Span::from_secs(864_000), None, None);
        let writes = sums.writes("app", "user#1", "gpt-4", &kept);
        for write in &writes {
            assert_eq!(bucket_of_usage(write.key()), Some(("app", "user#1", "gpt-4")));
            assert_eq!(sums.added_to(write.key(), None, &kept), write.applied(None));
        }
        let other = usage_key("app", "user#1", "gpt-4", Window::Hour, "2026-03-01T01:00:00Z");
        assert_eq!(sums.added_to(&other, None, &kept), None);
        let expiries = writes.iter().map(|write| write.applied(None).and_then(|item| item.expires));
        assert_eq!(
            expiries.collect::<Vec<_>>(),
            [Some(sums.starts() + Span::from_secs(864_000)), None, None]
        );
    }

    #[test]
    fn every_limit_has_a_field_of_its_own() {
        for limit in ["tpm", "window", "u_window", "u_", "ttl", "u_u_x"] {
            assert_eq!(limit_of_field(&used_field(limit)), Some(limit));
            assert_eq!(limit_of_child_field(&child_field(limit)), Some(limit));
            assert_eq!((limit_of_field(&child_field(limit)), limit_of_child_field(limit)), (None, None));
        }
        assert_eq!((limit_of_field("window"), limit_of_child_field(CHILD_EVENTS)), (None, None));
    }
}
