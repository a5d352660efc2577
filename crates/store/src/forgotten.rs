//! Marks of forgotten buckets, which tell a bucket that was deleted from one that was dropped because it was idle.
//!
//! A store drops a bucket that equals a fresh one and was not used for long. A lease on it may still be open, and what it
//! settles counts. A bucket that was [forgotten](crate::Backend::forget) is another matter: a lease on that settles nothing.
//! So forgetting leaves a record with its time, and a settlement that finds no bucket looks for one. The records expire.

use tollgate_core::{Span, Tick};

use crate::Scope;
use crate::records::{Change, Item, ItemKey, Write};

/// The time for which a mark is kept. A lease that is open for longer than this after its bucket was forgotten counts again.
pub const FORGOTTEN_KEPT: Span = Span::from_secs(7 * 86_400);

/// The field with the time, in microseconds.
const AT: &str = "at";

/// Returns the write that marks the buckets of a scope as forgotten at `now`.
pub fn forgotten_write(namespace: &str, scope: Scope<'_>, now: Tick) -> Write {
    let at = i64::try_from(now.as_micros()).unwrap_or(i64::MAX);
    let changes = vec![Change::Set(AT.into(), at.into()), Change::Expire(Some(now + FORGOTTEN_KEPT))];
    Write::Change(key(namespace, scope), changes, Vec::new())
}

/// Returns the keys of the marks that may be about a bucket.
pub fn forgotten_keys(namespace: &str, entity: &str, resource: &str) -> [ItemKey; 4] {
    let scopes =
        [Scope::All, Scope::Entity(entity), Scope::Resource(resource), Scope::Bucket(entity, resource)];
    scopes.map(|scope| key(namespace, scope))
}

/// Returns true if a mark is no older than `taken`: a bucket that was taken from then was forgotten since.
pub fn is_forgotten(mark: &Item, taken: Tick) -> bool {
    mark.int(AT).and_then(|at| u64::try_from(at).ok()).is_some_and(|at| taken.as_micros() <= at)
}

fn key(namespace: &str, scope: Scope<'_>) -> ItemKey {
    let sort = match scope {
        Scope::All => "ALL".into(),
        Scope::Entity(entity) => format!("ENTITY#{entity}"),
        Scope::Resource(resource) => format!("RESOURCE#{resource}"),
        // With its length, so that no two pairs have one key.
        Scope::Bucket(entity, resource) => format!("BUCKET#{}#{entity}#{resource}", entity.len()),
    };
    ItemKey::new(format!("{namespace}/FORGOTTEN"), sort)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_is_about_what_was_taken_before_it() {
        let write = forgotten_write("app", Scope::Entity("user"), Tick::from_secs(100));
        let mark = write.applied(None).expect("a change makes a record");
        assert!(forgotten_keys("app", "user", "api").contains(&mark.key));
        assert!(!forgotten_keys("app", "use", "r").contains(&mark.key));
        assert!(is_forgotten(&mark, Tick::from_secs(100)));
        assert!(!is_forgotten(&mark, Tick::from_secs(101)));
    }

    #[test]
    fn no_two_buckets_have_one_mark() {
        let pairs = [("a", "b#c"), ("a#b", "c"), ("a#1", "b"), ("a", "1#b")];
        let keys = pairs.map(|(entity, resource)| key("app", Scope::Bucket(entity, resource)).sort);
        assert!(keys.iter().enumerate().all(|(index, key)| !keys[..index].contains(key)));
    }
}
