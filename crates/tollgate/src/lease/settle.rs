//! The end of a lease: settled, committed, cancelled or dropped.

use tollgate_core::{AsDemand, Costs, Usage};
use tollgate_store::Reply;

use super::report::UsageReport;
use super::{HeldLease, Lease, OnDrop};
use crate::LeaseError;
use crate::set::Backing;

impl Lease<'_> {
    /// Ends the lease with what was really used. Less than taken is given back, more becomes debt, also where
    /// nothing was taken, and what is not named counts as it was taken or [reported](Lease::report).
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, it has happened, or been sent to the store.
    ///
    /// # Errors
    ///
    /// [`LeaseError`] if the report is not valid, or if the store could not write it down. The lease has ended all the same.
    #[inline(always)]
    pub fn settle(mut self, usage: impl AsDemand) -> Reply<'static, Result<(), LeaseError>> {
        if !self.is_of_this_process() {
            return self.drop_copy();
        }
        if self.extra.0.is_some() {
            return self.settle_with_extra(&usage);
        }
        let wrong = self.settle_bare(&usage);
        // Tested in place: moving the lease right after a field was written would stall (see `ProcessFlag`).
        if self.has_nothing_to_drop() {
            std::mem::forget(self);
        }
        match wrong {
            None => Reply::ready(Ok(())),
            Some(error) => Reply::ready(Err(*error)),
        }
    }

    /// Settles a lease without cold state. Takes `&mut self`, so that the lease is not moved.
    #[inline]
    fn settle_bare(&mut self, usage: &impl AsDemand) -> Option<Box<LeaseError>> {
        let (mut used, mut noted) = (self.taken.amounts(), UsageReport::default());
        let wrong = self.note(0, &self.taken, &mut used, &mut noted, usage);
        if !self.end_packed(&used, noted) {
            self.end_uncommon(&used, noted);
        }
        wrong
    }

    /// Returns whether dropping the lease does nothing: it is borrowed, has no cold state and has ended.
    #[inline(always)]
    fn has_nothing_to_drop(&self) -> bool {
        matches!(self.set, HeldLease::Borrowed(_)) && self.extra.0.is_none() && !self.ends_on_drop.is()
    }

    #[cold]
    fn end_uncommon(&mut self, used: &[u64; 4], noted: UsageReport) {
        let costs = self.costs();
        self.end(&costs, &used[..costs.len()], noted);
    }

    #[cold]
    fn settle_with_extra(mut self, usage: &impl AsDemand) -> Reply<'static, Result<(), LeaseError>> {
        let costs = self.costs();
        let (mut used, mut noted) = self.used_so_far(&costs);
        let wrong = self.note(self.foreign(), &costs, &mut used, &mut noted, usage);
        let result = wrong.map_or(Ok(()), |error| Err(*error));
        self.finish(&costs, &used, noted, result, Lease::commit)
    }

    /// Ends the lease, and each part that was taken by [`consume`](Lease::consume) by `end`.
    fn finish(
        mut self,
        costs: &Costs,
        used: &[u64],
        noted: UsageReport,
        result: Result<(), LeaseError>,
        end: fn(Lease<'static>) -> Reply<'static, Result<(), LeaseError>>,
    ) -> Reply<'static, Result<(), LeaseError>> {
        let consumed = self.take_consumed();
        let mut replies: Vec<_> = consumed.into_iter().map(end).collect();
        match self.end_stored(used) {
            Some(ended) => replies.push(Reply::eager(async move { Ok(ended.await?) })),
            None => self.end(costs, used, noted),
        }
        if replies.is_empty() {
            return Reply::ready(result);
        }
        Reply::eager(async move {
            let mut result = result;
            for reply in replies {
                result = result.and(reply.await);
            }
            result
        })
    }

    /// Ends the lease with what was [reported](Lease::report). What was not reported counts as it was taken.
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, it has happened, or been sent to the store.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Store`] if the store could not write it down. The lease has ended all the same.
    pub fn commit(mut self) -> Reply<'static, Result<(), LeaseError>> {
        if !self.is_of_this_process() {
            return self.drop_copy();
        }
        let costs = self.costs();
        let (used, noted) = self.used_so_far(&costs);
        self.finish(&costs, &used, noted, Ok(()), Lease::commit)
    }

    /// Ends the lease as if nothing had been taken: for calls that were never made.
    ///
    /// # Cancel safety
    ///
    /// When this returns, awaited or not, it has happened, or been sent to the store.
    ///
    /// # Errors
    ///
    /// [`LeaseError::Store`] if the store could not write it down. The lease has ended all the same.
    pub fn cancel(self) -> Reply<'static, Result<(), LeaseError>> {
        if !self.is_of_this_process() {
            return self.drop_copy();
        }
        let (costs, unused, noted) = self.nothing_used();
        self.finish(&costs, &unused, noted, Ok(()), Lease::cancel)
    }

    /// Cancels the lease without waiting: the store is called in the background.
    pub(crate) fn cancel_detached(&mut self) {
        self.ends_on_drop.set(false);
        if !self.is_of_this_process() {
            return;
        }
        let consumed = self.take_consumed();
        consumed.into_iter().for_each(|mut lease| lease.cancel_detached());
        let (costs, unused, noted) = self.nothing_used();
        self.end_detached(&costs, &unused, noted);
    }

    /// Commits the lease without waiting: the store is called in the background.
    fn commit_detached(&mut self) {
        self.ends_on_drop.set(false);
        let costs = self.costs();
        let (used, noted) = self.used_so_far(&costs);
        self.end_detached(&costs, &used, noted);
    }

    /// Ends the lease without waiting: the store is called in the background.
    fn end_detached(&mut self, costs: &Costs, used: &[u64], noted: UsageReport) {
        if !self.end_detached_stored(used) {
            self.end(costs, used, noted);
        }
    }

    fn take_consumed(&mut self) -> Vec<Lease<'static>> {
        self.extra.0.as_mut().map(|extra| std::mem::take(&mut extra.consumed)).unwrap_or_default()
    }

    fn nothing_used(&self) -> (Costs, Vec<u64>, UsageReport) {
        let costs = self.costs();
        let unused = vec![0; costs.len()];
        (costs, unused, UsageReport { differs: true, ..UsageReport::default() })
    }

    /// Ends a common lease: packed, nothing over-used, no observer to notify. Returns `false` if it is another.
    #[inline]
    fn end_packed(&mut self, used: &[u64; 4], noted: UsageReport) -> bool {
        let set = self.set();
        let is_observed = noted.is_over || noted.differs && set.reporter().is_watched();
        let Backing::Local(cell) = set.backing() else { return false };
        let ended = !is_observed
            && (!noted.differs && !set.names().have_resources()
                || cell.settle_packed(set.names(), &self.taken, used));
        if ended {
            self.ends_on_drop.set(false);
        }
        ended
    }

    #[inline]
    fn end(&mut self, costs: &Costs, used: &[u64], noted: UsageReport) {
        // From here on the lease has ended: dropping it must not end it again.
        self.ends_on_drop.set(false);
        let set = self.set();
        let Backing::Local(cell) = set.backing() else { return };
        if !noted.differs && !set.names().have_resources() {
            return;
        }
        let holder = self.holder().map(|holder| holder.get().into());
        if holder.is_some() {
            // For the event only: expired resources are not given back twice.
            self.renew();
        }
        let usage = Usage { at: self.at, reserved: costs, used, holder };
        cell.settle(set.clock(), set.names(), &usage);
        if noted.differs {
            set.reporter().report_difference(set.names(), costs, used);
        }
    }

    fn end_on_drop(&mut self) {
        if !self.is_of_this_process() {
            return;
        }
        let is_kept = self.extra.0.is_none() && self.set().on_drop() == OnDrop::Keep;
        if is_kept && self.end_packed(&self.taken.amounts(), UsageReport::default()) {
            return;
        }
        let costs = self.costs();
        let (mut used, mut noted) = self.used_so_far(&costs);
        if noted.limits == 0 && self.set().on_drop() == OnDrop::Refund {
            (_, used, noted) = self.nothing_used();
        }
        // Consumed parts end when they are dropped; if usage was reported, they are committed with the rest.
        if noted.limits != 0 {
            self.take_consumed().into_iter().for_each(|mut lease| lease.commit_detached());
        }
        self.end_detached(&costs, &used, noted);
    }
}

impl Drop for Lease<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.ends_on_drop.is() {
            self.end_on_drop();
        }
    }
}
