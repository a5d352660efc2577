//! The command line.

use std::time::Duration;

pub(crate) const HELP: &str = "\
Benchmarks Tollgate beside its peers, interleaved in one run, and prints one table.

Usage: tollgate-bench [OPTIONS]
       tollgate-bench count NAME[@PEER] TIMES

Options:
  --only PREFIX  measure only the rows whose name starts with PREFIX
  --json FILE    also write the rows to FILE: a list of {name, value, unit, bar, holds}
  --quick        fewer and shorter rounds: a first look, not a result
  --check        exit with 1 when a bar is missed, or a row with a bar could not be measured
  --list         name the rows and stop
  --help         print this page

`count` does one side of a row TIMES times and nothing else, for a profiler to watch. NAME alone is our side.

Columns: `ours` and `peer` are medians over the rounds; with a bar of `<= 2.0` the ratio is ours / peer (what we
cost), with `>= 8` it is peer / ours (what we gain); `-` stands for what was not measured. In memory:
  core/try_acquire, acquire-settle, chain, check, keyed   processor time of one call, beside a peer's
  core/two-threads-slow-down   wall time per call with two threads on one key / with one thread
  core/bytes                   resident memory per key, filled, and after all were swept (as glibc is by
                               itself, and without its thread cache: what we freed, whoever keeps it)
  core/wake, idle-waiters-cpu  from a release to the waiter's return; what 1,000 that wait cost a second
  limiter/acquire-settle       the same for an entity whose limits are stored, beside a limit set of the same limits
  limiter/resolve, bytes       finding out the limits of a stranger; resident memory per entity in use
  redis/                       calls of an acquire, and what the server spends on it beside a bare script
  batch/makespan, refused      a provider of whom nothing is known, on a clock that jumps: how much longer than by one
                               who knows it, and what headers save
  batch/no-op-item, bytes      processor time and memory of an item; a second is 200,000 of them at 5,000 ns
  cli/                         processor time of the command as a process of its own, its start included
  python/                      the Python package, called from Python, beside packages from PyPI
  core/instructions            counted by callgrind, where valgrind is installed

Examples:
  tollgate-bench --quick --only core/
  tollgate-bench --json bench.json --check
  valgrind --tool=callgrind tollgate-bench count core/try_acquire-1-limit@governor 100000
";

/// The command to run.
#[derive(Debug, PartialEq)]
pub(crate) enum BenchRequest {
    Help,
    List,
    Run(BenchOptions),
    Count {
        target: String,
        times: u64,
    },
    /// Hidden: another process of a row with several processes.
    Process {
        what: String,
        name: String,
    },
    /// Hidden: the child process whose memory is measured.
    Resident {
        target: String,
        keys: u64,
    },
}

/// The options of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct BenchOptions {
    pub(crate) only: String,
    pub(crate) json: Option<String>,
    pub(crate) check: bool,
    pub(crate) effort: Effort,
}

/// How much time a measurement may take.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Effort {
    pub(crate) rounds: usize,
    pub(crate) round_time: Duration,
    pub(crate) wakes: usize,
    pub(crate) keys: u64,
}

impl Effort {
    const FULL: Self =
        Self { rounds: 41, round_time: Duration::from_millis(5), wakes: 5_000, keys: 10_000_000 };
    pub(crate) const QUICK: Self =
        Self { rounds: 9, round_time: Duration::from_millis(2), wakes: 500, keys: 1_000_000 };
}

/// Parses the arguments; the error names an invalid one.
pub(crate) fn parse(arguments: &[String]) -> Result<BenchRequest, String> {
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["--help" | "-h" | "help", ..] => Ok(BenchRequest::Help),
        ["--list"] => Ok(BenchRequest::List),
        ["process", what, name] => Ok(BenchRequest::Process { what: what.to_owned(), name: name.to_owned() }),
        ["count", target, times] => {
            Ok(BenchRequest::Count { target: target.to_owned(), times: number(times)? })
        }
        ["resident", target, keys] => {
            Ok(BenchRequest::Resident { target: target.to_owned(), keys: number(keys)? })
        }
        _ => parse_run(&words).map(BenchRequest::Run),
    }
}

fn parse_run(words: &[&str]) -> Result<BenchOptions, String> {
    let mut options = BenchOptions { only: String::new(), json: None, check: false, effort: Effort::FULL };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().map(|&word| word.to_owned()).ok_or(format!("{word} needs a value"));
        match *word {
            "--only" => options.only = value()?,
            "--json" => options.json = Some(value()?),
            "--check" => options.check = true,
            "--quick" => options.effort = Effort::QUICK,
            other => return Err(format!("{other:?} is no option")),
        }
    }
    Ok(options)
}

fn number(word: &str) -> Result<u64, String> {
    word.parse().map_err(|_| format!("{word:?} is no count"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<BenchRequest, String> {
        parse(&line.split_whitespace().map(String::from).collect::<Vec<_>>())
    }

    #[test]
    fn options_may_come_in_any_order() {
        let expected =
            BenchOptions { only: "core/".into(), json: Some("x".into()), check: true, effort: Effort::QUICK };
        assert_eq!(parsed("--check --json x --quick --only core/"), Ok(BenchRequest::Run(expected)));
    }

    #[test]
    fn an_invalid_argument_is_named() {
        assert!(parsed("--quik").unwrap_err().contains("--quik"));
        assert!(parsed("--json").unwrap_err().contains("needs a value"));
        assert!(parsed("count core/x many").unwrap_err().contains("many"));
    }
}
