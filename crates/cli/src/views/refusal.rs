use std::time::Duration;

use serde::Serialize;
use tollgate::limiter::{AcquireError, Standing};

use super::standing::{StandingView, millis_up, standing_views};
use crate::duration_text;

/// Why a call was refused, or would be.
#[derive(Serialize)]
pub(crate) struct RefusalView {
    /// `null` if that depends on others giving back.
    pub(crate) retry_after_ms: Option<u64>,
    /// `null` if no limit refuses, but others wait ahead.
    pub(crate) limited_by: Option<LimitedBy>,
    /// Each bucket.
    pub(crate) buckets: Vec<StandingView>,
    /// The limit that takes longest, for people.
    #[serde(skip)]
    pub(crate) reason: String,
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
        match self.retry_after_ms {
            Some(wait) => format!("retry in {}", duration_text::roughly(Duration::from_millis(wait))),
            None => "retry when something was given back".into(),
        }
    }

    /// The same of how a call stands.
    pub(crate) fn of(standing: &Standing) -> RefusalView {
        let limited_by = standing.limited_by().map(|(part, status)| LimitedBy {
            entity: part.entity.clone(),
            resource: part.resource.clone(),
            limit: status.limit().name().to_string(),
        });
        RefusalView {
            retry_after_ms: standing.retry_after().map(millis_up),
            limited_by,
            buckets: standing_views(standing),
            reason: reason(standing),
        }
    }
}

/// Which limit refuses, without when it would not.
fn reason(standing: &Standing) -> String {
    let said = standing.to_string();
    said.split("; retry").next().unwrap_or(&said).into()
}
