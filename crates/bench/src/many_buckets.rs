//! Shared memory with a million buckets: the memory of each, and the time of a call.

use std::ops::Range;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tollgate::store::Key;

use crate::meter;
use crate::options::Effort;
use crate::processes::{HotOperation, RESOURCE, TempStore};
use crate::single::SoloValue;

const FEW: u64 = 1_000;
const MANY: u64 = 1_000_000;

/// The number of timed calls.
const TURNS: u64 = 200_000;

/// A stride through the keys that visits all of them, with few cache hits.
const STRIDE: u64 = 7_919;

/// Measures the bytes of each of a million buckets, and the time of a call among few and among many.
pub(crate) fn million(_: &Effort) -> Result<SoloValue> {
    let shared = TempStore::new("million")?;
    let mut hot = HotOperation::new()?;
    fill(&shared, &mut hot, 0..FEW)?;
    let among_few = timed(&shared, &mut hot, FEW)?;
    fill(&shared, &mut hot, FEW..MANY)?;
    let among_many = timed(&shared, &mut hot, MANY)?;
    shared.0.check().context("a million buckets are intact")?;
    let bytes = std::fs::metadata(shared.0.path())?.len();
    let detail = format!(
        "{} MiB; acquire + settle: {} ns among {FEW} buckets, {} ns among {MANY}",
        bytes >> 20,
        among_few.as_nanos() / u128::from(TURNS),
        among_many.as_nanos() / u128::from(TURNS),
    );
    Ok(SoloValue { value: bytes as f64 / MANY as f64, detail })
}

fn fill(shared: &TempStore, hot: &mut HotOperation, keys: Range<u64>) -> Result<()> {
    for number in keys {
        ensure!(turn(shared, hot, number), "bucket {number} denied a call");
    }
    Ok(())
}

fn timed(shared: &TempStore, hot: &mut HotOperation, keys: u64) -> Result<Duration> {
    let since = meter::wall();
    for number in 0..TURNS {
        ensure!(turn(shared, hot, number * STRIDE % keys), "a call was denied");
    }
    Ok(since.elapsed())
}

fn turn(shared: &TempStore, hot: &mut HotOperation, number: u64) -> bool {
    hot.key = Key::new(&[&format!("user-{number}"), RESOURCE]);
    hot.turn(&shared.0)
}
