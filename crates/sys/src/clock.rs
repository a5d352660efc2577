//! The monotonic clock of the host.

/// The time since the host was started, in nanoseconds: the same for all its processes, and never set.
///
/// By the C library: a crate that looks for the clock in memory by itself ends a program that runs in valgrind.
#[cfg(unix)]
#[inline]
pub fn monotonic_nanos() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: it writes to what it is given. It cannot fail for a clock that every system has.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Where processes do not see the monotonic clock of the host, it counts from the first reading in this one.
#[cfg(not(unix))]
#[allow(clippy::disallowed_methods, reason = "this is the one place that reads this clock")]
pub fn monotonic_nanos() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static STARTED: OnceLock<Instant> = OnceLock::new();
    let elapsed = STARTED.get_or_init(Instant::now).elapsed();
    elapsed.as_secs() * 1_000_000_000 + u64::from(elapsed.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_never_goes_back() {
        let times: Vec<u64> = (0..1_000).map(|_| monotonic_nanos()).collect();
        assert!(times[0] > 0 && times.is_sorted());
    }
}
