//! Cooldowns: the instant until which every demand is denied.

use super::Machine;

#[derive(Clone, Debug, Default)]
pub struct Cooldown {
    until: u64,
}

impl Machine for Cooldown {
    fn left(&self, now: u64) -> i128 {
        if now < self.until { 0 } else { 1 }
    }

    fn charge(&mut self, now: u64, amount: u64, _: Option<(u128, u64)>) {
        if amount > 1 {
            self.until = self.until.max(now + (amount - 1));
        }
    }

    fn refund(&mut self, _: u64, _: u64, _: u64, _: Option<u128>) {}

    fn copy(&self) -> Box<dyn Machine> {
        Box::new(self.clone())
    }
}
