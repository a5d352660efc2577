//! Shared limit sets: the limits that all programs which opened a set have named, joined by name.
//!
//! The record of a set makes joining safe. A bucket swaps its limits as a whole, so a program that
//! brings only the limits it names would drop the others with their state. So a program writes the
//! union of the stored limits and its own, on condition that the record has not changed since it
//! was read, and takes under that union. Each revision of the record is the version of its limits:
//! a bucket with a later version refuses an earlier one as stale, and the program reads again.

mod record;

use std::collections::BTreeMap;
use std::mem::discriminant;

use tollgate_core::{Limit, Limits, LimitsError, Name};
use tollgate_store::records::ItemKey;

use crate::keys;

/// The most names of removed limits that a set remembers. Beyond that, those of the
/// earliest version are forgotten.
pub const REMOVED_MAX: usize = 64;

/// The version of limits that are earlier than those of any record.
pub const UNWRITTEN: u64 = 1;

/// A limit set that programs share, as stored in its record.
///
/// ```
/// use tollgate_catalog::{Opening, SharedSet};
/// use tollgate_core::{Limit, Limits};
///
/// let one = Limits::new([Limit::per_second("rps", 10), Limit::per_day("budget", 3)])?;
/// let other = Limits::new([Limit::per_second("rps", 10)])?;
/// let opening = |limits| Opening { limits, removed: &[], version: 1 };
///
/// let set = SharedSet::new("limit-sets", "openai/blue").joined(&opening(&one))?.expect("it is new");
/// assert_eq!(set.joined(&opening(&other))?, None, "limits that the other does not name stay");
/// # Ok::<(), tollgate_core::LimitsError>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct SharedSet {
    key: ItemKey,
    /// 0 if there is no record, else greater than [`UNWRITTEN`].
    revision: u64,
    limits: Limits,
    statements: BTreeMap<String, LastStatement>,
}

/// The limits of a program that opens a set. [`SharedSet`] has an example.
#[derive(Clone, Copy, Debug)]
pub struct Opening<'a> {
    /// The limits that the program names.
    pub limits: &'a Limits,
    /// The limits of earlier versions that the program removes.
    pub removed: &'a [Name],
    /// The version of both.
    pub version: u16,
}

/// The last statement about the limit of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct LastStatement {
    version: u16,
    kind: StatementKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StatementKind {
    /// A program named the limit when it opened the set.
    Opened,
    /// The limit replaced another.
    Replaced,
    /// The limit was removed.
    Removed,
}

impl LastStatement {
    /// Returns true if the limit stays as it is when a program of this version opens the set.
    fn holds_against(self, version: u16) -> bool {
        self.version > version || self.version == version && self.kind != StatementKind::Opened
    }
}

impl SharedSet {
    /// Returns a set that no program has opened yet.
    pub fn new(namespace: &str, name: &str) -> SharedSet {
        SharedSet::empty(keys::shared_set(namespace, name))
    }

    fn empty(key: ItemKey) -> SharedSet {
        let limits = Limits::new(Vec::<Limit>::new()).expect("no limits are valid limits");
        SharedSet { key, revision: 0, limits, statements: BTreeMap::new() }
    }

    /// Returns the key of the record.
    pub fn key(&self) -> &ItemKey {
        &self.key
    }

    /// Returns the partition of the records of all sets of a namespace, in the order of their
    /// names.
    pub fn partition(namespace: &str) -> String {
        keys::shared_sets_partition(namespace)
    }

    /// Returns the name of the set.
    pub fn name(&self) -> &str {
        &self.key.sort
    }

    /// Returns how often the set was changed: the version of its limits.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Returns the limits in force, with a cooldown behind them, at the version of this revision.
    pub fn in_force(&self) -> Limits {
        self.limits.with_cooldown().at_version(self.revision)
    }

    /// Returns the set after a program has opened it; `None` if that changes nothing.
    ///
    /// A limit that the program does not name stays. One that it names is put in force, unless a
    /// later statement about it exists: by a program of a later version, or by an explicit change
    /// since then.
    ///
    /// # Errors
    ///
    /// [`LimitsError::TwoKinds`] for a limit that counts something else here,
    /// [`LimitsError::TooMany`], and [`LimitsError::Custom`].
    pub fn joined(&self, opening: &Opening<'_>) -> Result<Option<SharedSet>, LimitsError> {
        opening.limits.check_storable()?;
        let (version, mut next) = (opening.version, self.clone());
        for limit in opening.limits.iter() {
            self.check_kind(limit)?;
        }
        let is_open =
            |name: &Name| !self.statements.get(name.as_str()).is_some_and(|it| it.holds_against(version));
        let named = opening.limits.iter().filter(|limit| is_open(limit.name()) && !limit.is_cooldown());
        next.put(named.cloned().collect(), LastStatement { version, kind: StatementKind::Opened })?;
        // A version removes limits that earlier ones have named.
        let earlier = |name: &&Name| self.statements.get(name.as_str()).is_none_or(|it| it.version < version);
        for name in opening.removed.iter().filter(earlier) {
            next.take_out(name.as_str(), version);
        }
        let is_new = self.revision == 0 || next != *self;
        Ok(is_new.then(|| next.later_than(self.revision)))
    }

    /// Returns the set with another limit instead of the one of the same name.
    ///
    /// # Errors
    ///
    /// As [`Limits::replacing`].
    pub fn replacing(&self, limit: Limit) -> Result<SharedSet, LimitsError> {
        // Only to check whether that is allowed: the limit keeps its index either way.
        self.limits.replacing(limit.clone())?;
        let version = self.statements.get(limit.name().as_str()).map_or(0, |statement| statement.version);
        let mut next = self.clone();
        next.put(vec![limit], LastStatement { version, kind: StatementKind::Replaced })?;
        Ok(next.later_than(self.revision))
    }

    /// Returns the set without the limit of this name. Programs of the same version that name it do
    /// not add it again.
    ///
    /// # Errors
    ///
    /// [`LimitsError::Unknown`] if the set has no such limit, [`LimitsError::Limit`] for an invalid
    /// name.
    pub fn removing(&self, name: &str) -> Result<SharedSet, LimitsError> {
        if self.limits.index(name).is_none() {
            // An invalid name is refused by the limit that would have it.
            let unknown = Limit::resource(name, 1).build()?;
            return Err(LimitsError::Unknown(unknown.name().clone()));
        }
        let mut next = self.clone();
        next.take_out(name, self.statements.get(name).map_or(0, |statement| statement.version));
        Ok(next.later_than(self.revision))
    }

    /// Returns the set with limits that a bucket has and the record does not: the record was lost.
    ///
    /// # Errors
    ///
    /// As [`joined`](SharedSet::joined).
    pub fn recovered(&self, in_force: &Limits) -> Result<SharedSet, LimitsError> {
        let mut next = self.clone();
        for limit in in_force.iter() {
            self.check_kind(limit)?;
        }
        let unknown =
            |limit: &&Limit| !limit.is_cooldown() && !self.statements.contains_key(limit.name().as_str());
        let found = in_force.iter().filter(unknown).cloned().collect();
        next.put(found, LastStatement { version: 0, kind: StatementKind::Opened })?;
        Ok(next.later_than(self.revision.max(in_force.version())))
    }

    fn later_than(self, revision: u64) -> SharedSet {
        SharedSet { revision: revision.max(UNWRITTEN) + 1, ..self }
    }

    fn check_kind(&self, limit: &Limit) -> Result<(), LimitsError> {
        let Some(index) = self.limits.index(limit.name()) else { return Ok(()) };
        let stored = &self.limits[index];
        if discriminant(&stored.kind()) == discriminant(&limit.kind()) {
            return Ok(());
        }
        Err(LimitsError::TwoKinds(Box::new([limit.clone(), stored.clone()])))
    }

    fn put(&mut self, limits: Vec<Limit>, statement: LastStatement) -> Result<(), LimitsError> {
        self.statements.extend(limits.iter().map(|limit| (limit.name().to_string(), statement)));
        self.limits = self.limits.merged(&Limits::new(limits)?)?;
        Ok(())
    }

    fn take_out(&mut self, name: &str, version: u16) {
        let others = self.limits.iter().filter(|limit| limit.name() != name).cloned();
        self.limits = Limits::new(others).expect("what is left of valid limits is valid");
        self.statements.insert(name.into(), LastStatement { version, kind: StatementKind::Removed });
        let removed =
            self.statements.iter().filter(|(_, statement)| statement.kind == StatementKind::Removed);
        if removed.clone().count() > REMOVED_MAX {
            let earliest =
                removed.min_by_key(|(_, statement)| statement.version).map(|(name, _)| name.clone());
            self.statements.retain(|name, _| earliest.as_ref() != Some(name));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(named: &[(&str, u64)]) -> Limits {
        Limits::new(named.iter().map(|(name, amount)| Limit::per_day(*name, *amount))).expect("valid")
    }

    fn open(set: &SharedSet, version: u16, limits: &Limits) -> SharedSet {
        let joined = set.joined(&Opening { limits, removed: &[], version }).expect("one kind");
        joined.unwrap_or_else(|| set.clone())
    }

    fn amounts(set: &SharedSet) -> Vec<(String, u64)> {
        set.limits.iter().map(|limit| (limit.name().to_string(), limit.amount())).collect()
    }

    #[test]
    fn each_revision_has_all_names_of_the_previous_and_no_change_makes_no_revision() {
        let first = open(&SharedSet::new("ns", "set"), 1, &limits(&[("a", 1), ("b", 2)]));
        assert_eq!((first.revision(), open(&first, 1, &limits(&[("b", 2)])).revision()), (2, 2));
        let second = open(&first, 1, &limits(&[("c", 3), ("b", 2)]));
        assert_eq!(second.revision(), 3);
        assert_eq!(amounts(&second), [("a".into(), 1), ("b".into(), 2), ("c".into(), 3)]);
        assert_eq!(second.in_force().len(), 4, "with its cooldown");
    }

    #[test]
    fn within_a_version_the_last_opening_decides_and_otherwise_the_later_version() {
        let first = open(&SharedSet::new("ns", "set"), 2, &limits(&[("a", 1)]));
        assert_eq!(amounts(&open(&first, 2, &limits(&[("a", 5)])))[0].1, 5);
        assert_eq!(amounts(&open(&first, 1, &limits(&[("a", 5)])))[0].1, 1);
        let same = open(&first, 3, &limits(&[("a", 1)]));
        assert_eq!(amounts(&open(&same, 2, &limits(&[("a", 5)])))[0].1, 1, "equal limits of a later version");
        let replaced = first.replacing(limits(&[("a", 7)])[0].clone()).expect("it is there");
        assert_eq!(amounts(&open(&replaced, 2, &limits(&[("a", 1)])))[0].1, 7);
        assert_eq!(amounts(&open(&replaced, 3, &limits(&[("a", 1)])))[0].1, 1);
    }

    #[test]
    fn limits_of_a_bucket_that_the_record_lacks_are_recovered() {
        let set = open(&SharedSet::new("ns", "set"), 1, &limits(&[("a", 1)]));
        let bucket = limits(&[("b", 2), ("a", 9)]).with_cooldown().at_version(40);
        let found = set.recovered(&bucket).expect("one kind");
        assert_eq!((found.revision(), amounts(&found)), (41, vec![("a".into(), 1), ("b".into(), 2)]));
    }

    #[test]
    fn the_names_of_removed_limits_are_bounded() {
        let mut set = SharedSet::new("ns", "set");
        for index in 0..100_u64 {
            let name = format!("limit-{index}");
            set = open(&set, 1, &limits(&[(&name, 1)])).removing(&name).expect("it is there");
        }
        assert_eq!((set.statements.len(), set.limits.len()), (REMOVED_MAX, 0));
    }
}
