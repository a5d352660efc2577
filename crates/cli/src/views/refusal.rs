use std::time::Duration;

use serde::Serialize;
use tollgate::Ready;
use tollgate::limiter::{AcquireError, Standing};

use super::Moment;
use super::standing::{StandingView, millis_up, standing_views};
use crate::duration_text;

/// Why a call was refused, or would be.
#[derive(Serialize)]
pub(crate) struct RefusalView {
    /// `null` if that depends on others giving back, or if it is never.
    pub(crate) retry_after_ms: Option<u64>,
    /// If it depends on others giving back: when they lose what they hold, if they do not renew it.
    pub(crate) at_the_latest_ms: Option<u64>,
    /// `null` if no limit refuses, but others wait ahead.
    pub(crate) limited_by: Option<LimitedBy>,
    /// Each bucket.
    pub(crate) buckets: Vec<StandingView>,
    /// The limit that takes longest, for people.
    #[serde(skip)]
    pub(crate) reason: String,
    /// When it would pass.
    #[serde(skip)]
    moment: Moment,
}

/// The limit that takes longest.
#[derive(Serialize)]
pub(crate) struct LimitedBy {
    entity: String,
    resource: String,
    limit: String,
}

impl RefusalView {
    /// What an error says about limits, and how long was waited in vain; `None` if it is another one.
    pub(crate) fn of_error(error: &AcquireError) -> Option<(RefusalView, Duration)> {
        let waited = match error {
            AcquireError::TimedOut { waited, .. } => *waited,
            _ => Duration::ZERO,
        };
        error.refusal().map(|standing| (RefusalView::of(standing), waited))
    }

    /// When it would pass, for people.
    pub(crate) fn retry_text(&self) -> String {
        match self.moment {
            Moment::Now | Moment::In(_) => {
                let wait = Duration::from_millis(self.retry_after_ms.unwrap_or(0));
                format!("retry in {}", duration_text::roughly(wait))
            }
            Moment::GivenBack(_) | Moment::Never => format!("retry {}", self.unknown_text()),
        }
    }

    /// When it would pass if that cannot be known, for people.
    pub(crate) fn unknown_text(&self) -> String {
        match self.moment {
            Moment::GivenBack(Some(wait)) => {
                format!(
                    "as soon as others give enough back, at the latest in {}",
                    duration_text::roughly(wait)
                )
            }
            Moment::Never => "after a top-up or a reset: the debt would not be paid for ages".into(),
            _ => "as soon as others give enough back".into(),
        }
    }

    /// The same of how a call stands.
    pub(crate) fn of(standing: &Standing) -> RefusalView {
        let limited_by = standing.limited_by().map(|(part, status)| LimitedBy {
            entity: part.entity.clone(),
            resource: part.resource.clone(),
            limit: status.limit().name().to_string(),
        });
        let moment = moment(standing);
        RefusalView {
            retry_after_ms: standing.retry_after().filter(|_| moment.known_us().is_some()).map(millis_up),
            at_the_latest_ms: match moment {
                Moment::GivenBack(wait) => wait.map(millis_up),
                _ => None,
            },
            moment,
            limited_by,
            buckets: standing_views(standing),
            reason: reason(standing),
        }
    }
}

/// When a call would pass. Who is refused by what others hold depends on them, whatever else refuses it.
fn moment(standing: &Standing) -> Moment {
    let held = standing.violations().any(|(_, status)| status.limit().is_resource());
    match (standing.ready(), standing.retry_after()) {
        (Ready::Now, _) => Moment::Now,
        (_, wait) if held => Moment::GivenBack(wait),
        (_, Some(wait)) => Moment::In(wait),
        // Behind others: they have to be served.
        (_, None) if standing.limited_by().is_none() => Moment::GivenBack(None),
        (_, None) => Moment::Never,
    }
}

/// Which limit refuses, without when it would not.
fn reason(standing: &Standing) -> String {
    let said = standing.to_string();
    said.split("; retry").next().unwrap_or(&said).into()
}
