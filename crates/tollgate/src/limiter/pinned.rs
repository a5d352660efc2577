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

/// What was used of one bucket in this process, and whether that differs from what was taken. It is noted with each amount:
/// comparing the amounts in one go, right after they were written one by one, would stall (see
/// [`ProcessFlag`](crate::process_flag)).
struct PinnedUse {
    used: [u64; 4],
    differs: bool,
}

impl PinnedUse {
    /// As it was taken.
    #[inline]
    fn of(take: &PinnedTake) -> PinnedUse {
        PinnedUse { used: take.taken.amounts(), differs: false }
    }

    #[inline]
    fn set(&mut self, take: &PinnedTake, index: usize, amount: u64) {
        self.used[index] = amount;
        self.differs |= amount != take.taken.amount(index);
    }
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
        let mut costs = SmallCosts::default();
        let taken = self.resolve_at(limits, 0, demand, &mut costs)?;
        let at = pin.take_plain(now, limits, Caller::Own, &costs)?;
        Some(PinnedTake { at, taken })
    }

    /// Takes from all buckets of a chain, or from none.
    #[inline(never)]
    fn take_chain(&self, route: &Route, now: Tick, demand: &impl AsDemand) -> Option<Box<[PinnedTake]>> {
        let LocalBuckets { pins, cells } = route.pins.as_ref()?;
        let (cells, links) = (cells.as_ref()?, &route.chain.links);
        let mut steps = [PlainStep::of(&links[0].limits, Caller::Own); PLAIN_CHAIN_MAX];
        let mut taken = [Packed::default(); PLAIN_CHAIN_MAX];
        let (steps, taken) = (steps.get_mut(..links.len())?, &mut taken[..links.len()]);
        for (index, (step, link)) in steps.iter_mut().zip(links.iter()).enumerate() {
            (step.limits, step.caller) = (&link.limits, caller_at(index));
            taken[index] = self.resolve_at(&link.limits, index, demand, &mut step.costs)?;
        }
        if !cells.take_plain(now, steps) {
            return None;
        }
        for (step, pin) in steps.iter().zip(pins).filter(|(step, _)| !step.is_counted) {
            pin.count_take(step.at, step.limits, step.caller, &step.costs.amounts()[..step.limits.len()]);
        }
        Some(steps.iter().zip(taken).map(|(step, taken)| PinnedTake { at: step.at, taken: *taken }).collect())
    }

    /// Adds what the demand takes at this link to `costs`, which are empty, and returns it packed; `None` if it cannot be taken on
    /// the fast path. The costs are written in place: copying them at once would stall (see [`ProcessFlag`](crate::process_flag)).
    #[inline]
    fn resolve_at(
        &self,
        limits: &Limits,
        link: usize,
        demand: &impl AsDemand,
        costs: &mut SmallCosts,
    ) -> Option<Packed> {
        let expires = limits.have_resources() && self.settings.lease_ttl.is_some();
        if limits.len() > SmallCosts::LIMITS || expires {
            return None;
        }
        // A parent limits what it has limits for; a name that the entity itself has no limit for is an error.
        let unknown = |name: &str| if link == 0 { Err(limits.unknown(name)) } else { Ok(()) };
        limits.resolve_into(costs, demand, unknown).ok()?;
        costs.pack()
    }

    /// Settles one bucket in this process with what was used of it, which is no more than was taken.
    #[inline]
    fn settle_pinned(
        &self,
        route: &Route,
        link: usize,
        pin: &LocalBucket,
        take: &PinnedTake,
        now: Tick,
        PinnedUse { used, differs }: &PinnedUse,
    ) {
        let limits = &route.chain.links[link].limits;
        if !differs && !limits.have_resources() {
            return;
        }
        let is_settled = if *differs {
            pin.settle_packed(now, limits, caller_at(link), &take.taken, used)
        } else {
            pin.cell.settle_packed(limits, &take.taken, used)
        };
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
            pin.count_settlement(self.clock.now(), limits, caller_at(link), reserved.amounts(), usage.used);
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
        let mut used = PinnedUse::of(first);
        for (name, amount) in (0..usage.len()).map(|index| usage.part(index)) {
            let Some(index) = limits.index_of(name).filter(|index| amount <= first.taken.amount(*index))
            else {
                return false;
            };
            used.set(first, index, amount);
        }
        let now = shared.clock.now();
        shared.settle_pinned(route, 0, &pins.pins[0], first, now, &used);
        for (link, (take, pin)) in takes.iter().zip(&pins.pins).enumerate().skip(1) {
            let used = used_by_parent(usage, limits, first, &links[link].limits, take);
            shared.settle_pinned(route, link, pin, take, now, &used);
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
        // What ends as it was taken is not counted again, so the time does not matter.
        let now = if ending == LeaseEnd::Cancel { self.shared().clock.now() } else { Tick::ZERO };
        for (link, (take, pin)) in takes.iter().zip(&pins.pins).enumerate() {
            let used = match ending {
                LeaseEnd::Commit => PinnedUse::of(take),
                LeaseEnd::Cancel => PinnedUse { used: [0; 4], differs: true },
            };
            self.shared().settle_pinned(route, link, pin, take, now, &used);
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
) -> PinnedUse {
    let mut used = PinnedUse::of(take);
    for (name, amount) in (0..usage.len()).map(|index| usage.part(index)) {
        let reserved = own.index_of(name).map_or(amount, |index| own_take.taken.amount(index));
        if let Some(index) = limits.index_of(name) {
            let less = reserved.saturating_sub(amount);
            used.set(take, index, used.used[index].saturating_sub(less));
        }
    }
    used
}
