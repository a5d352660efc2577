//! Opening a set in a store: the limits that this program names are joined to those that others have.
//!
//! The first use reads the record of the set and, if something in it is missing, writes the union on condition that
//! nothing has changed. From then on a take brings the union, takes of what this program names, and costs one call; the
//! record is read again only when the store answers that its limits are past.

use std::sync::atomic::Ordering;

use tollgate_catalog::{CatalogError, Opening, SharedSet, UNWRITTEN};
use tollgate_core::{AsDemand, Costs, Demand, DemandError, Limits, LimitsError, Name};
use tollgate_store::StoreError;
use tollgate_store::records::RecordsError;

use super::{STALE_MAX, StoredBacking};
use crate::admission::limits_unsettled;
use crate::set::LimitSet;
use crate::{AcquireError, ReplaceError};

/// What a program says about a set that it opens.
pub(in crate::set) struct NamedLimits {
    /// The limits, with a cooldown behind them. Demands are counted in these.
    pub(in crate::set) limits: Limits,
    pub(in crate::set) removed: Box<[Name]>,
    pub(in crate::set) version: u16,
}

/// What is cached of a set.
#[derive(Clone)]
pub(super) struct JoinedLimits {
    pub(super) set: SharedSet,
    pub(super) in_force: InForce,
}

/// The limits in force, and which of them concern this program.
#[derive(Clone)]
pub(crate) struct InForce {
    /// Those of all programs, with a cooldown behind them.
    pub(crate) limits: Limits,
    /// One bit for each of them that this program does not name.
    pub(crate) foreign: u64,
    /// Whether they are what this program names, in the same places.
    is_as_named: bool,
}

/// Why a set could not be opened.
#[derive(Debug)]
pub(in crate::set) enum JoinError {
    Limits(LimitsError),
    Store(StoreError),
}

impl JoinedLimits {
    /// Before anything is cached: what this program names, of no revision.
    pub(super) fn of_named(namespace: &str, name: &str, named: &NamedLimits) -> JoinedLimits {
        let in_force = InForce { limits: named.limits.clone(), foreign: 0, is_as_named: true };
        JoinedLimits { set: SharedSet::new(namespace, name), in_force }
    }

    fn of(set: SharedSet, named: &Limits) -> JoinedLimits {
        let limits = set.in_force();
        let is_foreign = |(index, limit): (usize, &tollgate_core::Limit)| {
            u64::from(named.index(limit.name()).is_none()) << index
        };
        let foreign = limits.iter().enumerate().map(is_foreign).sum();
        let is_as_named = limits.same_layout(named);
        JoinedLimits { set, in_force: InForce { limits, foreign, is_as_named } }
    }
}

impl StoredBacking {
    /// The limits in force, as far as cached.
    pub(in crate::set) fn in_force(&self) -> InForce {
        self.known().lock().in_force.clone()
    }

    /// Returns whether these are the limits in force, as far as cached.
    pub(super) fn is_in_force(&self, limits: &Limits) -> bool {
        self.known().lock().in_force.limits.same(limits)
    }

    /// What a demand takes of the limits in force, if it can ever fit them. One that is too large for the cached limits never gets to
    /// the bucket, which would say that they are past, so the record is read again.
    pub(super) async fn possible_costs(
        &self,
        set: &LimitSet,
        demand: &Demand,
    ) -> Result<(InForce, Costs), DemandError> {
        let mut is_read_again = false;
        loop {
            let in_force = self.in_force();
            let costs = self.costs(&in_force, demand, |name| set.skip_unknown(name))?;
            let Some(impossible) = in_force.limits.impossible(&costs) else { return Ok((in_force, costs)) };
            // While the store is unavailable, the cached limits decide.
            if is_read_again || self.learn(None).await.is_err() {
                return Err(impossible);
            }
            is_read_again = true;
        }
    }

    /// What a demand takes of the limits in force: of those that this program names.
    pub(super) fn costs(
        &self,
        in_force: &InForce,
        demand: &impl AsDemand,
        unknown: impl FnMut(&str) -> Result<(), DemandError>,
    ) -> Result<Costs, DemandError> {
        let costs = self.named.limits.resolve(demand, unknown)?;
        Ok(if in_force.is_as_named { costs } else { costs.remapped(&self.named.limits, &in_force.limits) })
    }

    /// Joins the limits that this program names to those that others have, unless that is done.
    pub(in crate::set) async fn open(&self) -> Result<(), JoinError> {
        if self.is_open.load(Ordering::Acquire) {
            return Ok(());
        }
        self.learn(None).await
    }

    /// Reads which limits are in force, and joins those that this program names. `refused` are the limits that the
    /// bucket said are past.
    pub(super) async fn learn(&self, refused: Option<&Limits>) -> Result<(), JoinError> {
        for _ in 0..STALE_MAX {
            let there = self.read().await?;
            let mut next = there.joined(&self.opening())?;
            if let Some(doubted) = self.doubted(&there, refused) {
                let asked = self.evaluate(&doubted, &Costs::none(doubted.len())).await?;
                if asked.limits().version() > doubted.version() {
                    next = Some(next.as_ref().unwrap_or(&there).recovered(asked.limits())?);
                }
            }
            let Some(next) = next else {
                self.cache(there);
                return Ok(());
            };
            if self.write(&there, &next).await? {
                self.cache(next);
                return Ok(());
            }
        }
        Err(limits_unsettled().into())
    }

    /// Limits of a version that the bucket may be past though the record is not: the record should be ahead of the bucket,
    /// and is not if it was lost. Then the bucket knows more.
    fn doubted(&self, there: &SharedSet, refused: Option<&Limits>) -> Option<Limits> {
        if there.revision() == 0 {
            return Some(self.named.limits.clone().at_version(UNWRITTEN));
        }
        refused.filter(|refused| there.revision() <= refused.version()).cloned()
    }

    pub(super) fn cache(&self, set: SharedSet) {
        let mut known = self.known().lock();
        if set.revision() >= known.set.revision() {
            *known = JoinedLimits::of(set, &self.named.limits);
        }
        self.is_open.store(true, Ordering::Release);
    }

    fn opening(&self) -> Opening<'_> {
        let NamedLimits { limits, removed, version } = &self.named;
        Opening { limits, removed, version: *version }
    }

    async fn read(&self) -> Result<SharedSet, JoinError> {
        let none = SharedSet::new(&self.store.namespace, &self.name);
        let keys = [none.key().clone()];
        let items = self.store.bounded(self.store.backend.get_many(&keys)).await;
        let item = items.map_err(store_error)?.into_iter().next().flatten();
        let read = none.read(item.as_ref(), &self.named.limits);
        read.map_err(|why: CatalogError| StoreError::Refused(why.to_string()).into())
    }

    /// Writes the record, unless another program was faster.
    async fn write(&self, before: &SharedSet, after: &SharedSet) -> Result<bool, JoinError> {
        let writes = [after.write_after(before)];
        match self.store.bounded(self.store.backend.write(&writes)).await {
            Ok(()) => Ok(true),
            Err(RecordsError::Failed(_)) => Ok(false),
            Err(RecordsError::Store(StoreError::Refused(why))) => Err(self.unwritten(&why).into()),
            Err(other) => Err(store_error(other).into()),
        }
    }

    /// The store refuses to write what this program names. One that may take but not write limits can open a set whose record
    /// has them already.
    fn unwritten(&self, why: &str) -> StoreError {
        let name = &self.name;
        StoreError::Refused(format!(
            "the record of limit set {name:?} does not have the limits that this program names, and this program may not \
             write them; let one that may change limits open the set first ({why})"
        ))
    }
}

pub(in crate::set) fn store_error(error: RecordsError) -> StoreError {
    match error {
        RecordsError::Store(error) => error,
        other => StoreError::BadCall(other.to_string()),
    }
}

impl From<StoreError> for JoinError {
    fn from(error: StoreError) -> JoinError {
        JoinError::Store(error)
    }
}

impl From<LimitsError> for JoinError {
    fn from(error: LimitsError) -> JoinError {
        JoinError::Limits(error)
    }
}

impl From<JoinError> for AcquireError {
    fn from(error: JoinError) -> AcquireError {
        match error {
            JoinError::Limits(error) => AcquireError::Limits(error),
            JoinError::Store(error) => AcquireError::Store(error),
        }
    }
}

impl From<JoinError> for ReplaceError {
    fn from(error: JoinError) -> ReplaceError {
        match error {
            JoinError::Limits(error) => ReplaceError::Limits(error),
            JoinError::Store(error) => ReplaceError::Store(error),
        }
    }
}

/// For reads: limits that cannot be joined make the store refuse every call.
impl From<JoinError> for StoreError {
    fn from(error: JoinError) -> StoreError {
        match error {
            JoinError::Limits(error) => StoreError::Refused(error.to_string()),
            JoinError::Store(error) => error,
        }
    }
}
