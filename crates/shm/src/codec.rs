//! Encodes records and outcomes of calls.

use std::collections::BTreeSet;

use tollgate_core::Tick;
use tollgate_store::records::{Fields, Index, Item, ItemKey, Value};
use tollgate_store::{StepOutcome, Taken};

/// How deep the values of a record may be nested.
const DEPTH_MAX: u32 = 64;

/// The expiry of a record that never expires.
const NEVER: u64 = u64::MAX;

/// Reads bytes from the front.
struct RecordReader<'a>(&'a [u8]);

impl<'a> RecordReader<'a> {
    fn chunk<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (chunk, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*chunk)
    }

    fn byte(&mut self) -> Option<u8> {
        self.chunk().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u64> {
        self.chunk().map(u64::from_be_bytes)
    }

    fn count(&mut self) -> Option<u32> {
        self.chunk().map(u32::from_be_bytes)
    }

    fn text(&mut self) -> Option<&'a str> {
        let len = self.count()? as usize;
        let (text, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        str::from_utf8(text).ok()
    }
}

fn put_count(out: &mut Vec<u8>, count: usize) -> Option<()> {
    out.extend(u32::try_from(count).ok()?.to_be_bytes());
    Some(())
}

fn put_text(out: &mut Vec<u8>, text: &str) -> Option<()> {
    put_count(out, text.len())?;
    out.extend(text.as_bytes());
    Some(())
}

/// Returns the number of an index in the memory. [`Index::Namespace`] has none: it is the order of the records
/// themselves.
pub(crate) fn index_number(index: Index) -> u8 {
    match index {
        Index::Namespace => 0,
        Index::Children => 1,
        Index::Resource => 2,
        Index::Custom => 3,
    }
}

const INDEXES: [Index; 3] = [Index::Children, Index::Resource, Index::Custom];

/// Encodes a record without its key: its expiry, its index entries, its fields. Returns `None` if it is too large, or
/// if this version cannot encode a value.
pub(crate) fn item_bytes(item: &Item) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(64);
    out.extend(item.expires.map_or(NEVER, Tick::as_micros).to_be_bytes());
    put_count(&mut out, item.indexed.len())?;
    for (index, place) in &item.indexed {
        out.push(index_number(*index));
        put_text(&mut out, &place.partition)?;
        put_text(&mut out, &place.sort)?;
    }
    put_fields(&mut out, &item.fields, 0)?;
    Some(out)
}

/// Decodes a record; `None` if the bytes are damaged.
pub(crate) fn item_from(key: ItemKey, bytes: &[u8]) -> Option<Item> {
    let mut reader = RecordReader(bytes);
    let expires = expires(bytes)?;
    reader.number()?;
    let mut indexed = Vec::new();
    for _ in 0..reader.count()? {
        let number = reader.byte()?;
        let index = INDEXES.into_iter().find(|index| index_number(*index) == number)?;
        indexed.push((index, ItemKey::new(reader.text()?, reader.text()?)));
    }
    let fields = fields(&mut reader, 0)?;
    reader.0.is_empty().then_some(Item { key, fields, indexed, expires })
}

/// Decodes the expiry of a record.
pub(crate) fn expires(bytes: &[u8]) -> Option<Option<Tick>> {
    let expires = u64::from_be_bytes(*bytes.first_chunk()?);
    Some(Some(expires).filter(|expires| *expires != NEVER).map(Tick::from_micros))
}

fn put_fields(out: &mut Vec<u8>, fields: &Fields, depth: u32) -> Option<()> {
    put_count(out, fields.len())?;
    for (name, value) in fields {
        put_text(out, name)?;
        put_value(out, value, depth)?;
    }
    Some(())
}

fn put_value(out: &mut Vec<u8>, value: &Value, depth: u32) -> Option<()> {
    if depth > DEPTH_MAX {
        return None;
    }
    match value {
        Value::Null => out.push(b'-'),
        Value::Bool(false) => out.push(b'n'),
        Value::Bool(true) => out.push(b'y'),
        Value::Int(number) => {
            out.push(b'i');
            out.extend(number.to_be_bytes());
        }
        Value::Text(text) => {
            out.push(b't');
            put_text(out, text)?;
        }
        Value::Set(members) => {
            out.push(b's');
            put_count(out, members.len())?;
            members.iter().try_for_each(|member| put_text(out, member))?;
        }
        Value::Map(fields) => {
            out.push(b'm');
            put_fields(out, fields, depth + 1)?;
        }
        _ => return None,
    }
    Some(())
}

fn fields(reader: &mut RecordReader<'_>, depth: u32) -> Option<Fields> {
    let mut fields = Fields::new();
    for _ in 0..reader.count()? {
        let name = reader.text()?.to_owned();
        fields.insert(name, value(reader, depth)?);
    }
    Some(fields)
}

fn value(reader: &mut RecordReader<'_>, depth: u32) -> Option<Value> {
    if depth > DEPTH_MAX {
        return None;
    }
    Some(match reader.byte()? {
        b'-' => Value::Null,
        b'n' => Value::Bool(false),
        b'y' => Value::Bool(true),
        b'i' => Value::Int(reader.number()? as i64),
        b't' => Value::Text(reader.text()?.into()),
        b's' => {
            let mut members = BTreeSet::new();
            for _ in 0..reader.count()? {
                members.insert(reader.text()?.to_owned());
            }
            Value::Set(members)
        }
        b'm' => Value::Map(fields(reader, depth + 1)?),
        _ => return None,
    })
}

/// Encodes the time and the outcome of a call; `None` if this version cannot encode a step.
pub(crate) fn encode_outcome(at: Tick, done: &[StepOutcome]) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(8 + 13 * done.len());
    out.extend(at.as_micros().to_be_bytes());
    for done in done {
        match done {
            StepOutcome::Taken(Taken { at, warnings }) => {
                out.push(b't');
                out.extend(at.as_micros().to_be_bytes());
                out.extend(warnings.to_be_bytes());
            }
            StepOutcome::Settled => out.push(b's'),
            StepOutcome::Changed => out.push(b'c'),
            StepOutcome::Renewed(true) => out.push(b'y'),
            StepOutcome::Renewed(false) => out.push(b'n'),
            _ => return None,
        }
    }
    Some(out)
}

/// Decodes the time and the outcome of a call.
pub(crate) fn decode_outcome(bytes: &[u8]) -> Option<(Tick, Vec<StepOutcome>)> {
    let mut reader = RecordReader(bytes);
    let at = Tick::from_micros(reader.number()?);
    let mut outcome = Vec::new();
    while !reader.0.is_empty() {
        outcome.push(match reader.byte()? {
            b't' => {
                let at = Tick::from_micros(reader.number()?);
                StepOutcome::Taken(Taken { at, warnings: reader.count()? })
            }
            b's' => StepOutcome::Settled,
            b'c' => StepOutcome::Changed,
            b'y' => StepOutcome::Renewed(true),
            b'n' => StepOutcome::Renewed(false),
            _ => return None,
        });
    }
    Some((at, outcome))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_of_a_call_is_read_as_it_was_written() {
        let taken = StepOutcome::Taken(Taken { at: Tick::MAX, warnings: u32::MAX });
        let done = [
            taken,
            StepOutcome::Settled,
            StepOutcome::Changed,
            StepOutcome::Renewed(true),
            StepOutcome::Renewed(false),
        ];
        let bytes = encode_outcome(Tick::from_secs(7), &done).unwrap();
        assert_eq!(decode_outcome(&bytes).unwrap(), (Tick::from_secs(7), done.to_vec()));
        for len in [0, 7, 9, 20] {
            assert_eq!(decode_outcome(&bytes[..len]), None, "{len}");
        }
    }

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else_is_one() {
        let set = Value::Set(["b".to_owned(), "a\"\n\0".to_owned()].into());
        let inner: Fields = [("x".to_owned(), Value::Null), ("set".to_owned(), set.clone())].into();
        let mut item = Item::new(ItemKey::new("ns/ENTITY#ü", "#META"))
            .with("text", "naïve \u{10FFFF}")
            .with("least", i64::MIN)
            .with("yes", true)
            .with("no", false)
            .with("map", inner)
            .with("set", set)
            .indexed(Index::Children, "p", "s")
            .indexed(Index::Custom, "", "%");
        for expires in [None, Some(Tick::ZERO), Some(Tick::from_secs(1))] {
            item.expires = expires;
            let bytes = item_bytes(&item).unwrap();
            assert_eq!(item_from(item.key.clone(), &bytes), Some(item.clone()));
            for len in 0..bytes.len() {
                assert_eq!(item_from(item.key.clone(), &bytes[..len]), None, "{len}");
            }
        }
    }

    #[test]
    fn values_that_are_too_deep_are_refused() {
        let deep = (0..200).fold(Value::Null, |inner, _| Value::Map([("x".to_owned(), inner)].into()));
        assert_eq!(item_bytes(&Item::new(ItemKey::new("p", "s")).with("deep", deep)), None);
    }
}
