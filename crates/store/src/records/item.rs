use std::collections::BTreeMap;
use std::fmt;

use tollgate_core::Tick;

/// The fields of a record, by name.
pub type Fields = BTreeMap<String, Value>;

/// The part behind the `/` of a partition whose records are secret.
pub const SECRET_PARTITION: &str = "SECRET";

/// The key of a record.
///
/// # Examples
///
/// ```
/// use tollgate_store::records::ItemKey;
///
/// let key = ItemKey::new("app/ENTITY#user-1", "#META");
/// assert_eq!((key.namespace(), key.is_secret()), ("app", false));
/// assert!(ItemKey::new("app/SECRET", "#TOKEN").is_secret());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemKey {
    /// The partition. The part before its first `/` is the namespace.
    pub partition: String,
    /// The sort key, which is unique in the partition.
    pub sort: String,
}

/// A record. `Debug` shows no fields of one whose key [is secret](ItemKey::is_secret).
///
/// # Examples
///
/// ```
/// use tollgate_store::records::{Index, Item, ItemKey};
///
/// let item = Item::new(ItemKey::new("app/ENTITY#user-1", "#META"))
///     .with("name", "Ada")
///     .with("children", 2)
///     .with("disabled", false)
///     .indexed(Index::Children, "app/PARENT#org", "user-1");
/// assert_eq!((item.text("name"), item.int("children")), (Some("Ada"), Some(2)));
/// assert!(!item.is_set("disabled"));
/// ```
#[derive(Clone, PartialEq)]
pub struct Item {
    /// Its key.
    pub key: ItemKey,
    /// Its fields.
    pub fields: Fields,
    /// Its places in indexes: at most one in each. Its place in [`Index::Namespace`] is implied.
    pub indexed: Vec<(Index, ItemKey)>,
    /// The time at which it expires. It is not returned from then on, dropped yet or not.
    pub expires: Option<Tick>,
}

/// A value of a field.
///
/// # Examples
///
/// ```
/// use tollgate_store::records::Value;
///
/// assert_eq!(Value::from("text"), Value::Text("text".into()));
/// assert_eq!(Value::from(None::<i64>), Value::Null);
/// let Value::Int(number) = Value::from(7) else { panic!("it is a number") };
/// assert_eq!(number, 7);
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Value {
    /// Known to be no value.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// Text.
    Text(String),
    /// Texts in no order, each once, never none: a set that loses its last member is gone.
    Set(std::collections::BTreeSet<String>),
    /// Values by name.
    Map(Fields),
}

/// An index by which records can be found. It has keys only.
///
/// # Examples
///
/// ```
/// use tollgate_store::records::{Index, Item, ItemKey, Query, Records, Write};
///
/// let store = tollgate_store::Memory::default();
/// let user = ItemKey::new("app/ENTITY#user-1", "#META");
/// let item = Item::new(user.clone()).indexed(Index::Children, "app/PARENT#org", "user-1");
/// store.write(&[Write::Put(item, Vec::new())]).wait()?;
/// let children = store.find(Index::Children, &Query::all("app/PARENT#org")).wait()?;
/// assert_eq!(children.items, [user]);
/// # Ok::<(), tollgate_store::records::RecordsError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Index {
    /// The children of an entity.
    Children,
    /// The records that belong to a resource.
    Resource,
    /// The entities that have limits of their own.
    Custom,
    /// Everything in a namespace: the partition is the namespace, the sort key is the partition of the record.
    Namespace,
}

impl ItemKey {
    /// Returns the key with this partition and sort key.
    pub fn new(partition: impl Into<String>, sort: impl Into<String>) -> ItemKey {
        ItemKey { partition: partition.into(), sort: sort.into() }
    }

    /// Returns the namespace: the part before the first `/` of the partition.
    pub fn namespace(&self) -> &str {
        self.partition.split('/').next().unwrap_or_default()
    }

    /// Returns true if the fields of the record must never be shown: its partition is `{namespace}/SECRET`.
    pub fn is_secret(&self) -> bool {
        self.partition.split_once('/').is_some_and(|(_, rest)| rest == SECRET_PARTITION)
    }
}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Item { key, fields, indexed, expires } = self;
        let mut shown = f.debug_struct("Item");
        shown.field("key", key);
        if key.is_secret() {
            return shown.finish_non_exhaustive();
        }
        shown.field("fields", fields).field("indexed", indexed).field("expires", expires).finish()
    }
}

impl Item {
    /// Returns a record with no fields.
    pub fn new(key: ItemKey) -> Item {
        Item { key, fields: Fields::new(), indexed: Vec::new(), expires: None }
    }

    /// Sets a field.
    #[must_use]
    pub fn with(mut self, field: impl Into<String>, value: impl Into<Value>) -> Item {
        self.fields.insert(field.into(), value.into());
        self
    }

    /// Adds a place in an index.
    #[must_use]
    pub fn indexed(mut self, index: Index, partition: impl Into<String>, sort: impl Into<String>) -> Item {
        self.indexed.push((index, ItemKey::new(partition, sort)));
        self
    }

    /// Returns the text of a field, if it is one.
    pub fn text(&self, field: &str) -> Option<&str> {
        match self.fields.get(field)? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the number of a field, if it is one.
    pub fn int(&self, field: &str) -> Option<i64> {
        match self.fields.get(field)? {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// Returns true if a field exists and is true.
    pub fn is_set(&self, field: &str) -> bool {
        self.fields.get(field) == Some(&Value::Bool(true))
    }

    /// Returns true if the record has expired at `now`.
    pub fn has_expired(&self, now: Tick) -> bool {
        self.expires.is_some_and(|expires| expires <= now)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.into())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Value {
        Value::Text(text)
    }
}

impl From<i64> for Value {
    fn from(number: i64) -> Value {
        Value::Int(number)
    }
}

impl From<bool> for Value {
    fn from(yes: bool) -> Value {
        Value::Bool(yes)
    }
}

impl From<Fields> for Value {
    fn from(fields: Fields) -> Value {
        Value::Map(fields)
    }
}

/// `None` becomes [`Value::Null`].
impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Value {
        value.map_or(Value::Null, Into::into)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_what_a_record_says_unless_it_is_secret() {
        let shown = |partition: &str| {
            format!("{:?}", Item::new(ItemKey::new(partition, "#A")).with("current", "hidden"))
        };
        assert!(!shown("ns/SECRET").contains("hidden") && shown("ns/SECRET").contains("ns/SECRET"));
        assert!(shown("ns/SECRETS").contains("hidden"));
        assert!(shown("SECRET").contains("hidden"));
    }
}
