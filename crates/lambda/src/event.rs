//! Records of a DynamoDB stream, as Lambda delivers them.

use aws_lambda_events::event::dynamodb::EventRecord;
use serde_dynamo::Item;
use tollgate_dynamo::aggregate::{EventKind, StreamRecord};

/// The principal that deletes expired items.
const EXPIRY_PRINCIPAL: &str = "dynamodb.amazonaws.com";

/// Converts a record; `None` for a kind of event that this version does not know.
pub(crate) fn record(event: EventRecord) -> Option<StreamRecord> {
    let kind = match event.event_name.as_str() {
        "INSERT" => EventKind::Insert,
        "MODIFY" => EventKind::Modify,
        "REMOVE" => EventKind::Remove,
        _ => return None,
    };
    let change = event.change;
    // A missing image is delivered as an empty one.
    let image = |item: Item| Some(item).filter(|item| !item.is_empty()).map(Into::into);
    Some(StreamRecord {
        kind,
        keys: change.keys.into(),
        old: image(change.old_image),
        new: image(change.new_image),
        sequence: change.sequence_number.unwrap_or_default(),
        written_at: Some(change.approximate_creation_date_time.timestamp()),
        has_expired: event.user_identity.is_some_and(|user| user.principal_id == EXPIRY_PRINCIPAL),
    })
}

#[cfg(test)]
mod tests {
    use aws_lambda_events::event::dynamodb::Event;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_record_is_read_as_lambda_writes_it() {
        let event = json!({ "Records": [{
            "eventID": "c4ca4238a0b923820dcc509a6f75849b",
            "eventName": "REMOVE",
            "eventVersion": "1.1",
            "eventSource": "aws:dynamodb",
            "awsRegion": "eu-west-1",
            "userIdentity": { "type": "Service", "principalId": "dynamodb.amazonaws.com" },
            "dynamodb": {
                "ApproximateCreationDateTime": 1794701100,
                "Keys": { "PK": { "S": "ns/BUCKET#user-1#gpt-4#0" }, "SK": { "S": "#STATE" } },
                "OldImage": { "rv": { "N": "3" }, "pu": { "M": { "1": { "M": { "n": { "N": "2" } } } } } },
                "SequenceNumber": "4421584500000000017450439091",
                "SizeBytes": 38,
                "StreamViewType": "NEW_AND_OLD_IMAGES"
            }
        }] });
        let event: Event = serde_json::from_value(event).unwrap();
        let record = record(event.records.into_iter().next().unwrap()).unwrap();
        assert_eq!((record.kind, record.has_expired, record.new.is_none()), (EventKind::Remove, true, true));
        assert_eq!(record.sequence, "4421584500000000017450439091");
        assert_eq!(record.written_at, Some(1_794_701_100));
        let old = record.old.unwrap();
        assert_eq!(old["rv"].as_n().unwrap(), "3");
        assert!(old["pu"].as_m().unwrap()["1"].as_m().unwrap().contains_key("n"));
    }
}
