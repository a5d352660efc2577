//! Usage, by hour, day and month.

use pyo3::prelude::*;
use pyo3::types::PyDict;
use tollgate::catalog::{LimitUsage, UsageQuery, UsageRow, UsageSummary, Window, WindowUsage};

use super::{PyCatalog, ask, dict_of, page_of, record};
use crate::error::invalid;
use crate::input::{Instant, TextArgument, epoch_seconds, one_of, page};
use crate::pairs::pairs;

const WINDOWS: [(Window, &str); 3] = [(Window::Hour, "hour"), (Window::Day, "day"), (Window::Month, "month")];

fn window_name(window: Window) -> &'static str {
    WINDOWS.iter().find(|(known, _)| *known == window).map_or("hour", |(_, name)| *name)
}

/// Returns the query for a subject and a time, without a page.
fn query(
    py: Python<'_>,
    window: &TextArgument,
    entity: Option<TextArgument>,
    resource: Option<TextArgument>,
    since: Option<Instant>,
    until: Option<Instant>,
) -> PyResult<UsageQuery> {
    let window = one_of(py, "window", &window.0, &WINDOWS)?;
    let mut query = match (entity, resource) {
        (Some(entity), None) => UsageQuery::of_entity(entity.0, window),
        (Some(entity), Some(resource)) => UsageQuery::of_entity(entity.0, window).resource(resource.0),
        (None, Some(resource)) => UsageQuery::of_resource(resource.0, window),
        (None, None) => UsageQuery::of_all_entities(window),
    };
    if let (Some(since), Some(until)) = (&since, &until)
        && since.0 > until.0
    {
        return Err(invalid(py, "since is later than until"));
    }
    if let Some(since) = since {
        query = query.from(since.0);
    }
    if let Some(until) = until {
        query = query.until(until.0);
    }
    Ok(query)
}

fn row_record(py: Python<'_>, row: UsageRow) -> PyResult<Py<PyAny>> {
    let (window, start) = (window_name(row.window), epoch_seconds(row.start));
    let UsageRow { entity, resource, amounts, events, child_amounts, child_events, .. } = row;
    let (amounts, child_amounts) = (amounts.into_pyobject(py)?, child_amounts.into_pyobject(py)?);
    record(py, "UsageRow", (entity, resource, window, start, amounts, events, child_amounts, child_events))
}

fn limit_record(py: Python<'_>, usage: LimitUsage) -> PyResult<Py<PyAny>> {
    record(py, "LimitUsage", (usage.total, usage.windows, usage.min, usage.max))
}

fn summary_record(py: Python<'_>, summary: UsageSummary) -> PyResult<Py<PyAny>> {
    let (first, last) = (summary.first.map(epoch_seconds), summary.last.map(epoch_seconds));
    let limits = dict_of(py, summary.limits, limit_record)?;
    record(py, "UsageSummary", (summary.windows, first, last, summary.events, limits))
}

fn window_record(py: Python<'_>, usage: WindowUsage) -> PyResult<Py<PyAny>> {
    record(py, "WindowUsage", (usage.events, usage.amounts.into_pyobject(py)?))
}

pairs! { PyCatalog, "Catalog":
    /// Returns a page of usage, by `window` ("hour", "day" or "month"): of an entity, of an entity for a resource, of a resource, or of all
    /// entities. `since` and `until` are seconds since the epoch or a `datetime`; `until` is not included.
    ///
    /// ```python
    /// for row in catalog.usage("day", entity="user-1").items:
    ///     print(row.resource, row.start, row.amounts)
    /// ```
    fn usage, usage_async (
        window, /, *, entity=None, resource=None, since=None, until=None, limit=None, after=None, newest_first=false
    ) (
        slf,
        window: TextArgument,
        entity: Option<TextArgument>,
        resource: Option<TextArgument>,
        since: Option<Instant>,
        until: Option<Instant>,
        limit: Option<&Bound<'_, PyAny>>,
        after: Option<TextArgument>,
        newest_first: bool
    ) {
        let query = query(slf.py(), &window, entity, resource, since, until)?;
        let query = query.page(page(limit, after, newest_first)?);
        let catalog = slf.get().catalog.clone();
        ask(async move { catalog.usage(query).await }, |py, rows| page_of(py, rows, row_record))
    }

    /// Returns totals, least and most of usage over all windows. The arguments are those of `usage`.
    ///
    /// ```python
    /// catalog.usage_summary("day", entity="user-1").limits["tpm"].total
    /// ```
    fn usage_summary, usage_summary_async (window, /, *, entity=None, resource=None, since=None, until=None) (
        slf,
        window: TextArgument,
        entity: Option<TextArgument>,
        resource: Option<TextArgument>,
        since: Option<Instant>,
        until: Option<Instant>
    ) {
        let query = query(slf.py(), &window, entity, resource, since, until)?;
        let catalog = slf.get().catalog.clone();
        ask(async move { catalog.usage_summary(query).await }, summary_record)
    }

    /// Returns usage summed up by window: a dict by the start of each, in seconds since the epoch. The arguments are those of `usage`.
    ///
    /// ```python
    /// catalog.usage_by_window("hour", resource="gpt-4")
    /// ```
    fn usage_by_window, usage_by_window_async (window, /, *, entity=None, resource=None, since=None, until=None) (
        slf,
        window: TextArgument,
        entity: Option<TextArgument>,
        resource: Option<TextArgument>,
        since: Option<Instant>,
        until: Option<Instant>
    ) {
        let query = query(slf.py(), &window, entity, resource, since, until)?;
        let catalog = slf.get().catalog.clone();
        ask(async move { catalog.usage_by_window(query).await }, |py, windows| {
            let windows = windows.into_iter().map(|(start, usage)| (epoch_seconds(start), usage));
            dict_of(py, windows, window_record).map(Bound::<PyDict>::unbind)
        })
    }
}
