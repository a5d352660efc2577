//! The end of a limiter's lease: settled, committed, cancelled or dropped.

use tollgate_core::{AMOUNT_MAX, AsDemand, DemandError, Kind, Limit, Name};
use tollgate_store::records::{RecordsError, Write};
use tollgate_store::{OpId, Reply, StoreError, join_all};

use super::lease::{LimiterGrant, LimiterLease, StoredGrant};
use super::ticket::Ticket;
use crate::observe::Reporter;
use crate::reservation::{Reservation, ReservedTake};
use crate::{LeaseError, OnDrop};

/// By how much the usage of limits differs from what was taken: by index of the resource and name of the limit.
#[derive(Default)]
pub(super) struct Deltas(Vec<(usize, Name, i128)>);

impl Deltas {
    fn of(&self, resource: usize, limit: &Name) -> i128 {
        let found = self.0.iter().find(|(other, name, _)| *other == resource && name == limit);
        found.map_or(0, |(_, _, delta)| *delta)
    }

    /// Returns what was noted of a limit; `None` if nothing was.
    pub(super) fn noted(&self, resource: usize, limit: &str) -> Option<i128> {
        let found = self.0.iter().find(|(other, name, _)| *other == resource && name.as_str() == limit);
        found.map(|(_, _, delta)| *delta)
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
        self.open.set(false);
        Reply::ready(Ok(()))
    }

    fn finish(mut self, ending: LeaseEnd) -> Reply<'static, Result<(), LeaseError>> {
        if !self.is_of_this_process() {
            return self.drop_copy();
        }
        self.open.set(false);
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
            let sent = lease.send_end(ending, Vec::new()).await;
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
        writes: Vec<Write>,
    ) -> Result<(), RecordsError> {
        let extra = self.extra.take().unwrap_or_default();
        let shared = self.shared().clone();
        let Some(stored) = self.as_stored() else { return Ok(()) };
        let used = stored.used(&extra.deltas, ending);
        let ends: Vec<_> = stored.reservations.iter().zip(&used).enumerate().collect();
        let mut rest = ends.as_slice();
        // The end of a ticket is recorded even if there is nothing to settle, and before the rest is settled.
        if let Some(((index, (first, used)), others)) = ends.split_first().filter(|_| !writes.is_empty()) {
            first.settle_with(&shared.store, used, stored.id_of(*index), &writes).await?;
            rest = others;
        }
        // All are sent at once: a caller that does not wait for the answer has ended all of it.
        let sent = rest.iter().map(|(index, (reservation, used))| {
            reservation.settle(&shared.store, used, stored.id_of(*index))
        });
        let ended = join_all(sent.collect()).await.into_iter().find_map(Result::err);
        stored.report_differences(&shared.reporter, &used);
        ended.map_or(Ok(()), |error| Err(error.into()))
    }

    /// Ends a lease on buckets that are all in this process, with nothing in between. `false`, with nothing changed, if
    /// they are not.
    fn end_local(&mut self, ending: LeaseEnd) -> bool {
        let shared = self.shared().clone();
        self.as_stored();
        let LimiterGrant::Stored(stored) = &self.grant else { return false };
        if stored.is_degraded() || !stored.reservations.iter().all(Reservation::is_pinned) {
            return false;
        }
        let used = match &self.extra {
            Some(extra) => stored.used(&extra.deltas, ending),
            None => stored.used(&Deltas::default(), ending),
        };
        for (reservation, used) in stored.reservations.iter().zip(&used) {
            reservation.settle_pinned(&shared.store, used);
        }
        stored.report_differences(&shared.reporter, &used);
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
        if self.open.take().is() && self.is_of_this_process() {
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
        let used = stored.used(&extra.deltas, ending);
        for (index, (reservation, used)) in stored.reservations.iter().zip(&used).enumerate() {
            reservation.settle_detached(&shared.store, used, stored.id_of(index));
        }
        stored.report_differences(&shared.reporter, &used);
    }
}

impl Drop for LimiterLease<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.open.is() {
            self.open.set(false);
            self.end_on_drop();
        }
    }
}

impl StoredGrant {
    /// Returns the id of the call that ends a reservation. Several processes may end those of a ticket.
    fn id_of(&self, reservation: usize) -> Option<OpId> {
        self.ticket.map(|Ticket { id: OpId(id), .. }| OpId(id.wrapping_add(reservation as u128)))
    }

    fn note<'n>(
        &self,
        deltas: &mut Deltas,
        resource: usize,
        reported: impl Iterator<Item = (&'n str, i128)>,
        change: impl Fn(i128, i128, i128) -> i128,
    ) -> Result<(), LeaseError> {
        let Some(take) = self.takes().find(|take| take.resource == resource) else { return Ok(()) };
        let mut wrong = None;
        for (name, amount) in reported {
            let Some(index) = take.limits.index(name) else {
                wrong = wrong.or_else(|| Some(take.limits.unknown(name).into()));
                continue;
            };
            let (limit, reserved) = (&take.limits[index], take.costs.amount(index));
            let delta = change(reserved.into(), deltas.of(resource, limit.name()), amount);
            if delta > 0 && matches!(limit.kind(), Kind::Calls(_)) {
                let used = u64::try_from(i128::from(reserved) + delta).unwrap_or(AMOUNT_MAX);
                let limit = limit.name().clone();
                wrong = wrong.or(Some(LeaseError::TooManyCalls { limit, used, reserved }));
                continue;
            }
            deltas.set(resource, limit.name(), delta);
        }
        wrong.map_or(Ok(()), Err)
    }

    /// Returns the usage of each limit of each take of each reservation. Reports count for the first reservation.
    fn used(&self, deltas: &Deltas, ending: LeaseEnd) -> Vec<Vec<Vec<u64>>> {
        let of_take = |is_reported: bool, take: &ReservedTake| -> Vec<u64> {
            let of_limit = |(limit, reserved): (&Limit, &u64)| {
                let delta = if is_reported { deltas.of(take.resource, limit.name()) } else { 0 };
                let used = (i128::from(*reserved) + delta).clamp(0, AMOUNT_MAX.into());
                u64::try_from(used).unwrap_or(AMOUNT_MAX)
            };
            match ending {
                LeaseEnd::Cancel => vec![0; take.costs.len()],
                LeaseEnd::Commit => take.limits.iter().zip(take.costs.amounts()).map(of_limit).collect(),
            }
        };
        let reservations = self.reservations.iter().enumerate();
        reservations
            .map(|(index, reservation)| {
                reservation.takes.iter().map(|take| of_take(index == 0, take)).collect()
            })
            .collect()
    }

    /// Reports refunds and over-use of the entity itself.
    fn report_differences(&self, reporter: &Reporter, used: &[Vec<Vec<u64>>]) {
        for (reservation, used) in self.reservations.iter().zip(used) {
            if let Some((take, used)) = reservation.takes.first().zip(used.first()) {
                reporter.report_difference(&take.limits, &take.costs, used);
            }
        }
    }
}
