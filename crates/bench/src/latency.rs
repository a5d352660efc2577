//! How long single calls take: the middle one, and the one in a hundred that is slow.

use anyhow::{Context, Result};

use crate::finding::{Bar, Finding};
use crate::meter::Meter;
use crate::options::Effort;
use crate::side::{Build, Operation, Peer, ensure_admitted};

/// Calls one side makes before it is the other's turn.
const TURN: usize = 500;

/// A row about the slowest call in a hundred. Reading the clock twice is part of every sample, on both sides.
pub(crate) struct Latency {
    pub(crate) name: &'static str,
    pub(crate) ours: Option<Build>,
    pub(crate) peer: Option<Peer<Build>>,
    pub(crate) bar: Option<Bar>,
}

struct Sampler {
    who: &'static str,
    operation: Operation,
    samples_ns: Vec<u64>,
}

impl Latency {
    /// Times call by call, in turns of a few hundred.
    pub(crate) fn measure(&self, effort: &Effort) -> Result<Finding> {
        let mut ours = self.ours.map(|build| Sampler::start("tollgate", build)).transpose()?;
        let mut theirs = self.peer.as_ref().map(|peer| Sampler::start(peer.name, peer.side)).transpose()?;
        for _ in 0..effort.latency_samples / TURN {
            for sampler in ours.iter_mut().chain(theirs.iter_mut()) {
                sampler.turn()?;
            }
        }
        let finished = |sampler: Sampler| (sampler.who, Percentiles::of(sampler.samples_ns));
        let (ours, theirs) = (ours.map(finished), theirs.map(finished));
        let medians = ours.iter().chain(&theirs).map(|(who, it)| format!("{who} {} ns", it.median));
        Ok(Finding {
            name: self.name.to_owned(),
            unit: "ns",
            detail: format!("p99; median: {}", medians.collect::<Vec<_>>().join(", ")),
            ours: ours.map(|(_, it)| it.p99 as f64),
            peer: theirs.map(|(who, it)| (who, it.p99 as f64)),
            bar: self.bar,
            ..Finding::default()
        })
    }
}

impl Sampler {
    fn start(who: &'static str, build: Build) -> Result<Self> {
        let operation = build().with_context(|| format!("cannot set up {who}"))?;
        Ok(Self { who, operation, samples_ns: Vec::new() })
    }

    fn turn(&mut self) -> Result<()> {
        for _ in 0..TURN {
            let (admitted, time) = Meter::Wall.time(|| (self.operation)(1));
            ensure_admitted(self.who, admitted, 1)?;
            self.samples_ns.push(u64::try_from(time.as_nanos()).unwrap_or(u64::MAX));
        }
        Ok(())
    }
}

/// What a heap of samples comes down to.
#[derive(Debug, PartialEq)]
struct Percentiles {
    median: u64,
    p99: u64,
}

impl Percentiles {
    fn of(mut samples: Vec<u64>) -> Self {
        samples.sort_unstable();
        let at = |share: usize| samples.get(samples.len() * share / 100).copied().unwrap_or(0);
        Self { median: at(50), p99: at(99) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        assert_eq!(Percentiles::of((0..1000).rev().collect()), Percentiles { median: 500, p99: 990 });
        assert_eq!(Percentiles::of(vec![7]), Percentiles { median: 7, p99: 7 });
    }
}
