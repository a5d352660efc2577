//! The record of a shared limit set: its revision, its limits as text, and the last statement about
//! each name.

use std::collections::BTreeMap;

use tollgate_core::{Calendar, Limits, Resets};
use tollgate_store::records::{Fields, Item, Test, Value, Write};

use super::{LastStatement, SharedSet, StatementKind};
use crate::{CatalogError, Result};

const REVISION: &str = "revision";
const LIMITS: &str = "limits";
const STATEMENTS: &str = "said";

const KIND_NAMES: [(StatementKind, &str); 3] = [
    (StatementKind::Opened, "opened"),
    (StatementKind::Replaced, "replaced"),
    (StatementKind::Removed, "removed"),
];

impl SharedSet {
    /// Reads the set of a record, if there is one. `named` are the limits of the reader, which may
    /// have calendars that only its program knows.
    ///
    /// # Errors
    ///
    /// [`CatalogError::BadRecord`] for a record that is not a shared set.
    pub fn read(&self, item: Option<&Item>, named: &Limits) -> Result<SharedSet> {
        let Some(item) = item else { return Ok(SharedSet::empty(self.key.clone())) };
        let bad = |why: String| CatalogError::bad_record(&item.key, why);
        let revision = item.int(REVISION).and_then(|number| u64::try_from(number).ok());
        let revision = revision.ok_or_else(|| bad("it has no revision".into()))?;
        let text = item.text(LIMITS).ok_or_else(|| bad("it has no limits".into()))?;
        let limits =
            Limits::from_text(text, &|text| calendar(named, text)).map_err(|why| bad(why.to_string()))?;
        let statements = statements_of(item).ok_or_else(|| bad("it has no versions of its limits".into()))?;
        Ok(SharedSet { key: self.key.clone(), revision, limits, statements })
    }

    /// Reads the set of a record, for a reader without limits of its own.
    ///
    /// # Errors
    ///
    /// As [`read`](SharedSet::read).
    pub fn of_record(item: &Item) -> Result<SharedSet> {
        let none = SharedSet::empty(item.key.clone());
        none.read(Some(item), &none.limits)
    }

    /// Returns the write of the set on condition that the record is still that of `before`.
    pub fn write_after(&self, before: &SharedSet) -> Write {
        let test = match before.revision {
            0 => Test::Absent,
            revision => Test::Is(REVISION.into(), number(revision)),
        };
        Write::Put(self.item(), vec![test])
    }

    fn item(&self) -> Item {
        let encode = |statement: &LastStatement| {
            let kind =
                KIND_NAMES.iter().find(|(kind, _)| *kind == statement.kind).map_or("", |(_, name)| *name);
            Value::from(format!("{} {kind}", statement.version))
        };
        let statements: Fields =
            self.statements.iter().map(|(name, statement)| (name.clone(), encode(statement))).collect();
        let item = Item::new(self.key.clone()).with(REVISION, number(self.revision));
        item.with(LIMITS, self.limits.to_text()).with(STATEMENTS, statements)
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

fn statements_of(item: &Item) -> Option<BTreeMap<String, LastStatement>> {
    let Some(Value::Map(fields)) = item.fields.get(STATEMENTS) else { return None };
    let decode = |value: &Value| {
        let Value::Text(text) = value else { return None };
        let (version, name) = text.split_once(' ')?;
        let (kind, _) = KIND_NAMES.iter().find(|(_, known)| *known == name)?;
        Some(LastStatement { version: version.parse().ok()?, kind: *kind })
    };
    fields.iter().map(|(name, value)| Some((name.clone(), decode(value)?))).collect()
}

#[cfg(test)]
mod tests {
    use tollgate_core::{Limit, Name};

    use super::super::Opening;
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written_and_other_records_are_refused() {
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
        for field in [REVISION, LIMITS, STATEMENTS] {
            let mut broken = item.clone();
            broken.fields.insert(field.into(), Value::from("x"));
            assert!(set.read(Some(&broken), &limits).is_err(), "{field}");
        }
    }
}
