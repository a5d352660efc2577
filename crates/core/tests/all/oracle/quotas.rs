//! Quotas: full again a fixed time after the first use, or at the edges of a calendar.

use super::Machine;
use super::edges::Listed;

/// When a period ends that starts at an instant; `None` for never.
#[derive(Clone, Debug)]
pub enum Ends {
    After(u64),
    At(Listed),
}

/// An open period, and the use since `start`. What exceeds a period is charged to the following
/// ones.
#[derive(Clone, Copy, Debug)]
struct Open {
    start: u64,
    end: Option<u64>,
    used: i128,
}

#[derive(Clone, Debug)]
pub struct Quota {
    amount: i128,
    ends: Ends,
    open: Option<Open>,
}

impl Quota {
    pub fn new(amount: u64, ends: Ends) -> Quota {
        Quota { amount: amount.into(), ends, open: None }
    }

    fn end(&self, start: u64) -> Option<u64> {
        match &self.ends {
            Ends::After(span) => Some(start + span),
            Ends::At(listed) => listed.after(start),
        }
    }

    /// Returns the period that is open at `now`, walking from edge to edge.
    fn open_at(&self, now: u64) -> Option<Open> {
        let mut open = self.open?;
        while let Some(edge) = open.end.filter(|end| *end <= now) {
            let owed = open.used - self.amount;
            if owed <= 0 {
                return None;
            }
            open = Open { start: edge, end: self.end(edge), used: owed };
        }
        Some(open)
    }
}

impl Machine for Quota {
    fn left(&self, now: u64) -> i128 {
        self.amount - self.open_at(now).map_or(0, |open| open.used)
    }

    fn charge(&mut self, now: u64, amount: u64, _: Option<(u128, u64)>) {
        self.open = self.open_at(now);
        if amount > 0 {
            let open = self.open.unwrap_or(Open { start: now, end: self.end(now), used: 0 });
            self.open = Some(Open { used: open.used + i128::from(amount), ..open });
        }
    }

    fn refund(&mut self, now: u64, at: u64, amount: u64, _: Option<u128>) {
        self.open = self.open_at(now);
        if let Some(open) = self.open.as_mut().filter(|open| open.start <= at) {
            open.used -= i128::from(amount);
        }
    }

    fn copy(&self) -> Box<dyn Machine> {
        Box::new(self.clone())
    }
}
