//! The memory of an idle key.
//!
//! Each side is measured in a child process, so that the sides do not share an allocator.

use std::any::Any;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::options::Effort;
use crate::result::{BenchResult, Threshold};
use crate::rows::{self, BenchRow};
use crate::subject::{self, Peer};

/// Builds a value that holds this many keys.
pub(crate) type Fill = fn(u64) -> Result<Box<dyn Any>>;

/// A row about resident bytes per key, the key itself included.
pub(crate) struct Footprint {
    pub(crate) name: &'static str,
    pub(crate) ours: Option<Fill>,
    pub(crate) peer: Option<Peer<Fill>>,
    /// The number of keys, if it differs from that of the effort.
    pub(crate) keys: Option<u64>,
    pub(crate) allocator: Allocator,
    pub(crate) bar: Option<Threshold>,
}

/// The settings of the system's allocator in the child.
#[derive(Clone, Copy)]
pub(crate) enum Allocator {
    AsIs,
    /// Without glibc's cache of freed blocks for each thread. These blocks are anywhere in the heap, and free memory
    /// below one of them stays resident.
    NoThreadCache,
}

impl Allocator {
    fn tunables(self) -> Option<(&'static str, &'static str)> {
        match self {
            Self::AsIs => None,
            Self::NoThreadCache => Some(("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0")),
        }
    }

    fn detail(self) -> &'static str {
        match self {
            Self::AsIs => "",
            Self::NoThreadCache => ", glibc without its thread cache",
        }
    }
}

impl Footprint {
    /// Starts a child for each side.
    pub(crate) fn measure(&self, effort: &Effort) -> Result<BenchResult> {
        let keys = self.keys.unwrap_or(effort.keys);
        let ours = self.ours.map(|_| self.measure_in_child(self.name, keys)).transpose()?;
        let peer = self.peer.as_ref().map(|peer| {
            let target = format!("{}@{}", self.name, peer.name);
            self.measure_in_child(&target, keys).map(|bytes| (peer.name, bytes))
        });
        Ok(BenchResult {
            name: self.name.to_owned(),
            unit: "B",
            ours,
            peer: peer.transpose()?,
            bar: self.bar,
            detail: format!("resident memory over {} keys{}", keys, self.allocator.detail()),
            ..BenchResult::default()
        })
    }

    fn measure_in_child(&self, target: &str, keys: u64) -> Result<f64> {
        let this = std::env::current_exe().context("cannot find this program")?;
        let mut child = Command::new(this);
        let output = child
            .args(["resident", target, &keys.to_string()])
            .envs(self.allocator.tunables())
            .output()
            .context("cannot start this program again")?;
        ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr).trim());
        String::from_utf8_lossy(&output.stdout).trim().parse().context("the child printed no number")
    }
}

/// In the child: creates the keys, and prints the bytes per key.
pub(crate) fn measure_here(target: &str, keys: u64) -> Result<()> {
    let (name, peer) = target.split_once('@').unwrap_or((target, ""));
    let row = rows::all().into_iter().find_map(|row| match row {
        BenchRow::Footprint(row) if row.name == name => Some(row),
        _ => None,
    });
    let row = row.with_context(|| format!("no row about memory is called {name:?}"))?;
    let fill = subject::pick(peer, row.ours.as_ref(), row.peer.as_ref())
        .with_context(|| format!("{name} has no side {peer:?}"))?;
    let before = resident_bytes()?;
    let filled = fill(keys)?;
    let grown = resident_bytes()?.saturating_sub(before);
    drop(filled);
    println!("{}", grown as f64 / keys as f64);
    Ok(())
}

/// Returns the resident memory of this process. The status page has it in kB; statm would need the page size.
pub(crate) fn resident_bytes() -> Result<u64> {
    let status =
        std::fs::read_to_string("/proc/self/status").context("resident memory is read on Linux only")?;
    parse_resident(&status).context("/proc/self/status has no VmRSS")
}

fn parse_resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_status_page_is_read_in_bytes() {
        assert_eq!(parse_resident("Name:\tx\nVmRSS:\t    12 kB\n"), Some(12_288));
        assert_eq!(parse_resident("Name:\tx\n"), None);
    }
}
