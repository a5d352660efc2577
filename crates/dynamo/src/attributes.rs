//! Encoding of records: a field is an attribute of its name.

use std::borrow::Cow;
use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use tollgate_core::Tick;
use tollgate_store::records::{Fields, Index, Item, ItemKey, Value};

use crate::service::Attributes;
use crate::table::{IndexNames, PARTITION, SORT, TTL, index_names};

/// The attribute of the exact expiry, in microseconds. The one that the service uses is rounded up to seconds.
pub(crate) const EXPIRES: &str = "xp";

/// The prefix of the attribute of a field whose name is reserved, so that a resource may be called `ttl`.
const ESCAPE: char = '=';

const PLACES: [Index; 3] = [Index::Children, Index::Resource, Index::Custom];

/// Returns the attribute of a field.
pub(crate) fn attribute_name(field: &str) -> Cow<'_, str> {
    if field.is_empty() || field.starts_with(ESCAPE) || is_taken(field) {
        Cow::Owned(format!("{ESCAPE}{field}"))
    } else {
        Cow::Borrowed(field)
    }
}

/// Returns the field of an attribute; `None` for a reserved attribute.
fn field_name(attribute: String) -> Option<String> {
    match attribute.strip_prefix(ESCAPE) {
        Some(field) => Some(field.into()),
        None => (!is_taken(&attribute)).then_some(attribute),
    }
}

fn is_taken(name: &str) -> bool {
    let of_index = name.strip_prefix("GSI").and_then(|rest| rest.strip_prefix(['1', '2', '3', '4']));
    matches!(name, PARTITION | SORT | TTL | EXPIRES) || matches!(of_index, Some("PK" | "SK"))
}

/// Encodes a key as attributes.
pub(crate) fn key_attributes(key: &ItemKey) -> Attributes {
    HashMap::from([(PARTITION.into(), text(&key.partition)), (SORT.into(), text(&key.sort))])
}

/// Returns the key among attributes.
pub(crate) fn key_of(attributes: &Attributes) -> Option<ItemKey> {
    Some(ItemKey::new(text_of(attributes, PARTITION)?, text_of(attributes, SORT)?))
}

/// Returns the text of an attribute, if it is one.
pub(crate) fn text_of<'a>(attributes: &'a Attributes, name: &str) -> Option<&'a str> {
    attributes.get(name).and_then(|value| value.as_s().ok()).map(String::as_str)
}

/// Encodes a record as attributes.
pub(crate) fn attributes_of(item: &Item) -> Attributes {
    let mut attributes = key_attributes(&item.key);
    attributes.extend(namespace_attributes(&item.key));
    for (index, place) in &item.indexed {
        let IndexNames { partition, sort, .. } = index_names(*index);
        attributes.insert(partition.into(), text(&place.partition));
        attributes.insert(sort.into(), text(&place.sort));
    }
    attributes.extend(item.expires.into_iter().flat_map(expiry_attributes));
    let fields = item.fields.iter();
    attributes.extend(fields.map(|(name, value)| (attribute_name(name).into_owned(), attribute_of(value))));
    attributes
}

/// Returns the key of a record in the index of its namespace.
pub(crate) fn namespace_attributes(key: &ItemKey) -> [(String, AttributeValue); 2] {
    let IndexNames { partition, sort, .. } = index_names(Index::Namespace);
    [(partition.into(), text(key.namespace())), (sort.into(), text(&key.partition))]
}

/// Returns when an item expires: for the service, and exactly.
pub(crate) fn expiry_attributes(expires: Tick) -> [(String, AttributeValue); 2] {
    let micros = expires.as_micros();
    let number = |number: u64| AttributeValue::N(number.to_string());
    [(TTL.into(), number(micros.div_ceil(1_000_000))), (EXPIRES.into(), number(micros))]
}

/// Returns when an item expires. An item of another program may have whole seconds only.
pub(crate) fn expiry_of(attributes: &Attributes) -> Option<Tick> {
    let number = |name: &str| attributes.get(name).and_then(|value| value.as_n().ok()?.parse::<f64>().ok());
    // The exact number is read as such: a float would lose its last digits.
    let exact = attributes.get(EXPIRES).and_then(|value| value.as_n().ok()?.parse::<u64>().ok());
    let whole = || number(TTL).map(|secs| (secs * 1e6) as u64);
    exact.or_else(whole).map(Tick::from_micros)
}

/// Decodes a record; `None` if they have no key.
pub(crate) fn item_of(attributes: Attributes) -> Option<Item> {
    let mut item = Item::new(key_of(&attributes)?);
    item.expires = expiry_of(&attributes);
    for index in PLACES {
        let IndexNames { partition, sort, .. } = index_names(index);
        if let (Some(partition), Some(sort)) = (text_of(&attributes, partition), text_of(&attributes, sort)) {
            item.indexed.push((index, ItemKey::new(partition, sort)));
        }
    }
    let field = |(name, value)| Some((field_name(name)?, value_of(value)));
    item.fields = attributes.into_iter().filter_map(field).collect();
    Some(item)
}

/// Encodes a value as an attribute.
pub(crate) fn attribute_of(value: &Value) -> AttributeValue {
    match value {
        Value::Null => AttributeValue::Null(true),
        Value::Bool(yes) => AttributeValue::Bool(*yes),
        Value::Int(number) => AttributeValue::N(number.to_string()),
        Value::Text(text) => AttributeValue::S(text.clone()),
        Value::Set(members) => AttributeValue::Ss(members.iter().cloned().collect()),
        Value::Map(fields) => AttributeValue::M(
            fields.iter().map(|(name, value)| (name.clone(), attribute_of(value))).collect(),
        ),
        // A kind of value that a later version of the trait has, and this version cannot encode.
        _ => AttributeValue::Null(true),
    }
}

/// Decodes a value. Other programs write kinds that records do not have: a number that is not whole becomes its text, a
/// list a map by position, and binaries become null.
pub(crate) fn value_of(attribute: AttributeValue) -> Value {
    match attribute {
        AttributeValue::Bool(yes) => Value::Bool(yes),
        AttributeValue::N(number) => number_of(number),
        AttributeValue::S(text) => Value::Text(text),
        AttributeValue::Ss(members) | AttributeValue::Ns(members) => {
            Value::Set(members.into_iter().collect())
        }
        AttributeValue::M(fields) => {
            Value::Map(fields.into_iter().map(|(name, value)| (name, value_of(value))).collect())
        }
        AttributeValue::L(values) => {
            let entry = |(position, value): (usize, _)| (position.to_string(), value_of(value));
            Value::Map(values.into_iter().enumerate().map(entry).collect::<Fields>())
        }
        _ => Value::Null,
    }
}

fn number_of(number: String) -> Value {
    if let Ok(whole) = number.parse() {
        return Value::Int(whole);
    }
    match number.parse::<f64>() {
        // The cast saturates at the bounds of the integers of records.
        Ok(float) if float.fract() == 0.0 => Value::Int(float as i64),
        _ => Value::Text(number),
    }
}

fn text(text: &str) -> AttributeValue {
    AttributeValue::S(text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let taken = ["", "=", "==x", "PK", "SK", "ttl", "xp", "GSI1PK", "GSI4SK", "GSI5PK", "GSI1", "x"];
        let mut item = Item::new(ItemKey::new("ns/A", "#1"))
            .with("set", Value::Set(["a".to_owned()].into()))
            .with("map", Fields::from([("ttl".into(), Value::Int(-1)), ("xp".into(), Value::Null)]))
            .with("least", i64::MIN)
            .indexed(Index::Children, "ns/P", "c")
            .indexed(Index::Custom, "ns/C", "c");
        for (number, name) in taken.into_iter().enumerate() {
            item = item.with(name, number as i64);
        }
        for expires in [None, Some(Tick::ZERO), Some(Tick::from_micros(1_500_001)), Some(Tick::MAX)] {
            item.expires = expires;
            let attributes = attributes_of(&item);
            assert_eq!(text_of(&attributes, "GSI4PK"), Some("ns"));
            assert_eq!(text_of(&attributes, "GSI4SK"), Some("ns/A"));
            assert_eq!(item_of(attributes), Some(item.clone()));
        }
    }

    #[test]
    fn the_service_deletes_nothing_early() {
        let [(_, ttl), _] = expiry_attributes(Tick::from_micros(1_500_001));
        assert_eq!(ttl, AttributeValue::N("2".into()));
    }

    #[test]
    fn an_expiry_in_seconds_is_read() {
        for (ttl, expires) in [("1700000000", 1_700_000_000_000_000), ("1.5", 1_500_000)] {
            let attributes = HashMap::from([(TTL.into(), AttributeValue::N(ttl.into()))]);
            assert_eq!(expiry_of(&attributes), Some(Tick::from_micros(expires)));
        }
    }

    #[test]
    fn what_records_have_no_kind_for_is_read_as_well_as_it_goes() {
        let number = |text: &str| value_of(AttributeValue::N(text.into()));
        assert_eq!(number("1.5"), Value::Text("1.5".into()));
        assert_eq!(number("1E+2"), Value::Int(100));
        assert_eq!(number("99999999999999999999"), Value::Int(i64::MAX));
        let list = AttributeValue::L(vec![AttributeValue::Bool(true)]);
        assert_eq!(value_of(list), Value::Map(Fields::from([("0".into(), Value::Bool(true))])));
        let binary = AttributeValue::B(aws_smithy_types::Blob::new(*b"x"));
        assert_eq!(value_of(binary), Value::Null);
    }
}
