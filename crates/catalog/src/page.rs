//! The part of a list that a caller asks for.

use tollgate_store::records::{Cursor, PAGE_MAX, Query};

/// A page of a list: how many items, from where, and in which order.
///
/// ```
/// use tollgate_catalog::PageRequest;
///
/// let latest = PageRequest::of(20).newest_first();
/// assert_eq!(latest.limit, 20);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// The most items of a page; there may be fewer even if more follow.
    pub limit: usize,
    /// The cursor of the previous page.
    pub after: Option<Cursor>,
    /// True to begin with the last item.
    pub newest_first: bool,
}

impl PageRequest {
    /// Returns a request for the first `limit` items.
    pub fn of(limit: usize) -> PageRequest {
        PageRequest { limit, after: None, newest_first: false }
    }

    /// Continues after a page.
    #[must_use]
    pub fn after(self, cursor: Cursor) -> PageRequest {
        PageRequest { after: Some(cursor), ..self }
    }

    /// Begins with the last item.
    #[must_use]
    pub fn newest_first(self) -> PageRequest {
        PageRequest { newest_first: true, ..self }
    }

    /// Returns the query for this page of the records that start with `prefix` in a partition.
    pub(crate) fn query(self, partition: String, prefix: impl Into<String>) -> Query {
        let PageRequest { limit, after, newest_first } = self;
        Query { partition, prefix: prefix.into(), after, limit, newest_first }
    }
}

/// Requests the first page, as long as possible.
impl Default for PageRequest {
    fn default() -> PageRequest {
        PageRequest::of(PAGE_MAX)
    }
}
