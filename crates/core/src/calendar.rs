//! Calendars: the instants at which a quota resets.

use std::fmt;
use std::sync::Arc;

use crate::Tick;

/// Returns the edges of a calendar. Implementations are pure: the same `after` always has the same
/// result.
///
/// ```
/// use tollgate_core::{Calendar, Edges, Tick};
///
/// /// An edge at every full second.
/// struct Seconds;
///
/// impl Edges for Seconds {
///     fn next_edge(&self, after: Tick) -> Option<Tick> {
///         Some(Tick::from_secs(after.as_micros() / 1_000_000 + 1))
///     }
/// }
///
/// let calendar = Calendar::new("every second", Seconds);
/// assert_eq!(calendar.next_edge(Tick::from_millis(1_500)), Tick::from_secs(2));
/// ```
pub trait Edges: Send + Sync + 'static {
    /// Returns the first edge later than `after`, or `None` if there is no later edge.
    fn next_edge(&self, after: Tick) -> Option<Tick>;
}

/// A calendar with the text that describes it, such as `0 0 * * * Europe/Berlin`.
///
/// Core has no time zones; the crate `tollgate-calendar` makes calendars from cron expressions.
///
/// ```
/// use tollgate_core::{Calendar, Edges, Limit, Tick};
///
/// /// One edge, at the end of a trial period.
/// struct TrialEnd(Tick);
///
/// impl Edges for TrialEnd {
///     fn next_edge(&self, after: Tick) -> Option<Tick> {
///         Some(self.0).filter(|end| *end > after)
///     }
/// }
///
/// let trial = Calendar::new("trial", TrialEnd(Tick::from_secs(86_400)));
/// assert_eq!(trial.next_edge(Tick::from_secs(86_400)), Tick::MAX);
/// let limit = Limit::quota("tokens", 1_000, trial).build()?;
/// assert_eq!(limit.to_string(), "tokens: 1000 until the next edge of trial");
/// # Ok::<(), tollgate_core::LimitError>(())
/// ```
#[derive(Clone)]
pub struct Calendar {
    text: Arc<str>,
    edges: Arc<dyn Edges>,
}

impl Calendar {
    /// Creates a calendar that `text` describes. Calendars with the same text compare equal, so
    /// they must have the same edges.
    pub fn new(text: &str, edges: impl Edges) -> Calendar {
        Calendar { text: text.into(), edges: Arc::new(edges) }
    }

    /// Returns the text that describes the calendar.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the first edge later than `after`, or [`Tick::MAX`] if there is no later edge.
    pub fn next_edge(&self, after: Tick) -> Tick {
        // A caller that walks from edge to edge would loop forever on an edge that is not later
        // than `after`.
        self.edges.next_edge(after).filter(|edge| *edge > after).unwrap_or(Tick::MAX)
    }
}

impl fmt::Debug for Calendar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Calendar").field(&self.text).finish()
    }
}

impl PartialEq for Calendar {
    fn eq(&self, other: &Calendar) -> bool {
        self.text == other.text
    }
}

impl Eq for Calendar {}
