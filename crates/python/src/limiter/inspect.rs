//! Status without taking.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tollgate::Demand;
use tollgate::limiter::ChainStatus;

use super::PyLimiter;
use super::call::also_of;
use crate::catalog::record;
use crate::demand::{NoUnits, owned_demand};
use crate::error::OrRaise;
use crate::input::TextArgument;
use crate::pairs::pairs;
use crate::status::PyStatus;
use crate::wait::operation;

/// Makes the record of a status.
fn availability(py: Python<'_>, chain: &ChainStatus) -> PyResult<Py<PyAny>> {
    let statuses = chain.statuses().map(|(part, status)| {
        let whose = Some((part.entity.as_str(), part.resource.as_str()));
        PyStatus::of(py, &status, part.denial.now(), whose)
    });
    let statuses = PyTuple::new(py, statuses.collect::<PyResult<Vec<_>>>()?)?;
    let sources = PyDict::new(py);
    for part in &chain.parts {
        let source = part.source.map_or_else(|| "call".to_owned(), |source| source.to_string());
        sources.set_item((&part.entity, &part.resource), source)?;
    }
    let retry_after = chain.retry_after().map(|wait| wait.as_secs_f64());
    record(py, "Availability", (chain.passes(), retry_after, statuses, sources))
}

pairs! { PyLimiter, "Limiter":
    /// Returns the status of every limit of the entity and of the parents that it is charged to, and which level each comes from. Changes
    /// nothing.
    ///
    /// ```python
    /// limiter.peek("user-1", "gpt-4")["tpm"].available
    /// ```
    fn peek, peek_async (entity, resource, /) (slf, entity: TextArgument, resource: TextArgument) {
        let limiter = slf.get().limiter().clone();
        let peeked = async move { limiter.available(&entity.0, &resource.0).await };
        operation(peeked, |py, chain| availability(py, &chain.or_raise(py)?))
    }

    /// Returns whether the demand would pass now, and if not which limit of which entity denies it, and when it would pass. Takes nothing.
    ///
    /// ```python
    /// if not limiter.check("user-1", "gpt-4", {"tpm": 500}): ...
    /// ```
    fn check, check_async (entity, resource, demand=None, /, *, also=None, **named) (
        slf,
        entity: TextArgument,
        resource: TextArgument,
        demand: Option<&Bound<'_, PyAny>>,
        also: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>
    ) {
        let demand = owned_demand(slf.py(), demand, named, &NoUnits)?;
        let also = also.map(also_of).transpose()?.unwrap_or_default();
        let limiter = slf.get().limiter().clone();
        let checked = async move {
            let mut demands: Vec<(&str, &Demand)> = vec![(&resource.0, &demand)];
            demands.extend(also.iter().map(|(resource, demand)| (resource.as_str(), demand)));
            limiter.check_availability_of_all(&entity.0, demands).await
        };
        operation(checked, |py, chain| availability(py, &chain.or_raise(py)?))
    }

    /// Returns how many seconds until the demand would pass if it came now; `None` if that depends on others that give back.
    fn ready_after, ready_after_async (entity, resource, demand=None, /, **named) (
        slf,
        entity: TextArgument,
        resource: TextArgument,
        demand: Option<&Bound<'_, PyAny>>,
        named: Option<&Bound<'_, PyDict>>
    ) {
        let demand = owned_demand(slf.py(), demand, named, &NoUnits)?;
        let limiter = slf.get().limiter().clone();
        let ready = async move { limiter.time_until_available(&entity.0, &resource.0, &demand).await };
        operation(ready, |py, wait| Ok(wait.or_raise(py)?.map(|wait| wait.as_secs_f64())))
    }
}
