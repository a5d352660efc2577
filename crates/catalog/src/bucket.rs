//! Changes to buckets by an operator: reset, top up, list.

use tollgate_core::{AsDemand, BadAmount, Costs, Demand, DemandError, Limit, Limits, Span};
use tollgate_store::records::{Cursor, Fields, Item, RecordsError, Test, Write};
use tollgate_store::{BucketRef, BucketStatus, Key, Op, OpId, Reply, Scope, Step, Transaction, TxnOutcome};

use crate::audit::{Action, Subject};
use crate::chain::ChainLink;
use crate::transaction::{Commit, RecordTxn};
use crate::{Catalog, CatalogError, Result, keys, name};

/// The time for which the key of an idempotent change is stored: 30 days.
pub const KEY_KEPT: Span = Span::from_secs(30 * 86_400);

/// How often a change is attempted when the bucket has later limits.
const STALE_MAX: usize = 8;

/// How many buckets are requested at once.
const PAGE: usize = 1_000;

/// A change to one bucket.
struct BucketChange<'a> {
    entity: &'a str,
    resource: &'a str,
    key: Option<&'a str>,
    action: Action,
    credit: Vec<(String, u64)>,
}

impl Catalog {
    /// Resets a bucket to its unused state: the entity's own, not those that it cascades to.
    ///
    /// With a key the change happens once: `true` if it was made now, `false` if the key was used
    /// before, even for another bucket. Keys are stored for [`KEY_KEPT`].
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing. With a key it can be retried.
    ///
    /// # Errors
    ///
    /// [`NoLimits`](CatalogError::NoLimits) if there is neither a limit nor a bucket, an invalid
    /// name, a deleted namespace, or an error of the store.
    pub fn reset<'a>(
        &'a self,
        entity: &'a str,
        resource: &'a str,
        key: Option<&'a str>,
    ) -> Reply<'a, Result<bool>> {
        let change = BucketChange { entity, resource, key, action: Action::Reset, credit: Vec::new() };
        Reply::later(async move {
            change.check()?;
            self.apply_change(&change).await
        })
    }

    /// Adds credit to a bucket, up to its capacity: to the entity's own bucket, not those that it
    /// cascades to.
    ///
    /// The key is as in [`reset`](Catalog::reset).
    ///
    /// # Cancel safety
    ///
    /// If it is cancelled, the whole change is applied, or nothing. With a key it can be retried.
    ///
    /// # Errors
    ///
    /// As [`reset`](Catalog::reset), [`Credit`](CatalogError::Credit) for an unknown limit or an
    /// invalid amount, and [`CreditOfResource`](CatalogError::CreditOfResource).
    pub fn top_up<'a>(
        &'a self,
        entity: &'a str,
        resource: &'a str,
        credit: &impl AsDemand,
        key: Option<&'a str>,
    ) -> Reply<'a, Result<bool>> {
        let bad = credit.bad_amount().map(|(name, why)| bad_amount(name, why));
        let parts = (0..credit.len()).map(|index| credit.part(index));
        let credit = parts.map(|(name, amount)| (name.as_str().to_owned(), amount)).collect();
        let change = BucketChange { entity, resource, key, action: Action::ToppedUp, credit };
        Reply::later(async move {
            change.check()?;
            match bad {
                Some(bad) => Err(bad),
                None if change.credit.is_empty() => Err(CatalogError::Invalid {
                    what: "the credit",
                    value: "empty".into(),
                    valid: "an amount for at least one limit, such as tpm=100".into(),
                }),
                None => self.apply_change(&change).await,
            }
        })
    }

    /// Returns the status of the buckets of an entity. Full ones may be missing.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
    pub fn buckets<'a>(&'a self, entity: &'a str) -> Reply<'a, Result<Vec<BucketStatus>>> {
        Reply::later(async move {
            name::ENTITY.check(entity)?;
            self.all_buckets(Scope::Entity(entity)).await
        })
    }

    pub(crate) async fn all_buckets(&self, scope: Scope<'_>) -> Result<Vec<BucketStatus>> {
        let mut after: Option<Cursor> = None;
        let mut buckets = Vec::new();
        loop {
            let page = self.backend().buckets(self.namespace_id(), scope, after, PAGE).await?;
            buckets.extend(page.items);
            match page.next {
                Some(next) => after = Some(next),
                None => return Ok(buckets),
            }
        }
    }

    async fn apply_change(&self, change: &BucketChange<'_>) -> Result<bool> {
        for _ in 0..STALE_MAX {
            let limits = self.limits_of_bucket(change.entity, change.resource).await?;
            if let Some(done) = self.try_apply_change(change, &limits).await? {
                return Ok(done);
            }
            self.refresh(change.entity, change.resource);
        }
        Err(CatalogError::Contended(format!("the limits of entity {:?}", change.entity)))
    }

    /// Returns the limits in force, or those of the bucket itself if no level has any.
    async fn limits_of_bucket(&self, entity: &str, resource: &str) -> Result<Limits> {
        match self.own_link(entity, resource).await {
            Ok(ChainLink { limits, .. }) => Ok(limits),
            Err(no_limits @ CatalogError::NoLimits { .. }) => {
                let buckets = self.all_buckets(Scope::Bucket(entity, resource)).await?;
                let bucket = buckets.into_iter().next().ok_or(no_limits)?;
                let limits = bucket.limits.iter().map(|status| status.limit().clone());
                Ok(Limits::new(limits).expect("the limits of a bucket made a set before"))
            }
            Err(error) => Err(error),
        }
    }

    /// Makes the change; `None` if the bucket has later limits.
    async fn try_apply_change(&self, change: &BucketChange<'_>, limits: &Limits) -> Result<Option<bool>> {
        let mut tx = self.transaction();
        let once = change.key.map(|key| tx.once(key, change));
        let details = change
            .credit
            .iter()
            .map(|(name, amount)| (name.clone(), i64::try_from(*amount).unwrap_or(i64::MAX).into()));
        let details: Fields = details.collect();
        tx.audit(Subject::Entity(change.entity), change.action.clone(), Some(change.resource), details)?;
        let credit = change.costs(limits)?;
        let op = if change.action == Action::Reset { Op::Reset } else { Op::TopUp(&credit) };
        let key = Key::new(&[change.entity, change.resource]);
        let bucket = BucketRef { namespace: self.namespace_id(), key: &key, limits };
        let steps = [Step { place: bucket, op }];
        let id = self.shared().ulids.next(self.now())?;
        let call = Transaction { id: Some(OpId(id)), steps: &steps, metered: false };
        let applied = self.backend().apply_with(&call, tx.writes()).await;
        let (applied, written) = match applied {
            Ok(applied) => (Some(applied), Ok(())),
            Err(RecordsError::Store(tollgate_store::StoreError::NamespaceGone(_))) => {
                return Err(self.namespace_gone());
            }
            Err(error) => (None, Err(error)),
        };
        match (tx.outcome(written)?, applied) {
            (Commit::Done, Some(TxnOutcome::Stale(_))) => Ok(None),
            (Commit::Done, _) => Ok(Some(true)),
            (Commit::Failed(write), _) if Some(write) == once => Ok(Some(false)),
            (Commit::Failed(_), _) => Err(CatalogError::Contended(format!("entity {:?}", change.entity))),
        }
    }
}

impl RecordTxn<'_> {
    /// Makes the change happen once for each key. Returns the index of the write that fails if it
    /// has happened.
    fn once(&mut self, key: &str, change: &BucketChange<'_>) -> usize {
        let now = self.catalog().now();
        let mut item = Item::new(keys::done(self.namespace_id(), key))
            .with("entity_id", change.entity)
            .with("resource", change.resource)
            .with("action", change.action.name())
            .with("timestamp", tollgate_store::usage::iso(now));
        item.expires = Some(now + KEY_KEPT);
        self.push(Write::Put(item, vec![Test::Absent]))
    }
}

impl BucketChange<'_> {
    fn check(&self) -> Result<()> {
        name::ENTITY.check(self.entity)?;
        name::RESOURCE.check(self.resource)?;
        self.key.map_or(Ok(()), |key| name::IDEMPOTENCY_KEY.check(key))?;
        Ok(())
    }

    /// Returns the credit for each limit, and zero for those that are not named: unlike a call, a
    /// top-up has no default cost.
    fn costs(&self, limits: &Limits) -> Result<Costs> {
        let mut named: Vec<Limit> = Vec::new();
        for (name, _) in &self.credit {
            let index = limits.index(name).ok_or_else(|| limits.unknown(name))?;
            let limit = limits[index].clone();
            if limit.is_resource() {
                return Err(CatalogError::CreditOfResource(name.clone()));
            }
            if named.iter().all(|other| other.name() != limit.name()) {
                named.push(limit);
            }
        }
        let named = Limits::new(named).expect("some of the limits of a set make one");
        let demand: Demand = self.credit.iter().map(|(name, amount)| (name.as_str(), *amount)).collect();
        let unknown = |name: &str| Err(limits.unknown(name));
        let costs = if self.credit.is_empty() { Costs::none(0) } else { named.resolve(&demand, unknown)? };
        Ok(costs.remapped(&named, limits))
    }
}

fn bad_amount(name: &str, why: BadAmount) -> CatalogError {
    CatalogError::Credit(DemandError::BadAmount { name: name.into(), why: Box::new(why) })
}
