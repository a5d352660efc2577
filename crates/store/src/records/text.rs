//! Records as text: JSON that people can read.

use serde_json::{Map, Number, Value as Json};
use tollgate_core::Tick;

use super::{Fields, Index, Item, ItemKey, Value};

/// Returns the number of an index in stored text. [`Index::Namespace`] has none: it is the order of the records themselves.
pub fn index_number(index: Index) -> i64 {
    match index {
        Index::Namespace => 0,
        Index::Children => 1,
        Index::Resource => 2,
        Index::Custom => 3,
    }
}

const INDEXES: [Index; 3] = [Index::Children, Index::Resource, Index::Custom];

/// Returns a record without its key, as JSON that people can read: sets are arrays, maps are objects.
pub fn item_text(item: &Item) -> String {
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

/// Returns the record of a text; `None` if the text is not one of a record.
pub fn item_from(key: ItemKey, text: &str) -> Option<Item> {
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
    let fields = fields.iter().map(|(name, value)| (name.clone(), value_json(value)));
    Json::Object(fields.collect())
}

fn value_json(value: &Value) -> Json {
    match value {
        Value::Null => Json::Null,
        Value::Bool(yes) => Json::Bool(*yes),
        Value::Int(number) => Json::Number(Number::from(*number)),
        Value::Text(text) => Json::String(text.clone()),
        Value::Set(members) => members.iter().map(|member| Json::String(member.clone())).collect(),
        Value::Map(fields) => json_of(fields),
    }
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
