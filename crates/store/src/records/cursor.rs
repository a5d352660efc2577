use crate::StoreError;

/// The position at which a page ended. Stores make it and read it; to callers it is only text.
///
/// # Examples
///
/// ```
/// use tollgate_store::records::{Cursor, Item, ItemKey, Query, Records, Write};
///
/// let store = tollgate_store::Memory::default();
/// let put = |sort: &str| Write::Put(Item::new(ItemKey::new("app/NOTES", sort)), Vec::new());
/// store.write(&["a", "b", "c"].map(put)).wait()?;
///
/// let mut query = Query { limit: 2, ..Query::all("app/NOTES") };
/// let first = store.query(&query).wait()?;
/// query.after = first.next;
/// let second = store.query(&query).wait()?;
/// assert_eq!((first.items.len(), second.items[0].key.sort.as_str()), (2, "c"));
/// // A store encodes the parts of a key in it.
/// assert_eq!(Cursor::of(&["app/NOTES", "b"]).parts(), Ok(["app/NOTES", "b"]));
/// # Ok::<(), tollgate_store::records::RecordsError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cursor(pub String);

impl Cursor {
    /// Returns a cursor with these parts, for stores that continue behind a key.
    pub fn of(parts: &[&str]) -> Cursor {
        let part = |part: &&str| format!("{}:{part}", part.len());
        Cursor(parts.iter().map(part).collect())
    }

    /// Returns its parts.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadCall`] if their number is another one, or if it is no such cursor.
    pub fn parts<const N: usize>(&self) -> Result<[&str; N], StoreError> {
        let mut parts = [""; N];
        let mut rest = Some(self.0.as_str());
        for part in &mut parts {
            let split = rest.and_then(split_part);
            (*part, rest) = split.map_or(("", None), |(part, rest)| (part, Some(rest)));
        }
        let is_whole = rest == Some("");
        if is_whole {
            Ok(parts)
        } else {
            Err(StoreError::BadCall("the cursor is none of this query's".into()))
        }
    }
}

fn split_part(text: &str) -> Option<(&str, &str)> {
    let (len, rest) = text.split_once(':')?;
    rest.split_at_checked(len.parse().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_says_what_it_was_made_of() {
        for parts in [["", "", ""], ["a:1", "2:b", "#/"], ["ü", "\0", "3:"]] {
            assert_eq!(Cursor::of(&parts).parts(), Ok(parts));
        }
    }

    #[test]
    fn what_is_no_cursor_is_refused() {
        let made_up = ["", "a", "9:a", "1:ü", "1:a", "1:a1:b1:c", "-1:a1:b"];
        for text in made_up {
            assert!(Cursor(text.into()).parts::<2>().is_err(), "{text:?}");
        }
    }
}
