//! The schedule of faults.

use std::collections::{HashMap, VecDeque};

use super::CallFault;
use crate::answer::HttpAnswer;

/// The maximum number of answers that are stored for stale reads.
const REMEMBERED_MAX: usize = 1_000;

/// How many calls in a thousand have a fault of each kind.
///
/// ```
/// use tollgate_dynamo_local::FaultRates;
///
/// let rates = FaultRates { lost_after: 100, ..FaultRates::default() };
/// assert_eq!((rates.lost_after, rates.throttle), (100, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FaultRates {
    /// [`CallFault::Throttle`].
    pub throttle: u32,
    /// [`CallFault::Conflict`].
    pub conflict: u32,
    /// [`CallFault::Unprocessed`].
    pub unprocessed: u32,
    /// [`CallFault::ServerError`].
    pub server_error: u32,
    /// [`CallFault::LostBefore`].
    pub lost_before: u32,
    /// [`CallFault::LostAfter`].
    pub lost_after: u32,
    /// [`CallFault::StaleRead`].
    pub stale_read: u32,
}

impl FaultRates {
    /// Returns the same rate for every fault that a store must hide from its callers. Stale reads
    /// are not among them: an index may return stale answers, and a caller cannot detect that.
    pub fn survivable(per_thousand: u32) -> FaultRates {
        FaultRates {
            throttle: per_thousand,
            conflict: per_thousand,
            unprocessed: per_thousand,
            server_error: per_thousand,
            lost_before: per_thousand,
            lost_after: per_thousand,
            stale_read: 0,
        }
    }

    fn each(&self) -> [(CallFault, u32); 7] {
        [
            (CallFault::Throttle, self.throttle),
            (CallFault::Conflict, self.conflict),
            (CallFault::Unprocessed, self.unprocessed),
            (CallFault::ServerError, self.server_error),
            (CallFault::LostBefore, self.lost_before),
            (CallFault::LostAfter, self.lost_after),
            (CallFault::StaleRead, self.stale_read),
        ]
    }
}

/// A requested fault.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script {
    pub(crate) operation: Option<&'static str>,
    pub(crate) fault: CallFault,
}

#[derive(Debug, Default)]
pub(crate) struct FaultSchedule {
    script: VecDeque<Script>,
    rates: FaultRates,
    random: u64,
    count: u64,
    /// The last answers to reads, by their bodies.
    answers: HashMap<Vec<u8>, HttpAnswer>,
}

impl FaultSchedule {
    pub(crate) fn seed(&mut self, seed: u64, rates: FaultRates) {
        (self.random, self.rates) = (seed, rates);
    }

    pub(crate) fn add(&mut self, script: Script) {
        self.script.push_back(script);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns the fault of the next call, with the number of the fault.
    pub(crate) fn draw(&mut self, operation: &str, body: &[u8]) -> Option<(CallFault, u64)> {
        let fault = self.scripted(operation, body).or_else(|| self.at_random(operation, body))?;
        self.count += 1;
        Some((fault, self.count))
    }

    fn scripted(&mut self, operation: &str, body: &[u8]) -> Option<CallFault> {
        let wanted = |script: &Script| {
            script.operation.is_none_or(|name| name == operation) && script.fault.suits(operation, body)
        };
        let at = self.script.iter().position(wanted)?;
        self.script.remove(at).map(|script| script.fault)
    }

    fn at_random(&mut self, operation: &str, body: &[u8]) -> Option<CallFault> {
        if self.rates == FaultRates::default() {
            return None;
        }
        let mut drawn = (self.next_random() % 1_000) as u32;
        for (fault, rate) in self.rates.each() {
            if drawn < rate {
                return Some(fault).filter(|fault| fault.suits(operation, body));
            }
            drawn -= rate;
        }
        None
    }

    /// Returns a random number (SplitMix64).
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns the answer to an earlier, identical read.
    pub(crate) fn stale(&self, body: &[u8]) -> Option<HttpAnswer> {
        self.answers.get(body).cloned()
    }

    /// Stores the answer to a read, for a later stale read.
    pub(crate) fn remember(&mut self, body: Vec<u8>, answer: HttpAnswer) {
        if self.answers.len() >= REMEMBERED_MAX {
            self.answers.clear();
        }
        self.answers.insert(body, answer);
    }

    /// Returns true if answers have to be stored.
    pub(crate) fn may_be_stale(&self) -> bool {
        self.rates.stale_read > 0 || self.script.iter().any(|script| script.fault == CallFault::StaleRead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_faults() {
        let draw = |seed| {
            let mut plan = FaultSchedule::default();
            plan.seed(seed, FaultRates::survivable(100));
            (0..200).map(|_| plan.draw("UpdateItem", b"{}").map(|(fault, _)| fault)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(3).iter().flatten().count() > 50);
    }

    #[test]
    fn a_fault_waits_for_a_call_that_can_have_it() {
        let mut plan = FaultSchedule::default();
        plan.add(Script { operation: None, fault: CallFault::Unprocessed });
        plan.add(Script { operation: Some("PutItem"), fault: CallFault::Throttle });
        assert_eq!(plan.draw("UpdateItem", b"{}"), None);
        assert_eq!(plan.draw("PutItem", b"{}"), Some((CallFault::Throttle, 1)));
        assert_eq!(plan.draw("BatchGetItem", b"{}"), Some((CallFault::Unprocessed, 2)));
        assert_eq!(plan.draw("BatchGetItem", b"{}"), None);
    }
}
