//! Activity: what a bucket was used for lately, read without writing anything.

use tollgate_core::{Status, Tick};

use crate::records::Cursor;
use crate::{Key, StoreError};

/// How many parts a limit is thought of as when its share in use is reported.
const PARTS: i128 = 1_000_000;

/// The amount in use of one bucket, and the hours whose usage is in no record yet.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Tick, demand};
/// use tollgate_store::{Backend, BucketRef, Key, ManualClock, Memory, Op, Scope, Step, Store, Transaction};
///
/// let store = Memory::builder().clock(ManualClock::at(Tick::from_secs(7_200)).clock()).build();
/// let (key, limits) = (Key::new(&["user-1", "gpt-4"]), Limits::new([Limit::per_minute("tpm", 100)])?);
/// let costs = limits.costs(&demand! { tpm: 25 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait()?;
///
/// let page = store.activity("app", Scope::Bucket("user-1", "gpt-4"), None).wait()?;
/// let activity = &page.items[0];
/// assert_eq!(activity.in_use, 250_000, "a quarter of the capacity");
/// assert_eq!(activity.hours().collect::<Vec<_>>(), [Tick::from_secs(7_200)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Activity {
    /// The entity.
    pub entity: String,
    /// The resource.
    pub resource: String,
    /// The hour that the bucket counts for, by its beginning, and the number of calls admitted in it. Its usage may be in
    /// no record yet.
    pub hour: Option<(Tick, u64)>,
    /// Other hours whose usage is in no record yet, by their beginnings.
    pub others: Vec<Tick>,
    /// The share in use of the limit of which the smallest share is left, in millionths.
    pub in_use: u32,
}

impl Activity {
    /// Returns the hours whose usage may be in no record yet, by their beginnings.
    pub fn hours(&self) -> impl Iterator<Item = Tick> {
        self.hour.iter().map(|(hour, _)| *hour).chain(self.others.iter().copied())
    }

    /// Returns the share in use of the limit of which the smallest share is left, in millionths. A limit without a bound
    /// has all of it left.
    pub fn in_use(limits: &[Status]) -> u32 {
        let bounded = limits.iter().filter(|status| !status.limit().is_unbounded());
        let share = |status: &Status| {
            let capacity = i128::from(status.limit().capacity()).max(1);
            let used = (capacity - i128::from(status.available())).clamp(0, capacity);
            // A trace of use is use.
            (used * PARTS / capacity).max(i128::from(used > 0)) as u32
        };
        bounded.map(share).max().unwrap_or(0)
    }
}

impl Key {
    /// Returns a cursor behind this key, for stores that list buckets in the order of the bytes of their keys.
    pub fn cursor(&self) -> Cursor {
        let hex: String = self.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
        Cursor::of(&["key", &hex])
    }

    /// Returns the key that a cursor is behind.
    ///
    /// # Errors
    ///
    /// [`StoreError::BadCall`] if it is no cursor of this kind.
    pub fn of_cursor(cursor: &Cursor) -> Result<Key, StoreError> {
        let bad = || StoreError::BadCall("the cursor is none of this list's".into());
        let ["key", hex] = cursor.parts::<2>()? else { return Err(bad()) };
        let digits: Option<Vec<u8>> =
            hex.chars().map(|digit| digit.to_digit(16).map(|it| it as u8)).collect();
        let digits = digits.ok_or_else(bad)?;
        let (pairs, []) = digits.as_chunks::<2>() else { return Err(bad()) };
        let bytes: Vec<u8> = pairs.iter().map(|[high, low]| high << 4 | low).collect();
        Ok(Key::from_bytes(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_leads_back_to_its_key() {
        for key in [Key::new(&["user", "api"]), Key::new::<&str>(&[]), Key::from_bytes(&[0, 255, 16])] {
            assert_eq!(Key::of_cursor(&key.cursor()), Ok(key));
        }
        for cursor in [Cursor::of(&["key", "0"]), Cursor::of(&["key", "ü0"]), Cursor::of(&["user", "00"])] {
            assert!(Key::of_cursor(&cursor).is_err());
        }
    }
}
