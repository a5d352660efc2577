//! A shared limit set as a record: its revision, its limits as text, and what was said last about each name.

use std::collections::BTreeMap;

use tollgate_core::{Calendar, Limits, Resets};
use tollgate_store::records::{Fields, Item, Test, Value, Write};

use super::{LastStatement, SharedSet, StatedHow};
use crate::{CatalogError, Result};

const REVISION: &str = "revision";
const LIMITS: &str = "limits";
const SAID: &str = "said";

const WORDS: [(StatedHow, &str); 3] =
    [(StatedHow::Opened, "opened"), (StatedHow::Replaced, "replaced"), (StatedHow::Removed, "removed")];

impl SharedSet {
    /// The set that a record says, if there is one. `named` are the limits that the reader names itself: they may have
    /// calendars that only their program knows.
    ///
    /// # Errors
    ///
    /// [`CatalogError::BadRecord`] for a record that says something else.
    pub fn read(&self, item: Option<&Item>, named: &Limits) -> Result<SharedSet> {
        let Some(item) = item else { return Ok(SharedSet::empty(self.key.clone())) };
        let bad = |why: String| CatalogError::bad_record(&item.key, why);
        let revision = item.int(REVISION).and_then(|number| u64::try_from(number).ok());
        let revision = revision.ok_or_else(|| bad("it has no revision".into()))?;
        let text = item.text(LIMITS).ok_or_else(|| bad("it has no limits".into()))?;
        let limits =
            Limits::from_text(text, &|text| calendar(named, text)).map_err(|why| bad(why.to_string()))?;
        let said =
            said_from(item).ok_or_else(|| bad("it does not say which versions its limits are of".into()))?;
        Ok(SharedSet { key: self.key.clone(), revision, limits, said })
    }

    /// The set that a record says, for a reader that names no limits itself.
    ///
    /// # Errors
    ///
    /// As [`read`](SharedSet::read).
    pub fn of_record(item: &Item) -> Result<SharedSet> {
        let none = SharedSet::empty(item.key.clone());
        none.read(Some(item), &none.limits)
    }

    /// Writes the set, if it is still as it was `before`.
    pub fn write_after(&self, before: &SharedSet) -> Write {
        let test = match before.revision {
            0 => Test::Absent,
            revision => Test::Is(REVISION.into(), number(revision)),
        };
        Write::Put(self.item(), vec![test])
    }

    fn item(&self) -> Item {
        let words = |said: &LastStatement| {
            let word = WORDS.iter().find(|(how, _)| *how == said.how).map_or("", |(_, word)| *word);
            Value::from(format!("{} {word}", said.version))
        };
        let said: Fields = self.said.iter().map(|(name, said)| (name.clone(), words(said))).collect();
        let item = Item::new(self.key.clone()).with(REVISION, number(self.revision));
        item.with(LIMITS, self.limits.to_text()).with(SAID, said)
    }
}

fn number(revision: u64) -> Value {
    Value::Int(i64::try_from(revision).unwrap_or(i64::MAX))
}

fn calendar(named: &Limits, text: &str) -> Option<Calendar> {
    let own = named.iter().find_map(|limit| match limit.resets() {
        Some(Resets::Calendar(calendar)) if calendar.text() == text => Some(calendar.clone()),
        _ => None,
    });
    own.or_else(|| tollgate_calendar::parse(text).ok())
}

fn said_from(item: &Item) -> Option<BTreeMap<String, LastStatement>> {
    let Some(Value::Map(fields)) = item.fields.get(SAID) else { return None };
    let said = |value: &Value| {
        let Value::Text(text) = value else { return None };
        let (version, word) = text.split_once(' ')?;
        let (how, _) = WORDS.iter().find(|(_, known)| *known == word)?;
        Some(LastStatement { version: version.parse().ok()?, how: *how })
    };
    fields.iter().map(|(name, value)| Some((name.clone(), said(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Limit, Name};

    use super::super::Opening;
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_nothing_else_is_taken_for_one() {
        let limits = Limits::new([
            Limit::per_day("rpd", 10),
            Limit::resource("slots", 2),
            Limit::quota("spend", 5, tollgate_calendar::parse("0 0 * * * Europe/Berlin").expect("valid")),
        ]);
        let limits = limits.expect("they are valid");
        let removed = [Name::new("gone").expect("a name")];
        let opening = Opening { limits: &limits, removed: &removed, version: 3 };
        let none = SharedSet::new("ns", "a/b");
        let set = none.joined(&opening).expect("they fit").expect("it is new");
        let set = set.replacing(Limit::per_day("rpd", 4).build().expect("valid")).expect("it is there");
        let item = set.item();
        assert_eq!(set.read(Some(&item), &limits), Ok(set.clone()));
        assert_eq!(set.read(None, &limits), Ok(none));
        assert_eq!(SharedSet::of_record(&item).map(|read| read.name().to_owned()), Ok("a/b".into()));
        assert_eq!(SharedSet::of_record(&item), Ok(set.clone()));
        for field in [REVISION, LIMITS, SAID] {
            let mut broken = item.clone();
            broken.fields.insert(field.into(), Value::from("x"));
            assert!(set.read(Some(&broken), &limits).is_err(), "{field}");
        }
    }
}
