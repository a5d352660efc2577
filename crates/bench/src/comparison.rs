//! Two subjects with the same operation, interleaved: A B A B, so that noise of the machine affects both.

use anyhow::{Context, Result};

use crate::meter::TimeKind;
use crate::options::Effort;
use crate::result::{BenchResult, Threshold};
use crate::subject::{BenchOperation, Build, Peer, ensure_admitted};

/// The warm-up of each side.
const WARM_UP_NS: f64 = 500e6;

/// A row about the time of one operation.
pub(crate) struct Contest {
    pub(crate) name: &'static str,
    pub(crate) meter: TimeKind,
    pub(crate) ours: Option<Build>,
    pub(crate) peer: Option<Peer<Build>>,
    pub(crate) bar: Option<Threshold>,
    /// The minimum number of our operations in a round, if the operation depends on concurrency.
    pub(crate) crowd: u64,
}

/// The initial number of operations in a round.
pub(crate) const FEW: u64 = 16;

/// A side after its warm-up, with as many operations a round as fill the round's time.
struct ContestRunner {
    who: &'static str,
    operation: BenchOperation,
    times: u64,
    ns_per_operation: Vec<f64>,
}

impl Contest {
    /// Runs both sides alternately and compares their medians.
    pub(crate) fn measure(&self, effort: &Effort) -> Result<BenchResult> {
        let mut ours = self
            .ours
            .map(|build| ContestRunner::start("tollgate", build, self, self.crowd, effort))
            .transpose()?;
        let peer = self.peer.as_ref();
        let mut theirs =
            peer.map(|peer| ContestRunner::start(peer.name, peer.side, self, FEW, effort)).transpose()?;
        for _ in 0..effort.rounds {
            for runner in ours.iter_mut().chain(theirs.iter_mut()) {
                runner.round(self.meter)?;
            }
        }
        Ok(BenchResult {
            name: self.name.to_owned(),
            unit: "ns",
            ours: ours.map(ContestRunner::median),
            peer: theirs.map(|runner| (runner.who, runner.median())),
            bar: self.bar,
            detail: if self.meter == TimeKind::Wall { "wall time".to_owned() } else { String::new() },
            ..BenchResult::default()
        })
    }
}

impl ContestRunner {
    fn start(
        who: &'static str,
        build: Build,
        contest: &Contest,
        times: u64,
        effort: &Effort,
    ) -> Result<Self> {
        let meter = contest.meter;
        let operation = build().with_context(|| format!("cannot set up {who}"))?;
        let mut runner = Self { who, operation, times, ns_per_operation: Vec::new() };
        // Doubling the round also warms caches and branch predictors.
        while runner.timed_ns(meter)? < effort.round_time.as_nanos() as f64 {
            runner.times *= 2;
        }
        runner.warm_up()?;
        Ok(runner)
    }

    /// Runs without measuring. A clock that calibrates the processor's counter in the background, as ours does, uses some of
    /// this time; the row measures the cost of an operation in a program that has been running.
    fn warm_up(&mut self) -> Result<()> {
        let mut warm_ns = 0.0;
        while warm_ns < WARM_UP_NS {
            warm_ns += self.timed_ns(TimeKind::Wall)?;
        }
        Ok(())
    }

    fn round(&mut self, meter: TimeKind) -> Result<()> {
        let ns = self.timed_ns(meter)?;
        self.ns_per_operation.push(ns / self.times as f64);
        Ok(())
    }

    fn timed_ns(&mut self, meter: TimeKind) -> Result<f64> {
        let (admitted, time) = meter.time(|| (self.operation)(self.times));
        ensure_admitted(self.who, admitted, self.times)?;
        Ok(time.as_nanos() as f64)
    }

    fn median(self) -> f64 {
        median(self.ns_per_operation)
    }
}

/// Returns the median, which ignores outliers.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::subject::each;

    fn work(times: u64) -> bool {
        (0..times).map(std::hint::black_box).sum::<u64>() > 0
    }

    #[test]
    fn a_side_with_ten_times_the_work_costs_more() {
        let contest = Contest {
            name: "test/work",
            meter: TimeKind::ThreadCpu,
            ours: Some(|| Ok(each(|| work(1_000)))),
            peer: Some(Peer { name: "idler", side: || Ok(each(|| work(100))) }),
            bar: Some(Threshold::CostAtMost(2.0)),
            crowd: FEW,
        };
        let finding = contest.measure(&Effort::QUICK).unwrap();
        assert_eq!(finding.holds(), Some(false), "{finding:?}");
        assert!(finding.ratio().unwrap() > 3.0, "{finding:?}");
    }

    #[test]
    fn a_side_that_denies_is_an_error() {
        let refuses: Build = || Ok(each(|| false));
        let contest = Contest {
            name: "test/no",
            meter: TimeKind::Wall,
            ours: Some(refuses),
            peer: None,
            bar: None,
            crowd: FEW,
        };
        assert!(
            contest.measure(&Effort::QUICK).unwrap_err().to_string().contains("tollgate admitted only 0")
        );
    }

    #[test]
    fn the_median_ignores_an_outlier() {
        assert_eq!(median(vec![3.0, 1000.0, 1.0, 2.0, 2.5]), 2.5);
    }
}
