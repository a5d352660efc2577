//! Chains: several buckets, all or nothing.

use crate::{Bucket, Costs, Denial, Holder, Limits, Take, Tick};

/// One bucket of a chain, with what is to be taken of it.
pub struct Link<'a> {
    /// Its limits.
    pub limits: &'a Limits,
    /// The bucket.
    pub bucket: &'a mut Bucket,
    /// What to take.
    pub costs: &'a Costs,
}

/// Takes from every bucket of the chain, or from none. On success, reports to `taken` when, for each link in order.
///
/// # Errors
///
/// The denial of every bucket, in order, if any of them refuses. No bucket has changed.
pub fn take_all(
    chain: &mut [Link<'_>],
    now: Tick,
    holder: Option<Holder>,
    mut taken: impl FnMut(usize, Tick),
) -> Result<(), Vec<Denial>> {
    if !chain.iter().all(|link| link.bucket.fits(link.limits, now, link.costs)) {
        return Err(chain.iter().map(|link| link.bucket.denial(link.limits, now, link.costs)).collect());
    }
    for (index, link) in chain.iter_mut().enumerate() {
        taken(index, link.bucket.commit(link.limits, now, &Take { costs: link.costs, holder }));
    }
    Ok(())
}
