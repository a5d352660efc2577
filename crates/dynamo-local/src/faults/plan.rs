//! Which call has which fault.

use std::collections::{HashMap, VecDeque};

use super::Fault;
use crate::answer::Answer;

/// How many answers are remembered to be given again.
const REMEMBERED_MAX: usize = 1_000;

/// How many calls in a thousand have a fault of each kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rates {
    /// [`Fault::Throttle`].
    pub throttle: u32,
    /// [`Fault::Conflict`].
    pub conflict: u32,
    /// [`Fault::Unprocessed`].
    pub unprocessed: u32,
    /// [`Fault::ServerError`].
    pub server_error: u32,
    /// [`Fault::LostBefore`].
    pub lost_before: u32,
    /// [`Fault::LostAfter`].
    pub lost_after: u32,
    /// [`Fault::StaleRead`].
    pub stale_read: u32,
}

impl Rates {
    /// The same rate for every fault that a store has to survive unseen. Stale reads are not among them: what an index
    /// answers may be stale, and nobody can tell.
    pub fn survivable(per_thousand: u32) -> Rates {
        Rates {
            throttle: per_thousand,
            conflict: per_thousand,
            unprocessed: per_thousand,
            server_error: per_thousand,
            lost_before: per_thousand,
            lost_after: per_thousand,
            stale_read: 0,
        }
    }

    fn each(&self) -> [(Fault, u32); 7] {
        [
            (Fault::Throttle, self.throttle),
            (Fault::Conflict, self.conflict),
            (Fault::Unprocessed, self.unprocessed),
            (Fault::ServerError, self.server_error),
            (Fault::LostBefore, self.lost_before),
            (Fault::LostAfter, self.lost_after),
            (Fault::StaleRead, self.stale_read),
        ]
    }
}

/// A fault that was asked for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Script {
    pub(crate) operation: Option<&'static str>,
    pub(crate) fault: Fault,
}

#[derive(Debug, Default)]
pub(crate) struct Plan {
    script: VecDeque<Script>,
    rates: Rates,
    random: u64,
    count: u64,
    /// What reads were answered last, by their bodies.
    answers: HashMap<Vec<u8>, Answer>,
}

impl Plan {
    pub(crate) fn seed(&mut self, seed: u64, rates: Rates) {
        (self.random, self.rates) = (seed, rates);
    }

    pub(crate) fn add(&mut self, script: Script) {
        self.script.push_back(script);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The fault of the next call, with a number that counts them.
    pub(crate) fn draw(&mut self, operation: &str, body: &[u8]) -> Option<(Fault, u64)> {
        let fault = self.scripted(operation, body).or_else(|| self.at_random(operation, body))?;
        self.count += 1;
        Some((fault, self.count))
    }

    fn scripted(&mut self, operation: &str, body: &[u8]) -> Option<Fault> {
        let wanted = |script: &Script| {
            script.operation.is_none_or(|name| name == operation) && script.fault.suits(operation, body)
        };
        let at = self.script.iter().position(wanted)?;
        self.script.remove(at).map(|script| script.fault)
    }

    fn at_random(&mut self, operation: &str, body: &[u8]) -> Option<Fault> {
        if self.rates == Rates::default() {
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

    /// SplitMix64.
    fn next_random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.random;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// What the same read was answered before.
    pub(crate) fn stale(&self, body: &[u8]) -> Option<Answer> {
        self.answers.get(body).cloned()
    }

    /// Keeps the answer to a read, to be given again.
    pub(crate) fn remember(&mut self, body: Vec<u8>, answer: Answer) {
        if self.answers.len() >= REMEMBERED_MAX {
            self.answers.clear();
        }
        self.answers.insert(body, answer);
    }

    /// Whether answers are worth remembering.
    pub(crate) fn may_be_stale(&self) -> bool {
        self.rates.stale_read > 0 || self.script.iter().any(|script| script.fault == Fault::StaleRead)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_faults() {
        let draw = |seed| {
            let mut plan = Plan::default();
            plan.seed(seed, Rates::survivable(100));
            (0..200).map(|_| plan.draw("UpdateItem", b"{}").map(|(fault, _)| fault)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        assert!(draw(3).iter().flatten().count() > 50);
    }

    #[test]
    fn a_fault_waits_for_a_call_that_can_have_it() {
        let mut plan = Plan::default();
        plan.add(Script { operation: None, fault: Fault::Unprocessed });
        plan.add(Script { operation: Some("PutItem"), fault: Fault::Throttle });
        assert_eq!(plan.draw("UpdateItem", b"{}"), None);
        assert_eq!(plan.draw("PutItem", b"{}"), Some((Fault::Throttle, 1)));
        assert_eq!(plan.draw("BatchGetItem", b"{}"), Some((Fault::Unprocessed, 2)));
        assert_eq!(plan.draw("BatchGetItem", b"{}"), None);
    }
}
