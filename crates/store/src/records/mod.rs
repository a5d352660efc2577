//! Records beside buckets, such as entities, stored limits, usage and audit.
//!
//! The model is that of a table with a partition and a sort key, because that is what the largest of the stores has,
//! and the others can provide it with little effort. So what is built on records is written once.

mod check;
mod cursor;
mod item;
#[cfg(feature = "text")]
mod text;
mod write;

use crate::{Reply, StoreError};

pub use check::{check_keys, check_writes};
pub use cursor::Cursor;
pub use item::{Fields, Index, Item, ItemKey, SECRET_PARTITION, Value};
#[cfg(feature = "text")]
pub use text::{index_number, item_from, item_text};
pub use write::{Change, Test, Write};

/// The most records that can be read at once.
pub const GETS_MAX: usize = 100;

/// The most writes that can be made together.
pub const WRITES_MAX: usize = 100;

/// The most records that a page has.
pub const PAGE_MAX: usize = 1_000;

/// A store of records.
///
/// # Examples
///
/// ```
/// use tollgate_store::records::{Index, Item, ItemKey, Page, Query, Records, RecordsError, Write};
/// use tollgate_store::{Memory, Reply, StoreError};
///
/// /// Records that can be read, and not changed.
/// struct ReadOnly<R>(R);
///
/// impl<R: Records> Records for ReadOnly<R> {
///     fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>> {
///         self.0.get_many(keys)
///     }
///
///     fn write<'a>(&'a self, _: &'a [Write]) -> Reply<'a, Result<(), RecordsError>> {
///         Reply::ready(Err(StoreError::Refused("it is open for reading".into()).into()))
///     }
///
///     fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>> {
///         self.0.query(query)
///     }
///
///     fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>> {
///         self.0.find(index, query)
///     }
/// }
///
/// let (store, key) = (Memory::default(), ItemKey::new("app/NOTES", "a"));
/// store.write(&[Write::Put(Item::new(key.clone()), Vec::new())]).wait()?;
/// let store = ReadOnly(store);
/// assert!(store.write(&[Write::Delete(key.clone(), Vec::new())]).wait().is_err());
/// assert!(store.get_many(&[key]).wait()?[0].is_some());
/// # Ok::<(), RecordsError>(())
/// ```
pub trait Records: Send + Sync {
    /// Returns the records at these keys, in their order, as they were at one instant. At most [`GETS_MAX`].
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`RecordsError::Store`].
    fn get_many<'a>(&'a self, keys: &'a [ItemKey]) -> Reply<'a, Result<Vec<Option<Item>>, RecordsError>>;

    /// Makes all writes, each to another record, or none if a test fails. At most [`WRITES_MAX`].
    ///
    /// # Cancel safety
    ///
    /// If the reply is dropped before it is ready, all writes are made, or none.
    ///
    /// # Errors
    ///
    /// [`RecordsError::Failed`] with the index of the first write whose test fails, [`RecordsError::Store`]. After
    /// [`StoreError::Unavailable`] the writes may have been made.
    fn write<'a>(&'a self, writes: &'a [Write]) -> Reply<'a, Result<(), RecordsError>>;

    /// Returns the records of a partition, in the order of their sort keys.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`RecordsError::Store`].
    fn query<'a>(&'a self, query: &'a Query) -> Reply<'a, Result<Page<Item>, RecordsError>>;

    /// Returns the keys of the records that an index has in a partition of its own, in the order of its sort keys.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`RecordsError::Store`].
    fn find<'a>(&'a self, index: Index, query: &'a Query) -> Reply<'a, Result<Page<ItemKey>, RecordsError>>;

    /// Returns the keys of records that [`Index::Namespace`] does not have, or has in a wrong place, of all namespaces and in
    /// no order. Every record is read for it. Only a store whose records other programs write past this trait can have
    /// such records; a store that has them answers a [`find`](Records::find) in that index without them until they are
    /// written by this trait.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// [`RecordsError::Store`].
    fn unindexed(&self, after: Option<Cursor>) -> Reply<'_, Result<Page<ItemKey>, RecordsError>> {
        let _ = after;
        Reply::ready(Ok(Page { items: Vec::new(), next: None }))
    }

    /// Returns a number that is another one after any write, if the store has it without a read: then nothing that was read
    /// needs to be read again while it stays the same. The store's own writes of usage do not count, nor does a
    /// record that expires.
    fn revision(&self) -> Option<u64> {
        None
    }
}

/// The part of a partition to read.
///
/// # Examples
///
/// ```
/// use tollgate_store::Memory;
/// use tollgate_store::records::{Item, ItemKey, Query, Records, Write};
///
/// let store = Memory::default();
/// let put = |sort: &str| Write::Put(Item::new(ItemKey::new("app/AUDIT", sort)), Vec::new());
/// store.write(&["2025-12", "2026-01", "2026-02"].map(put)).wait()?;
/// // The last event of 2026.
/// let query = Query { limit: 1, newest_first: true, ..Query::prefix("app/AUDIT", "2026-") };
/// assert_eq!(store.query(&query).wait()?.items[0].key.sort, "2026-02");
/// # Ok::<(), tollgate_store::records::RecordsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Query {
    /// The partition: of the records, or of the index.
    pub partition: String,
    /// Only sort keys that start with this.
    pub prefix: String,
    /// The position to continue at: [`Page::next`] of the last page.
    pub after: Option<Cursor>,
    /// The most records of a page; [`PAGE_MAX`] bounds it, and 0 counts as 1.
    pub limit: usize,
    /// True if the last come first.
    pub newest_first: bool,
}

/// Some of the results of a query, and the position of the next ones. Pages that follow each other have once everything that
/// existed all the time, whatever is added and deleted meanwhile; a page may have fewer results than it could.
///
/// # Examples
///
/// ```
/// use tollgate_store::Memory;
/// use tollgate_store::records::{Item, ItemKey, Query, Records, Write};
///
/// # let store = Memory::default();
/// # let put = |sort: &str| Write::Put(Item::new(ItemKey::new("app/NOTES", sort)), Vec::new());
/// # store.write(&["a", "b", "c"].map(put)).wait()?;
/// // Reads all three records of a partition, two at a time.
/// let (mut query, mut found) = (Query { limit: 2, ..Query::all("app/NOTES") }, 0);
/// loop {
///     let page = store.query(&query).wait()?;
///     found += page.items.len();
///     query.after = page.next;
///     if query.after.is_none() {
///         break;
///     }
/// }
/// assert_eq!(found, 3);
/// # Ok::<(), tollgate_store::records::RecordsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Page<T> {
    /// The results.
    pub items: Vec<T>,
    /// The position to continue at; `None` at the end.
    pub next: Option<Cursor>,
}

/// The reason that records could not be read or written.
///
/// # Examples
///
/// ```
/// use tollgate_store::Memory;
/// use tollgate_store::records::{Item, ItemKey, Records, RecordsError, Test, Write};
///
/// let (store, key) = (Memory::default(), ItemKey::new("app/NOTES", "a"));
/// let create = [Write::Put(Item::new(key), vec![Test::Absent])];
/// assert_eq!(store.write(&create).wait(), Ok(()));
/// assert_eq!(store.write(&create).wait(), Err(RecordsError::Failed(0)), "it exists already");
/// ```
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RecordsError {
    /// The test of this write failed, and nothing was written.
    #[error("the test of write {0} failed; nothing was written")]
    Failed(usize),
    /// The store could not answer.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl Query {
    /// Returns a query of a whole partition, page by page.
    pub fn all(partition: impl Into<String>) -> Query {
        Query::prefix(partition, "")
    }

    /// Returns a query of the sort keys of a partition that start with `prefix`, page by page.
    pub fn prefix(partition: impl Into<String>, prefix: impl Into<String>) -> Query {
        let (partition, prefix) = (partition.into(), prefix.into());
        Query { partition, prefix, after: None, limit: PAGE_MAX, newest_first: false }
    }
}
