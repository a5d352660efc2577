//! Calendars for tests: a list of edges, regular or not, with none after the last.

use tollgate_core::{Calendar, Edges, Tick};

#[derive(Clone, Debug, PartialEq)]
pub struct Listed(pub Vec<u64>);

impl Listed {
    pub fn after(&self, after: u64) -> Option<u64> {
        self.0.iter().copied().find(|edge| *edge > after)
    }

    pub fn calendar(&self) -> Calendar {
        Calendar::new(&format!("{:?}", self.0), self.clone())
    }
}

impl Edges for Listed {
    fn next_edge(&self, after: Tick) -> Option<Tick> {
        self.after(after.as_micros()).map(Tick::from_micros)
    }
}

/// Regular edges without an end.
pub struct Every(pub u64);

impl Edges for Every {
    fn next_edge(&self, after: Tick) -> Option<Tick> {
        let next = (after.as_micros() / self.0).checked_add(1)?;
        next.checked_mul(self.0).map(Tick::from_micros)
    }
}
