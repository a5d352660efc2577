//! Keys of wait queues: one limit of one bucket.

use tollgate_core::{Costs, Limits, Usage};

use crate::{BucketRef, Key, Op, Step};

/// A limit of a bucket. Callers that are short of it wait in a queue of its own.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{Key, QueueKey};
///
/// let limits = Limits::new([Limit::per_minute("rpm", 10), Limit::per_minute("tpm", 1_000)])?;
/// let (bucket, costs) = (Key::new(&["user-1"]), limits.costs(&demand! { tpm: 50 })?);
/// let queues: Vec<QueueKey> = QueueKey::of_costs("app", &bucket, &limits, &costs).collect();
/// assert_eq!((queues.len(), &*queues[0].limit), (1, "tpm"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct QueueKey {
    /// The namespace of the bucket.
    pub namespace: Box<str>,
    /// The bucket.
    pub bucket: Key,
    /// The name of the limit.
    pub limit: Box<str>,
}

impl QueueKey {
    /// Returns a queue for each limit that more than nothing is taken of.
    pub fn of_costs<'a>(
        namespace: &'a str,
        bucket: &'a Key,
        limits: &'a Limits,
        costs: &'a Costs,
    ) -> impl Iterator<Item = QueueKey> + 'a {
        let taken = limits.iter().zip(costs.amounts()).filter(|(_, amount)| **amount > 0);
        taken.map(|(limit, _)| QueueKey {
            namespace: namespace.into(),
            bucket: bucket.clone(),
            limit: limit.name().as_str().into(),
        })
    }
}

/// A bucket whose limits have more room than before, so that callers that wait for them may pass.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, demand};
/// use tollgate_store::{BucketRef, Freed, Key, Op, Step};
///
/// let (key, limits) = (Key::new(&["user-1"]), Limits::new([Limit::per_minute("rpm", 10)])?);
/// let costs = limits.costs(&demand! { rpm: 1 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let freed = Freed::by(&Step { place, op: Op::TopUp(&costs) }).expect("it adds credit");
/// assert_eq!(freed.limits, Some(vec!["rpm".into()]));
/// assert_eq!(Freed::by(&Step { place, op: Op::Take { costs: &costs, term: None } }), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freed {
    /// The namespace of the bucket.
    pub namespace: Box<str>,
    /// The bucket.
    pub bucket: Key,
    /// The names of the limits; `None` for all of them.
    pub limits: Option<Vec<Box<str>>>,
}

impl Freed {
    /// Returns all limits of a bucket.
    pub fn all(namespace: &str, bucket: &Key) -> Freed {
        Freed { namespace: namespace.into(), bucket: bucket.clone(), limits: None }
    }

    /// Returns what a step has freed once it is applied, if anything.
    pub fn by(step: &Step<'_>) -> Option<Freed> {
        let place = &step.place;
        match &step.op {
            Op::Take { .. } | Op::Renew(_) => None,
            Op::Reset => Some(Freed::all(place.namespace, place.key)),
            Op::Settle(usage) | Op::SettleExisting(usage) => Freed::by_settling(place, usage),
            Op::TopUp(credit) => Freed::named(place, |index| credit.amount(index) > 0),
        }
    }

    /// Returns what is free once what was taken is settled with what was used, if anything.
    pub(super) fn by_settling(place: &BucketRef<'_>, usage: &Usage<'_>) -> Option<Freed> {
        Freed::named(place, |index| {
            let reserved = usage.reserved.amount(index);
            let used = usage.used.get(index).copied().unwrap_or(0);
            reserved > 0 && (place.limits[index].is_resource() || used < reserved)
        })
    }

    fn named(place: &BucketRef<'_>, is_freed: impl Fn(usize) -> bool) -> Option<Freed> {
        let freed = place.limits.iter().enumerate().filter(|(index, _)| is_freed(*index));
        let limits: Vec<Box<str>> = freed.map(|(_, limit)| limit.name().as_str().into()).collect();
        (!limits.is_empty()).then(|| Freed { limits: Some(limits), ..Freed::all(place.namespace, place.key) })
    }

    pub(super) fn has(&self, limit: &str) -> bool {
        self.limits.as_ref().is_none_or(|limits| limits.iter().any(|freed| **freed == *limit))
    }
}
