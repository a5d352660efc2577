//! The clocks of the benchmarks, which no other module reads.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::time::{ClockId, clock_gettime};

/// The clock of a measurement.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum TimeKind {
    /// The processor time of this thread, without other processes of the machine.
    ThreadCpu,
    /// The wall clock: for several threads, with the time that they wait for each other.
    Wall,
    /// The processor time of all threads of this process.
    ProcessCpu,
}

impl TimeKind {
    pub(crate) fn time<T>(self, work: impl FnOnce() -> T) -> (T, Duration) {
        match self {
            Self::ThreadCpu => cpu_time(ClockId::ThreadCPUTime, work),
            Self::ProcessCpu => cpu_time(ClockId::ProcessCPUTime, work),
            Self::Wall => {
                let before = wall();
                let result = work();
                (result, before.elapsed())
            }
        }
    }
}

fn cpu_time<T>(clock: ClockId, work: impl FnOnce() -> T) -> (T, Duration) {
    let before = cpu(clock);
    let result = work();
    (result, cpu(clock).saturating_sub(before))
}

fn cpu(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    // Neither part is ever negative on these clocks, and the second is below 10^9.
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures the real clock; no limiter reads this one"
)]
pub(crate) fn wall() -> Instant {
    Instant::now()
}

/// Returns how often this thread was preempted.
pub(crate) fn times_pushed_off() -> Result<u64> {
    let status = std::fs::read_to_string("/proc/thread-self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("nonvoluntary_ctxt_switches:"));
    Ok(line.context("/proc/thread-self/status does not say")?.trim().parse()?)
}

/// Sleeps.
#[allow(clippy::disallowed_methods, reason = "the waits of other threads are measured meanwhile")]
pub(crate) fn pause(time: Duration) {
    std::thread::sleep(time);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_on_every_clock() {
        for meter in [TimeKind::ThreadCpu, TimeKind::Wall, TimeKind::ProcessCpu] {
            let work = || (0..100_000_u64).map(std::hint::black_box).sum::<u64>();
            assert!(meter.time(work).1 > Duration::ZERO);
        }
    }
}
