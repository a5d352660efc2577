//! The cost of contention: the same operation by one thread and by two at once, compared with a peer.

use std::fmt;

use anyhow::{Context, Result, ensure};

use crate::meter::TimeKind;
use crate::options::Effort;
use crate::result::{BenchResult, Threshold};
use crate::subject::Peer;
use crate::threaded::{SharedOperation, ns_each};

/// The minimum number of undisturbed rounds.
const TURNS_MIN: usize = 5;

/// The maximum number of attempts of a measurement that is disturbed by other processes.
const TRIES: usize = 10;

/// The number of rounds that are tried for each one that is needed.
const TURNS_TRIED: usize = 4;

/// A row about how many times longer an operation takes when a second thread does it too.
///
/// All numbers are wall time per operation of a thread: a side without contention stays at 1.0, one whose threads are
/// serialised goes to 2.0.
pub(crate) struct SlowDown {
    pub(crate) name: &'static str,
    pub(crate) ours: BuildShared,
    pub(crate) peer: Peer<BuildShared>,
    pub(crate) bar: Option<Threshold>,
}

/// Sets up a side. The setup is not measured.
pub(crate) type BuildShared = fn() -> Result<SharedOperation>;

/// A side, and how often it does its operation in a round.
struct SlowDownRunner {
    who: &'static str,
    operation: SharedOperation,
    times: u64,
}

/// The times per operation of one thread and of two, measured one after the other.
#[derive(Clone, Copy)]
struct OneAndTwo {
    one_ns: f64,
    two_ns: f64,
}

/// Both sides, measured one after the other.
type SlowDownTurn = (OneAndTwo, OneAndTwo);

impl SlowDown {
    /// Runs one and two threads of both sides alternately, and returns the median round.
    ///
    /// Whether two virtual cores share a real one changes all numbers twofold, and changes by the second. So
    /// only what was measured in one turn is compared.
    pub(crate) fn measure(&self, effort: &Effort) -> Result<BenchResult> {
        let ours = SlowDownRunner::start("tollgate", self.ours, effort)?;
        let theirs = SlowDownRunner::start(self.peer.name, self.peer.side, effort)?;
        let mut turns: Vec<SlowDownTurn> = Vec::new();
        for _ in 0..effort.rounds * TURNS_TRIED {
            if turns.len() == effort.rounds {
                break;
            }
            turns.extend(ours.round()?.zip(theirs.round()?));
        }
        let count = turns.len();
        ensure!(count >= TURNS_MIN, "the machine is too busy: only {count} rounds were undisturbed");
        turns.sort_by(|one, other| ratio(one).total_cmp(&ratio(other)));
        Ok(self.finding(turns[count / 2], count))
    }

    fn finding(&self, (ours, theirs): SlowDownTurn, count: usize) -> BenchResult {
        let peer = self.peer.name;
        BenchResult {
            name: self.name.to_owned(),
            unit: "x",
            ours: Some(ours.slow_down()),
            peer: Some((peer, theirs.slow_down())),
            bar: self.bar,
            detail: format!(
                "one thread, two: tollgate {ours}, {peer} {theirs}; the median of {count} rounds"
            ),
            ..BenchResult::default()
        }
    }
}

fn ratio((ours, theirs): &SlowDownTurn) -> f64 {
    ours.slow_down() / theirs.slow_down()
}

impl SlowDownRunner {
    fn start(who: &'static str, build: BuildShared, effort: &Effort) -> Result<Self> {
        let operation = build().with_context(|| format!("cannot set up {who}"))?;
        let mut times = 16;
        // Short rounds, because only those without preemption count. Doubling also warms caches.
        while TimeKind::Wall.time(|| operation(times)).1 < effort.round_time / 10 {
            times *= 2;
        }
        Ok(Self { who, operation, times })
    }

    fn round(&self) -> Result<Option<OneAndTwo>> {
        let (one, two) = (self.undisturbed(1)?, self.undisturbed(2)?);
        Ok(one.zip(two).map(|(one_ns, two_ns)| OneAndTwo { one_ns, two_ns }))
    }

    fn undisturbed(&self, threads: usize) -> Result<Option<f64>> {
        for _ in 0..TRIES {
            if let Some(ns) = ns_each(self.who, &self.operation, threads, self.times)? {
                return Ok(Some(ns));
            }
        }
        Ok(None)
    }
}

impl OneAndTwo {
    fn slow_down(self) -> f64 {
        self.two_ns / self.one_ns
    }
}

impl fmt::Display for OneAndTwo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0}, {:.0} ns", self.one_ns, self.two_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::threaded::shared;

    fn work() -> bool {
        (0..1_000_u64).map(std::hint::black_box).sum::<u64>() > 0
    }

    fn takes_turns() -> bool {
        static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _turn = TURN.lock();
        work()
    }

    #[test]
    fn serialised_threads_slow_each_other_down() {
        let row = SlowDown {
            name: "test/turns",
            ours: || Ok(shared(takes_turns)),
            peer: Peer { name: "loner", side: || Ok(shared(work)) },
            bar: Some(Threshold::CostAtMost(1.5)),
        };
        match row.measure(&Effort::QUICK) {
            Ok(finding) => assert!(finding.ours > Some(1.4), "{finding:?}"),
            // A machine that is too busy to measure is not a failure of this test.
            Err(error) => assert!(error.to_string().contains("too busy"), "{error:#}"),
        }
    }
}
