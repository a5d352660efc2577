//! The rows: one file per layer of the library, one entry per row.

mod batch;
mod cli;
mod core;
mod dynamo;
mod file;
mod limiter;
mod python;
mod redis;
mod shm;
mod sweep;

use anyhow::{Context, Result};

use crate::comparison::Contest;
use crate::footprint::Footprint;
use crate::instructions::Instructions;
use crate::options::Effort;
use crate::python::PythonRow;
use crate::result::BenchResult;
use crate::single::Solo;
use crate::slow_down::SlowDown;

/// One line of the table, before it is measured.
pub(crate) enum BenchRow {
    Contest(Contest),
    SlowDown(SlowDown),
    Solo(Solo),
    Footprint(Footprint),
    Instructions(Instructions),
    Python(PythonRow),
}

impl BenchRow {
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Contest(row) => row.name,
            Self::SlowDown(row) => row.name,
            Self::Solo(row) => row.name,
            Self::Footprint(row) => row.name,
            Self::Instructions(row) => row.name,
            Self::Python(row) => row.name,
        }
    }

    pub(crate) fn measure(&self, effort: &Effort) -> Result<BenchResult> {
        match self {
            Self::Contest(row) => row.measure(effort),
            Self::SlowDown(row) => row.measure(effort),
            Self::Solo(row) => row.measure(effort),
            Self::Footprint(row) => row.measure(effort),
            Self::Instructions(row) => row.measure(),
            Self::Python(row) => row.measure(effort),
        }
    }
}

/// Returns all rows, in the order of the table.
pub(crate) fn all() -> Vec<BenchRow> {
    let mut rows = core::rows();
    rows.extend(limiter::rows());
    rows.extend(file::rows());
    rows.extend(shm::rows());
    rows.extend(dynamo::rows());
    rows.extend(redis::rows());
    rows.extend(batch::rows());
    rows.extend(sweep::rows());
    rows.extend(cli::rows());
    rows.extend(python::rows());
    rows
}

/// The contest of that name.
pub(crate) fn contest(name: &str) -> Result<Contest> {
    let mut contests = all().into_iter().filter_map(|row| match row {
        BenchRow::Contest(contest) => Some(contest),
        _ => None,
    });
    contests.find(|contest| contest.name == name).with_context(|| format!("no contest is called {name:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_is_taken_twice() {
        let mut names: Vec<_> = all().iter().map(BenchRow::name).collect();
        names.sort_unstable();
        let count = names.len();
        names.dedup();
        assert_eq!(names.len(), count);
    }

    #[test]
    fn every_count_is_of_a_contest_that_exists() {
        for row in all() {
            if let BenchRow::Instructions(row) = row {
                contest(row.of).unwrap();
            }
        }
    }

    #[test]
    fn every_side_of_every_contest_admits_its_calls() {
        for row in all() {
            match &row {
                BenchRow::Contest(row) => {
                    for build in row.ours.iter().chain(row.peer.as_ref().map(|peer| &peer.side)) {
                        assert_eq!(build().unwrap()(100), 100, "{}", row.name);
                    }
                }
                BenchRow::SlowDown(row) => {
                    for build in [row.ours, row.peer.side] {
                        assert_eq!(build().unwrap()(100), 100, "{}", row.name);
                    }
                }
                _ => {}
            }
        }
    }
}
