//! What company costs: the same operation by one thread and by two at once, beside a peer that does the same.

use anyhow::{Result, ensure};

use crate::company::{Shared, ns_each};
use crate::contest::median;
use crate::finding::{Bar, Finding};
use crate::meter::Meter;
use crate::options::Effort;
use crate::side::Peer;

/// Fewer undisturbed rounds than this say nothing.
const ROUNDS_MIN: usize = 5;

/// A busy machine disturbs most rounds: so many times more are tried.
const PATIENCE: usize = 20;

/// A row about how many times longer an operation takes when a second thread does it too.
///
/// All numbers are wall time per operation of a thread: a side that does not mind company stays at 1.0, one whose
/// threads take turns goes to 2.0.
pub(crate) struct SlowDown {
    pub(crate) name: &'static str,
    pub(crate) ours: BuildShared,
    pub(crate) peer: Peer<BuildShared>,
    pub(crate) bar: Option<Bar>,
}

/// Sets a side up. What happens in here is not measured.
pub(crate) type BuildShared = fn() -> Result<Shared>;

/// A side with a number of threads, and what it took per operation in every round that counts.
struct Runner<'a> {
    who: &'static str,
    operation: &'a Shared,
    threads: usize,
    times: u64,
    ns: Vec<f64>,
}

impl SlowDown {
    /// Lets one and two threads of both sides run in turns.
    pub(crate) fn measure(&self, effort: &Effort) -> Result<Finding> {
        let (ours, theirs, peer) = ((self.ours)()?, (self.peer.side)()?, self.peer.name);
        let mut runners = [
            Runner::start("tollgate", &ours, 1, effort),
            Runner::start("tollgate", &ours, 2, effort),
            Runner::start(peer, &theirs, 1, effort),
            Runner::start(peer, &theirs, 2, effort),
        ];
        for _ in 0..effort.rounds * PATIENCE {
            runners.iter_mut().try_for_each(Runner::round)?;
            if runners.iter().all(|runner| runner.ns.len() >= effort.rounds) {
                break;
            }
        }
        let [our_one, our_two, their_one, their_two] = runners.map(Runner::median);
        Ok(self.finding([our_one?, our_two?], [their_one?, their_two?]))
    }

    fn finding(&self, ours: [f64; 2], theirs: [f64; 2]) -> Finding {
        let slow_down = |[one, two]: [f64; 2]| two / one;
        let shown = |[one, two]: [f64; 2]| format!("{one:.1} and {two:.1} ns");
        let peer = self.peer.name;
        Finding {
            name: self.name.to_owned(),
            unit: "x",
            ours: Some(slow_down(ours)),
            peer: Some((peer, slow_down(theirs))),
            bar: self.bar,
            detail: format!("one thread and two: tollgate {}, {peer} {}", shown(ours), shown(theirs)),
            ..Finding::default()
        }
    }
}

impl<'a> Runner<'a> {
    fn start(who: &'static str, operation: &'a Shared, threads: usize, effort: &Effort) -> Self {
        let mut times = 16;
        // Short rounds, because only those without a stranger count. Doubling also warms caches.
        while Meter::Wall.time(|| operation(times)).1 < effort.round_time / 5 {
            times *= 2;
        }
        Self { who, operation, threads, times, ns: Vec::new() }
    }

    fn round(&mut self) -> Result<()> {
        self.ns.extend(ns_each(self.who, self.operation, self.threads, self.times)?);
        Ok(())
    }

    fn median(self) -> Result<f64> {
        let (who, threads, rounds) = (self.who, self.threads, self.ns.len());
        ensure!(rounds >= ROUNDS_MIN, "the machine is too busy: {who} had {rounds} good rounds of {threads}");
        Ok(median(self.ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::company::shared;

    fn work() -> bool {
        (0..1_000_u64).map(std::hint::black_box).sum::<u64>() > 0
    }

    fn takes_turns() -> bool {
        static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _turn = TURN.lock();
        work()
    }

    #[test]
    fn threads_that_take_turns_are_seen_to_slow_each_other_down() {
        let row = SlowDown {
            name: "test/turns",
            ours: || Ok(shared(takes_turns)),
            peer: Peer { name: "loner", side: || Ok(shared(work)) },
            bar: Some(Bar::CostAtMost(1.5)),
        };
        // A machine that is too busy to tell says so, which is no failure of this test.
        let finding = row.measure(&Effort::QUICK);
        assert!(finding.map_or(true, |finding| finding.ours > Some(1.4)));
    }
}
