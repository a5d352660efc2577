//! One operation by several threads at once.

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use anyhow::{Context, Result};

use crate::meter::{self, TimeKind};
use crate::subject::ensure_admitted;

/// Runs an operation many times, in any thread, and returns how many calls were admitted.
pub(crate) type SharedOperation = Box<dyn Fn(u64) -> u64 + Send + Sync>;

/// The loop around one operation that threads share.
pub(crate) fn shared(operation: impl Fn() -> bool + Send + Sync + 'static) -> SharedOperation {
    Box::new(move |times| (0..times).map(|_| u64::from(black_box(operation()))).sum())
}

/// The measurement of a thread.
struct Lap {
    admitted: u64,
    ns: f64,
    is_undisturbed: bool,
}

/// Measures the wall time per operation of a thread, if no thread was preempted.
///
/// If other processes take a core, the threads run one after the other, and their contention is not measured. A thread that
/// sleeps on a lock is not preempted, and counts.
pub(crate) fn ns_each(
    who: &str,
    operation: &SharedOperation,
    threads: usize,
    times: u64,
) -> Result<Option<f64>> {
    let ready = AtomicUsize::new(0);
    let laps = thread::scope(|scope| -> Result<Vec<Lap>> {
        let lap = || scope.spawn(|| run_lap(operation, times, || wait_for_all(&ready, threads)));
        let running: Vec<_> = (0..threads).map(|_| lap()).collect();
        let done = running.into_iter().map(|thread| thread.join().ok().context("a thread panicked")?);
        done.collect()
    })?;
    for lap in &laps {
        ensure_admitted(who, lap.admitted, times)?;
    }
    let mean = laps.iter().map(|lap| lap.ns).sum::<f64>() / laps.len() as f64;
    Ok(laps.iter().all(|lap| lap.is_undisturbed).then_some(mean / times as f64))
}

fn run_lap(operation: &SharedOperation, times: u64, wait_for_others: impl FnOnce()) -> Result<Lap> {
    let before = meter::times_pushed_off()?;
    wait_for_others();
    let (admitted, time) = TimeKind::Wall.time(|| operation(times));
    let is_undisturbed = meter::times_pushed_off()? == before;
    Ok(Lap { admitted, ns: time.as_nanos() as f64, is_undisturbed })
}

/// Spins, because a thread that sleeps here would start late.
fn wait_for_all(ready: &AtomicUsize, threads: usize) {
    ready.fetch_add(1, Ordering::SeqCst);
    while ready.load(Ordering::SeqCst) < threads {
        spin_loop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_thread_does_every_operation() {
        static CALLS: AtomicUsize = AtomicUsize::new(0);
        let operation = shared(|| CALLS.fetch_add(1, Ordering::SeqCst) < 22);
        ns_each("us", &operation, 2, 11).unwrap();
        assert_eq!(CALLS.load(Ordering::SeqCst), 22);
        assert!(ns_each("us", &operation, 2, 11).unwrap_err().to_string().contains("admitted only 0"));
    }
}
