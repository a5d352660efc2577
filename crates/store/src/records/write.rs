use tollgate_core::Tick;

use super::{Fields, Index, Item, ItemKey, Value};

/// One write, made only if all its tests hold. A record that has expired counts as absent.
///
/// # Examples
///
/// ```
/// use tollgate_store::Memory;
/// use tollgate_store::records::{Change, Item, ItemKey, Records, Test, Write};
///
/// let (store, key) = (Memory::default(), ItemKey::new("app/JOBS", "7"));
/// store.write(&[Write::Put(Item::new(key.clone()).with("state", "open"), Vec::new())]).wait()?;
/// // Only one of the callers that try it closes the job.
/// let is_open = Test::Is("state".into(), "open".into());
/// let close = [Write::Change(key, vec![Change::Set("state".into(), "closed".into())], vec![is_open])];
/// assert!(store.write(&close).wait().is_ok() && store.write(&close).wait().is_err());
/// # Ok::<(), tollgate_store::records::RecordsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Write {
    /// Puts a record, in place of any that exists.
    Put(Item, Vec<Test>),
    /// Changes a record, which is made if it does not exist.
    Change(ItemKey, Vec<Change>, Vec<Test>),
    /// Deletes a record, if it exists.
    Delete(ItemKey, Vec<Test>),
    /// Only tests a record that stays as it is.
    Check(ItemKey, Vec<Test>),
}

/// A change to a record.
///
/// # Examples
///
/// ```
/// use tollgate_store::records::{Change, ItemKey, Write};
///
/// let changes = vec![Change::Add("calls".into(), 2), Change::Include("regions".into(), "eu".into())];
/// let write = Write::Change(ItemKey::new("app/USAGE", "a"), changes, Vec::new());
/// let once = write.applied(None).expect("it is made");
/// let twice = write.applied(Some(once)).expect("it is there");
/// assert_eq!(twice.int("calls"), Some(4));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Change {
    /// Sets a field.
    Set(String, Value),
    /// Removes a field.
    Remove(String),
    /// Adds to a number, which is 0 if it does not exist.
    Add(String, i64),
    /// Adds a member to a set.
    Include(String, String),
    /// Removes a member from a set.
    Exclude(String, String),
    /// Sets the place of the record in an index.
    Place(Index, ItemKey),
    /// Removes the record from an index.
    Displace(Index),
    /// Sets the time at which the record expires.
    Expire(Option<Tick>),
}

/// A test of a record as it was before the write.
///
/// # Examples
///
/// ```
/// use tollgate_store::records::{Item, ItemKey, Test, Write};
///
/// let key = ItemKey::new("app/ENTITY#org", "#META");
/// let has_no_children = vec![Test::Exists, Test::AtMost("children".into(), 0)];
/// let delete = Write::Delete(key.clone(), has_no_children);
/// assert!(delete.passes(Some(&Item::new(key.clone()))));
/// assert!(!delete.passes(Some(&Item::new(key).with("children", 1))));
/// assert!(!delete.passes(None));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Test {
    /// The record exists.
    Exists,
    /// The record does not exist.
    Absent,
    /// The field has this value.
    Is(String, Value),
    /// The number is not larger; one that does not exist is 0.
    AtMost(String, i64),
}

impl Write {
    /// Returns the key of the record.
    pub fn key(&self) -> &ItemKey {
        match self {
            Write::Put(item, _) => &item.key,
            Write::Change(key, ..) | Write::Delete(key, _) | Write::Check(key, _) => key,
        }
    }

    /// Returns the tests that must hold.
    pub fn tests(&self) -> &[Test] {
        match self {
            Write::Put(_, tests) | Write::Change(_, _, tests) => tests,
            Write::Delete(_, tests) | Write::Check(_, tests) => tests,
        }
    }

    /// Returns true if every test holds of the record that exists.
    pub fn passes(&self, there: Option<&Item>) -> bool {
        self.tests().iter().all(|test| test.holds(there))
    }

    /// Returns the record after the write; `None` if there is none then. For stores that compute it.
    pub fn applied(&self, there: Option<Item>) -> Option<Item> {
        match self {
            Write::Put(item, _) => Some(item.clone()),
            Write::Delete(..) => None,
            Write::Check(..) => there,
            Write::Change(key, changes, _) => {
                let mut item = there.unwrap_or_else(|| Item::new(key.clone()));
                changes.iter().for_each(|change| change.apply(&mut item));
                Some(item)
            }
        }
    }
}

impl Test {
    fn holds(&self, there: Option<&Item>) -> bool {
        let field = |name: &str| there.and_then(|item| item.fields.get(name));
        match self {
            Test::Exists => there.is_some(),
            Test::Absent => there.is_none(),
            Test::Is(name, value) => field(name) == Some(value),
            Test::AtMost(name, most) => there.and_then(|item| item.int(name)).unwrap_or(0) <= *most,
        }
    }
}

impl Change {
    fn apply(&self, item: &mut Item) {
        match self {
            Change::Set(name, value) => {
                item.fields.insert(name.clone(), value.clone());
            }
            Change::Remove(name) => {
                item.fields.remove(name);
            }
            Change::Add(name, amount) => {
                let sum = item.int(name).unwrap_or(0).saturating_add(*amount);
                item.fields.insert(name.clone(), Value::Int(sum));
            }
            Change::Include(name, member) => include(&mut item.fields, name, member),
            Change::Exclude(name, member) => exclude(&mut item.fields, name, member),
            Change::Place(index, key) => {
                item.indexed.retain(|(other, _)| other != index);
                item.indexed.push((*index, key.clone()));
            }
            Change::Displace(index) => item.indexed.retain(|(other, _)| other != index),
            Change::Expire(expires) => item.expires = *expires,
        }
    }
}

fn include(fields: &mut Fields, name: &str, member: &str) {
    match fields.entry(name.into()).or_insert_with(|| Value::Set(Default::default())) {
        Value::Set(members) => {
            members.insert(member.into());
        }
        other => *other = Value::Set([member.into()].into()),
    }
}

fn exclude(fields: &mut Fields, name: &str, member: &str) {
    if let Some(Value::Set(members)) = fields.get_mut(name) {
        members.remove(member);
        if members.is_empty() {
            fields.remove(name);
        }
    }
}
