//! Our side of the rows about the limiter, through the public API.

use std::any::Any;

use anyhow::{Context, Result};
use tollgate::{Level, Limit, LimitBuilder, LimitSet, Limiter, Limits, NewEntity, demand};

use crate::keys;
use crate::subject::{BenchOperation, each};

/// More a second than any loop can acquire.
const PLENTY: u64 = 1_000_000_000;

const RESOURCE: &str = "gpt-4";

/// The name of the row's other side.
pub(crate) const LIMIT_SET: &str = "limit set";

/// The name of the side with few entities.
pub(crate) const FEW: &str = "1,000 entities";

fn two() -> [LimitBuilder; 2] {
    [Limit::per_second("rpm", PLENTY), Limit::per_second("tpm", 100 * PLENTY)]
}

fn limiter(limits: [LimitBuilder; 2]) -> Result<Limiter> {
    let limiter = Limiter::in_memory()?;
    limiter.catalog().set_limits(Level::Resource(RESOURCE), &Limits::new(limits)?).wait()?;
    Ok(limiter)
}

fn call(limiter: &Limiter, entity: &str) -> bool {
    match limiter.acquire(entity, RESOURCE, demand! { rpm: 1, tpm: 100 }).wait() {
        Ok(lease) => lease.settle(demand! { rpm: 1, tpm: 90 }).wait().is_ok(),
        Err(_) => false,
    }
}

/// A hot entity: acquired and settled.
pub(crate) fn hot_entity() -> Result<BenchOperation> {
    let limiter = limiter(two())?;
    Ok(each(move || call(&limiter, "user-1")))
}

/// The same limits as a set, with no entity to look up.
pub(crate) fn hot_set() -> Result<BenchOperation> {
    let set = LimitSet::new(two())?;
    Ok(each(move || match set.acquire(demand! { rpm: 1, tpm: 100 }).wait() {
        Ok(lease) => lease.settle(demand! { rpm: 1, tpm: 90 }).wait().is_ok(),
        Err(_) => false,
    }))
}

/// A hot entity that is charged together with its parent.
pub(crate) fn hot_child() -> Result<BenchOperation> {
    let limiter = limiter(two())?;
    limiter.catalog().create_entity(NewEntity::new("project")).wait()?;
    limiter.catalog().create_entity(NewEntity::new("user-1").parent("project").cascades(true)).wait()?;
    Ok(each(move || call(&limiter, "user-1")))
}

/// Many entities, each charged once under the limits of the resource.
pub(crate) fn fill(entities: u64) -> Result<Box<dyn Any>> {
    // A bucket refills in a quarter of an hour: none may be full again, and so be evicted, before the last one is
    // created.
    let limiter = limiter([Limit::per_day("rpm", 100), Limit::per_day("tpm", 10_000)])?;
    charge_all(&limiter, entities)?;
    Ok(Box::new(limiter))
}

fn charge_all(limiter: &Limiter, entities: u64) -> Result<()> {
    for index in 0..entities {
        call(limiter, &keys::key(index)).then_some(()).context("a new entity was denied")?;
    }
    Ok(())
}

/// Reads the limits of an entity that is not cached, while a million are in use.
pub(crate) fn resolve_beside_a_million() -> Result<BenchOperation> {
    // Tests only check that it works, and are not optimised.
    resolve_beside(if cfg!(test) { 10_000 } else { 1_000_000 })
}

/// As above, while a thousand are in use.
pub(crate) fn resolve_beside_a_thousand() -> Result<BenchOperation> {
    resolve_beside(1_000)
}

fn resolve_beside(entities: u64) -> Result<BenchOperation> {
    let limiter = limiter([Limit::per_day("rpm", 100), Limit::per_day("tpm", 10_000)])?;
    charge_all(&limiter, entities)?;
    let mut number = 0_u64;
    Ok(each(move || {
        number += 1;
        let stranger = format!("stranger-{number}");
        limiter.catalog().chain(&stranger, RESOURCE).wait().is_ok_and(|chain| chain.links.len() == 1)
    }))
}
