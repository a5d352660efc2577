//! Audit events: which principal changed what, and when.

use std::fmt;

use tollgate_store::records::{Cursor, Fields, Item, ItemKey, Page, Value, Write};
use tollgate_store::{Reply, StoreError};

use crate::transaction::RecordTxn;
use crate::{Catalog, PageRequest, Result, keys, name, ulid};

/// The subject of a change.
///
/// ```
/// use tollgate_catalog::Subject;
///
/// assert_eq!(Subject::Resource("gpt-4").to_string(), "$RESOURCE:gpt-4");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Subject<'a> {
    /// An entity.
    Entity(&'a str),
    /// The limits of the system.
    System,
    /// The limits or the switches of a resource.
    Resource(&'a str),
}

/// The kind of a change.
///
/// ```
/// use tollgate_catalog::Action;
///
/// assert_eq!(Action::from_name("limits_set"), Action::LimitsSet);
/// assert_eq!(Action::Other("painted".into()).name(), "painted");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Action {
    /// An entity was created.
    EntityCreated,
    /// An entity was deleted, with all of its records except audit events.
    EntityDeleted,
    /// Limits were stored.
    LimitsSet,
    /// Stored limits were deleted.
    LimitsDeleted,
    /// An entity got another parent, or none.
    ParentSet,
    /// It was set whether calls of an entity, or to a resource, are charged to parents.
    CascadeSet,
    /// An entity got another name.
    NameSet,
    /// An entity or a resource was disabled.
    Disabled,
    /// An entity or a resource was enabled again.
    Enabled,
    /// A bucket was reset to its unused state.
    Reset,
    /// A bucket was given credit.
    ToppedUp,
    /// The secret that tokens are sealed with was replaced.
    SecretRotated,
    /// A change that only another version knows.
    Other(String),
}

/// A change that was made.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::{Action, NewEntity, PageRequest, Registry, Subject};
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// let catalog = catalog.acting_as("alice")?;
/// catalog.create_entity(NewEntity::new("user-1")).wait()?;
/// let events = catalog.audit(Subject::Entity("user-1"), PageRequest::default()).wait()?.items;
/// assert_eq!((&events[0].action, &*events[0].principal), (&Action::EntityCreated, "alice"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct AuditEvent {
    /// The id of the event; ids sort by time.
    pub id: String,
    /// The entity, or `$SYSTEM`, or `$RESOURCE:` and the resource.
    pub subject: String,
    /// When the change was made, such as `2026-11-15T14:00:00Z`.
    pub timestamp: String,
    /// The kind of the change.
    pub action: Action,
    /// The principal that made the change.
    pub principal: String,
    /// The resource, if the change was about one.
    pub resource: Option<String>,
    /// Further details of the change.
    pub details: Fields,
}

impl Catalog {
    /// Returns the changes that were made to a subject, the oldest first by default.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
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
    /// Returns the changes that were made in the namespace, the oldest first by default. It reads
    /// the keys of all events.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadCall`] for a cursor that is not one of this query's, or an error of the
    /// store.
    pub fn audit_of_all(&self, page: PageRequest) -> Reply<'_, Result<Page<AuditEvent>>> {
        Reply::later(async move {
            if let Some(Cursor(id)) = page.after.as_ref().filter(|Cursor(id)| !ulid::is_ulid(id)) {
                let why = format!("the cursor {id:?} does not belong to this query");
                return Err(StoreError::BadCall(why).into());
            }
            let mut found: Vec<ItemKey> = Vec::new();
            let partitions = keys::audit_partition(self.namespace_id(), "");
            self.each_key(&partitions, |key| found.push(key.clone())).await?;
            // Sort keys end with the id, and ids sort by time.
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

    /// Returns the name of the action in records.
    pub fn name(&self) -> &str {
        match self {
            Action::Other(name) => name,
            known => Action::NAMES.iter().find(|(action, _)| action == known).map_or("", |(_, name)| name),
        }
    }

    /// Returns the action of a name.
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

/// Writes the subject as in records: `user-1`, `$SYSTEM`, `$RESOURCE:gpt-4`.
impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Subject::Entity(entity) => f.write_str(entity),
            Subject::System => f.write_str("$SYSTEM"),
            Subject::Resource(resource) => write!(f, "$RESOURCE:{resource}"),
        }
    }
}
