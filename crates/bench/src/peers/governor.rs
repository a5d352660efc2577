//! governor: GCRA in one atomic word, no leases. With its default clock (quanta) and map (dashmap).

use std::any::Any;
use std::num::NonZeroU32;

use anyhow::{Context, Result};
use governor::{DefaultDirectRateLimiter, DefaultKeyedRateLimiter, Quota, RateLimiter};

use crate::keys::{self, KeyWalk};
use crate::subject::{BenchOperation, each};
use crate::threaded::{SharedOperation, shared};

pub(crate) const NAME: &str = "governor";

/// One cell a nanosecond: more than any loop can acquire.
const CELLS_PER_SECOND: u32 = 1_000_000_000;

/// `check` on one limiter.
pub(crate) fn one_limit() -> Result<BenchOperation> {
    let limiter = direct()?;
    Ok(each(move || limiter.check().is_ok()))
}

/// Three limiters one after the other. Not atomic: a denial by the last leaves the first two charged.
pub(crate) fn three_limits_in_a_row() -> Result<BenchOperation> {
    let limiters = [direct()?, direct()?, direct()?];
    Ok(each(move || limiters.iter().all(|limiter| limiter.check().is_ok())))
}

/// A map of limiters, always the same key.
pub(crate) fn one_hot_key() -> Result<BenchOperation> {
    let limiter = keyed()?;
    let key = keys::key(0);
    Ok(each(move || limiter.check_key(&key).is_ok()))
}

/// A map of a million limiters, in random order.
pub(crate) fn million_keys() -> Result<BenchOperation> {
    let limiter = keyed()?;
    for key in keys::million() {
        limiter.check_key(key).ok().context("governor denied a new key")?;
    }
    let mut walk = KeyWalk::over(keys::million());
    Ok(each(move || limiter.check_key(walk.step()).is_ok()))
}

/// A map of limiters, and one key that all threads use.
pub(crate) fn one_shared_key() -> Result<SharedOperation> {
    let limiter = keyed()?;
    let key = keys::key(0);
    Ok(shared(move || limiter.check_key(&key).is_ok()))
}

/// A map that has seen many keys once.
pub(crate) fn fill(keys: u64) -> Result<Box<dyn Any>> {
    let limiter = keyed()?;
    for index in 0..keys {
        limiter.check_key(&keys::key(index)).ok().context("governor denied a new key")?;
    }
    Ok(Box::new(limiter))
}

fn direct() -> Result<DefaultDirectRateLimiter> {
    Ok(RateLimiter::direct(quota()?))
}

fn keyed() -> Result<DefaultKeyedRateLimiter<String>> {
    Ok(RateLimiter::keyed(quota()?))
}

fn quota() -> Result<Quota> {
    Ok(Quota::per_second(NonZeroU32::new(CELLS_PER_SECOND).context("a quota is not zero")?))
}
