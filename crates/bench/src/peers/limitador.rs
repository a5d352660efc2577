//! limitador: fixed windows, several limits in one call, reservations. In memory, as a library.
//!
//! Its limits here have neither conditions nor variables, which is the shape it is fastest in.

use std::time::Duration;

use anyhow::{Context as _, Result};
use limitador::RateLimiter;
use limitador::limit::{Context, Limit, Namespace};
use limitador::reservation::ReservationId;

use crate::subject::{BenchOperation, each};

pub(crate) const NAME: &str = "limitador";

const NAMESPACE: &str = "bench";
const MAX_VALUE: u64 = 1 << 60;
/// A minute, an hour and a day.
const WINDOWS_SECONDS: [u64; 3] = [60, 3_600, 86_400];
/// The maximum number of counters for limits with variables, which are not used here.
const CACHE_SIZE: u64 = 1_000;
const HOLD_AT_MOST: Duration = Duration::from_secs(30);

/// `check_rate_limited_and_update` with three limits.
pub(crate) fn three_limits() -> Result<BenchOperation> {
    let (limiter, namespace) = limiter();
    let context = Context::default();
    Ok(each(move || {
        limiter.check_rate_limited_and_update(&namespace, &context, 1).is_ok_and(|result| !result.limited)
    }))
}

/// `reserve`, then `commit_reservation` with a little less: its equivalent of a settled lease.
pub(crate) fn reserve_and_commit_three_limits() -> Result<BenchOperation> {
    let (limiter, namespace) = limiter();
    let context = Context::default();
    let reserve = reserved(&limiter, &namespace, &context).context("limitador denied a first reservation")?;
    commit(&limiter, &namespace, &context, &reserve).context("limitador lost a first reservation")?;
    Ok(each(move || {
        let id = reserved(&limiter, &namespace, &context);
        id.and_then(|id| commit(&limiter, &namespace, &context, &id)).is_some()
    }))
}

fn reserved(limiter: &RateLimiter, namespace: &Namespace, context: &Context<'_>) -> Option<ReservationId> {
    limiter.reserve(namespace, context, 100, Some(HOLD_AT_MOST)).ok()?.reservation_id
}

fn commit(
    limiter: &RateLimiter,
    namespace: &Namespace,
    context: &Context<'_>,
    id: &ReservationId,
) -> Option<()> {
    let result = limiter.commit_reservation(namespace, context, Some(id), 90).ok()?;
    result.reservation_released.then_some(())
}

fn limiter() -> (RateLimiter, Namespace) {
    let limiter = RateLimiter::new(CACHE_SIZE);
    for seconds in WINDOWS_SECONDS {
        limiter.add_limit(Limit::new(NAMESPACE, MAX_VALUE, seconds, [], []));
    }
    (limiter, NAMESPACE.into())
}
