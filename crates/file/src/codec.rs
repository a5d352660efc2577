//! What is kept in the file beside limits and buckets, which have forms of their own: usage, what came of calls, records.

use serde_json::{Map, Number, Value as Json};
use tollgate_core::{Limits, Tick};
use tollgate_store::records::{Fields, Index, Item, ItemKey, Value};
use tollgate_store::usage::Sums;
use tollgate_store::{Done, Taken};

/// A tick as a column; the far end of time is as far as a column goes.
pub(crate) fn column(tick: Tick) -> i64 {
    i64::try_from(tick.as_micros()).unwrap_or(i64::MAX)
}

/// Sums that are counted in the limits with this id: the id, the hour, the events, then an amount for each limit.
pub(crate) fn usage_bytes(limits: i64, sums: &Sums) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(16 + 8 * sums.amounts().len());
    bytes.extend(limits.to_le_bytes());
    bytes.extend(sums.hour().to_le_bytes());
    bytes.extend(sums.events().to_le_bytes());
    sums.amounts().iter().for_each(|amount| bytes.extend(amount.to_le_bytes()));
    bytes
}

/// The id of the limits that sums are counted in.
pub(crate) fn usage_limits(bytes: &[u8]) -> Option<i64> {
    bytes.first_chunk().map(|id| i64::from_le_bytes(*id))
}

/// The sums, given the limits they are counted in.
pub(crate) fn usage_from(limits: Limits, bytes: &[u8]) -> Option<Sums> {
    let (hour, rest) = bytes.get(8..)?.split_first_chunk()?;
    let (events, rest) = rest.split_first_chunk()?;
    let (amounts, []) = rest.as_chunks() else { return None };
    let amounts: Vec<i64> = amounts.iter().map(|amount| i64::from_le_bytes(*amount)).collect();
    Sums::restored(limits, u32::from_le_bytes(*hour), u32::from_le_bytes(*events), &amounts)
}

const TAKEN: u8 = 1;
const SETTLED: u8 = 2;
const CHANGED: u8 = 3;
const RENEWED: u8 = 4;
const NOT_RENEWED: u8 = 5;

/// What came of the steps of a call; `None` if this version has no form for one of them.
pub(crate) fn outcome_bytes(done: &[Done]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(13 * done.len());
    for done in done {
        match done {
            Done::Taken(Taken { at, remarks }) => {
                bytes.push(TAKEN);
                bytes.extend(at.as_micros().to_le_bytes());
                bytes.extend(remarks.to_le_bytes());
            }
            Done::Settled => bytes.push(SETTLED),
            Done::Changed => bytes.push(CHANGED),
            Done::Renewed(known) => bytes.push(if *known { RENEWED } else { NOT_RENEWED }),
            _ => return None,
        }
    }
    Some(bytes)
}

pub(crate) fn outcome_from(mut bytes: &[u8]) -> Option<Vec<Done>> {
    let mut outcome = Vec::new();
    while let Some((kind, rest)) = bytes.split_first() {
        bytes = rest;
        outcome.push(match *kind {
            TAKEN => {
                let (at, rest) = bytes.split_first_chunk()?;
                let (remarks, rest) = rest.split_first_chunk()?;
                bytes = rest;
                let at = Tick::from_micros(u64::from_le_bytes(*at));
                Done::Taken(Taken { at, remarks: u32::from_le_bytes(*remarks) })
            }
            SETTLED => Done::Settled,
            CHANGED => Done::Changed,
            RENEWED => Done::Renewed(true),
            NOT_RENEWED => Done::Renewed(false),
            _ => return None,
        });
    }
    Some(outcome)
}

/// The number that an index has in the file. [`Index::Namespace`] has none: it is the order of the records themselves.
pub(crate) fn index_number(index: Index) -> i64 {
    match index {
        Index::Namespace => 0,
        Index::Children => 1,
        Index::Resource => 2,
        Index::Custom => 3,
    }
}

const INDEXES: [Index; 3] = [Index::Children, Index::Resource, Index::Custom];

/// A record without its key, as JSON that people can read: sets are arrays, maps are objects.
pub(crate) fn item_text(item: &Item) -> String {
    let place = |(index, key): &(Index, ItemKey)| {
        Json::Array(vec![
            index_number(*index).into(),
            key.partition.as_str().into(),
            key.sort.as_str().into(),
        ])
    };
    let mut body = Map::new();
    body.insert("fields".into(), json_of(&item.fields));
    if !item.indexed.is_empty() {
        body.insert("indexed".into(), item.indexed.iter().map(place).collect());
    }
    if let Some(expires) = item.expires {
        body.insert("expires".into(), expires.as_micros().into());
    }
    Json::Object(body).to_string()
}

/// The record that a text says; `None` if it says none.
pub(crate) fn item_from(key: ItemKey, text: &str) -> Option<Item> {
    let Json::Object(mut body) = serde_json::from_str(text).ok()? else { return None };
    let Some(Value::Map(fields)) = value_from(body.remove("fields")?) else { return None };
    let indexed = match body.remove("indexed") {
        None => Vec::new(),
        Some(Json::Array(places)) => places.iter().map(place_from).collect::<Option<_>>()?,
        Some(_) => return None,
    };
    let expires = match body.remove("expires") {
        None => None,
        Some(expires) => Some(Tick::from_micros(expires.as_u64()?)),
    };
    Some(Item { key, fields, indexed, expires })
}

fn place_from(place: &Json) -> Option<(Index, ItemKey)> {
    let [number, partition, sort] = place.as_array()?.as_slice() else { return None };
    let number = number.as_i64()?;
    let index = INDEXES.into_iter().find(|index| index_number(*index) == number)?;
    Some((index, ItemKey::new(partition.as_str()?, sort.as_str()?)))
}

fn json_of(fields: &Fields) -> Json {
    let fields = fields.iter().filter_map(|(name, value)| Some((name.clone(), value_json(value)?)));
    Json::Object(fields.collect())
}

/// `None` for a kind of value that this version does not know.
fn value_json(value: &Value) -> Option<Json> {
    Some(match value {
        Value::Null => Json::Null,
        Value::Bool(yes) => Json::Bool(*yes),
        Value::Int(number) => Json::Number(Number::from(*number)),
        Value::Text(text) => Json::String(text.clone()),
        Value::Set(members) => members.iter().map(|member| Json::String(member.clone())).collect(),
        Value::Map(fields) => json_of(fields),
        _ => return None,
    })
}

fn value_from(json: Json) -> Option<Value> {
    Some(match json {
        Json::Null => Value::Null,
        Json::Bool(yes) => Value::Bool(yes),
        Json::Number(number) => Value::Int(number.as_i64()?),
        Json::String(text) => Value::Text(text),
        Json::Array(members) => {
            let text = |member: Json| if let Json::String(text) = member { Some(text) } else { None };
            Value::Set(members.into_iter().map(text).collect::<Option<_>>()?)
        }
        Json::Object(fields) => {
            let field = |(name, json): (String, Json)| Some((name, value_from(json)?));
            Value::Map(fields.into_iter().map(field).collect::<Option<_>>()?)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::{Limit, demand};

    #[test]
    fn usage_is_read_as_it_was_written() {
        let limits = Limits::new([Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 100)]).unwrap();
        let mut sums = Sums::new(&limits, Tick::from_secs(1_800_000_000));
        sums.add_take(&limits.costs(&demand! { rpm: 1, tpm: 70 }).unwrap());
        let bytes = usage_bytes(-7, &sums);
        assert_eq!(usage_limits(&bytes), Some(-7));
        assert_eq!(usage_from(limits.clone(), &bytes), Some(sums));
        for len in 0..bytes.len() {
            assert_eq!(usage_from(limits.clone(), &bytes[..len]), None);
        }
    }

    #[test]
    fn what_came_of_a_call_is_read_as_it_was_written() {
        let taken = Done::Taken(Taken { at: Tick::MAX, remarks: u32::MAX });
        let done = [taken, Done::Settled, Done::Changed, Done::Renewed(true), Done::Renewed(false)];
        let bytes = outcome_bytes(&done).unwrap();
        assert_eq!(outcome_from(&bytes).unwrap(), done);
        assert_eq!(outcome_from(&bytes[..5]), None);
        assert_eq!(outcome_from(&[9]), None);
        assert_eq!(outcome_from(&[]), Some(Vec::new()));
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let set = Value::Set(["b".to_owned(), "a\"\n\0".to_owned()].into());
        let inner: Fields = [("x".to_owned(), Value::Null), ("set".to_owned(), set.clone())].into();
        let mut item = Item::new(ItemKey::new("ns/ENTITY#ü", "#META"))
            .with("text", "naïve \u{10FFFF}")
            .with("least", i64::MIN)
            .with("most", i64::MAX)
            .with("yes", true)
            .with("map", inner)
            .with("set", set)
            .indexed(Index::Children, "p", "s")
            .indexed(Index::Custom, "", "%");
        for expires in [None, Some(Tick::ZERO), Some(Tick::MAX)] {
            item.expires = expires;
            assert_eq!(item_from(item.key.clone(), &item_text(&item)), Some(item.clone()));
        }
        for damaged in
            ["", "[]", "{}", "{\"fields\":[]}", "{\"fields\":{\"x\":1.5}}", "{\"fields\":{\"x\":[1]}}"]
        {
            assert_eq!(item_from(item.key.clone(), damaged), None, "{damaged}");
        }
    }
}
