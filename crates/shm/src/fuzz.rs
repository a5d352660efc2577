//! Fuzzing of records and outcomes in shared memory, which other processes may write to.

use tollgate_store::records::ItemKey;

use crate::codec::{decode_outcome, encode_outcome, item_bytes, item_from};

#[cfg(test)]
#[path = "../../../fuzz/driver.rs"]
mod driver;

/// Decodes a record. An accepted record is equal to that of its own bytes.
///
/// # Panics
///
/// If that is not so.
pub fn record(data: &[u8]) {
    let key = ItemKey::new("partition", "sort");
    let Some(item) = item_from(key.clone(), data) else { return };
    let bytes = item_bytes(&item).expect("what was read can be written");
    assert_eq!(item_from(key, &bytes), Some(item));
}

/// Decodes the outcome of a call. An accepted outcome is encoded as the same bytes.
///
/// # Panics
///
/// If that is not so.
pub fn outcome(data: &[u8]) {
    let Some((at, outcome)) = decode_outcome(data) else { return };
    assert_eq!(encode_outcome(at, &outcome).as_deref(), Some(data));
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::Tick;
    use tollgate_store::records::{Fields, Index, Item, Value};

    #[test]
    fn any_bytes_are_a_record_or_none() {
        let map = Fields::from([("e".to_owned(), Value::Null), ("f".to_owned(), Value::Bool(true))]);
        let mut fields =
            Fields::from([("a".to_owned(), Value::Int(-1)), ("b".to_owned(), Value::Text("text".into()))]);
        fields.insert("c".into(), Value::Map(map));
        let indexed = vec![(Index::Resource, ItemKey::new("p", "s"))];
        let item = Item { key: ItemKey::new("p", "s"), fields, indexed, expires: Some(Tick::from_secs(5)) };
        driver::run(record, &[&item_bytes(&item).unwrap()]);
    }

    #[test]
    fn any_bytes_are_an_outcome_or_none() {
        driver::run(outcome, &[b"\0\0\0\0\0\0\0\x07t\0\0\0\0\0\0\0\x09\0\0\0\x01scyn"]);
    }
}
