//! Chains: several buckets that a demand takes from together, or not at all.

use crate::{Bucket, Costs, Denial, Holder, Limits, Take, Tick};

/// One bucket of a chain, with the costs to take from it.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Bucket, Limit, Limits, Link, Tick, demand, take_all};
///
/// let limits = Limits::new([Limit::per_minute("rpm", 10)])?;
/// let (mut bucket, costs) = (Bucket::fresh(&limits, Tick::ZERO), limits.costs(&demand! { rpm: 4 })?);
/// let link = Link { limits: &limits, bucket: &mut bucket, costs: &costs };
/// assert!(take_all(&mut [link], Tick::ZERO, None, |_, _| {}).is_ok());
/// assert_eq!(bucket.peek(&limits, Tick::ZERO)[0].available(), 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Link<'a> {
    /// The limits of the bucket.
    pub limits: &'a Limits,
    /// The bucket.
    pub bucket: &'a mut Bucket,
    /// The costs to take.
    pub costs: &'a Costs,
}

/// Takes from every bucket of the chain, or from none of them. Calls `taken` with the index of each
/// link and the instant its costs were taken, in order.
///
/// # Errors
///
/// Returns the denial of every bucket, in order, if any of them denies. No bucket has changed.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Bucket, Limit, Limits, Link, Tick, demand, take_all};
///
/// let user = Limits::new([Limit::per_minute("rpm", 10)])?;
/// let team = Limits::new([Limit::per_minute("rpm", 1)])?;
/// let costs = user.costs(&demand! { rpm: 1 })?;
/// let mut buckets = [Bucket::fresh(&user, Tick::ZERO), Bucket::fresh(&team, Tick::ZERO)];
///
/// let mut take = || {
///     let [user_bucket, team_bucket] = &mut buckets;
///     let mut chain = [
///         Link { limits: &user, bucket: user_bucket, costs: &costs },
///         Link { limits: &team, bucket: team_bucket, costs: &costs },
///     ];
///     take_all(&mut chain, Tick::ZERO, None, |_, _| {})
/// };
/// assert!(take().is_ok());
/// assert_eq!(take().unwrap_err().len(), 2);
/// assert_eq!(buckets[0].peek(&user, Tick::ZERO)[0].available(), 9);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
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
