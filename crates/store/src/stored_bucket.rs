//! Stored buckets, and the effect of a step on one: for stores that decide by the core.

use tollgate_core::{Bucket, Costs, Denial, Limits, Span, Status, Take, Tick};

use crate::{LivenessCache, Op, Step, StepOutcome, Taken};

/// How long a holder whose process was found alive counts as alive for other hosts, as after a heartbeat.
const SEEN_FOR: Span = Span::from_secs(60);

/// A bucket and the limits it is under.
///
/// # Examples
///
/// ```
/// use tollgate_core::{Limit, Limits, Tick, demand};
/// use tollgate_store::{BucketRef, Key, Op, Step, StoredBucket};
///
/// let (key, limits) = (Key::new(&["user-1"]), Limits::new([Limit::per_minute("rpm", 10)])?);
/// let (now, costs) = (Tick::from_secs(10), limits.costs(&demand! { rpm: 4 })?);
/// let place = BucketRef { namespace: "app", key: &key, limits: &limits };
/// let take = Step { place, op: Op::Take { costs: &costs, term: None } };
///
/// let mut stored = StoredBucket::fresh(&limits);
/// assert!(stored.fits(now, &costs));
/// take.commit(Some(&mut stored), now);
/// assert_eq!(stored.peek(&limits, now)[0].available(), 6);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct StoredBucket {
    /// The limits that are in force.
    pub limits: Limits,
    /// The latest version under which the bucket was used. It is later than that of `limits` if later limits were equal
    /// to them.
    pub version: u64,
    /// The bucket.
    pub bucket: Bucket,
}

impl StoredBucket {
    /// Returns a bucket of which nothing was used.
    pub fn fresh(limits: &Limits) -> StoredBucket {
        let bucket = Bucket::fresh(limits, Tick::ZERO);
        StoredBucket { limits: limits.clone(), version: limits.version(), bucket }
    }

    /// Returns true if it was used under limits of a later version than these, if they have one.
    pub fn is_past(&self, limits: &Limits) -> bool {
        limits.version() != 0 && self.version > limits.version()
    }

    /// Returns true if these are the limits in force.
    pub fn is_under(&self, limits: &Limits) -> bool {
        self.limits.same(limits) || self.limits == *limits
    }

    /// Puts limits in force that are not [older](StoredBucket::is_past) than those of the bucket.
    pub fn put_in_force(&mut self, limits: &Limits, now: Tick) {
        if !self.is_under(limits) {
            self.bucket.adopt(&self.limits, limits, now);
            (self.limits, self.version) = (limits.clone(), limits.version());
        }
        self.version = self.version.max(limits.version());
    }

    /// Returns true if the limits of a step that takes are put in force although its call is denied.
    pub fn accepts_limits_of(&self, step: &Step<'_>) -> bool {
        let limits = step.place.limits;
        step.takes().is_some()
            && !self.is_under(limits)
            && limits.adopted_on_denial(&self.limits.clone().at_version(self.version))
    }

    /// Returns true if `costs` fit at `now`.
    pub fn fits(&self, now: Tick, costs: &Costs) -> bool {
        self.bucket.fits(&self.limits, now, costs)
    }

    /// Returns the denial of `costs` at `now`.
    pub fn denial(&self, now: Tick, costs: &Costs) -> Denial {
        self.bucket.denial(&self.limits, now, costs)
    }

    /// Renews holders of this host whose processes are alive although their heartbeats are overdue: they may be
    /// stopped, or have another clock. Stores call it before they decide anything.
    pub fn keep_living(&mut self, now: Tick, liveness: &mut LivenessCache) {
        if self.limits.have_resources() {
            let StoredBucket { bucket, limits, .. } = self;
            bucket.revive_holders(limits, now, now + SEEN_FOR, |holder| liveness.lives(holder));
        }
    }

    /// Returns the bucket at `now` without the holders whose processes have ended. Takes and queries judge holders
    /// alike, so that their answers agree.
    pub fn as_seen(mut self, now: Tick, liveness: &mut LivenessCache) -> StoredBucket {
        self.keep_living(now, liveness);
        self.drop_dead(now, liveness);
        self
    }

    /// Drops the holders whose processes of this host have ended, and returns whether there were any.
    pub fn drop_dead(&mut self, now: Tick, liveness: &mut LivenessCache) -> bool {
        let StoredBucket { bucket, limits, .. } = self;
        limits.have_resources() && bucket.retain_holders(limits, now, |holder| !liveness.is_gone(holder)) > 0
    }

    /// Returns true if it equals a fresh bucket and was not used for longer than `idle_for`.
    pub fn is_idle(&self, idle_for: Span, now: Tick) -> bool {
        now.since(self.bucket.stamp()) > idle_for && self.bucket.is_fresh(&self.limits, now)
    }

    /// Returns the denial that a step that takes would get at `now`, under the limits in force if its own are older.
    pub fn evaluate(mut self, step: &Step<'_>, now: Tick) -> Option<Denial> {
        let (costs, limits) = (step.takes()?, step.place.limits);
        self.rebase(limits, now);
        let is_as_counted = self.limits.same_layout(limits);
        let moved = (!is_as_counted).then(|| costs.remapped(limits, &self.limits));
        Some(self.denial(now, moved.as_ref().unwrap_or(costs)))
    }

    /// Returns the status of every limit at `now` under these limits, or under those in force if these are older.
    pub fn peek(mut self, limits: &Limits, now: Tick) -> Vec<Status> {
        self.rebase(limits, now);
        self.bucket.peek(&self.limits, now)
    }

    fn rebase(&mut self, limits: &Limits, now: Tick) {
        if self.is_past(limits) {
            // A caller that gets the limits in force needs their version.
            self.limits = self.limits.clone().at_version(self.version);
        } else {
            self.put_in_force(limits, now);
        }
    }
}

impl Step<'_> {
    /// Returns the costs of a step that takes.
    pub fn takes(&self) -> Option<&Costs> {
        match &self.op {
            Op::Take { costs, .. } => Some(costs),
            _ => None,
        }
    }

    /// Returns true if it makes a bucket where none exists. Only a step that charges does: a refund or a renewal
    /// creates nothing.
    pub fn creates(&self) -> bool {
        !matches!(self.op, Op::SettleExisting(_)) && self.charges()
    }

    /// Returns true if it makes a bucket where none exists, provided that none was forgotten there.
    pub fn charges(&self) -> bool {
        match &self.op {
            Op::Take { .. } => true,
            Op::Settle(usage) | Op::SettleExisting(usage) => usage.is_over(),
            _ => false,
        }
    }

    /// Applies the step to its bucket, if that exists. A take must have been found to fit, under limits that are in force.
    #[inline]
    pub fn commit(&self, stored: Option<&mut StoredBucket>, now: Tick) -> StepOutcome {
        self.commit_to(stored.map(|stored| (&stored.limits, &mut stored.bucket)), now)
    }

    /// Applies the step to a bucket under the limits that are in force, as [`commit`](Step::commit) does.
    #[inline]
    pub(crate) fn commit_to(&self, target: Option<(&Limits, &mut Bucket)>, now: Tick) -> StepOutcome {
        let counted_in = self.place.limits;
        match (&self.op, target) {
            (Op::Take { costs, term }, Some((limits, bucket))) => {
                let holder = term.map(|term| term.starting(now));
                let at = bucket.commit(limits, now, &Take { costs, holder });
                StepOutcome::Taken(Taken { at, warnings: bucket.warnings(limits, now) })
            }
            (Op::Settle(usage) | Op::SettleExisting(usage), target) => {
                if let Some((limits, bucket)) = target {
                    bucket.settle_counted_in(counted_in, limits, now, usage);
                }
                StepOutcome::Settled
            }
            (Op::TopUp(credit), target) => {
                if let Some((limits, bucket)) = target {
                    top_up(bucket, limits, now, counted_in, credit);
                }
                StepOutcome::Changed
            }
            (Op::Reset, target) => {
                if let Some((limits, bucket)) = target {
                    *bucket = Bucket::fresh(limits, now.max(bucket.stamp()));
                }
                StepOutcome::Changed
            }
            (Op::Renew(term), Some((limits, bucket))) => {
                StepOutcome::Renewed(bucket.renew(limits, now, term.starting(now)))
            }
            (Op::Take { .. } | Op::Renew(_), None) => StepOutcome::Renewed(false),
        }
    }
}

/// Adds credit that is counted in `counted_in` to a bucket under `limits`.
pub(crate) fn top_up(bucket: &mut Bucket, limits: &Limits, now: Tick, counted_in: &Limits, credit: &Costs) {
    if limits.same_layout(counted_in) {
        return bucket.top_up(limits, now, credit);
    }
    bucket.top_up(limits, now, &credit.remapped(counted_in, limits));
}
