use std::time::Duration;

use serde::Serialize;
use tollgate::catalog::LimitsSource;
use tollgate::limiter::{ChainStatus, LinkStatus};
use tollgate::{Status, Tick};

use super::WaitTime;
use crate::limit_text;
use crate::output::{TableCell, style};

/// The status of a demand for one bucket: one entity and one resource.
#[derive(Serialize)]
pub(crate) struct DemandStatusView {
    pub(crate) entity: String,
    pub(crate) resource: String,
    /// The level its limits come from.
    source: &'static str,
    pub(crate) limits: Vec<LimitStatusView>,
    /// The level as text.
    #[serde(skip)]
    pub(crate) level: String,
}

/// The status of a demand for one limit.
#[derive(Serialize)]
pub(crate) struct LimitStatusView {
    pub(crate) name: String,
    requested: u64,
    /// `null` if it is unbounded, as is the capacity.
    available: Option<i64>,
    capacity: Option<u64>,
    pub(crate) refuses: bool,
    /// Whether no limit takes longer.
    pub(crate) decides: bool,
    /// `null` if that depends on other leases being released, or if it is never; the same for `full_in_us`.
    ready_in_us: Option<u64>,
    full_in_us: Option<u64>,
    #[serde(skip)]
    text: LimitStatusText,
}

/// The status as text.
struct LimitStatusText {
    requested: String,
    available: String,
    capacity: String,
    ready: String,
    full: String,
}

/// Returns the status of a demand for each limit of each bucket.
pub(crate) fn bucket_views(status: &ChainStatus) -> Vec<DemandStatusView> {
    let decides = status.limited_by().map(|(part, status)| {
        (part.entity.clone(), part.resource.clone(), status.limit().name().to_string())
    });
    let is_deciding = |part: &LinkStatus, name: &str| {
        decides.as_ref().is_some_and(|(entity, resource, limit)| {
            *entity == part.entity && *resource == part.resource && *limit == name
        })
    };
    let view = |part: &LinkStatus| {
        let now = part.denial.now();
        let stand = |status: Status| {
            let decides = is_deciding(part, status.limit().name().as_str());
            LimitStatusView { decides, ..LimitStatusView::of(&status, now) }
        };
        DemandStatusView {
            entity: part.entity.clone(),
            resource: part.resource.clone(),
            source: source_name(part.source),
            limits: part.denial.statuses().map(stand).collect(),
            level: level_of(part),
        }
    };
    status.parts.iter().map(view).collect()
}

impl LimitStatusView {
    fn of(status: &Status, now: Tick) -> LimitStatusView {
        let limit = status.limit();
        let bounded = !limit.is_unbounded();
        let ready = WaitTime::of(limit, status.ready(), now);
        let full = WaitTime::of(limit, status.full(), now);
        let shown = |amount: u64| limit_text::shown(limit, amount);
        let sign = if status.available() < 0 { "-" } else { "" };
        let text = LimitStatusText {
            requested: if status.requested() == 0 { String::new() } else { shown(status.requested()) },
            available: if bounded {
                format!("{sign}{}", shown(status.available().unsigned_abs()))
            } else {
                "unbounded".into()
            },
            capacity: if bounded { shown(limit.capacity()) } else { String::new() },
            ready: ready.short(),
            full: full.text(),
        };
        LimitStatusView {
            name: limit.name().to_string(),
            requested: status.requested(),
            available: bounded.then(|| status.available()),
            capacity: bounded.then(|| limit.capacity()),
            refuses: status.is_exceeded(),
            decides: false,
            ready_in_us: ready.known_us(),
            full_in_us: full.known_us(),
            text,
        }
    }

    /// Returns the requested amount; empty if it is 0.
    pub(crate) fn requested(&self) -> TableCell {
        self.text.requested.as_str().into()
    }

    /// Returns what is available now.
    pub(crate) fn available(&self) -> TableCell {
        let is_out = self.refuses || self.available.is_some_and(|left| left <= 0);
        if is_out {
            TableCell::styled(&self.text.available, style::BAD)
        } else {
            (&self.text.available).into()
        }
    }

    /// Returns the capacity.
    pub(crate) fn capacity(&self) -> TableCell {
        (&self.text.capacity).into()
    }

    /// Returns when the limit admits the demand.
    pub(crate) fn ready(&self) -> TableCell {
        if self.refuses {
            (&self.text.ready).into()
        } else {
            TableCell::styled(&self.text.ready, style::GOOD)
        }
    }

    /// Returns when the limit is full again.
    pub(crate) fn full(&self) -> TableCell {
        TableCell::from(&self.text.full)
    }
}

/// Converts to milliseconds, rounded up, so that a retry after that time is not early.
pub(crate) fn millis_up(wait: Duration) -> u64 {
    u64::try_from(wait.as_micros().div_ceil(1_000)).unwrap_or(u64::MAX)
}

fn source_name(source: Option<LimitsSource>) -> &'static str {
    match source {
        Some(LimitsSource::Entity) => "entity",
        Some(LimitsSource::EntityDefault) => "entity_default",
        Some(LimitsSource::Resource) => "resource",
        Some(LimitsSource::System) => "system",
        _ => "call",
    }
}

fn level_of(part: &LinkStatus) -> String {
    let LinkStatus { entity, resource, .. } = part;
    match part.source {
        Some(LimitsSource::Entity) => format!("entity {entity}, resource {resource}"),
        Some(LimitsSource::EntityDefault) => format!("entity {entity}"),
        Some(LimitsSource::Resource) => format!("resource {resource}"),
        Some(LimitsSource::System) => "the system".into(),
        _ => "the call".into(),
    }
}
