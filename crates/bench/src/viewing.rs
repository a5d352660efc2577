//! Viewing a million entities with the command: its time, and that it changes nothing.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Result, ensure};
use tollgate::file::{Durability, FileStore};
use tollgate::store::{Backend, BucketRef, Key, Op, Step, Transaction, TxnOutcome};
use tollgate::{Level, Limit, Limiter, Limits, demand};

use crate::command::{program, run};
use crate::meter;
use crate::options::Effort;
use crate::processes::TempStore;
use crate::scratch::Scratch;
use crate::single::SoloValue;

const ENTITIES: usize = 1_000_000;

/// The number of entities in a transaction while the store is filled.
const TOGETHER: usize = 500;

/// Measures the seconds of `tollgate top --once` on a file with a million entities that were used in this hour.
pub(crate) fn top_of_file(_: &Effort) -> Result<SoloValue> {
    let scratch = Scratch::new()?;
    let file = scratch.file("limits.db");
    let store = FileStore::builder(&file).durability(Durability::Off).build()?;
    drop(fill(Arc::new(store))?);
    top(&format!("file:{}", file.display()), &file)
}

/// Measures the same in shared memory.
pub(crate) fn top_of_shm(_: &Effort) -> Result<SoloValue> {
    let shared = TempStore::new("top")?;
    let _limiter = fill(Arc::new(shared.0.clone()))?;
    top(&format!("shm:{}", shared.name()?), shared.0.path())
}

fn top(store: &str, path: &Path) -> Result<SoloValue> {
    let tollgate = program()?;
    let before = std::fs::read(path)?;
    let since = meter::wall();
    run(&tollgate, &["--store", store, "top", "--once"])?;
    let value = since.elapsed().as_secs_f64();
    ensure!(std::fs::read(path)? == before, "viewing {store} has changed it");
    Ok(SoloValue {
        value,
        detail: format!("{ENTITIES} entities, {} MiB, not a byte changed", before.len() >> 20),
    })
}

fn fill(store: Arc<dyn Backend>) -> Result<Limiter> {
    let limiter = Limiter::open(Arc::clone(&store), "default").wait()?;
    let limits = Limits::new([Limit::per_day("rpm", 1_000), Limit::per_day("tpm", 100_000)])?;
    limiter.catalog().set_limits(Level::System, &limits).wait()?;
    let namespace = limiter.catalog().namespace_id();
    let costs = limits.costs(&demand! { rpm: 1, tpm: 30 })?;
    for first in (0..ENTITIES).step_by(TOGETHER) {
        let numbers = first..(first + TOGETHER).min(ENTITIES);
        let keys: Vec<Key> = numbers.map(|number| Key::new(&[&format!("user-{number}"), "gpt-4"])).collect();
        let step = |key| Step {
            place: BucketRef { namespace, key, limits: &limits },
            op: Op::Take { costs: &costs, term: None },
        };
        let steps: Vec<Step<'_>> = keys.iter().map(step).collect();
        let taken = store.apply(&Transaction { id: None, steps: &steps, metered: true }).wait()?;
        ensure!(matches!(taken, TxnOutcome::Done(_)), "entity {first} was denied");
    }
    Ok(limiter)
}
