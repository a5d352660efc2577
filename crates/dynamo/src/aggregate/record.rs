use aws_sdk_dynamodb::types::AttributeValue;
use tollgate_store::records::ItemKey;

use crate::attributes::key_of;
use crate::service::Attributes;

/// What became of an item.
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
#[derive(Clone, Debug, PartialEq)]
pub struct StreamRecord {
    /// What became of the item.
    pub kind: EventKind,
    /// Its key, as attributes.
    pub keys: std::collections::HashMap<String, AttributeValue>,
    /// As it was before, if it was there.
    pub old: Option<std::collections::HashMap<String, AttributeValue>>,
    /// As it was then, if it was there.
    pub new: Option<std::collections::HashMap<String, AttributeValue>>,
    /// Its number, by which a delivery is known.
    pub sequence: String,
    /// When it was written, in seconds since 1970, as far as the service knows.
    pub written_at: Option<i64>,
    /// Whether the service deleted it because it had expired.
    pub has_expired: bool,
}

/// Who deletes what has expired.
pub(super) const EXPIRES: &str = "dynamodb.amazonaws.com";

impl StreamRecord {
    /// The key of the item; `None` if it is of another table.
    pub(super) fn key(&self) -> Option<ItemKey> {
        key_of(&self.keys)
    }

    /// The item as it is now known: as it was then, or before if it is gone.
    pub(super) fn image(&self) -> Option<&Attributes> {
        self.new.as_ref().or(self.old.as_ref())
    }
}
