//! What a lease of Python holds: the lease of a set or of a limiter. Both end in the same ways.

use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tollgate::limiter::{LeaseEnd, TicketEnd, TicketError};
use tollgate::{Demand, Lease, LeaseError, LimiterLease, Limits, Name, Reply, Unit};

use crate::demand::UnitLookup;
use crate::limiter::PyLimiter;
use crate::set::PyLimitSet;
use crate::wait::FirstPoll;

/// How the end of a lease is written down.
pub(crate) type Ending = Reply<'static, Result<(), LeaseError>>;

/// The lease of a set or of a limiter.
pub(crate) enum EitherLease {
    Set(Lease<'static>),
    Limiter(LimiterLease<'static>),
}

/// Does the same with a lease of either kind.
macro_rules! either {
    ($held:expr, $lease:ident => $body:expr) => {
        match $held {
            EitherLease::Set($lease) => $body,
            EitherLease::Limiter($lease) => $body,
        }
    };
}

impl EitherLease {
    pub(crate) fn settle(self, usage: &Demand) -> Ending {
        either!(self, lease => lease.settle(usage))
    }

    pub(crate) fn commit(self) -> Ending {
        either!(self, lease => lease.commit())
    }

    pub(crate) fn cancel(self) -> Ending {
        either!(self, lease => lease.cancel())
    }

    /// Ends it, and returns whether it was ended before, by another process that has its token.
    pub(crate) fn end_once(self, ending: LeaseEnd) -> Reply<'static, Result<TicketEnd, LeaseError>> {
        let ended = match (self, ending) {
            (EitherLease::Limiter(lease), _) => return lease.end_once(ending),
            (EitherLease::Set(lease), LeaseEnd::Commit) => lease.commit(),
            (EitherLease::Set(lease), LeaseEnd::Cancel) => lease.cancel(),
        };
        Reply::later(async move { ended.await.map(|()| TicketEnd::Now) })
    }

    /// Makes the token of a limiter's lease; `None` for a lease of a set.
    pub(crate) fn into_token(self) -> Option<Reply<'static, Result<String, TicketError>>> {
        match self {
            EitherLease::Limiter(lease) => Some(lease.into_ticket()),
            EitherLease::Set(_) => None,
        }
    }

    pub(crate) fn report(&mut self, resource: Option<&str>, usage: &Demand) -> Result<(), LeaseError> {
        match (self, resource) {
            (EitherLease::Set(lease), None) => lease.report(usage),
            (EitherLease::Limiter(lease), None) => lease.report(usage),
            (EitherLease::Limiter(lease), Some(resource)) => lease.report_for(resource, usage),
            (EitherLease::Set(_), Some(resource)) => Err(no_resources(resource)),
        }
    }

    pub(crate) fn adjust(&mut self, resource: Option<&str>, by: &[(String, i64)]) -> Result<(), LeaseError> {
        let by = by.iter().map(|(name, by)| (name.as_str(), *by));
        match (self, resource) {
            (EitherLease::Set(lease), None) => lease.adjust(by),
            (EitherLease::Limiter(lease), None) => lease.adjust(by),
            (EitherLease::Limiter(lease), Some(resource)) => lease.adjust_for(resource, by),
            (EitherLease::Set(_), Some(resource)) => Err(no_resources(resource)),
        }
    }

    pub(crate) async fn consume(&mut self, demand: &Demand) -> Result<(), tollgate::Error> {
        match self {
            EitherLease::Set(lease) => Ok(lease.consume(demand).await?),
            EitherLease::Limiter(lease) => Ok(lease.consume(demand).await?),
        }
    }

    pub(crate) async fn heartbeat(&self) -> Result<bool, LeaseError> {
        either!(self, lease => lease.heartbeat().await)
    }

    pub(crate) fn reserved(&self, limit: &str) -> Option<u64> {
        either!(self, lease => lease.reserved(limit))
    }

    pub(crate) fn reported(&self, limit: &str) -> Option<u64> {
        either!(self, lease => lease.reported(limit))
    }

    pub(crate) fn waited(&self) -> Option<Duration> {
        either!(self, lease => lease.waited())
    }

    pub(crate) fn warnings(&self) -> &[Name] {
        either!(self, lease => lease.warnings())
    }

    pub(crate) fn is_degraded(&self) -> bool {
        either!(self, lease => lease.is_degraded())
    }

    pub(crate) fn lost(&self) -> bool {
        either!(self, lease => lease.lost())
    }

    /// Returns the names of the limits that it may have taken of.
    pub(crate) fn names(&self) -> Vec<String> {
        let names = |limits: &Limits| limits.iter().map(|limit| limit.name().as_str().to_owned()).collect();
        match self {
            EitherLease::Set(lease) => names(&lease.set().limits()),
            EitherLease::Limiter(lease) => lease.limits().map(names).unwrap_or_default(),
        }
    }

    /// Returns the entity and the resource of a limiter's lease.
    pub(crate) fn called(&self) -> Option<(&str, &str)> {
        match self {
            EitherLease::Set(_) => None,
            EitherLease::Limiter(lease) => lease.called(),
        }
    }
}

#[cold]
fn no_resources(resource: &str) -> LeaseError {
    LeaseError::OtherResource(resource.into(), "a set, which has no resources".into())
}

/// Where a lease was taken.
pub(crate) enum LeaseOwner {
    Set(Py<PyLimitSet>),
    Limiter(Py<PyLimiter>),
}

impl LeaseOwner {
    pub(crate) fn first_poll(&self) -> FirstPoll {
        match self {
            LeaseOwner::Set(set) => set.get().first_poll(),
            LeaseOwner::Limiter(limiter) => limiter.get().first_poll(),
        }
    }

    pub(crate) fn config_copy<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        match self {
            LeaseOwner::Set(set) => set.get().config_copy(py),
            LeaseOwner::Limiter(_) => Ok(PyDict::new(py)),
        }
    }

    /// Returns whether a lease that is dropped may have held what others wait for.
    pub(crate) fn warns_of_drop(&self, lease: &EitherLease) -> bool {
        match (self, lease) {
            (LeaseOwner::Set(set), _) => set.get().warns_of_drops(),
            (LeaseOwner::Limiter(_), EitherLease::Limiter(lease)) => {
                lease.limits().is_some_and(Limits::have_resources)
            }
            (LeaseOwner::Limiter(_), EitherLease::Set(_)) => false,
        }
    }
}

impl UnitLookup for LeaseOwner {
    /// The limits of an entity are stored, and may change with each call: their amounts are whole numbers.
    fn unit_of(&self, name: &str) -> Option<Unit> {
        match self {
            LeaseOwner::Set(set) => set.get().names().unit_of(name),
            LeaseOwner::Limiter(_) => None,
        }
    }
}
