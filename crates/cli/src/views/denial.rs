use std::time::Duration;

use serde::Serialize;
use tollgate::Ready;
use tollgate::limiter::{ChainStatus, LimiterError};

use super::WaitTime;
use super::demand_status::{DemandStatusView, bucket_views, millis_up};
use super::wait_time::micros;
use crate::{duration_text, limit_text};

/// Why a call was denied, or would be.
#[derive(Serialize)]
pub(crate) struct DenialView {
    /// `null` if that depends on other leases being released, or if it is never.
    pub(crate) retry_after_us: Option<u64>,
    /// The same in milliseconds, rounded up.
    retry_after_ms: Option<u64>,
    /// If it depends on other leases: when they expire, unless they are renewed.
    at_the_latest_us: Option<u64>,
    /// The same in milliseconds, rounded up.
    at_the_latest_ms: Option<u64>,
    /// `null` if no limit denies the call, but other waiters are ahead.
    pub(crate) limited_by: Option<LimitedBy>,
    /// Each bucket.
    pub(crate) buckets: Vec<DemandStatusView>,
    /// The limit that takes longest, as text.
    #[serde(skip)]
    pub(crate) reason: String,
    /// When the call would be admitted.
    #[serde(skip)]
    moment: WaitTime,
    /// If that depends on other leases: the shortest wait, because of rate limits that deny as well.
    #[serde(skip)]
    earliest: Option<Duration>,
}

/// The limit that takes longest.
#[derive(Serialize)]
pub(crate) struct LimitedBy {
    entity: String,
    resource: String,
    limit: String,
}

impl DenialView {
    /// Returns the denial of an error, and how long the call waited until it timed out; `None` if it is not a
    /// denial.
    pub(crate) fn of_error(error: &LimiterError) -> Option<(DenialView, Duration)> {
        let waited = match error {
            LimiterError::TimedOut { waited, .. } => *waited,
            _ => Duration::ZERO,
        };
        error.denial().map(|status| (DenialView::of(status), waited))
    }

    /// Formats when to retry.
    pub(crate) fn retry_text(&self) -> String {
        match self.moment {
            WaitTime::Now | WaitTime::In(_) => {
                let wait = Duration::from_micros(self.retry_after_us.unwrap_or(0));
                format!("retry in {}", duration_text::roughly(wait))
            }
            WaitTime::OnRelease(_) | WaitTime::AfterWaiters(_) | WaitTime::Never => {
                format!("retry {}", self.unknown_text())
            }
        }
    }

    /// Formats when the call would be admitted if that is not known exactly.
    pub(crate) fn unknown_text(&self) -> String {
        match (self.moment, self.earliest) {
            (WaitTime::OnRelease(_), Some(earliest)) => {
                let earliest = duration_text::roughly(earliest);
                format!("in {earliest} at the earliest, if enough is released by then")
            }
            (WaitTime::OnRelease(Some(wait)), None) => {
                format!("when enough is released, at the latest in {}", duration_text::roughly(wait))
            }
            (WaitTime::AfterWaiters(None), _) => "after the waiters ahead".into(),
            (WaitTime::AfterWaiters(Some(wait)), _) => {
                let wait = duration_text::roughly(wait);
                format!("after the waiters ahead, in {wait} at the earliest")
            }
            (WaitTime::Never, _) => "after a top-up or a reset: the debt is too large to be paid off".into(),
            _ => "when enough is released".into(),
        }
    }

    /// Returns the view of a chain's status.
    pub(crate) fn of(status: &ChainStatus) -> DenialView {
        let limited_by = status.limited_by().map(|(part, status)| LimitedBy {
            entity: part.entity.clone(),
            resource: part.resource.clone(),
            limit: status.limit().name().to_string(),
        });
        let moment = moment(status);
        let retry_after = status.retry_after().filter(|_| moment.known_us().is_some());
        let at_the_latest = match moment {
            WaitTime::OnRelease(wait) => wait,
            _ => None,
        };
        DenialView {
            retry_after_us: retry_after.map(micros),
            retry_after_ms: retry_after.map(millis_up),
            at_the_latest_us: at_the_latest.map(micros),
            at_the_latest_ms: at_the_latest.map(millis_up),
            moment,
            earliest: earliest(status),
            limited_by,
            buckets: bucket_views(status),
            reason: reason(status),
        }
    }
}

/// Returns when a call would be admitted. If a concurrency limit denies it, that depends on other leases, whatever else denies it.
fn moment(status: &ChainStatus) -> WaitTime {
    let held = status.violations().any(|(_, status)| status.limit().is_resource());
    match (status.ready(), status.retry_after()) {
        (Ready::Now, _) => WaitTime::Now,
        (_, wait) if held => WaitTime::OnRelease(wait),
        (_, Some(wait)) => WaitTime::In(wait),
        // The limits would admit it at a known time, but waiters ahead have to be admitted first.
        (_, None) => latest_of_limits(status).map_or(WaitTime::Never, WaitTime::AfterWaiters),
    }
}

/// Returns how long it takes until all limits would admit a call if nothing else waited: `Some(None)` if they would now, and
/// `None` if they never do.
fn latest_of_limits(status: &ChainStatus) -> Option<Option<Duration>> {
    let mut latest = None;
    for (part, violation) in status.violations() {
        latest = latest.max(Some(violation.ready().wait(part.denial.now())?));
    }
    Some(latest)
}

/// Returns how long a call waits at least, whatever is released; `None` if no rate limit denies it.
fn earliest(status: &ChainStatus) -> Option<Duration> {
    let now = status.parts.first()?.denial.now();
    let earliest = status.parts.iter().map(|part| part.denial.earliest()).fold(Ready::Now, Ready::later);
    if earliest == Ready::Now { None } else { earliest.wait(now) }
}

/// Formats which limit denies the call, and its numbers.
fn reason(status: &ChainStatus) -> String {
    let Some((part, status)) = status.limited_by() else { return status.to_string() };
    let shown = |amount: u64| limit_text::shown(status.limit(), amount);
    let name = status.limit().name();
    let asked = shown(status.requested());
    let why = match u64::try_from(status.available()) {
        Ok(left) => format!("{name} has {} of the {asked} asked", shown(left)),
        Err(_) => format!("{name} is {} in debt, {asked} asked", shown(status.available().unsigned_abs())),
    };
    format!("{} on {}: {why}", part.entity, part.resource)
}
