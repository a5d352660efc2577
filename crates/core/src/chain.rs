//! Chains: several buckets, all or nothing.

use crate::{Bucket, Costs, Denial, Holder, Limits, Quote, Take, Tick};

/// One bucket of a chain, with what is to be taken of it.
pub struct Link<'a> {
    /// Its limits.
    pub limits: &'a Limits,
    /// The bucket.
    pub bucket: &'a mut Bucket,
    /// What to take.
    pub costs: &'a Costs,
}

/// Takes from every bucket of the chain, or from none. On success `taken` is told when, for each link in order.
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
    let mut quotes = vec![Quote::default(); chain.len()];
    let fits =
        |(link, quote): (&Link<'_>, &mut Quote)| link.bucket.quote(link.limits, now, link.costs, quote);
    if !chain.iter().zip(&mut quotes).all(fits) {
        return Err(chain.iter().map(|link| link.bucket.denial(link.limits, now, link.costs)).collect());
    }
    for (index, (link, quote)) in chain.iter_mut().zip(&quotes).enumerate() {
        let take = Take { costs: link.costs, holder };
        taken(index, link.bucket.pay(link.limits, now, &take, quote));
    }
    Ok(())
}
