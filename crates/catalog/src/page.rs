//! What part of a list to answer.

use tollgate_store::records::{Cursor, PAGE_MAX, Query};

/// How many, from where, and in which order.
///
/// ```
/// use tollgate_catalog::PageRequest;
///
/// let latest = PageRequest::of(20).newest_first();
/// assert_eq!(latest.limit, 20);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// How many at most; there may be fewer even if more follow.
    pub limit: usize,
    /// Where to go on, as the last page said.
    pub after: Option<Cursor>,
    /// Whether the last come first.
    pub newest_first: bool,
}

impl PageRequest {
    /// The first `limit`.
    pub fn of(limit: usize) -> PageRequest {
        PageRequest { limit, after: None, newest_first: false }
    }

    /// Goes on where a page ended.
    #[must_use]
    pub fn after(self, cursor: Cursor) -> PageRequest {
        PageRequest { after: Some(cursor), ..self }
    }

    /// The last come first.
    #[must_use]
    pub fn newest_first(self) -> PageRequest {
        PageRequest { newest_first: true, ..self }
    }

    /// The same part of what starts with `prefix` in a partition.
    pub(crate) fn query(self, partition: String, prefix: impl Into<String>) -> Query {
        let PageRequest { limit, after, newest_first } = self;
        Query { partition, prefix: prefix.into(), after, limit, newest_first }
    }
}

/// The first page, as long as may be.
impl Default for PageRequest {
    fn default() -> PageRequest {
        PageRequest::of(PAGE_MAX)
    }
}
