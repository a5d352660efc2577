//! Usage of a step of a call.

use tollgate_core::{Costs, Tick, Usage};

use super::{Caller, Sums, UsageRetention};
use crate::BucketRef;
use crate::records::Write;

/// An event that counts as usage.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Tick, demand};
/// use tollgate_store::usage::{UsageRetention, Used};
/// use tollgate_store::{BucketRef, Key};
///
/// let (key, limits) = (Key::new(&["user-1", "gpt-4"]), Limits::new([Limit::per_minute("tpm", 1_000)])?);
/// let costs = limits.costs(&demand! { tpm: 600 })?;
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let (mut usage, mut writes) = (None, Vec::new());
/// for hour in [1, 2] {
///     let at = Tick::from_secs(hour * 3_600);
///     Used::Taken(&costs).count(&mut usage, &place, at, &UsageRetention::FOREVER, &mut writes);
/// }
/// assert_eq!(writes.len(), 3, "those of the first hour, which is over");
/// assert_eq!(usage.map(|sums| sums.events()), Some(1));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum Used<'a> {
    /// These costs were taken.
    Taken(&'a Costs),
    /// This was settled.
    Settled(&'a Usage<'a>),
    /// A process reports what it has counted: the kind of callers, the number of takes, and the amount used of each limit.
    Reported(Caller, i64, &'a [i64]),
}

impl Used<'_> {
    /// Counts it at a place, in the sums that are kept beside its bucket. Sums of another hour, or of other limits, go to
    /// `writes`, for records that are kept for as long as `kept` sets.
    pub fn count(
        &self,
        usage: &mut Option<Sums>,
        place: &BucketRef<'_>,
        at: Tick,
        kept: &UsageRetention,
        writes: &mut Vec<Write>,
    ) {
        let caller = self.caller();
        let sums = usage.get_or_insert_with(|| Sums::new(place.limits, at, caller));
        if !sums.covers(place.limits, at, caller) && !sums.adopt(place.limits, at, caller) {
            writes.extend(sums.roll_over(place.limits, at, caller).writes_at(place, kept));
        }
        self.add(sums);
    }

    /// Returns the kind of callers that used it.
    pub fn caller(&self) -> Caller {
        match self {
            Used::Taken(costs) => Caller::of(costs),
            Used::Settled(usage) => Caller::of(usage.reserved),
            Used::Reported(caller, ..) => *caller,
        }
    }

    /// Adds it to sums that are counted in its limits.
    pub fn add(&self, sums: &mut Sums) {
        match self {
            Used::Taken(costs) => sums.add_take(costs),
            Used::Settled(usage) => sums.add_settlement(usage),
            Used::Reported(_, events, amounts) => sums.add_reported(*events, amounts),
        }
    }
}

impl Sums {
    /// Returns the writes that add them to the records, if the place is one whose usage is reported.
    pub fn writes_at(&self, place: &BucketRef<'_>, kept: &UsageRetention) -> Vec<Write> {
        match place.key.pair().filter(|_| !self.is_empty()) {
            Some((entity, resource)) => self.writes(place.namespace, entity, resource, kept),
            None => Vec::new(),
        }
    }
}
