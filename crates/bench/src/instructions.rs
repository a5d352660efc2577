//! Instructions per operation, counted by callgrind: the same on a busy machine as on an idle one.
//!
//! Two runs of different length are subtracted, which removes the setup. Only the loop is counted, because peers that
//! calibrate a clock when they start would hide the difference otherwise. The kernel's instructions are not counted; under
//! valgrind reading a clock is a system call and so nearly free, for both sides alike.

use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::result::{BenchResult, Threshold};
use crate::rows;
use crate::subject::{self, BenchOperation, ensure_admitted};

const FEW: u64 = 1_000;
const MANY: u64 = 11_000;

/// A row that counts the instructions per operation of the comparison named in `of`.
pub(crate) struct Instructions {
    pub(crate) name: &'static str,
    pub(crate) of: &'static str,
    pub(crate) bar: Option<Threshold>,
}

impl Instructions {
    /// Runs this program under valgrind, or reports that it is skipped.
    pub(crate) fn measure(&self) -> Result<BenchResult> {
        let mut finding = BenchResult {
            name: self.name.to_owned(),
            unit: "instr",
            bar: self.bar,
            ..BenchResult::default()
        };
        if !valgrind_is_there() {
            finding.detail = "skipped: valgrind is not on PATH".to_owned();
            return Ok(finding);
        }
        let contest = rows::contest(self.of)?;
        finding.ours = contest.ours.map(|_| per_operation(self.of)).transpose()?;
        if let Some(peer) = contest.peer {
            let target = format!("{}@{}", self.of, peer.name);
            finding.peer = Some((peer.name, per_operation(&target)?));
        }
        Ok(finding)
    }
}

/// Runs the `count` command: one side of a comparison, many times.
pub(crate) fn count_here(target: &str, times: u64) -> Result<()> {
    let (name, peer) = target.split_once('@').unwrap_or((target, ""));
    let contest = rows::contest(name)?;
    let build = subject::pick(peer, contest.ours.as_ref(), contest.peer.as_ref())
        .with_context(|| format!("{name} has no side {peer:?}; write {name}@PEER for a peer's"))?;
    let mut operation = build()?;
    // The first calls fill caches and tables, which is not part of an operation.
    operation(100);
    ensure_admitted(target, counted_operations(&mut operation, times), times)
}

/// The function that callgrind measures, by this name.
#[inline(never)]
fn counted_operations(operation: &mut BenchOperation, times: u64) -> u64 {
    std::hint::black_box(operation(std::hint::black_box(times)))
}

fn valgrind_is_there() -> bool {
    Command::new("valgrind").arg("--version").output().is_ok_and(|output| output.status.success())
}

fn per_operation(target: &str) -> Result<f64> {
    let (few, many) = (collected(target, FEW)?, collected(target, MANY)?);
    Ok((many as f64 - few as f64) / (MANY - FEW) as f64)
}

fn collected(target: &str, times: u64) -> Result<u64> {
    let this = std::env::current_exe().context("cannot find this program")?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*counted_operations*"])
        .arg(this)
        .args(["count", target, &times.to_string()])
        .output()
        .context("cannot start valgrind")?;
    let said = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "valgrind failed on {target}: {}", said.trim());
    parse_collected(&said).with_context(|| format!("valgrind counted nothing for {target}"))
}

fn parse_collected(said: &str) -> Option<u64> {
    let (_, count) = said.lines().find(|line| line.contains("Collected"))?.rsplit_once(':')?;
    count.trim().parse().ok().filter(|&count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_count_is_parsed_from_the_output_of_callgrind() {
        let said = "==7== Events    : Ir\n==7== Collected : 123456\n==7==\n";
        assert_eq!(parse_collected(said), Some(123_456));
        assert_eq!(parse_collected("==7== Collected : 0\n"), None);
        assert_eq!(parse_collected("no such tool\n"), None);
    }
}
