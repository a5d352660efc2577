//! Audit: who changed what, and when.

use std::fmt;

use tollgate_store::records::{Cursor, Fields, Item, ItemKey, Page, Value, Write};
use tollgate_store::{Reply, StoreError};

use crate::transaction::RecordTxn;
use crate::{Catalog, PageRequest, Result, keys, name, ulid};

/// What a change was made to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// An entity.
    Entity(&'a str),
    /// The system's limits.
    System,
    /// A resource's limits, or its switch.
    Resource(&'a str),
}

/// What was done.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// An entity was created.
    EntityCreated,
    /// An entity was deleted, with all that was stored of it but its audit events.
    EntityDeleted,
    /// Limits were stored.
    LimitsSet,
    /// Stored limits were deleted.
    LimitsDeleted,
    /// An entity got another parent, or none.
    ParentSet,
    /// An entity began to take from its parent too, or ceased to, or it was said so of a resource.
    CascadeSet,
    /// An entity got another name.
    NameSet,
    /// An entity or a resource was switched off.
    Disabled,
    /// It was switched on again.
    Enabled,
    /// A bucket was made as if nothing had been used.
    Reset,
    /// A bucket was given credit.
    ToppedUp,
    /// The secret that tokens are sealed with was replaced.
    SecretRotated,
    /// Something that only another version knows.
    Other(String),
}

/// A change that was made.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AuditEvent {
    /// Its id; ids sort by time.
    pub id: String,
    /// The entity, or `$SYSTEM`, or `$RESOURCE:` and the resource.
    pub subject: String,
    /// When, such as `2026-11-15T14:00:00Z`.
    pub timestamp: String,
    /// What was done.
    pub action: Action,
    /// Who did it.
    pub principal: String,
    /// The resource it was about, if it was about one.
    pub resource: Option<String>,
    /// What else is to be known.
    pub details: Fields,
}

impl Catalog {
    /// The changes that were made to a subject, oldest first unless the page says otherwise.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// A name that is not valid, or the store's.
    pub fn audit<'a>(
        &'a self,
        subject: Subject<'a>,
        page: PageRequest,
    ) -> Reply<'a, Result<Page<AuditEvent>>> {
        Reply::later(async move {
            match subject {
                Subject::Entity(entity) => name::ENTITY.check(entity)?,
                Subject::Resource(resource) => name::RESOURCE.check(resource)?,
                Subject::System => {}
            }
            let partition = keys::audit_partition(self.namespace_id(), &subject.to_string());
            let query = page.query(partition, keys::AUDIT_PREFIX);
            let Page { items, next } = self.backend().query(&query).await?;
            Ok(Page { items: items.into_iter().map(event_of).collect(), next })
        })
    }
}

impl Catalog {
    /// The changes that were made to whatever is in the namespace, oldest first unless the page says otherwise. Goes
    /// through the keys of all events.
    ///
    /// # Cancel safety
    ///
    /// Nothing is changed.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadCall`] for a cursor that is not one of this query's, or the store's.
    pub fn audit_of_all(&self, page: PageRequest) -> Reply<'_, Result<Page<AuditEvent>>> {
        Reply::later(async move {
            if let Some(Cursor(id)) = page.after.as_ref().filter(|Cursor(id)| !ulid::is_one(id)) {
                let why = format!("the cursor {id:?} is none of this query's");
                return Err(StoreError::BadCall(why).into());
            }
            let mut found: Vec<ItemKey> = Vec::new();
            let partitions = keys::audit_partition(self.namespace_id(), "");
            self.each_key(&partitions, |key| found.push(key.clone())).await?;
            // Ids sort by time, and they are what the sort keys end with.
            found.sort_by(|one, two| one.sort.cmp(&two.sort));
            if page.newest_first {
                found.reverse();
            }
            let last = page.after.map(|Cursor(id)| format!("{}{id}", keys::AUDIT_PREFIX));
            let is_seen = |key: &ItemKey| match (&last, page.newest_first) {
                (None, _) => false,
                (Some(last), true) => key.sort >= *last,
                (Some(last), false) => key.sort <= *last,
            };
            found.retain(|key| !is_seen(key));
            let has_more = found.len() > page.limit.max(1);
            found.truncate(page.limit.max(1));
            let items: Vec<AuditEvent> = self.get_all(&found).await?.into_iter().map(event_of).collect();
            let next = items.last().filter(|_| has_more).map(|event| Cursor(event.id.clone()));
            Ok(Page { items, next })
        })
    }
}

impl RecordTxn<'_> {
    /// Adds the event of the change that this transaction makes.
    pub(crate) fn audit(
        &mut self,
        subject: Subject<'_>,
        action: Action,
        resource: Option<&str>,
        details: Fields,
    ) -> Result<()> {
        let now = self.catalog().now();
        let id = ulid::text(self.catalog().shared().ulids.next(now)?);
        let subject = subject.to_string();
        let mut item = Item::new(keys::audit(self.namespace_id(), &subject, &id))
            .with("event_id", id)
            .with("entity_id", subject)
            .with("timestamp", tollgate_store::usage::iso(now))
            .with("action", action.name())
            .with("principal", self.catalog().principal())
            .with("resource", resource)
            .with("details", details);
        item.expires = self.catalog().shared().audit_retention.map(|retention| now + retention);
        self.push(Write::Put(item, Vec::new()));
        Ok(())
    }
}

fn event_of(item: Item) -> AuditEvent {
    let text = |field: &str| item.text(field).unwrap_or_default().to_owned();
    let details = match item.fields.get("details") {
        Some(Value::Map(details)) => details.clone(),
        _ => Fields::new(),
    };
    AuditEvent {
        id: text("event_id"),
        subject: text("entity_id"),
        timestamp: text("timestamp"),
        action: Action::from_name(&text("action")),
        principal: text("principal"),
        resource: item.text("resource").map(str::to_owned),
        details,
    }
}

impl Action {
    const NAMES: [(Action, &'static str); 12] = [
        (Action::EntityCreated, "entity_created"),
        (Action::EntityDeleted, "entity_deleted"),
        (Action::LimitsSet, "limits_set"),
        (Action::LimitsDeleted, "limits_deleted"),
        (Action::ParentSet, "parent_set"),
        (Action::CascadeSet, "cascade_set"),
        (Action::NameSet, "name_set"),
        (Action::Disabled, "disabled"),
        (Action::Enabled, "enabled"),
        (Action::Reset, "reset"),
        (Action::ToppedUp, "topped_up"),
        (Action::SecretRotated, "secret_rotated"),
    ];

    /// The name it has in records.
    pub fn name(&self) -> &str {
        match self {
            Action::Other(name) => name,
            known => Action::NAMES.iter().find(|(action, _)| action == known).map_or("", |(_, name)| name),
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Action {
        let known = Action::NAMES.into_iter().find(|(_, known)| *known == name);
        known.map_or_else(|| Action::Other(name.into()), |(action, _)| action)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// As it stands in records: `user-1`, `$SYSTEM`, `$RESOURCE:gpt-4`.
impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Entity(entity) => f.write_str(entity),
            Subject::System => f.write_str("$SYSTEM"),
            Subject::Resource(resource) => write!(f, "$RESOURCE:{resource}"),
        }
    }
}
