use jiff::Timestamp;
use tollgate_core::{Edges, Tick};

use crate::pattern::Pattern;
use crate::zone::Zone;

/// The instants at which the local times of a pattern are reached in a zone.
pub(crate) struct CronEdges {
    pub(crate) pattern: Pattern,
    pub(crate) zone: Zone,
}

impl Edges for CronEdges {
    /// `None` where the proleptic calendar ends, which is with the year 9999.
    fn next_edge(&self, after: Tick) -> Option<Tick> {
        let after = Timestamp::from_microsecond(i64::try_from(after.as_micros()).ok()?).ok()?;
        let mut local = self.zone.local(after);
        loop {
            // Whatever is not later than the clock on the wall has been reached. What is later can have been
            // reached too, if the clock was turned back; then it does not count again.
            local = self.pattern.next_after(local)?;
            let edge = self.zone.reached(local)?;
            if edge > after {
                return u64::try_from(edge.as_microsecond()).ok().map(Tick::from_micros);
            }
        }
    }
}
