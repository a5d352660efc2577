use aws_sdk_dynamodb::types::AttributeValue;
use tollgate_store::records::ItemKey;

use crate::attributes::key_of;
use crate::service::Attributes;

/// The kind of change of an item.
///
/// ```
/// use tollgate_dynamo::aggregate::EventKind;
///
/// assert_ne!(EventKind::Insert, EventKind::Modify);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// It was made.
    Insert,
    /// It was changed.
    Modify,
    /// It was deleted, by a client or because it expired.
    Remove,
}

/// A record of the stream, from any source.
///
/// ```
/// use tollgate_dynamo::aggregate::{EventKind, StreamRecord};
///
/// let record = StreamRecord {
///     kind: EventKind::Remove,
///     keys: Default::default(),
///     old: None,
///     new: None,
///     sequence: "100".into(),
///     written_at: None,
///     has_expired: true,
/// };
/// assert!(record.has_expired);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StreamRecord {
    /// The kind of change.
    pub kind: EventKind,
    /// The key of the item, as attributes.
    pub keys: std::collections::HashMap<String, AttributeValue>,
    /// The item before the change, if it existed.
    pub old: Option<std::collections::HashMap<String, AttributeValue>>,
    /// The item after the change, if it existed.
    pub new: Option<std::collections::HashMap<String, AttributeValue>>,
    /// The sequence number, which identifies a delivery.
    pub sequence: String,
    /// When it was written, in seconds since 1970, as far as the service knows.
    pub written_at: Option<i64>,
    /// Whether the service deleted it because it had expired.
    pub has_expired: bool,
}

/// The identity that deletes expired items.
pub(super) const EXPIRES: &str = "dynamodb.amazonaws.com";

impl StreamRecord {
    /// Returns the key of the item; `None` if it is of another table.
    pub(super) fn key(&self) -> Option<ItemKey> {
        key_of(&self.keys)
    }

    /// Returns the item after the change, or before it if it is gone.
    pub(super) fn image(&self) -> Option<&Attributes> {
        self.new.as_ref().or(self.old.as_ref())
    }
}
