//! The monotonic clock of the host.

/// Returns the time since the host was started, in nanoseconds. All processes of the host share
/// this clock, and it is never set.
///
/// It calls the C library: crates that locate the vDSO themselves crash under valgrind.
///
/// ```
/// let start = tollgate_sys::monotonic_nanos();
/// assert!(tollgate_sys::monotonic_nanos() >= start);
/// ```
#[cfg(unix)]
#[inline]
pub fn monotonic_nanos() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call only writes to `now`, and cannot fail for a clock that every system has.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the time since the first call in this process, in nanoseconds, because this system has
/// no clock that processes share.
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
    fn the_clock_never_goes_back() {
        let times: Vec<u64> = (0..1_000).map(|_| monotonic_nanos()).collect();
        assert!(times[0] > 0 && times.is_sorted());
    }
}
