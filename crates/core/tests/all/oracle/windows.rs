//! Fixed and sliding windows: all events are kept, and walked over one by one.

use std::collections::BTreeMap;

use super::Machine;

/// The use in every window since the start. What exceeds a window is charged to the next.
#[derive(Clone, Debug)]
pub struct FixedWindow {
    amount: i128,
    period: u64,
    used: BTreeMap<u64, i128>,
}

impl FixedWindow {
    pub fn new(amount: u64, period: u64) -> FixedWindow {
        FixedWindow { amount: amount.into(), period, used: BTreeMap::new() }
    }

    /// Returns what earlier windows could not hold and `window` is charged.
    fn owed_to(&self, window: u64) -> i128 {
        let (mut owed, mut at) = (0, 0);
        for (next, used) in self.used.range(..window) {
            owed = self.after(owed, next - at) + used;
            at = *next;
        }
        self.after(owed, window - at)
    }

    /// Returns what is still owed after `windows` windows, each of which holds one amount.
    fn after(&self, mut owed: i128, windows: u64) -> i128 {
        for _ in 0..windows {
            if owed == 0 {
                break;
            }
            owed = (owed - self.amount).max(0);
        }
        owed
    }
}

impl Machine for FixedWindow {
    fn left(&self, now: u64) -> i128 {
        let window = now / self.period;
        self.amount - self.owed_to(window) - self.used.get(&window).copied().unwrap_or(0)
    }

    fn charge(&mut self, now: u64, amount: u64, _: Option<(u128, u64)>) {
        let window = now / self.period;
        if self.owed_to(window) == 0 {
            self.used.retain(|past, _| *past >= window);
        }
        *self.used.entry(window).or_default() += i128::from(amount);
    }

    fn refund(&mut self, now: u64, at: u64, amount: u64, _: Option<u128>) {
        if now / self.period == at / self.period {
            *self.used.entry(at / self.period).or_default() -= i128::from(amount);
        }
    }

    fn copy(&self) -> Box<dyn Machine> {
        Box::new(self.clone())
    }
}

/// A list of events. Those of one step count as of the last of them; an expiry makes room for debt.
#[derive(Clone, Debug)]
pub struct SlidingWindow {
    amount: i128,
    period: u64,
    step: u64,
    events: Vec<(u64, i128)>,
    debt: i128,
}

impl SlidingWindow {
    pub fn new(amount: u64, period: u64, step: u64) -> SlidingWindow {
        SlidingWindow { amount: amount.into(), period, step, events: Vec::new(), debt: 0 }
    }

    /// Returns the step of an instant. Steps divide every period since the epoch; the last one may
    /// be shorter.
    fn step_of(&self, at: u64) -> (u64, u64) {
        (at / self.period, at % self.period / self.step)
    }

    fn count(&self) -> i128 {
        self.events.iter().map(|(_, amount)| amount).sum()
    }

    fn add(&mut self, at: u64, amount: i128) {
        if amount == 0 {
            return;
        }
        let step = self.step_of(at);
        let merged: i128 = self.events.iter().filter(|(t, _)| self.step_of(*t) == step).map(|(_, n)| n).sum();
        self.events.retain(|(t, _)| (t / self.period, t % self.period / self.step) != step);
        self.events.push((at, merged + amount));
    }

    /// Walks from one expiry to the next, and lets debt take the room.
    fn walk(&mut self, now: u64) {
        while let Some((at, _)) = self.events.first().copied().filter(|(at, _)| at + self.period <= now) {
            self.events.remove(0);
            self.pay(at + self.period);
        }
    }

    /// Lets debt take the free room.
    fn pay(&mut self, at: u64) {
        let paid = self.debt.min((self.amount - self.count()).max(0));
        self.debt -= paid;
        self.add(at, paid);
    }
}

impl Machine for SlidingWindow {
    fn left(&self, now: u64) -> i128 {
        let mut then = self.clone();
        then.walk(now);
        then.amount - then.count() - then.debt
    }

    fn charge(&mut self, now: u64, amount: u64, _: Option<(u128, u64)>) {
        self.walk(now);
        let fits = i128::from(amount).min((self.amount - self.count()).max(0));
        self.add(now, fits);
        self.debt += i128::from(amount) - fits;
    }

    fn refund(&mut self, now: u64, at: u64, amount: u64, _: Option<u128>) {
        self.walk(now);
        let step = self.step_of(at);
        let Some(index) = self.events.iter().position(|(t, _)| self.step_of(*t) == step) else { return };
        let counted = &mut self.events[index].1;
        *counted = (*counted - i128::from(amount)).max(0);
        self.events.retain(|(_, amount)| *amount > 0);
        self.pay(now);
    }

    fn copy(&self) -> Box<dyn Machine> {
        Box::new(self.clone())
    }
}
