//! The fast path of a limiter in memory: its buckets are cached with the route, and taken and settled with no call to the
//! store in between.

use tollgate_core::{AsDemand, Costs, Limits, Packed, SmallCosts, Tick, Usage};
use tollgate_store::usage::Caller;
use tollgate_store::{BucketRef, LocalBucket, PLAIN_CHAIN_MAX, PlainStep};

use super::lease::{LimiterGrant, LimiterLease};
use super::route::{LocalBuckets, Route};
use super::settle::LeaseEnd;
use super::{Limiter, LimiterShared};

/// What was taken from one bucket in this process.
#[derive(Clone, Copy)]
pub(super) struct PinnedTake {
    pub(super) at: Tick,
    taken: Packed,
}

impl PinnedTake {
    /// Returns the costs in these limits, of the bucket at this link of the chain.
    pub(super) fn costs(&self, limits: &Limits, link: usize) -> Costs {
        let mut costs = Costs::none(limits.len());
        costs.unpack(&self.taken);
        if link == 0 { costs } else { costs.of_child() }
    }
}

impl Limiter {
    /// Takes the demand from the buckets of a route that are all in this process, with no waiter; `None`, with nothing taken,
    /// if that is not so, if the demand does not fit, or if an observer wants to know.
    #[inline]
    pub(super) fn take_pinned(
        &self,
        entity: &str,
        resource: &str,
        demand: &impl AsDemand,
    ) -> Option<LimiterLease<'_>> {
        let shared = &*self.0;
        if shared.reporter.is_watched() {
            return None;
        }
        let route = shared.routes().get(entity, resource)?;
        let now = shared.clock.now();
        if !shared.catalog.is_current(&route.chain, now) || shared.is_waited_for(&route.chain) {
            return None;
        }
        let grant = match route.only_pin() {
            Some(pin) => {
                let take = shared.take_only(&route, pin, now, demand)?;
                LimiterGrant::Pinned { route, take }
            }
            None => {
                let takes = shared.take_chain(&route, now, demand)?;
                LimiterGrant::PinnedChain { route, takes }
            }
        };
        Some(LimiterLease::pinned(self, grant))
    }
}

impl LimiterShared {
    #[inline]
    fn take_only(
        &self,
        route: &Route,
        pin: &LocalBucket,
        now: Tick,
        demand: &impl AsDemand,
    ) -> Option<PinnedTake> {
        let limits = &route.chain.links[0].limits;
        let (costs, taken) = self.costs_at(limits, 0, demand)?;
        let at = pin.cell.take_plain_under(now, limits, &costs)?;
        pin.count_take(at, limits, Caller::Own, &costs.amounts()[..limits.len()]);
        Some(PinnedTake { at, taken })
    }

    /// Takes from all buckets of a chain, or from none.
    #[inline(never)]
    fn take_chain(&self, route: &Route, now: Tick, demand: &impl AsDemand) -> Option<Box<[PinnedTake]>> {
        let LocalBuckets { pins, cells } = route.pins.as_ref()?;
        let (cells, links) = (cells.as_ref()?, &route.chain.links);
        let mut steps =
            [PlainStep { limits: &links[0].limits, costs: SmallCosts::default(), at: now }; PLAIN_CHAIN_MAX];
        let mut taken = [Packed::default(); PLAIN_CHAIN_MAX];
        let (steps, taken) = (steps.get_mut(..links.len())?, &mut taken[..links.len()]);
        for (index, (step, link)) in steps.iter_mut().zip(links.iter()).enumerate() {
            step.limits = &link.limits;
            (step.costs, taken[index]) = self.costs_at(&link.limits, index, demand)?;
        }
        if !cells.take_plain(now, steps) {
            return None;
        }
        for (index, (step, pin)) in steps.iter().zip(pins).enumerate() {
            let amounts = &step.costs.amounts()[..step.limits.len()];
            pin.count_take(step.at, step.limits, caller_at(index), amounts);
        }
        Some(steps.iter().zip(taken).map(|(step, taken)| PinnedTake { at: step.at, taken: *taken }).collect())
    }

    /// Returns what the demand takes at this link, plain and packed; `None` if it cannot be taken on the fast path.
    #[inline]
    fn costs_at(&self, limits: &Limits, link: usize, demand: &impl AsDemand) -> Option<(SmallCosts, Packed)> {
        let expires = limits.have_resources() && self.settings.lease_ttl.is_some();
        if limits.len() > SmallCosts::LIMITS || expires {
            return None;
        }
        let mut costs = SmallCosts::default();
        // A parent limits what it has limits for; a name that the entity itself has no limit for is an error.
        let unknown = |name: &str| if link == 0 { Err(limits.unknown(name)) } else { Ok(()) };
        limits.resolve_into(&mut costs, demand, unknown).ok()?;
        Some((costs, costs.pack()?))
    }

    /// Settles one bucket in this process with what was used of it, which is no more than was taken.
    #[inline]
    fn settle_pinned(
        &self,
        route: &Route,
        link: usize,
        pin: &LocalBucket,
        take: &PinnedTake,
        used: &[u64; 4],
    ) {
        let limits = &route.chain.links[link].limits;
        let differs = *used != take.taken.amounts();
        if !differs && !limits.have_resources() {
            return;
        }
        let is_settled = pin.cell.settle_packed(limits, &take.taken, used);
        if differs {
            let (reserved, limits_len) = (take.taken.amounts(), limits.len());
            let (reserved, used) = (&reserved[..limits_len], &used[..limits_len]);
            pin.count_settlement(self.clock.now(), limits, caller_at(link), reserved, used);
        }
        if !is_settled || !self.store.backend.wait_queues().is_empty() {
            self.settle_uncommon(route, link, pin, take, used, is_settled);
        }
    }

    /// Settles a bucket that is not plain, and notifies the waiters of the store.
    #[cold]
    fn settle_uncommon(
        &self,
        route: &Route,
        link: usize,
        pin: &LocalBucket,
        take: &PinnedTake,
        used: &[u64; 4],
        is_settled: bool,
    ) {
        let limits = &route.chain.links[link].limits;
        let reserved = take.costs(limits, link);
        let usage = Usage { at: take.at, reserved: &reserved, used: &used[..limits.len()], holder: None };
        if !is_settled {
            pin.cell.settle(&self.clock, limits, &usage);
        }
        let bucket = BucketRef { namespace: &self.store.namespace, key: pin.key(), limits };
        self.store.backend.wait_queues().notify_settled(&bucket, &usage);
    }
}

impl LimiterLease<'_> {
    /// Settles what was taken on the fast path; `false`, with nothing changed, if it was not, if more was used than taken, or
    /// if there is something to report.
    #[inline]
    pub(super) fn settle_pinned(&mut self, usage: &impl AsDemand) -> bool {
        let Some((route, takes)) = self.pinned_takes() else { return false };
        let Some(pins) = route.pins.as_ref() else { return false };
        let (links, shared) = (&route.chain.links, self.shared());
        let (limits, first) = (&links[0].limits, &takes[0]);
        if usage.bad_amount().is_some() || shared.reporter.is_watched() {
            return false;
        }
        let mut used = first.taken.amounts();
        for (name, amount) in (0..usage.len()).map(|index| usage.part(index)) {
            let Some(index) = limits.index_of(name).filter(|index| amount <= first.taken.amount(*index))
            else {
                return false;
            };
            used[index] = amount;
        }
        shared.settle_pinned(route, 0, &pins.pins[0], first, &used);
        for (link, (take, pin)) in takes.iter().zip(&pins.pins).enumerate().skip(1) {
            let used = used_by_parent(usage, limits, first, &links[link].limits, take);
            shared.settle_pinned(route, link, pin, take, &used);
        }
        self.open.set(false);
        true
    }

    /// Ends what was taken on the fast path and not reported on since; `false`, with nothing changed, if it was not.
    pub(super) fn end_pinned(&self, ending: LeaseEnd) -> bool {
        let Some((route, takes)) = self.pinned_takes() else { return false };
        let Some(pins) = route.pins.as_ref() else { return false };
        if self.extra.is_some() || self.shared().reporter.is_watched() {
            return false;
        }
        for (link, (take, pin)) in takes.iter().zip(&pins.pins).enumerate() {
            let used = if ending == LeaseEnd::Cancel { [0; 4] } else { take.taken.amounts() };
            self.shared().settle_pinned(route, link, pin, take, &used);
        }
        true
    }
}

/// Returns who made the call that is charged to the bucket at this link: its entity, or a child of it.
#[inline]
fn caller_at(link: usize) -> Caller {
    if link == 0 { Caller::Own } else { Caller::Child }
}

/// Returns what was used of a parent's limits: by each name as much less than was taken as of the entity's own limit.
fn used_by_parent(
    usage: &impl AsDemand,
    own: &Limits,
    own_take: &PinnedTake,
    limits: &Limits,
    take: &PinnedTake,
) -> [u64; 4] {
    let mut used = take.taken.amounts();
    for (name, amount) in (0..usage.len()).map(|index| usage.part(index)) {
        let reserved = own.index_of(name).map_or(amount, |index| own_take.taken.amount(index));
        if let Some(index) = limits.index_of(name) {
            used[index] = used[index].saturating_sub(reserved.saturating_sub(amount));
        }
    }
    used
}
