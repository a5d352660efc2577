//! Gauges: a list of holders, with what each holds and until when.

use super::Machine;

#[derive(Clone, Debug)]
struct Hold {
    id: Option<u128>,
    amount: u64,
    expires: Option<u64>,
}

#[derive(Clone, Debug)]
pub struct Gauge {
    capacity: u64,
    holds: Vec<Hold>,
}

impl Gauge {
    pub fn new(capacity: u64) -> Gauge {
        Gauge { capacity, holds: Vec::new() }
    }
}

impl Machine for Gauge {
    fn left(&self, now: u64) -> i128 {
        let live = self.holds.iter().filter(|hold| hold.expires.is_none_or(|expires| now < expires));
        i128::from(self.capacity) - live.map(|hold| i128::from(hold.amount)).sum::<i128>()
    }

    fn charge(&mut self, _: u64, amount: u64, holder: Option<(u128, u64)>) {
        let (id, expires) = holder.unzip();
        self.holds.push(Hold { id, amount, expires });
    }

    fn refund(&mut self, now: u64, _: u64, amount: u64, holder: Option<u128>) {
        self.holds.retain(|hold| hold.expires.is_none_or(|expires| now < expires));
        let held = self.holds.iter().position(|hold| hold.id == holder && hold.amount == amount);
        if let Some(index) = held {
            self.holds.swap_remove(index);
        }
    }

    fn copy(&self) -> Box<dyn Machine> {
        Box::new(self.clone())
    }
}
