//! What an acquisition holds: its lease, and what was reported of it.

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyInt;
use smallvec::SmallVec;
use tollgate::{Lease, LeaseError};
use tollgate_store::{Mutex, Reply};

use super::bound_limit::{BoundLimit, LimitKind};
use super::requested::{CountedDemand, FEW, TakenPart, TakenParts};
use crate::amount::shown;
use crate::error::OrRaise;
use crate::wait::FirstPoll;
use crate::wait::thread::block_on_in_loop;

/// What a call has taken, shared by the acquisition of the set and those of its limits.
pub(super) struct HeldParts {
    pub(super) parts: TakenParts,
    state: Mutex<HeldState>,
}

#[derive(Default)]
struct HeldState {
    /// `None` when it has ended, and where nothing was taken.
    lease: Option<Lease<'static>>,
    used: SmallVec<[Option<ReportedUsage>; FEW]>,
    /// The limits that were reported through the acquisition of the set, one bit for each place.
    reported: u32,
    is_released: bool,
    /// The places whose own acquisition was released.
    released_parts: u32,
}

/// What was reported of one limit.
struct ReportedUsage {
    value: Py<PyAny>,
    count: u64,
}

/// Who reports what was used.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ReportSource {
    Set,
    Part,
}

impl HeldParts {
    pub(super) fn new(parts: TakenParts, lease: Option<Lease<'static>>) -> HeldParts {
        HeldParts { parts, state: Mutex::new(HeldState { lease, ..HeldState::default() }) }
    }

    pub(super) fn is_released(&self) -> bool {
        self.state.lock().is_released
    }

    pub(super) fn is_part_released(&self, place: usize) -> bool {
        let state = self.state.lock();
        state.is_released || state.released_parts >> place & 1 == 1
    }

    pub(super) fn release_part(&self, place: usize) {
        self.state.lock().released_parts |= 1 << place;
    }

    pub(super) fn used(&self, py: Python<'_>, place: usize) -> Option<Py<PyAny>> {
        let state = self.state.lock();
        Some(state.used.get(place)?.as_ref()?.value.clone_ref(py))
    }

    /// Notes what was used of the limit at a place. The last report counts.
    ///
    /// # Errors
    ///
    /// `RuntimeError` after the release, `ValueError` for what cannot have been used.
    pub(super) fn report(
        &self,
        place: usize,
        limit: &BoundLimit,
        used: &Bound<'_, PyAny>,
        by: ReportSource,
    ) -> PyResult<()> {
        let (py, part) = (used.py(), &self.parts[place]);
        let is_usual = used.is_exact_instance_of::<PyInt>();
        let count = if is_usual && let Ok(1..) = used.extract::<u64>() {
            limit.count_used(used)?
        } else {
            check_not_negative(limit, used)?;
            limit.count_used(used)?
        };
        let is_call = limit.kind == LimitKind::Calls && part.requested.bind(py).as_ptr() != used.as_ptr();
        if is_call || count > part.count || !is_usual {
            let check = (&part.requested, used);
            limit.limit.bind(py).call_method1(pyo3::intern!(py, "validate_usage"), check)?;
        }
        let mut state = self.state.lock();
        if state.is_released || state.released_parts >> place & 1 == 1 {
            return Err(released());
        }
        while state.used.len() <= place {
            state.used.push(None);
        }
        let before = state.used[place].replace(ReportedUsage { value: used.clone().unbind(), count });
        state.reported |= u32::from(by == ReportSource::Set) << place;
        drop(state);
        // Out of the lock: a value of the caller may run code when it is dropped.
        drop(before);
        Ok(())
    }

    /// Ends the lease with what was reported, once. Returns the places that had to be reported and were not.
    ///
    /// # Errors
    ///
    /// The store did not answer. It has ended all the same.
    #[inline]
    pub(super) fn end(&self, py: Python<'_>, limits: &[BoundLimit], first: FirstPoll) -> PyResult<u32> {
        let (reply, missing) = self.begin_end(py, limits, first);
        if let Some(reply) = reply {
            wait_for_end(py, reply, first)?;
        }
        Ok(missing)
    }

    /// As `end`, without waiting for the store.
    #[inline]
    pub(super) fn begin_end(
        &self,
        py: Python<'_>,
        limits: &[BoundLimit],
        first: FirstPoll,
    ) -> (Option<EndReply>, u32) {
        let (lease, usage, reported) = {
            let mut state = self.state.lock();
            if std::mem::replace(&mut state.is_released, true) {
                return (None, 0);
            }
            (state.lease.take(), self.usage(&state, limits), state.reported)
        };
        let (mut ended, mut missing) = (None, 0);
        if let Some(lease) = lease {
            let end = move || if usage.0.is_empty() { lease.commit() } else { lease.settle(&usage) };
            ended = Some(if first == FirstPoll::Detached { py.detach(end) } else { end() });
            let must_report = |part: &TakenPart| match limits[part.limit].kind {
                LimitKind::Rate => true,
                LimitKind::Calls => part.requested.bind(py).gt(1).unwrap_or(false),
                LimitKind::Resource => false,
            };
            for (place, part) in self.parts.iter().enumerate() {
                missing |= u32::from(reported >> place & 1 == 0 && must_report(part)) << place;
            }
        }
        (ended, missing)
    }

    /// Returns the counts that differ from what was taken.
    fn usage(&self, state: &HeldState, limits: &[BoundLimit]) -> CountedDemand {
        let differing = |(part, used): (&TakenPart, &Option<ReportedUsage>)| {
            let (limit, count) = (&limits[part.limit], used.as_ref()?.count);
            let is_kept = count < part.count && !limit.refunds || limit.kind == LimitKind::Resource;
            (count != part.count && !is_kept).then_some((part.limit, count))
        };
        CountedDemand(self.parts.iter().zip(&state.used).filter_map(differing).collect())
    }

    /// Gives back all that was taken, without waiting for its store: the caller was cancelled before it had it.
    pub(super) fn cancel(&self) {
        let lease = {
            let mut state = self.state.lock();
            state.is_released = true;
            state.lease.take()
        };
        if let Some(lease) = lease {
            // The reply has sent what it has to send; the answer is of no use here.
            drop(lease.cancel());
        }
    }

    /// Ends the lease with `used` of its first limit, as `end` does.
    ///
    /// # Errors
    ///
    /// The store did not answer.
    pub(super) fn end_with(&self, py: Python<'_>, count: u64, first: FirstPoll) -> PyResult<()> {
        let lease = {
            let mut state = self.state.lock();
            state.is_released = true;
            state.lease.take()
        };
        let (Some(lease), Some(part)) = (lease, self.parts.first()) else { return Ok(()) };
        let usage = CountedDemand(std::iter::once((part.limit, count)).collect());
        wait_for_end(py, lease.settle(&usage), first)
    }
}

/// The answer of a store to the end of a lease.
pub(super) type EndReply = Reply<'static, Result<(), LeaseError>>;

fn wait_for_end(py: Python<'_>, reply: EndReply, first: FirstPoll) -> PyResult<()> {
    block_on_in_loop(py, reply, first)?.or_raise(py)
}

/// Returns the error of a report that comes too late.
#[cold]
pub(super) fn released() -> PyErr {
    PyRuntimeError::new_err("Cannot update an already released acquisition")
}

#[cold]
fn check_not_negative(limit: &BoundLimit, used: &Bound<'_, PyAny>) -> PyResult<()> {
    if used.ge(0)? {
        return Ok(());
    }
    let key = limit.key.bind(used.py()).to_string_lossy();
    let text =
        format!("the usage of limit '{key}' cannot be negative or not a number, but is {}", shown(used));
    Err(PyValueError::new_err(text))
}
