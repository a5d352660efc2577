use std::time::Duration;

use serde::Serialize;
use tollgate::Ready;
use tollgate::limiter::{ChainStatus, LimiterError};

use super::WaitTime;
use super::standing::{StandingView, millis_up, standing_views};
use super::wait_time::micros;
use crate::{duration_text, limit_text};

/// Why a call was refused, or would be.
#[derive(Serialize)]
pub(crate) struct RefusalView {
    /// `null` if that depends on others giving back, or if it is never.
    pub(crate) retry_after_us: Option<u64>,
    /// The same in milliseconds, rounded up.
    retry_after_ms: Option<u64>,
    /// If it depends on others giving back: when they lose what they hold, if they do not renew it.
    at_the_latest_us: Option<u64>,
    /// The same in milliseconds, rounded up.
    at_the_latest_ms: Option<u64>,
    /// `null` if no limit refuses, but others wait ahead.
    pub(crate) limited_by: Option<LimitedBy>,
    /// Each bucket.
    pub(crate) buckets: Vec<StandingView>,
    /// The limit that takes longest, for people.
    #[serde(skip)]
    pub(crate) reason: String,
    /// When it would pass.
    #[serde(skip)]
    moment: WaitTime,
    /// If that depends on others giving back: how long it takes all the same, because of limits that only time helps.
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

impl RefusalView {
    /// Returns what an error says about limits, and how long the call waited until it timed out; `None` if it is no
    /// refusal.
    pub(crate) fn of_error(error: &LimiterError) -> Option<(RefusalView, Duration)> {
        let waited = match error {
            LimiterError::TimedOut { waited, .. } => *waited,
            _ => Duration::ZERO,
        };
        error.denial().map(|standing| (RefusalView::of(standing), waited))
    }

    /// When it would pass, for people.
    pub(crate) fn retry_text(&self) -> String {
        match self.moment {
            WaitTime::Now | WaitTime::In(_) => {
                let wait = Duration::from_micros(self.retry_after_us.unwrap_or(0));
                format!("retry in {}", duration_text::roughly(wait))
            }
            WaitTime::GivenBack(_) | WaitTime::Never => format!("retry {}", self.unknown_text()),
        }
    }

    /// When it would pass if that cannot be known, for people.
    pub(crate) fn unknown_text(&self) -> String {
        match (self.moment, self.earliest) {
            (WaitTime::GivenBack(_), Some(earliest)) => {
                let earliest = duration_text::roughly(earliest);
                format!("in {earliest} at the earliest, if others have given enough back by then")
            }
            (WaitTime::GivenBack(Some(wait)), None) => {
                format!(
                    "as soon as others give enough back, at the latest in {}",
                    duration_text::roughly(wait)
                )
            }
            (WaitTime::Never, _) => "after a top-up or a reset: the debt would not be paid for ages".into(),
            _ => "as soon as others give enough back".into(),
        }
    }

    /// The same of how a call stands.
    pub(crate) fn of(standing: &ChainStatus) -> RefusalView {
        let limited_by = standing.limited_by().map(|(part, status)| LimitedBy {
            entity: part.entity.clone(),
            resource: part.resource.clone(),
            limit: status.limit().name().to_string(),
        });
        let moment = moment(standing);
        let retry_after = standing.retry_after().filter(|_| moment.known_us().is_some());
        let at_the_latest = match moment {
            WaitTime::GivenBack(wait) => wait,
            _ => None,
        };
        RefusalView {
            retry_after_us: retry_after.map(micros),
            retry_after_ms: retry_after.map(millis_up),
            at_the_latest_us: at_the_latest.map(micros),
            at_the_latest_ms: at_the_latest.map(millis_up),
            moment,
            earliest: earliest(standing),
            limited_by,
            buckets: standing_views(standing),
            reason: reason(standing),
        }
    }
}

/// When a call would pass. Who is refused by what others hold depends on them, whatever else refuses it.
fn moment(standing: &ChainStatus) -> WaitTime {
    let held = standing.violations().any(|(_, status)| status.limit().is_resource());
    match (standing.ready(), standing.retry_after()) {
        (Ready::Now, _) => WaitTime::Now,
        (_, wait) if held => WaitTime::GivenBack(wait),
        (_, Some(wait)) => WaitTime::In(wait),
        // Behind others: they have to be served.
        (_, None) if standing.limited_by().is_none() => WaitTime::GivenBack(None),
        (_, None) => WaitTime::Never,
    }
}

/// How long a call takes at least, whatever others give back; `None` if time alone refuses nothing.
fn earliest(standing: &ChainStatus) -> Option<Duration> {
    let now = standing.parts.first()?.denial.now();
    let earliest = standing.parts.iter().map(|part| part.denial.earliest()).fold(Ready::Now, Ready::later);
    if earliest == Ready::Now { None } else { earliest.wait(now) }
}

/// Which limit refuses, with numbers as people write them.
fn reason(standing: &ChainStatus) -> String {
    let Some((part, status)) = standing.limited_by() else { return standing.to_string() };
    let shown = |amount: u64| limit_text::shown(status.limit(), amount);
    let (name, asked) = (status.limit().name(), shown(status.requested()));
    let why = match u64::try_from(status.available()) {
        Ok(left) => format!("{name} has {} of the {asked} asked", shown(left)),
        Err(_) => format!("{name} is {} in debt, {asked} asked", shown(status.available().unsigned_abs())),
    };
    format!("{} on {}: {why}", part.entity, part.resource)
}
