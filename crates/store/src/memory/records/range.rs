//! Ranges of an ordered map that a query visits.

use std::ops::Bound;

use crate::records::{Cursor, ItemKey, PAGE_MAX, Page, Query};

/// A range of keys.
pub(super) type KeyRange<K> = (Bound<K>, Bound<K>);

/// Returns the range from `from` up to `to` and behind `after`, in the direction of the query; `None` if it is empty. A
/// map panics on a range that ends before it begins, and a cursor may contain anything.
pub(super) fn between<K: Ord>(query: &Query, from: K, to: K, after: Option<K>) -> Option<KeyRange<K>> {
    if from >= to {
        return None;
    }
    match after {
        None => Some((Bound::Included(from), Bound::Excluded(to))),
        Some(after) if query.newest_first => {
            (after > from).then(|| (Bound::Included(from), Bound::Excluded(after.min(to))))
        }
        Some(after) if after < from => Some((Bound::Included(from), Bound::Excluded(to))),
        Some(after) => (after < to).then_some((Bound::Excluded(after), Bound::Excluded(to))),
    }
}

/// Returns the first key behind all those of the partition whose sort keys start with `prefix`.
pub(super) fn end(partition: &str, prefix: &str) -> ItemKey {
    match after_prefix(prefix) {
        Some(sort) => ItemKey::new(partition, sort),
        None => ItemKey::new(format!("{partition}\0"), ""),
    }
}

/// Returns the least text that is greater than every text with this prefix, if there is one.
pub(super) fn after_prefix(prefix: &str) -> Option<String> {
    let mut rest = prefix.chars();
    while let Some(last) = rest.next_back() {
        if let Some(next) = (last..=char::MAX).nth(1) {
            return Some(format!("{}{next}", rest.as_str()));
        }
    }
    None
}

/// Returns as many of `answers` as the query asks for, in its direction.
pub(super) fn page<T>(
    query: &Query,
    answers: impl DoubleEndedIterator<Item = T>,
    cursor: impl Fn(&T) -> Cursor,
) -> Page<T> {
    if query.newest_first { cut(query, answers.rev(), cursor) } else { cut(query, answers, cursor) }
}

fn cut<T>(query: &Query, mut answers: impl Iterator<Item = T>, cursor: impl Fn(&T) -> Cursor) -> Page<T> {
    let items: Vec<T> = answers.by_ref().take(query.limit.clamp(1, PAGE_MAX)).collect();
    let next = items.last().map(cursor).filter(|_| answers.next().is_some());
    Page { items, next }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn behind_a_prefix_comes_the_next_text_that_does_not_start_with_it() {
        let max = char::MAX;
        assert_eq!(after_prefix("ab"), Some("ac".into()));
        assert_eq!(after_prefix("\u{D7FF}"), Some("\u{E000}".into()));
        assert_eq!(after_prefix(&format!("a{max}{max}")), Some("b".into()));
        assert_eq!(after_prefix(&format!("{max}")), None);
        assert_eq!(after_prefix(""), None);
    }
}
