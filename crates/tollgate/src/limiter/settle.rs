//! The end of a limiter's lease: settled, committed, cancelled or dropped.

use tollgate_core::{AMOUNT_MAX, AsDemand, DemandError, Name, Usage};
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::usage::Caller;
use tollgate_store::{Op, OpId, Reply, Step, StoreError, Transaction, join_all};

use super::LimiterShared;
use super::lease::{HeldTake, LimiterGrant, LimiterLease, StoredGrant};
use super::ticket::Ticket;
use crate::{Event, LeaseError, OnDrop};

/// By how much the usage of limits differs from what was taken: by index of the resource and name of the limit.
#[derive(Default)]
pub(super) struct Deltas(Vec<(usize, Name, i128)>);

impl Deltas {
    fn of(&self, resource: usize, limit: &Name) -> i128 {
        let found = self.0.iter().find(|(other, name, _)| *other == resource && name == limit);
        found.map_or(0, |(_, _, delta)| *delta)
    }

    fn set(&mut self, resource: usize, limit: &Name, delta: i128) {
        match self.0.iter_mut().find(|(other, name, _)| *other == resource && name == limit) {
            Some(found) => found.2 = delta,
            None => self.0.push((resource, limit.clone(), delta)),
        }
    }
}

/// How a lease ends.
///
/// ```
/// use tollgate::limiter::{LeaseEnd, TicketEnd};
/// use tollgate::{demand, Level, Limit, Limiter, Limits};
///
/// let limiter = Limiter::in_memory()?;
/// limiter.catalog().set_limits(Level::System, &Limits::new([Limit::per_minute("rpm", 10)])?).wait()?;
/// let ticket = limiter.acquire("user-1", "gpt-4", demand! { rpm: 1 }).wait()?.into_ticket().wait()?;
/// // In another process, later: the call was never made.
/// assert_eq!(limiter.redeem(&ticket).wait()?.end_once(LeaseEnd::Cancel).wait()?, TicketEnd::Now);
/// assert_eq!(limiter.available("user-1", "gpt-4").wait()?.available("rpm"), Some(10));
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseEnd {
    /// It counts as it was taken and adjusted.
    Commit,
    /// Nothing of it happened.
    Cancel,
}

impl LimiterLease<'_> {
    /// Ends the lease with what was really used of the resource of the call. Less than taken is given back, more becomes
    /// debt, and what is not named counts as it was taken or adjusted. Every entity it was charged to is settled.
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, it has been sent.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Usage`] if the report is not valid. The lease has ended all the same, with what is valid in it.
    #[inline]
    pub fn settle<D: AsDemand>(mut self, usage: D) -> Reply<'static, Result<(), LeaseError>> {
        if !self.is_of_this_process() {
            return self.drop_copy();
        }
        if self.extra.is_none() && self.settle_pinned(&usage) {
            return Reply::ready(Ok(()));
        }
        let reported = self.report(usage);
        let ended = self.finish(LeaseEnd::Commit);
        match reported {
            Ok(()) => ended,
            Err(error) => Reply::later(async move { ended.await.and(Err(error)) }),
        }
    }

    /// Notes what was used of the resource of the call, to count when the lease ends. The last report of a limit counts.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Usage`] if the report is not valid; what is valid in it is noted all the same.
    pub fn report<D: AsDemand>(&mut self, usage: D) -> Result<(), LeaseError> {
        self.report_at(0, &usage)
    }

    /// As [`report`](LimiterLease::report), for another of the resources that were taken together.
    ///
    /// # Errors
    ///
    /// As [`report`](LimiterLease::report), and [`LeaseError::OtherResource`].
    pub fn report_for<D: AsDemand>(&mut self, resource: &str, usage: D) -> Result<(), LeaseError> {
        let Some(stored) = self.as_stored() else { return Ok(()) };
        let resource = stored.resource_index(resource)?;
        self.report_at(resource, &usage)
    }

    fn report_at(&mut self, resource: usize, usage: &impl AsDemand) -> Result<(), LeaseError> {
        let bad = usage.bad_amount();
        // An invalid amount reads as 0. Beside one, a 0 is ignored, and the reservation stays charged.
        let parts =
            (0..usage.len()).map(|index| usage.part(index)).filter(|part| part.1 > 0 || bad.is_none());
        let noted = self.note(
            resource,
            parts.map(|(name, amount)| (name.as_str(), i128::from(amount))),
            |reserved, _, used| used - reserved,
        );
        match bad {
            Some((name, why)) => Err(DemandError::BadAmount { name: name.into(), why: Box::new(why) }.into()),
            None => noted,
        }
    }

    /// Adds to what was used of the resource of the call, to count when the lease ends. Never denied: what is used beyond
    /// what there is becomes debt. A negative amount gives back, down to nothing used.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Usage`] for a name that is no limit; what is valid is noted all the same.
    pub fn adjust<'n>(&mut self, by: impl IntoIterator<Item = (&'n str, i64)>) -> Result<(), LeaseError> {
        self.adjust_at(0, by)
    }

    /// As [`adjust`](LimiterLease::adjust), for another of the resources that were taken together.
    ///
    /// # Errors
    ///
    /// As [`report`](LimiterLease::report), and [`LeaseError::OtherResource`].
    pub fn adjust_for<'n>(
        &mut self,
        resource: &str,
        by: impl IntoIterator<Item = (&'n str, i64)>,
    ) -> Result<(), LeaseError> {
        let Some(stored) = self.as_stored() else { return Ok(()) };
        let resource = stored.resource_index(resource)?;
        self.adjust_at(resource, by)
    }

    fn adjust_at<'n>(
        &mut self,
        resource: usize,
        by: impl IntoIterator<Item = (&'n str, i64)>,
    ) -> Result<(), LeaseError> {
        let by = by.into_iter().map(|(name, amount)| (name, i128::from(amount)));
        self.note(resource, by, |reserved, before, amount| (before + amount).max(-reserved))
    }

    /// Notes `change(reserved, difference noted before, amount)` for each name.
    fn note<'n>(
        &mut self,
        resource: usize,
        said: impl Iterator<Item = (&'n str, i128)>,
        change: impl Fn(i128, i128, i128) -> i128,
    ) -> Result<(), LeaseError> {
        let mut extra = self.extra.take().unwrap_or_default();
        let result = match self.as_stored() {
            None => Ok(()),
            Some(stored) => stored.note(&mut extra.deltas, resource, said, change),
        };
        self.extra = Some(extra);
        result
    }

    /// Ends the lease as it was taken and adjusted.
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, it has been sent.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Store`] if it could not be written down.
    pub fn commit(self) -> Reply<'static, Result<(), LeaseError>> {
        self.finish(LeaseEnd::Commit)
    }

    /// Ends the lease as if nothing had been taken: for calls that were never made.
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, it has been sent.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Store`] if it could not be written down.
    pub fn cancel(self) -> Reply<'static, Result<(), LeaseError>> {
        self.finish(LeaseEnd::Cancel)
    }

    /// Drops a copy in a forked process, with nothing ended.
    #[cold]
    fn drop_copy(mut self) -> Reply<'static, Result<(), LeaseError>> {
        self.is_open = false;
        Reply::ready(Ok(()))
    }

    fn finish(mut self, ending: LeaseEnd) -> Reply<'static, Result<(), LeaseError>> {
        if !self.is_of_this_process() {
            return self.drop_copy();
        }
        self.is_open = false;
        self.stop_beating();
        if self.end_pinned(ending) || self.end_local(ending) {
            return Reply::ready(Ok(()));
        }
        // No store deduplicates calls for as long as a ticket can be redeemed, so a ticket ends with a record.
        if self.as_stored().is_some_and(|stored| stored.ticket.is_some()) {
            let ended = self.end_once(ending);
            return Reply::eager(async move { ended.await.map(drop) });
        }
        let mut lease = self.into_owned();
        Reply::eager(async move {
            let sent = lease.send_end(ending, |_| Vec::new()).await;
            sent.map_err(|error| match error {
                RecordsError::Store(error) => error.into(),
                // Without writes there are no tests that could fail.
                other => StoreError::BadCall(other.to_string()).into(),
            })
        })
    }

    /// Sends the end to the store, what was taken at first together with these writes.
    pub(super) async fn send_end(
        &mut self,
        ending: LeaseEnd,
        writes: impl FnOnce(&StoredGrant) -> Vec<Write>,
    ) -> Result<(), RecordsError> {
        let extra = self.extra.take().unwrap_or_default();
        let shared = self.shared().clone();
        let Some(stored) = self.as_stored() else { return Ok(()) };
        let writes = writes(stored);
        let used_of = |(index, group): (usize, &Vec<HeldTake>)| {
            used_of(group, (index == 0).then_some(&extra.deltas), ending)
        };
        let used: Vec<_> = stored.groups.iter().enumerate().map(used_of).collect();
        let groups = stored.groups.iter().zip(&used);
        let steps: Vec<_> =
            groups.clone().map(|(group, used)| settlements(&shared, stored, group, used)).collect();
        let call = |(index, steps)| Transaction { id: stored.id_of(index), steps, metered: true };
        let calls: Vec<Transaction<'_>> = steps.iter().map(Vec::as_slice).enumerate().map(call).collect();
        let mut rest = calls.as_slice();
        // The end of a ticket is recorded even if there is nothing to settle, and before the rest is settled.
        if let Some((first, others)) = calls.split_first().filter(|_| !writes.is_empty()) {
            shared.store.bounded(shared.store.backend.apply_with(first, &writes)).await?;
            rest = others;
        }
        // All are sent at once: a caller that does not wait for the answer has ended all of it.
        let store = shared.store.store_of(stored.is_local);
        let says = |call: &&Transaction<'_>| !call.steps.is_empty() || stored.ticket.is_some();
        let sent = rest.iter().filter(says).map(|call| shared.store.bounded(store.apply(call)));
        let ended = join_all(sent.collect()).await.into_iter().find_map(Result::err);
        groups.for_each(|(group, used)| report_difference(&shared, group, used));
        ended.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Ends a lease on buckets that are all in this process, with nothing in between. `false`, with nothing changed, if
    /// they are not.
    fn end_local(&mut self, ending: LeaseEnd) -> bool {
        let shared = self.shared().clone();
        self.as_stored();
        let LimiterGrant::Stored(stored) = &self.grant else { return false };
        if stored.is_local || stored.groups.iter().flatten().any(|held| held.pin.is_none()) {
            return false;
        }
        let deltas = self.extra.as_ref().map(|extra| &extra.deltas);
        for (index, group) in stored.groups.iter().enumerate() {
            let used = used_of(group, deltas.filter(|_| index == 0), ending);
            group.iter().zip(&used).for_each(|(held, used)| settle_local(&shared, stored, held, used));
            report_difference(&shared, group, &used);
        }
        true
    }

    /// Ends a lease that was dropped.
    #[cold]
    fn end_on_drop(&mut self) {
        if !self.is_of_this_process() {
            return;
        }
        let is_reported = self.extra.as_ref().is_some_and(|extra| !extra.deltas.0.is_empty());
        let ending = match self.shared().settings.on_drop {
            OnDrop::Refund if !is_reported => LeaseEnd::Cancel,
            OnDrop::Keep | OnDrop::Refund => LeaseEnd::Commit,
        };
        self.end_detached(ending);
    }

    /// Cancels the lease without waiting: the store is called in the background.
    pub(crate) fn cancel_detached(&mut self) {
        if std::mem::take(&mut self.is_open) && self.is_of_this_process() {
            self.end_detached(LeaseEnd::Cancel);
        }
    }

    /// Ends the lease without waiting: the store is called in the background.
    fn end_detached(&mut self, ending: LeaseEnd) {
        self.stop_beating();
        if self.end_pinned(ending) || self.end_local(ending) {
            return;
        }
        let extra = self.extra.take().unwrap_or_default();
        let shared = self.shared().clone();
        let Some(stored) = self.as_stored() else { return };
        for (index, group) in stored.groups.iter().enumerate() {
            let used = used_of(group, (index == 0).then_some(&extra.deltas), ending);
            let steps = settlements(&shared, stored, group, &used);
            if !steps.is_empty() {
                let call = Transaction { id: stored.id_of(index), steps: &steps, metered: true };
                shared.store.store_of(stored.is_local).apply_detached(&call);
            }
            report_difference(&shared, group, &used);
        }
    }
}

impl Drop for LimiterLease<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_open {
            self.is_open = false;
            self.end_on_drop();
        }
    }
}

impl StoredGrant {
    /// The id of the call that ends a group.
    fn id_of(&self, group: usize) -> Option<OpId> {
        self.ticket.map(|Ticket { id: OpId(id), .. }| OpId(id.wrapping_add(group as u128)))
    }

    fn note<'n>(
        &self,
        deltas: &mut Deltas,
        resource: usize,
        said: impl Iterator<Item = (&'n str, i128)>,
        change: impl Fn(i128, i128, i128) -> i128,
    ) -> Result<(), LeaseError> {
        let first = self.groups.iter().flatten().find(|held| held.planned.resource == resource);
        let Some(held) = first else { return Ok(()) };
        let (limits, mut wrong) = (held.planned.limits(), None);
        for (name, amount) in said {
            let Some(index) = limits.index(name) else {
                wrong = wrong.or_else(|| Some(limits.unknown(name)));
                continue;
            };
            let (limit, reserved) = (limits[index].name(), i128::from(held.planned.costs.amount(index)));
            deltas.set(resource, limit, change(reserved, deltas.of(resource, limit), amount));
        }
        wrong.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Settles one bucket that is in this process.
fn settle_local(shared: &LimiterShared, stored: &StoredGrant, held: &HeldTake, used: &[u64]) {
    let HeldTake { planned, at, pin: Some(pin) } = held else { return };
    let (differs, holds) = (planned.costs.amounts() != used, planned.holds_resources());
    if !differs && !holds {
        return;
    }
    let holder = stored.term.map(|term| term.holder).filter(|_| holds);
    let usage = Usage { at: *at, reserved: &planned.costs, used, holder };
    pin.cell.settle(&shared.clock, planned.limits(), &usage);
    if differs {
        let (now, caller) = (shared.clock.now(), Caller::of(&planned.costs));
        pin.count_settlement(now, planned.limits(), caller, planned.costs.amounts(), used);
    }
    shared.store.backend.wait_queues().notify_settled(&planned.place(&shared.store.namespace), &usage);
}

/// Returns the usage of each limit of each bucket.
fn used_of(group: &[HeldTake], deltas: Option<&Deltas>, ending: LeaseEnd) -> Vec<Vec<u64>> {
    let of_limit = |held: &HeldTake, index: usize| {
        let reserved = i128::from(held.planned.costs.amount(index));
        let delta =
            deltas.map_or(0, |deltas| deltas.of(held.planned.resource, held.planned.limits()[index].name()));
        u64::try_from((reserved + delta).clamp(0, AMOUNT_MAX.into())).unwrap_or(AMOUNT_MAX)
    };
    let of_bucket = |held: &HeldTake| match ending {
        LeaseEnd::Cancel => vec![0; held.planned.costs.len()],
        LeaseEnd::Commit => (0..held.planned.costs.len()).map(|index| of_limit(held, index)).collect(),
    };
    group.iter().map(of_bucket).collect()
}

/// Returns the steps that settle the usage, where there is anything to settle.
fn settlements<'s>(
    shared: &'s LimiterShared,
    stored: &'s StoredGrant,
    group: &'s [HeldTake],
    used: &'s [Vec<u64>],
) -> Vec<Step<'s>> {
    let holder = stored.term.map(|term| term.holder);
    let settles = |(held, used): &(&HeldTake, &Vec<u64>)| {
        held.planned.holds_resources() || held.planned.costs.amounts() != used.as_slice()
    };
    let step = |(held, used): (&'s HeldTake, &'s Vec<u64>)| {
        let holder = holder.filter(|_| held.planned.holds_resources());
        let usage = Usage { at: held.at, reserved: &held.planned.costs, used, holder };
        Step { place: held.planned.place(&shared.store.namespace), op: Op::SettleExisting(usage) }
    };
    group.iter().zip(used).filter(settles).map(step).collect()
}

/// Reports refunds and over-use of the entity itself.
fn report_difference(shared: &LimiterShared, group: &[HeldTake], used: &[Vec<u64>]) {
    let Some((held, used)) = group.first().zip(used.first()) else { return };
    let limits = held.planned.limits().iter().enumerate().filter(|(_, limit)| !limit.is_resource());
    for (index, limit) in limits {
        let (reserved, used, limit) = (held.planned.costs.amount(index), used[index], limit.name());
        if used < reserved {
            shared.reporter.report_if_watched(&Event::Refunded { limit, amount: reserved - used });
        } else if used > reserved {
            shared.reporter.report(&Event::OverUsed { limit, amount: used - reserved });
        }
    }
}
