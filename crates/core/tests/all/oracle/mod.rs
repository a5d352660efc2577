//! The oracle: one textbook machine for each kind of limit, and the traces that compare the core
//! with it.
//!
//! Nothing here shares code or representation with the core. The bucket machines count in rational
//! numbers, and the windows keep lists of events and walk over them one by one.

#![allow(dead_code, unreachable_pub, reason = "every test file uses another part of this module")]

use std::fmt::Debug;

pub mod buckets;
pub mod cooldown;
pub mod edges;
pub mod gauge;
pub mod history;
pub mod quotas;
pub mod seed;
pub mod spec;
pub mod subject;
pub mod trace;
pub mod windows;

/// A textbook machine: how much is left at an instant, and the effect of takes and refunds on it.
///
/// Instants never go back here; [`Reference`] ensures that.
pub trait Machine: Debug {
    /// Returns how much is left, in whole units, rounded down. A negative number is debt.
    fn left(&self, now: u64) -> i128;

    /// Takes `amount`, whether it fits or not.
    fn charge(&mut self, now: u64, amount: u64, holder: Option<(u128, u64)>);

    /// Refunds `amount` of what was taken at `at`.
    fn refund(&mut self, now: u64, at: u64, amount: u64, holder: Option<u128>);

    /// Returns a copy of the machine in the same state.
    fn copy(&self) -> Box<dyn Machine>;
}

/// A machine as of its last change: a clock that steps back is answered as of then.
#[derive(Debug)]
pub struct Reference {
    machine: Box<dyn Machine>,
    stamp: u64,
}

impl Clone for Reference {
    fn clone(&self) -> Reference {
        Reference { machine: self.machine.copy(), stamp: self.stamp }
    }
}

impl Reference {
    pub fn new(machine: Box<dyn Machine>, now: u64) -> Reference {
        Reference { machine, stamp: now }
    }

    pub fn stamp(&self) -> u64 {
        self.stamp
    }

    pub fn left(&self, now: u64) -> i128 {
        self.machine.left(now.max(self.stamp))
    }

    pub fn fits(&self, now: u64, cost: u64) -> bool {
        cost == 0 || self.left(now) >= i128::from(cost)
    }

    pub fn take(&mut self, now: u64, cost: u64, holder: Option<(u128, u64)>) -> bool {
        let fits = self.fits(now, cost);
        if fits {
            self.stamp = self.stamp.max(now);
            self.machine.charge(self.stamp, cost, holder);
        }
        fits
    }

    /// Takes `cost`, whether it fits or not.
    pub fn charge(&mut self, now: u64, cost: u64, holder: Option<(u128, u64)>) {
        self.stamp = self.stamp.max(now);
        self.machine.charge(self.stamp, cost, holder);
    }

    pub fn settle(&mut self, now: u64, settled: &Settled) {
        self.stamp = self.stamp.max(now);
        if settled.used < settled.reserved {
            let unused = settled.reserved - settled.used;
            self.machine.refund(self.stamp, settled.at, unused, settled.holder);
        } else {
            self.machine.charge(self.stamp, settled.used - settled.reserved, None);
        }
    }
}

/// The settlement of a reservation made at `at`.
#[derive(Clone, Copy, Debug)]
pub struct Settled {
    pub at: u64,
    pub reserved: u64,
    pub used: u64,
    pub holder: Option<u128>,
}
