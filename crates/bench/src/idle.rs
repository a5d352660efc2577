//! The cost of idle waiters. A waiter that polls instead of sleeping is visible here.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use tollgate::demand;

use crate::meter::{self, TimeKind};
use crate::options::Effort;
use crate::single::SoloValue;
use crate::wake::{one_slot, runtime, until_waiting};

/// The number of threads, and the number of tasks.
const HALF: usize = 500;
const WATCHED: Duration = Duration::from_secs(1);
const STACK_BYTES: usize = 128 * 1024;

/// Measures the processor time of the whole process while all of them wait for a slot that is not released.
pub(crate) fn waiters_cpu(_: &Effort) -> Result<SoloValue> {
    let set = one_slot()?;
    let runtime = runtime()?;
    let held = set.acquire(demand! { slots: 1 }).wait()?;
    let spent = thread::scope(|scope| -> Result<Duration> {
        // Moved in, so that it is released and the threads end when this closure ends.
        let held = held;
        for _ in 0..HALF {
            let thread = thread::Builder::new().stack_size(STACK_BYTES);
            thread.spawn_scoped(scope, || drop(set.acquire(demand! { slots: 1 }).wait()))?;
            let set = set.clone();
            runtime.spawn(async move { drop(set.acquire(demand! { slots: 1 }).await) });
        }
        until_waiting(&set, 2 * HALF);
        // The last ones are in the queue but may not be asleep yet.
        meter::pause(WATCHED / 10);
        let ((), spent) = TimeKind::ProcessCpu.time(|| meter::pause(WATCHED));
        drop(held);
        Ok(spent)
    })?;
    let detail = format!("processor time in {WATCHED:?}, {HALF} threads and {HALF} tasks that wait");
    Ok(SoloValue { value: spent.as_nanos() as f64 / 1e6, detail })
}
