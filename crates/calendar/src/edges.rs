use jiff::Timestamp;
use tollgate_core::{Edges, Tick};

use crate::pattern::Pattern;
use crate::zone::Zone;

/// The instants at which a zone reaches the local times of a pattern.
pub(crate) struct CronEdges {
    pub(crate) pattern: Pattern,
    pub(crate) zone: Zone,
}

impl Edges for CronEdges {
    /// Returns `None` after the year 9999, where the proleptic calendar of `jiff` ends.
    fn next_edge(&self, after: Tick) -> Option<Tick> {
        let after = Timestamp::from_microsecond(i64::try_from(after.as_micros()).ok()?).ok()?;
        let mut local = self.zone.local(after);
        loop {
            // Local times up to the current one have been reached. A later one may have been
            // reached as well, before the clock was set back; then it has no second edge.
            local = self.pattern.next_after(local)?;
            let edge = self.zone.reached(local)?;
            if edge > after {
                return u64::try_from(edge.as_microsecond()).ok().map(Tick::from_micros);
            }
        }
    }
}
