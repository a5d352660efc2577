//! Several limits that share one bucket.

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

/// The most limits that one set may have. A [cooldown](Limit::cooldown) behind them does not count.
pub const LIMITS_MAX: usize = 32;

/// The most places that a bucket may have: its limits, and a [cooldown](Limit::cooldown).
pub const PLACES_MAX: usize = LIMITS_MAX + 1;

/// Limits that are taken together: names are unique, the order is fixed. Cloning shares them.
#[derive(Clone)]
pub struct Limits(Arc<LimitsInner>);

#[derive(Clone)]
struct LimitsInner {
    limits: Box<[Limit]>,
    version: u64,
    defaults: bool,
    /// The names of the first ones, packed so that looking one up is a comparison of numbers.
    tags: [Tag; INLINE],
    /// One bit for each limit that a demand takes 1 of without naming it.
    implicit: u64,
    /// One bit for each limit whose refunds come out the same whenever they are made.
    timeless: u64,
    resources: bool,
    remarks: bool,
    custom: bool,
    /// If all of them may be plain.
    plain: Option<PlainRules>,
}

/// Why limits do not make a set.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitsError {
    /// A limit is not valid.
    Limit(LimitError),
    /// Two limits have this name.
    Duplicate(Name),
    /// There are more than [`LIMITS_MAX`].
    TooMany(usize),
    /// A limit to be replaced is not there.
    Unknown(Name),
    /// A limit to be replaced counts something else.
    OtherKind(Name),
    /// A limit counts something else than the one of the same name that is in force: the one that was given, then the
    /// one in force.
    TwoKinds(Box<[Limit; 2]>),
    /// A limit is named and removed at once.
    NamedAndRemoved(Name),
    /// A lease would expire at once.
    LeaseTtlZero,
    /// A limit is [custom](Limit::custom), and not of a set in this process.
    Custom(Name),
    /// A set in a store has no name.
    Unnamed,
    /// A set in a store is of a version that there is not, beyond this one.
    BadVersion(u16, u16),
}

impl Limits {
    /// Checks the limits and puts them together.
    ///
    /// # Errors
    ///
    /// A limit that is not valid, a name that occurs twice, or too many limits.
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
        let remarks = limits.iter().any(Limit::has_remarks);
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
            remarks,
            custom,
            plain,
        })))
    }

    /// The same limits as of a version of the config they come from, if it is not 0: a bucket that was used under a
    /// later one refuses them as stale, so that a process that does not know of a change cannot undo it.
    #[must_use]
    pub fn at_version(self, version: u64) -> Limits {
        Limits(Arc::new(LimitsInner { version, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// The version of the config they come from; 0 if they come from none.
    #[inline]
    pub fn version(&self) -> u64 {
        self.0.version
    }

    /// The same limits, said to come from defaults: they were not set for this bucket in particular, so a store may
    /// forget it once it is full.
    #[must_use]
    pub fn of_defaults(self) -> Limits {
        Limits(Arc::new(LimitsInner { defaults: true, ..Arc::unwrap_or_clone(self.0) }))
    }

    /// Whether they come from [defaults](Limits::of_defaults).
    pub fn are_defaults(&self) -> bool {
        self.0.defaults
    }

    /// Whether a bucket under `in_force` comes under these also if the demand that came with them is denied: if they are
    /// of a later version, or lower nothing. Otherwise it would go on filling up to the old limits, and a demand that
    /// only the new ones can meet would be denied for ever. What a denied demand brings along may clamp nothing.
    pub fn are_heeded_after(&self, in_force: &Limits) -> bool {
        let keeps = |limit: &Limit| {
            self.index(limit.name()).is_none_or(|index| self[index].capacity() >= limit.capacity())
        };
        self != in_force && (self.version() > in_force.version() || in_force.iter().all(keeps))
    }

    /// The same limits with the one of the same name replaced by `limit`. Places stay as they are.
    ///
    /// # Errors
    ///
    /// [`LimitsError::Unknown`] if there is no limit of that name, [`LimitsError::OtherKind`] if it counts
    /// something else: a rate cannot become a resource while leases are open.
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

    /// These limits with those of `other` added, or put in place of the ones of the same name.
    ///
    /// # Errors
    ///
    /// [`LimitsError::TooMany`] if that makes too many.
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

    /// The place of the limit with this name.
    pub fn index(&self, name: &str) -> Option<usize> {
        self.index_of(HashedName::new(name)).or_else(|| self.iter().position(|limit| limit.name() == name))
    }

    /// As [`index`](Limits::index), for a name that is ready to be looked up. A demand cannot name a cooldown.
    #[inline(always)]
    pub fn index_of(&self, word: HashedName<'_>) -> Option<usize> {
        match self.0.tags.iter().position(|tag| *tag == word.tag) {
            Some(index) if word.tag != Tag::NONE => Some(index),
            _ => self.index_by_text(word.as_str()),
        }
    }

    /// For long names, names of limits past the first eight, and names that are none.
    #[cold]
    fn index_by_text(&self, name: &str) -> Option<usize> {
        self.iter().position(|limit| limit.name().as_str() == name && !limit.is_cooldown())
    }

    /// What `demand` takes of each limit. Names it does not know are errors, and so are amounts that never fit.
    ///
    /// # Errors
    ///
    /// Every variant of [`DemandError`]; nothing is changed by any of them.
    pub fn costs(&self, demand: &impl AsDemand) -> Result<Costs, DemandError> {
        let mut costs = Costs::none(self.len());
        self.costs_into(&mut costs, demand)?;
        Ok(costs)
    }

    /// As [`costs`](Limits::costs), into costs that take nothing yet: moving them about costs more than working them out.
    ///
    /// # Errors
    ///
    /// As [`costs`](Limits::costs).
    #[inline]
    pub fn costs_into(&self, costs: &mut Costs, demand: &impl AsDemand) -> Result<(), DemandError> {
        self.resolve_into(costs, demand, |name| Err(self.unknown(name)))?;
        self.impossible(costs).map_or(Ok(()), Err)
    }

    /// As [`costs`](Limits::costs), but `unknown` is asked what to do about names that are no limit here, and
    /// capacities are not looked at: an amount that never fits is denied, and [`impossible`](Limits::impossible)
    /// tells it from one that will.
    ///
    /// # Errors
    ///
    /// As [`costs`](Limits::costs), and whatever `unknown` answers.
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

    /// As [`resolve`](Limits::resolve), into costs that take nothing yet: moving them about costs more than
    /// working them out.
    ///
    /// # Errors
    ///
    /// As [`resolve`](Limits::resolve).
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

    /// The same limits with a [cooldown](Limit::cooldown) behind them.
    ///
    /// # Panics
    ///
    /// Never: there is always a place for it.
    #[must_use]
    pub fn with_cooldown(&self) -> Limits {
        let others = self.iter().filter(|limit| !limit.is_cooldown()).cloned();
        let limits = Limits::from_built(others.chain([Limit::cooldown()]).collect());
        limits.expect("the others are as they were").at_version(self.version())
    }

    /// The same limits without a [cooldown](Limit::cooldown).
    ///
    /// # Panics
    ///
    /// Never: what is left of valid limits is valid.
    #[must_use]
    pub fn without_cooldown(&self) -> Limits {
        let others = self.iter().filter(|limit| !limit.is_cooldown()).cloned().collect();
        Limits::from_built(others).expect("the others are as they were").at_version(self.version())
    }

    /// The error about a name that is no limit here.
    #[cold]
    pub fn unknown(&self, name: &str) -> DemandError {
        let known =
            self.iter().filter(|limit| !limit.is_cooldown()).map(|limit| limit.name().clone()).collect();
        DemandError::UnknownLimit { name: name.into(), known }
    }

    #[inline]
    fn take_implicit(&self, costs: &mut impl CostSink, nothing_named: bool) -> Result<(), DemandError> {
        let all = mask_of(self.len());
        if nothing_named && self.0.implicit != all {
            let missing = (!self.0.implicit & all).trailing_zeros() as usize;
            return Err(DemandError::MissingAmount { limit: self[missing].name().clone() });
        }
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

    /// Whether any of them is a resource, which must be given back.
    #[inline]
    pub fn have_resources(&self) -> bool {
        self.0.resources
    }

    /// Whether any of them may have something to remark: see [`Bucket::remarks`](crate::Bucket::remarks).
    #[inline]
    pub fn have_remarks(&self) -> bool {
        self.0.remarks
    }

    /// Whether any of them is [custom](Limit::custom).
    #[inline]
    pub(crate) fn have_custom(&self) -> bool {
        self.0.custom
    }

    /// Refuses limits that no store can keep: a [custom](Limit::custom) one is a rule in the code of this program.
    ///
    /// # Errors
    ///
    /// [`LimitsError::Custom`] with the name of the first such limit.
    #[inline]
    pub fn check_storable(&self) -> Result<(), LimitsError> {
        if self.have_custom() { Err(self.not_storable()) } else { Ok(()) }
    }

    #[cold]
    fn not_storable(&self) -> LimitsError {
        let custom = self.iter().find(|limit| limit.is_custom());
        LimitsError::Custom(custom.expect("one of them is custom").name().clone())
    }

    /// Whether refunds of these limits come out the same whenever they are made, so that no clock is needed.
    ///
    /// A meter's credit and a gauge's count may be given back at any time; a window wants to know whether it
    /// still lasts.
    #[inline]
    pub fn refunds_ignore_time(&self) -> bool {
        self.0.timeless == mask_of(self.len())
    }

    /// Whether each limit has the place of the one of the same name in `other`, and is given back like it.
    pub fn has_places_of(&self, other: &Limits) -> bool {
        let alike =
            |(one, two): (&Limit, &Limit)| one.name() == two.name() && one.is_resource() == two.is_resource();
        self.len() == other.len() && self.iter().zip(other.iter()).all(alike)
    }

    /// Why `costs` can never fit, if that is so.
    #[inline]
    pub fn impossible(&self, costs: &Costs) -> Option<DemandError> {
        let never_fits = |(limit, asked): &(&Limit, &u64)| **asked > limit.capacity() && !limit.is_shadow();
        self.iter().zip(costs.amounts()).find(never_fits).map(too_much)
    }

    /// Whether both are the very same limits, not only equal ones.
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
                    "limit {name:?} is custom, and its rule is code of this program, which no store can keep; "
                )?;
                f.write_str("use it in a LimitSet without a store, or a rate, a quota or a resource instead")
            }
            LimitsError::Unnamed => {
                f.write_str("a set in a store wants a name that others find it by, such as \"openai/blue\"")
            }
            LimitsError::BadVersion(version, max) => {
                write!(f, "version is {version}, but must be 1 to {max}")
            }
            LimitsError::OtherKind(name) => {
                write!(f, "the limit to replace {name:?} is of another kind; make a new set for that")
            }
            LimitsError::TwoKinds(limits) => {
                let [given, there] = &**limits;
                let (name, kinds) = (given.name(), [given.kind(), there.kind()].map(Kind::word));
                let [here, before] = kinds;
                write!(
                    f,
                    "limit {name:?} is a {here} here ({given}), but a {before} ({there}) in the set that is "
                )?;
                f.write_str("open already; give one of them another name")
            }
            LimitsError::NamedAndRemoved(name) => {
                write!(f, "limit {name:?} is given and removed at once; do one of the two")
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
