//! The time from a release to the wake-up of a waiter.
//!
//! Every sample starts with a sleeping waiter: waking one that still spins would be faster. The time of the kernel's
//! scheduler is part of it, so the numbers depend on the machine.

use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc::unbounded_channel;
use tollgate::{Limit, LimitSet, demand};

use crate::meter;
use crate::options::Effort;
use crate::single::SoloValue;

/// Long enough for a waiter in the queue to be asleep.
const FALL_ASLEEP: Duration = Duration::from_micros(200);

/// A thread that waits with no runtime.
pub(crate) fn thread(effort: &Effort) -> Result<SoloValue> {
    let set = one_slot()?;
    let ((start, started), (report, woken)) = (channel(), channel());
    let samples = thread::scope(|scope| {
        scope.spawn(|| {
            for () in started {
                let lease = set.acquire(demand! { slots: 1 }).wait();
                let at = meter::wall();
                drop(lease);
                // The receiver is dropped only if the other side failed, which reports the error.
                let _ = report.send(at);
            }
        });
        // Moved in, so that the waiter ends with this closure.
        let start = start;
        sample(&set, effort.wakes, || start.send(()).context("the waiter is gone"), &woken)
    });
    Ok(summary(samples?, "a parked thread"))
}

/// A task of tokio that waits on a worker with nothing else to do.
pub(crate) fn task(effort: &Effort) -> Result<SoloValue> {
    let set = one_slot()?;
    let runtime = runtime()?;
    let ((start, mut started), (report, woken)) = (unbounded_channel(), channel());
    let waiter = set.clone();
    runtime.spawn(async move {
        while let Some(()) = started.recv().await {
            let lease = waiter.acquire(demand! { slots: 1 }).await;
            let at = meter::wall();
            drop(lease);
            let _ = report.send(at);
        }
    });
    let samples = sample(&set, effort.wakes, || start.send(()).context("the waiter is gone"), &woken);
    Ok(summary(samples?, "a tokio task, multi_thread with one worker"))
}

/// Only one at a time.
pub(crate) fn one_slot() -> Result<LimitSet> {
    Ok(LimitSet::new([Limit::resource("slots", 1)])?)
}

/// The runtime most programs have, with one worker: there are hardly more cores.
pub(crate) fn runtime() -> Result<Runtime> {
    Builder::new_multi_thread().worker_threads(1).build().context("cannot start a runtime")
}

/// Yields until `count` callers wait.
pub(crate) fn until_waiting(set: &LimitSet, count: usize) {
    while set.peek().wait().expect("memory answers").waiting < count {
        thread::yield_now();
    }
}

fn sample(
    set: &LimitSet,
    times: usize,
    start_waiter: impl Fn() -> Result<()>,
    woken: &Receiver<Instant>,
) -> Result<Vec<Duration>> {
    let once = |_| {
        let lease = set.acquire(demand! { slots: 1 }).wait()?;
        start_waiter()?;
        until_waiting(set, 1);
        meter::pause(FALL_ASLEEP);
        let released_at = meter::wall();
        drop(lease);
        Ok(woken.recv().context("the waiter is gone")?.saturating_duration_since(released_at))
    };
    (0..times).map(once).collect()
}

fn summary(mut samples: Vec<Duration>, who: &str) -> SoloValue {
    samples.sort_unstable();
    let micros = |share| percentile(&samples, share).as_nanos() as f64 / 1e3;
    let detail = format!("median of {}; p99 {:.1} us; {who}", samples.len(), micros(99));
    SoloValue { value: micros(50), detail }
}

/// Returns a percentile.
fn percentile(sorted: &[Duration], share: usize) -> Duration {
    sorted.get(sorted.len() * share / 100).copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_samples() {
        let samples: Vec<Duration> = (0..1000).map(Duration::from_nanos).collect();
        assert_eq!([50, 99].map(|share| percentile(&samples, share).as_nanos()), [500, 990]);
        assert_eq!(percentile(&[Duration::from_secs(7)], 99), Duration::from_secs(7));
    }

    #[test]
    fn both_kinds_of_waiter_wake_up() {
        let effort = Effort { wakes: 10, ..Effort::QUICK };
        for read in [thread, task] {
            assert!(read(&effort).unwrap().value > 0.0);
        }
    }
}
