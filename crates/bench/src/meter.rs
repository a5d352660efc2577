//! The clocks a benchmark reads: the only place that does.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

/// Which time an operation is charged with.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Meter {
    /// What this thread spent on a core: on a shared machine the neighbours do not count.
    ThreadCpu,
    /// What passed on the wall: for what several threads do together, waiting for each other included.
    Wall,
}

impl Meter {
    pub(crate) fn time<T>(self, work: impl FnOnce() -> T) -> (T, Duration) {
        match self {
            Self::ThreadCpu => {
                let before = thread_cpu();
                let result = work();
                (result, thread_cpu().saturating_sub(before))
            }
            Self::Wall => {
                let before = wall();
                let result = work();
                (result, before.elapsed())
            }
        }
    }
}

fn thread_cpu() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    // Neither part is ever negative on this clock, and the second is below 10^9.
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

#[allow(
    clippy::disallowed_methods,
    reason = "a benchmark measures the real clock; no limiter reads this one"
)]
fn wall() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_time_on_both_clocks() {
        for meter in [Meter::ThreadCpu, Meter::Wall] {
            let work = || (0..100_000_u64).map(std::hint::black_box).sum::<u64>();
            assert!(meter.time(work).1 > Duration::ZERO);
        }
    }
}
