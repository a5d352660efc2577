use std::time::Duration;

use serde::Serialize;
use tollgate::catalog::LimitsSource;
use tollgate::limiter::{ChainStatus, LinkStatus};
use tollgate::{Status, Tick};

use super::WaitTime;
use crate::limit_text;
use crate::output::{TableCell, style};

/// How a demand stands towards the limits of one entity for one resource.
#[derive(Serialize)]
pub(crate) struct StandingView {
    pub(crate) entity: String,
    pub(crate) resource: String,
    /// The level its limits come from.
    source: &'static str,
    pub(crate) limits: Vec<StandView>,
    /// The level for people.
    #[serde(skip)]
    pub(crate) level: String,
}

/// How a demand stands towards one limit.
#[derive(Serialize)]
pub(crate) struct StandView {
    pub(crate) name: String,
    requested: u64,
    /// `null` if it is unbounded, as is the capacity.
    available: Option<i64>,
    capacity: Option<u64>,
    pub(crate) refuses: bool,
    /// Whether no limit takes longer.
    pub(crate) decides: bool,
    /// `null` if that depends on others giving back, or if it is never; as is the other one.
    ready_in_us: Option<u64>,
    full_in_us: Option<u64>,
    #[serde(skip)]
    text: StandText,
}

/// The same for people.
struct StandText {
    requested: String,
    available: String,
    capacity: String,
    ready: String,
    full: String,
}

/// How a demand stands towards every limit, bucket by bucket.
pub(crate) fn standing_views(standing: &ChainStatus) -> Vec<StandingView> {
    let decides = standing.limited_by().map(|(part, status)| {
        (part.entity.clone(), part.resource.clone(), status.limit().name().to_string())
    });
    let is_it = |part: &LinkStatus, name: &str| {
        decides.as_ref().is_some_and(|(entity, resource, limit)| {
            *entity == part.entity && *resource == part.resource && *limit == name
        })
    };
    let view = |part: &LinkStatus| {
        let now = part.denial.now();
        let stand = |status: Status| {
            let decides = is_it(part, status.limit().name().as_str());
            StandView { decides, ..StandView::of(&status, now) }
        };
        StandingView {
            entity: part.entity.clone(),
            resource: part.resource.clone(),
            source: source_name(part.source),
            limits: part.denial.statuses().map(stand).collect(),
            level: level_of(part),
        }
    };
    standing.parts.iter().map(view).collect()
}

impl StandView {
    fn of(status: &Status, now: Tick) -> StandView {
        let limit = status.limit();
        let bounded = !limit.is_unbounded();
        let ready = WaitTime::of(limit, status.ready(), now);
        let full = WaitTime::of(limit, status.full(), now);
        let shown = |amount: u64| limit_text::shown(limit, amount);
        let sign = if status.available() < 0 { "-" } else { "" };
        let text = StandText {
            requested: if status.requested() == 0 { String::new() } else { shown(status.requested()) },
            available: match bounded {
                true => format!("{sign}{}", shown(status.available().unsigned_abs())),
                false => "unbounded".into(),
            },
            capacity: if bounded { shown(limit.capacity()) } else { String::new() },
            ready: ready.short(),
            full: full.text(),
        };
        StandView {
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

    /// What is asked of it; nothing if nothing is.
    pub(crate) fn requested(&self) -> TableCell {
        self.text.requested.as_str().into()
    }

    /// What could be had now.
    pub(crate) fn available(&self) -> TableCell {
        let is_out = self.refuses || self.available.is_some_and(|left| left <= 0);
        if is_out {
            TableCell::styled(&self.text.available, style::BAD)
        } else {
            (&self.text.available).into()
        }
    }

    /// The most that could be had.
    pub(crate) fn capacity(&self) -> TableCell {
        (&self.text.capacity).into()
    }

    /// When it would admit what is asked.
    pub(crate) fn ready(&self) -> TableCell {
        if self.refuses {
            (&self.text.ready).into()
        } else {
            TableCell::styled(&self.text.ready, style::GOOD)
        }
    }

    /// When it is full again.
    pub(crate) fn full(&self) -> TableCell {
        TableCell::from(&self.text.full)
    }
}

/// Milliseconds that are not too short: who retries then is not early.
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
