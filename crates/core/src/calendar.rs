//! Calendars: the edges at which a quota is full again.

use std::fmt;
use std::sync::Arc;

use crate::Tick;

/// Where the edges of a calendar lie. A pure function of time: the same `after` always has the same answer.
pub trait Edges: Send + Sync + 'static {
    /// Returns the first edge later than `after`, or `None` if there are no more.
    fn next_edge(&self, after: Tick) -> Option<Tick>;
}

/// A calendar with the text it was written as, such as `0 0 * * * Europe/Berlin`.
///
/// Core knows no time zones; the crate `tollgate-calendar` makes calendars from cron expressions.
#[derive(Clone)]
pub struct Calendar {
    text: Arc<str>,
    edges: Arc<dyn Edges>,
}

impl Calendar {
    /// A calendar that is written as `text` and has these edges. Calendars with the same text must have the
    /// same edges.
    pub fn new(text: &str, edges: impl Edges) -> Calendar {
        Calendar { text: text.into(), edges: Arc::new(edges) }
    }

    /// What the calendar was written as.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the first edge later than `after`; [`Tick::MAX`] if there are no more.
    pub fn next_edge(&self, after: Tick) -> Tick {
        // An edge that is not later would loop for ever, so it counts as none.
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
