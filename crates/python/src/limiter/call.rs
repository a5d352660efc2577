//! Calls on behalf of an entity: what they take, and the operations that take it.

use std::future::IntoFuture;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tollgate::limiter::ChainStatus;
use tollgate::{AsDemand, Attempt, Demand, Limiter, LimiterError, LimiterLease, Limits, Priority};

use super::PyLimiter;
use crate::amount::{span, text};
use crate::demand::{NoUnits, owned_demand};
use crate::denial::PyDenial;
use crate::error::{OrRaise, invalid_demand};
use crate::input::{LimitList, TextArgument};
use crate::lease::PyLease;
use crate::observing::deliver;
use crate::set::CallDemand;
use crate::wait::{PendingOp, operation};
use crate::wait_for::WaitFor;

/// What few calls have beside an entity, a resource and a demand.
#[derive(Default)]
pub(super) struct CallExtras {
    also: Vec<(String, Demand)>,
    limits: Option<Limits>,
    detached: Option<Duration>,
}

impl CallExtras {
    /// Reads them; `None` if there are none.
    #[inline]
    pub(super) fn of(
        also: Option<&Bound<'_, PyAny>>,
        limits: Option<LimitList>,
        detached: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Option<CallExtras>> {
        if also.is_none() && limits.is_none() && detached.is_none() {
            return Ok(None);
        }
        let also = also.map(also_of).transpose()?.unwrap_or_default();
        let detached = detached.map(|ttl| span("detached", ttl)).transpose()?;
        Ok(Some(CallExtras { also, limits: limits.map(|limits| limits.0), detached }))
    }
}

/// Reads the demands of other resources.
pub(super) fn also_of(also: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Demand)>> {
    let py = also.py();
    let dict = also.cast::<PyDict>().map_err(|_| {
        let shown = crate::amount::shown(also);
        invalid_demand(py, format!("also is {shown}, but must be a dict of demands by resource"))
    })?;
    // A copy: reading an amount may run code of the caller.
    let part = |(resource, demand): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let resource = resource.extract::<TextArgument>()?.0;
        Ok((resource, owned_demand(py, Some(&demand), None, &NoUnits)?))
    };
    dict.copy()?.iter().map(part).collect()
}

/// A call that outlives the arguments it was made of.
pub(super) struct EntityCall {
    pub(super) entity: String,
    pub(super) resource: String,
    pub(super) demand: Demand,
    pub(super) extras: CallExtras,
}

/// The settings of [`Limiter::acquire`] and [`Limiter::try_acquire`] alike.
macro_rules! with_extras {
    ($acquire:expr, $extras:expr) => {{
        let mut acquire = $acquire;
        for (resource, demand) in &$extras.also {
            acquire = acquire.also(resource, demand);
        }
        if let Some(limits) = $extras.limits.clone() {
            acquire = acquire.limits(limits);
        }
        if let Some(ttl) = $extras.detached {
            acquire = acquire.detached(ttl);
        }
        acquire
    }};
}

impl EntityCall {
    async fn acquire(self, limiter: Limiter, wait: WaitFor) -> Result<LimiterLease<'static>, LimiterError> {
        let acquire = limiter.acquire(&self.entity, &self.resource, &self.demand).priority(wait.priority);
        let mut acquire = with_extras!(acquire, self.extras);
        if let Some(timeout) = wait.timeout {
            acquire = acquire.timeout(timeout);
        }
        acquire.await.map(LimiterLease::into_owned)
    }

    async fn try_acquire(
        self,
        limiter: Limiter,
        priority: Priority,
    ) -> Result<Attempt<LimiterLease<'static>, ChainStatus>, LimiterError> {
        let acquire = limiter.try_acquire(&self.entity, &self.resource, &self.demand).priority(priority);
        Ok(match with_extras!(acquire, self.extras).await? {
            Attempt::Admitted(lease) => Attempt::Admitted(lease.into_owned()),
            Attempt::Denied(denial) => Attempt::Denied(denial),
        })
    }
}

/// The arguments of a call as they came.
pub(super) struct CallArguments<'a, 'py> {
    entity: &'a str,
    resource: &'a str,
    demand: CallDemand<'a, 'py>,
    extras: Option<CallExtras>,
}

impl<'a, 'py> CallArguments<'a, 'py> {
    #[inline]
    pub(super) fn of(
        entity: &'a Bound<'py, PyString>,
        resource: &'a Bound<'py, PyString>,
        demand: Option<&'a Bound<'py, PyAny>>,
        named: Option<&Bound<'py, PyDict>>,
        extras: Option<CallExtras>,
    ) -> PyResult<CallArguments<'a, 'py>> {
        let py = entity.py();
        let (entity, resource) = (text("entity", entity)?, text("resource", resource)?);
        Ok(CallArguments { entity, resource, demand: CallDemand::of(py, demand, named, &NoUnits)?, extras })
    }

    pub(super) fn into_call(self) -> EntityCall {
        EntityCall {
            entity: self.entity.into(),
            resource: self.resource.into(),
            demand: self.demand.to_owned(),
            extras: self.extras.unwrap_or_default(),
        }
    }

    /// Tries to take it from the memory of this process, with the GIL; `None` if the answer is not known at once.
    #[inline]
    pub(super) fn try_plain(
        &self,
        slf: &Bound<'py, PyLimiter>,
        priority: Priority,
    ) -> PyResult<Option<Attempt<PyLease, ChainStatus>>> {
        let this = slf.get();
        if !this.is_plain() || self.extras.is_some() {
            return Ok(None);
        }
        let attempt = match &self.demand {
            CallDemand::Prepared(demand) => self.poll(this.limiter(), *demand, priority),
            CallDemand::Collected(demand) => self.poll(this.limiter(), demand.plain(), priority),
        };
        let Poll::Ready(attempt) = attempt else { return Ok(None) };
        deliver(slf.py());
        Ok(Some(match attempt.or_raise(slf.py())? {
            Attempt::Admitted(lease) => {
                Attempt::Admitted(PyLease::of_limiter(lease, slf.clone().unbind(), false))
            }
            Attempt::Denied(denial) => Attempt::Denied(denial),
        }))
    }

    #[inline]
    fn poll(
        &self,
        limiter: &Limiter,
        demand: impl AsDemand + Send + Sync,
        priority: Priority,
    ) -> Poll<Result<Attempt<LimiterLease<'static>, ChainStatus>, LimiterError>> {
        let attempt = limiter.try_acquire(self.entity, self.resource, demand).priority(priority);
        let attempt = pin!(attempt.into_future());
        attempt.poll(&mut Context::from_waker(Waker::noop())).map_ok(|attempt| match attempt {
            Attempt::Admitted(lease) => Attempt::Admitted(lease.into_owned()),
            Attempt::Denied(denial) => Attempt::Denied(denial),
        })
    }
}

impl PyLimiter {
    pub(super) fn acquire_operation(slf: &Bound<'_, Self>, call: EntityCall, wait: WaitFor) -> PendingOp {
        let (limiter, owner) = (slf.get().limiter().clone(), slf.clone().unbind());
        operation(call.acquire(limiter, wait), |py, acquired| {
            Py::new(py, PyLease::of_limiter(acquired.or_raise(py)?, owner, false))
        })
    }

    pub(super) fn try_operation(slf: &Bound<'_, Self>, call: EntityCall, priority: Priority) -> PendingOp {
        let (limiter, owner) = (slf.get().limiter().clone(), slf.clone().unbind());
        operation(call.try_acquire(limiter, priority), |py, attempt| {
            Ok(match attempt.or_raise(py)? {
                Attempt::Admitted(lease) => Py::new(py, PyLease::of_limiter(lease, owner, false))?.into_any(),
                Attempt::Denied(denial) => Py::new(py, PyDenial::of_limiter(denial))?.into_any(),
            })
        })
    }
}
