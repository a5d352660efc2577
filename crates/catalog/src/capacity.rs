//! Capacity: how much of a limit all entities have together, and how much of it is left.

use tollgate_core::Status;
use tollgate_store::{BucketStatus, Reply, Scope};

use crate::{Catalog, Result, name};

/// The capacity of one limit of a resource, over all entities that have used it.
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::Registry;
/// use tollgate_store::Memory;
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// let capacity = catalog.capacity("gpt-4", "rpm").wait()?;
/// assert_eq!((capacity.entities.len(), capacity.total_used), (0, 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ResourceCapacity {
    /// Each entity, in the order of the store. Those whose bucket is full may be missing.
    pub entities: Vec<EntityCapacity>,
    /// The sum of the capacities of bounded limits.
    pub total_capacity: u64,
    /// The amount of that which is available now. Debts count against it.
    pub total_available: i64,
    /// The amount of that which is used.
    pub total_used: u64,
}

/// The capacity of one limit for an entity.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
/// use tollgate_catalog::Registry;
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{BucketRef, Key, Memory, Op, Step, Transaction};
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// # let (key, limits) = (Key::new(&["user-1", "gpt-4"]), Limits::new([Limit::resource("slots", 5)])?);
/// # let costs = limits.costs(&demand! { slots: 2 })?;
/// # let place = BucketRef { namespace: catalog.namespace_id(), key: &key, limits: &limits };
/// # let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
/// # catalog.backend().apply(&Transaction { id: None, steps: &steps, metered: true }).wait()?;
/// // A call of the user has taken 2 of 5 slots.
/// let capacity = catalog.capacity("gpt-4", "slots").wait()?;
/// let user = &capacity.entities[0];
/// assert_eq!((user.entity.as_str(), user.used, user.available), ("user-1", 2, 3));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EntityCapacity {
    /// The id of the entity.
    pub entity: String,
    /// The capacity of the limit; `None` if it is unbounded.
    pub capacity: Option<u64>,
    /// The amount that is available now. Below zero it is debt.
    pub available: i64,
    /// The amount that is used; with a debt that is more than the capacity.
    pub used: u64,
}

impl Catalog {
    /// Returns the capacity of a limit of a resource, over all entities that have used it.
    ///
    /// # Cancel safety
    ///
    /// It changes nothing.
    ///
    /// # Errors
    ///
    /// An invalid name, or an error of the store.
    pub fn capacity<'a>(&'a self, resource: &'a str, limit: &'a str) -> Reply<'a, Result<ResourceCapacity>> {
        Reply::later(async move {
            name::RESOURCE.check(resource)?;
            name::LIMIT.check(limit)?;
            let buckets = self.all_buckets(Scope::Resource(resource)).await?;
            let mut whole = ResourceCapacity::default();
            buckets
                .into_iter()
                .filter_map(|bucket| EntityCapacity::of(bucket, limit))
                .for_each(|it| whole.add(it));
            Ok(whole)
        })
    }
}

impl EntityCapacity {
    fn of(bucket: BucketStatus, limit: &str) -> Option<EntityCapacity> {
        let status = bucket.limits.iter().find(|status| status.limit().name() == limit)?;
        let (capacity, used) = match status.limit().is_unbounded() {
            true => (None, 0),
            false => (Some(status.limit().capacity()), used(status)),
        };
        Some(EntityCapacity { entity: bucket.entity, capacity, available: status.available(), used })
    }
}

fn used(status: &Status) -> u64 {
    let used = i128::from(status.limit().capacity()) - i128::from(status.available());
    u64::try_from(used.max(0)).unwrap_or(u64::MAX)
}

impl ResourceCapacity {
    fn add(&mut self, entity: EntityCapacity) {
        if let Some(capacity) = entity.capacity {
            self.total_capacity = self.total_capacity.saturating_add(capacity);
            self.total_available = self.total_available.saturating_add(entity.available);
            self.total_used = self.total_used.saturating_add(entity.used);
        }
        self.entities.push(entity);
    }
}
