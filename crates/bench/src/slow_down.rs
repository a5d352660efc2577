//! What company costs: the same operation by one thread and by two at once, beside a peer that does the same.

use anyhow::Result;

use crate::contest::Runner;
use crate::finding::{Bar, Finding};
use crate::meter::Meter;
use crate::options::Effort;
use crate::side::{Build, Peer};

/// A row about how many times longer an operation takes when a second thread does it too.
///
/// All four numbers are wall time per operation of a thread: a side that does not mind company stays at 1.0,
/// one whose threads take turns goes to 2.0.
pub(crate) struct SlowDown {
    pub(crate) name: &'static str,
    pub(crate) ours: OneAndTwo,
    pub(crate) peer: Peer<OneAndTwo>,
    pub(crate) bar: Option<Bar>,
}

/// The same operation by one thread and by two.
#[derive(Clone, Copy)]
pub(crate) struct OneAndTwo {
    pub(crate) one: Build,
    pub(crate) two: Build,
}

impl SlowDown {
    /// Lets the four run in turns.
    pub(crate) fn measure(&self, effort: &Effort) -> Result<Finding> {
        let start = |who, build| Runner::start(who, build, Meter::Wall, effort);
        let (ours, peer) = (self.ours, &self.peer);
        let mut runners = [
            start("tollgate", ours.one)?,
            start(peer.name, peer.side.one)?,
            start("tollgate", ours.two)?,
            start(peer.name, peer.side.two)?,
        ];
        for _ in 0..effort.rounds {
            for runner in &mut runners {
                runner.round(Meter::Wall)?;
            }
        }
        let [our_one, their_one, our_two, their_two] = runners.map(Runner::median);
        Ok(Finding {
            name: self.name.to_owned(),
            unit: "x",
            ours: Some(our_two / our_one),
            peer: Some((peer.name, their_two / their_one)),
            bar: self.bar,
            detail: format!(
                "one thread, two: tollgate {our_one:.1}, {our_two:.1} ns; {} {their_one:.1}, {their_two:.1} ns",
                peer.name
            ),
            ..Finding::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::side::{each, each_on_two_threads};

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
            ours: OneAndTwo { one: || Ok(each(takes_turns)), two: || Ok(each_on_two_threads(takes_turns)) },
            peer: Peer {
                name: "loner",
                side: OneAndTwo { one: || Ok(each(work)), two: || Ok(each_on_two_threads(work)) },
            },
            bar: Some(Bar::CostAtMost(1.5)),
        };
        let finding = row.measure(&Effort::QUICK).unwrap();
        // Next to other tests the loner may find no second core, and then it is as slow.
        assert!(finding.ours.unwrap() > 1.5, "{finding:?}");
    }
}
