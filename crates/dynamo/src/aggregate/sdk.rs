//! Conversion of records of the SDK.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use aws_sdk_dynamodbstreams::types::{AttributeValue as Streamed, OperationType, Record};

use super::record::{EXPIRES, EventKind, StreamRecord};

impl StreamRecord {
    /// Converts a record of the SDK; `None` for a kind of event that this version does not know.
    pub fn of_sdk(record: Record) -> Option<StreamRecord> {
        let kind = match record.event_name? {
            OperationType::Insert => EventKind::Insert,
            OperationType::Modify => EventKind::Modify,
            OperationType::Remove => EventKind::Remove,
            _ => return None,
        };
        let by = record.user_identity.and_then(|user| user.principal_id);
        let parts = record.dynamodb?;
        Some(StreamRecord {
            kind,
            keys: attributes(parts.keys.unwrap_or_default()),
            old: parts.old_image.filter(|image| !image.is_empty()).map(attributes),
            new: parts.new_image.filter(|image| !image.is_empty()).map(attributes),
            sequence: parts.sequence_number.unwrap_or_default(),
            written_at: parts.approximate_creation_date_time.map(|time| time.secs()),
            has_expired: by.as_deref() == Some(EXPIRES),
        })
    }
}

fn attributes(streamed: HashMap<String, Streamed>) -> HashMap<String, AttributeValue> {
    streamed.into_iter().map(|(name, value)| (name, attribute(value))).collect()
}

/// Converts a value of the crate of streams to the type of the crate of tables.
fn attribute(streamed: Streamed) -> AttributeValue {
    match streamed {
        Streamed::B(bytes) => AttributeValue::B(bytes),
        Streamed::Bool(yes) => AttributeValue::Bool(yes),
        Streamed::Bs(all) => AttributeValue::Bs(all),
        Streamed::L(all) => AttributeValue::L(all.into_iter().map(attribute).collect()),
        Streamed::M(fields) => AttributeValue::M(attributes(fields)),
        Streamed::N(number) => AttributeValue::N(number),
        Streamed::Ns(all) => AttributeValue::Ns(all),
        Streamed::S(text) => AttributeValue::S(text),
        Streamed::Ss(all) => AttributeValue::Ss(all),
        // Null, and kinds that a later version of the service has.
        _ => AttributeValue::Null(true),
    }
}
