//! Sets of limits that share one bucket.

use std::collections::BTreeMap;
use std::fmt;
use std::mem::discriminant;
use std::ops::Deref;
use std::sync::Arc;

use crate::fast_bucket::PlainRules;
use crate::inline_vec::INLINE;
use crate::machine::Machine;
use crate::name::{HashedName, Tag};
use crate::{AsDemand, CostSink, Costs, DemandError, Kind, Limit, LimitError, Name};

/// The maximum number of limits in a set. A [cooldown](Limit::cooldown) does not count.
pub const LIMITS_MAX: usize = 32;

/// The maximum number of limits in a bucket: those of its set, and a [cooldown](Limit::cooldown).
pub const BUCKET_LIMITS_MAX: usize = LIMITS_MAX + 1;

/// Limits that are taken together: names are unique, and the order is fixed. Clones share their
/// contents.
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
///
/// let limits = Limits::new([Limit::per_minute("rpm", 100), Limit::per_minute("tpm", 1_000)])?;
/// assert_eq!(limits.index("tpm"), Some(1));
/// let costs = limits.costs(&demand! { tpm: 400, rpm: 1 })?;
/// assert_eq!(costs.amounts(), [1, 400]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct Limits(Arc<LimitsInner>);

#[derive(Clone)]
struct LimitsInner {
    limits: Box<[Limit]>,
    version: u64,
    defaults: bool,
    /// The tags of the first names: looking one of them up compares numbers instead of text.
    tags: [Tag; INLINE],
    /// One bit for each limit that a demand takes 1 of without naming it.
    implicit: u64,
    /// One bit for each limit whose refunds do not depend on when they are made.
    timeless: u64,
    resources: bool,
    may_warn: bool,
    custom: bool,
    /// The rules of plain buckets, if every limit can be in one.
    plain: Option<PlainRules>,
}

/// Limits that cannot form a set.
///
/// ```
/// use tollgate_core::{Limit, Limits, LimitsError};
///
/// let error = Limits::new([Limit::per_minute("rpm", 1), Limit::per_hour("rpm", 9)]).unwrap_err();
/// assert!(matches!(error, LimitsError::Duplicate(_)));
/// let message = "two limits are named \"rpm\"; names must be unique within a set";
/// assert_eq!(error.to_string(), message);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitsError {
    /// A limit is not valid.
    Limit(LimitError),
    /// Two limits have this name.
    Duplicate(Name),
    /// There are more than [`LIMITS_MAX`] limits.
    TooMany(usize),
    /// The limit to replace does not exist.
    Unknown(Name),
    /// The limit to replace is of another kind.
    OtherKind(Name),
    /// A limit is of another kind than the current one of the same name. Holds the given limit,
    /// then the current one.
    TwoKinds(Box<[Limit; 2]>),
    /// A limit is both given and removed.
    NamedAndRemoved(Name),
    /// A lease would expire at once.
    LeaseTtlZero,
    /// A limit is [custom](Limit::custom), which only a set in this process may have.
    Custom(Name),
    /// A set in a store has no name.
    Unnamed,
    /// The version of a set in a store is out of range: the version, and the largest valid one.
    BadVersion(u16, u16),
}

impl Limits {
    /// Checks the limits and creates a set of them.
    ///
    /// # Errors
    ///
    /// Returns [`LimitsError`] for a limit that is not valid, a name that occurs twice, or too many
    /// limits.
    pub fn new<I>(limits: I) -> Result<Limits, LimitsError>
    where
        I: IntoIterator,
        I::Item: TryInto<Limit>,
        LimitError: From<<I::Item as TryInto<Limit>>::Error>,
    {
        let built = limits.into_iter().map(|limit| limit.try_into().map_err(LimitError::from));
        Limits::from_built(built.collect::<Result<_, _>>()?)
    }

    fn from_built(limits: Box<[Limit]>) -> Result<Limits, LimitsError> {
        let given = limits.iter().filter(|limit| !limit.is_cooldown()).count();
        if given > LIMITS_MAX {
            return Err(LimitsError::TooMany(given));
        }
        let mut seen = BTreeMap::new();
        for limit in &limits {
            if seen.insert(limit.name().clone(), ()).is_some() {
                return Err(LimitsError::Duplicate(limit.name().clone()));
            }
        }
        let tag = |index: usize| limits.get(index).map_or(Tag::NONE, |limit| Tag::of(limit.name()));
        let tags = std::array::from_fn(tag);
        let implicit = mask(&limits, Limit::is_implicit);
        let timeless = mask(&limits, |limit| {
            matches!(
                limit.machine(),
                Machine::Meter(_) | Machine::Gauge | Machine::Cooldown | Machine::Unbounded
            )
        });
        let resources = limits.iter().any(Limit::is_resource);
        let may_warn = limits.iter().any(Limit::may_warn);
        let custom = limits.iter().any(Limit::is_custom);
        let plain = PlainRules::of(&limits);
        Ok(Limits(Arc::new(LimitsInner {
            limits,
            version: 0,
            defaults: false,
            tags,
            implicit,
            timeless,
            resources,
            may_warn,
            custom,
            plain,
        })))
    }

    /// Sets the version of the config that the limits come from. A bucket that was used under a
    /// later version rejects limits of an earlier one as stale, so that a process with an old
    /// config cannot undo a change. Version 0 means that there is no config.
    #[must_use]
    pub fn at_version(self, version: u64) -> Limits {
        Limits(Arc::new(LimitsInner { version, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Returns the version of the config that the limits come from; 0 if there is no config.
    #[inline]
    pub fn version(&self) -> u64 {
        self.0.version
    }

    /// Marks the limits as defaults: they were not set for this bucket in particular, so a store
    /// may drop the bucket once it is full.
    #[must_use]
    pub fn of_defaults(self) -> Limits {
        Limits(Arc::new(LimitsInner { defaults: true, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Returns true if the limits are [defaults](Limits::of_defaults).
    pub fn are_defaults(&self) -> bool {
        self.0.defaults
    }

    /// Returns true if a bucket under `current` adopts these limits even if the demand that carries
    /// them is denied: if they are of a later version, or lower no capacity. Otherwise the bucket
    /// would keep refilling up to the old capacity, and a demand that only fits the new one would
    /// be denied forever. A denied demand must not lower a capacity.
    pub fn adopted_on_denial(&self, current: &Limits) -> bool {
        let is_not_lowered = |limit: &Limit| {
            self.index(limit.name()).is_none_or(|index| self[index].capacity() >= limit.capacity())
        };
        self != current && (self.version() > current.version() || current.iter().all(is_not_lowered))
    }

    /// Replaces the limit of the same name by `limit`. Indexes do not change.
    ///
    /// # Errors
    ///
    /// Returns [`LimitsError::Unknown`] if there is no limit of that name, and
    /// [`LimitsError::OtherKind`] if it is of another kind: a rate cannot become a resource while
    /// leases are open.
    pub fn replacing(&self, limit: Limit) -> Result<Limits, LimitsError> {
        let Some(index) = self.index(limit.name()) else {
            return Err(LimitsError::Unknown(limit.name().clone()));
        };
        if discriminant(&self[index].kind()) != discriminant(&limit.kind()) {
            return Err(LimitsError::OtherKind(limit.name().clone()));
        }
        let mut limits = self.0.limits.clone();
        limits[index] = limit;
        Limits::from_built(limits)
    }

    /// Adds the limits of `other`, or replaces those of the same name by them.
    ///
    /// # Errors
    ///
    /// Returns [`LimitsError::TooMany`] if the result has too many limits.
    pub fn merged(&self, other: &Limits) -> Result<Limits, LimitsError> {
        let mut limits = self.0.limits.to_vec();
        for limit in other.iter() {
            match self.index(limit.name()) {
                Some(index) => limits[index] = limit.clone(),
                None => limits.push(limit.clone()),
            }
        }
        Limits::from_built(limits.into())
    }

    /// Returns the index of the limit with this name.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.index_of(HashedName::new(name)).or_else(|| self.iter().position(|limit| limit.name() == name))
    }

    /// Looks up a hashed name like [`index`](Limits::index), except that a demand cannot name a
    /// cooldown.
    // Hidden: takes a hashed name, which only `demand!` makes.
    #[doc(hidden)]
    #[inline(always)]
    pub fn index_of(&self, name: HashedName<'_>) -> Option<usize> {
        match self.0.tags.iter().position(|tag| *tag == name.tag) {
            Some(index) if name.tag != Tag::NONE => Some(index),
            _ => self.index_by_text(name.as_str()),
        }
    }

    /// Finds long names, names of limits past the first eight, and rejects unknown names.
    #[cold]
    fn index_by_text(&self, name: &str) -> Option<usize> {
        self.iter().position(|limit| limit.name().as_str() == name && !limit.is_cooldown())
    }

    /// Returns what `demand` takes from each limit.
    ///
    /// # Errors
    ///
    /// Returns [`DemandError`] for unknown names, and for amounts that are invalid, missing or
    /// above the capacity.
    pub fn costs(&self, demand: &impl AsDemand) -> Result<Costs, DemandError> {
        let mut costs = Costs::none(self.len());
        self.costs_into(&mut costs, demand)?;
        Ok(costs)
    }

    /// Computes [`costs`](Limits::costs) in place; `costs` must be empty before. Moving the result
    /// would take longer than computing it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`costs`](Limits::costs).
    #[inline]
    pub fn costs_into(&self, costs: &mut Costs, demand: &impl AsDemand) -> Result<(), DemandError> {
        self.resolve_into(costs, demand, |name| Err(self.unknown(name)))?;
        self.impossible(costs).map_or(Ok(()), Err)
    }

    /// Computes [`costs`](Limits::costs), but calls `unknown` for every name that is not a limit
    /// here, and does not check capacities: the bucket denies an amount that never fits, and
    /// [`impossible`](Limits::impossible) distinguishes it from one that will fit later.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`costs`](Limits::costs), and those that `unknown` returns.
    #[inline]
    pub fn resolve(
        &self,
        demand: &impl AsDemand,
        unknown: impl FnMut(&str) -> Result<(), DemandError>,
    ) -> Result<Costs, DemandError> {
        let mut costs = Costs::none(self.len());
        self.resolve_into(&mut costs, demand, unknown)?;
        Ok(costs)
    }

    /// Computes [`resolve`](Limits::resolve) in place; `costs` must be empty before. Moving the
    /// result would take longer than computing it.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`resolve`](Limits::resolve).
    // Hidden: the fast path of sibling crates.
    #[doc(hidden)]
    #[inline(always)]
    pub fn resolve_into(
        &self,
        costs: &mut impl CostSink,
        demand: &impl AsDemand,
        mut unknown: impl FnMut(&str) -> Result<(), DemandError>,
    ) -> Result<(), DemandError> {
        if let Some((name, why)) = demand.bad_amount() {
            return Err(DemandError::BadAmount { name: name.into(), why: Box::new(why) });
        }
        for (name, amount) in (0..demand.len()).map(|index| demand.part(index)) {
            match self.index_of(name) {
                Some(index) if costs.takes(index) => return Err(repeated(name)),
                Some(index) => costs.take_explicit(index, amount),
                None => unknown(name.as_str())?,
            }
        }
        if self.0.implicit != 0 || demand.is_empty() {
            self.take_implicit(costs, demand.is_empty())?;
        }
        Ok(())
    }

    /// Appends a [cooldown](Limit::cooldown) to the limits, if they have none.
    ///
    /// # Panics
    ///
    /// Never: the maximum number of limits does not count a cooldown.
    #[must_use]
    pub fn with_cooldown(&self) -> Limits {
        let others = self.iter().filter(|limit| !limit.is_cooldown()).cloned();
        let limits = Limits::from_built(others.chain([Limit::cooldown()]).collect());
        limits.expect("the other limits are unchanged").at_version(self.version())
    }

    /// Removes the [cooldown](Limit::cooldown) from the limits.
    ///
    /// # Panics
    ///
    /// Never: the remaining limits are valid.
    #[must_use]
    pub fn without_cooldown(&self) -> Limits {
        let others = self.iter().filter(|limit| !limit.is_cooldown()).cloned().collect();
        Limits::from_built(others).expect("the other limits are unchanged").at_version(self.version())
    }

    /// Returns the error for a name that is not a limit here.
    #[cold]
    pub fn unknown(&self, name: &str) -> DemandError {
        let known =
            self.iter().filter(|limit| !limit.is_cooldown()).map(|limit| limit.name().clone()).collect();
        DemandError::UnknownLimit { name: name.into(), known }
    }

    #[inline]
    fn take_implicit(&self, costs: &mut impl CostSink, is_empty: bool) -> Result<(), DemandError> {
        let all = mask_of(self.len());
        if is_empty && self.0.implicit != all {
            let missing = (!self.0.implicit & all).trailing_zeros() as usize;
            return Err(DemandError::MissingAmount { limit: self[missing].name().clone() });
        }
        // Visits the set bits from the lowest up; `left & (left - 1)` clears the lowest one.
        let mut left = self.0.implicit;
        while left != 0 {
            let index = left.trailing_zeros() as usize;
            if !costs.takes(index) {
                costs.take(index, 1);
            }
            left &= left - 1;
        }
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn plain(&self) -> Option<&PlainRules> {
        self.0.plain.as_ref()
    }

    /// Returns true if any limit is a resource, which must be released.
    #[inline]
    pub fn have_resources(&self) -> bool {
        self.0.resources
    }

    /// Returns true if any limit may have a warning: see
    /// [`Bucket::warnings`](crate::Bucket::warnings).
    #[inline]
    pub fn may_warn(&self) -> bool {
        self.0.may_warn
    }

    /// Returns the limits of these [warnings](crate::Bucket::warnings).
    pub fn warned(&self, warnings: u32) -> impl Iterator<Item = &Limit> {
        let has_warned = move |index: usize| {
            u32::try_from(index).is_ok_and(|bit| warnings.checked_shr(bit).unwrap_or(0) & 1 == 1)
        };
        self.iter().enumerate().filter(move |(index, _)| has_warned(*index)).map(|(_, limit)| limit)
    }

    /// Returns true if any limit is [custom](Limit::custom).
    #[inline]
    pub(crate) fn have_custom(&self) -> bool {
        self.0.custom
    }

    /// Checks that a store can hold the limits: a [custom](Limit::custom) limit is code of this
    /// program.
    ///
    /// # Errors
    ///
    /// Returns [`LimitsError::Custom`] with the name of the first custom limit.
    #[inline]
    pub fn check_storable(&self) -> Result<(), LimitsError> {
        if self.have_custom() { Err(self.not_storable()) } else { Ok(()) }
    }

    #[cold]
    fn not_storable(&self) -> LimitsError {
        let custom = self.iter().find(|limit| limit.is_custom());
        LimitsError::Custom(custom.expect("one of them is custom").name().clone())
    }

    /// Returns true if refunds of these limits do not depend on when they are made, so that the
    /// caller need not read a clock.
    ///
    /// A meter's credit and a gauge's count can be refunded at any time; a window has to check
    /// whether it is still the same window.
    #[inline]
    pub fn refunds_ignore_time(&self) -> bool {
        self.0.timeless == mask_of(self.len())
    }

    /// Returns true if both have limits of the same names at the same indexes, each a resource in
    /// both or in neither: then costs and usage apply to either without a remapping.
    pub fn same_layout(&self, other: &Limits) -> bool {
        let is_same =
            |(one, two): (&Limit, &Limit)| one.name() == two.name() && one.is_resource() == two.is_resource();
        self.len() == other.len() && self.iter().zip(other.iter()).all(is_same)
    }

    /// Returns the error for `costs` that can never fit, if that is so.
    #[inline]
    pub fn impossible(&self, costs: &Costs) -> Option<DemandError> {
        let never_fits = |(limit, asked): &(&Limit, &u64)| **asked > limit.capacity() && !limit.is_shadow();
        self.iter().zip(costs.amounts()).find(never_fits).map(too_much)
    }

    /// Returns true if both share their contents. Limits that are merely equal return false.
    #[inline]
    pub fn same(&self, other: &Limits) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

#[cold]
fn too_much((limit, asked): (&Limit, &u64)) -> DemandError {
    DemandError::Impossible { limit: limit.name().clone(), asked: *asked, capacity: limit.capacity() }
}

#[cold]
fn repeated(name: HashedName<'_>) -> DemandError {
    DemandError::Repeated { name: name.as_str().into() }
}

fn mask_of(len: usize) -> u64 {
    (1 << len) - 1
}

fn mask(limits: &[Limit], wanted: impl Fn(&Limit) -> bool) -> u64 {
    limits.iter().enumerate().filter(|(_, limit)| wanted(limit)).fold(0, |mask, (index, _)| mask | 1 << index)
}

impl Deref for Limits {
    type Target = [Limit];

    #[inline]
    fn deref(&self) -> &[Limit] {
        &self.0.limits
    }
}

impl PartialEq for Limits {
    fn eq(&self, other: &Limits) -> bool {
        self.same(other) || self.0.limits == other.0.limits
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter().map(Limit::to_string)).finish()
    }
}

impl fmt::Display for LimitsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LimitsError::Limit(error) => error.fmt(f),
            LimitsError::Duplicate(name) => {
                write!(f, "two limits are named {name:?}; names must be unique within a set")
            }
            LimitsError::TooMany(count) => {
                write!(f, "{count} limits are given, but at most {LIMITS_MAX} are allowed")
            }
            LimitsError::LeaseTtlZero => {
                f.write_str("lease_ttl is 0, but must be at least a microsecond: leases would expire at once")
            }
            LimitsError::Custom(name) => {
                write!(
                    f,
                    "limit {name:?} is custom, and its rule is code of this program, which no store can hold; "
                )?;
                f.write_str("use it in a LimitSet without a store, or a rate, a quota or a resource instead")
            }
            LimitsError::Unnamed => f.write_str("a set in a store requires a name, such as \"openai/blue\""),
            LimitsError::BadVersion(version, max) => {
                write!(f, "version is {version}, but must be 1 to {max}")
            }
            LimitsError::OtherKind(name) => {
                write!(f, "the limit to replace {name:?} is of another kind; make a new set for that")
            }
            LimitsError::TwoKinds(limits) => {
                let [given, current] = &**limits;
                let name = given.name();
                let [given_kind, current_kind] = [given.kind(), current.kind()].map(Kind::word);
                write!(
                    f,
                    "limit {name:?} is a {given_kind} here ({given}), but a {current_kind} ({current}) in the set that "
                )?;
                f.write_str("is open already; give one of them another name")
            }
            LimitsError::NamedAndRemoved(name) => {
                write!(f, "limit {name:?} is both given and removed; do only one of the two")
            }
            LimitsError::Unknown(name) => write!(f, "there is no limit named {name:?} to replace or remove"),
        }
    }
}

impl std::error::Error for LimitsError {}

impl From<LimitError> for LimitsError {
    fn from(error: LimitError) -> LimitsError {
        LimitsError::Limit(error)
    }
}
