use serde::Serialize;
use tollgate::{Status, Tick};

use super::WaitTime;
use crate::limit_text;
use crate::output::{TableCell, style};

/// The status of a limit of a bucket.
#[derive(Serialize)]
pub(crate) struct StatusView {
    name: String,
    /// `null` if it is unbounded.
    available: Option<i64>,
    capacity: Option<u64>,
    /// `null` if that depends on other leases being released.
    full_in_us: Option<u64>,
    #[serde(skip)]
    text: [String; 3],
}

impl StatusView {
    /// Returns the view of a status at `now`.
    pub(crate) fn of(status: &Status, now: Tick) -> StatusView {
        let limit = status.limit();
        let bounded = !limit.is_unbounded();
        let full = WaitTime::of(limit, status.full(), now);
        let shown = |amount: i64| {
            let sign = if amount < 0 { "-" } else { "" };
            format!("{sign}{}", limit_text::shown(limit, amount.unsigned_abs()))
        };
        let text = [
            if bounded { shown(status.available()) } else { "unbounded".into() },
            if bounded { limit_text::shown(limit, limit.capacity()) } else { String::new() },
            match full {
                WaitTime::Now => "full".into(),
                WaitTime::In(_) => format!("full {}", full.text()),
                WaitTime::OnRelease(_) | WaitTime::AfterWaiters(_) | WaitTime::Never => full.text(),
            },
        ];
        StatusView {
            name: limit.name().to_string(),
            available: bounded.then(|| status.available()),
            capacity: bounded.then(|| limit.capacity()),
            full_in_us: full.known_us(),
            text,
        }
    }

    /// Returns the cells of a row: the limit, what is left, the capacity, and when it is full.
    pub(crate) fn cells(&self) -> [TableCell; 4] {
        let [left, capacity, full] = &self.text;
        let is_out = self.available.is_some_and(|left| left <= 0);
        let left = if is_out { TableCell::styled(left, style::BAD) } else { left.into() };
        [TableCell::name(&self.name), left, capacity.into(), full.into()]
    }
}
