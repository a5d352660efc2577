//! The clocks of a host: the monotonic clock, which is not set, and the wall clock, which may be.

use std::fmt;
use std::fs;
use std::sync::Arc;

use super::{Clock, ManualClock, system};

/// The clocks that the processes of one host read, and the boot that the monotonic clock counts from.
///
/// # Examples
///
/// ```
/// use tollgate_store::HostClock;
///
/// // A file that outlives the boot of its host must not keep times of the monotonic clock.
/// let (stored, now) = (HostClock::system(), HostClock::system());
/// assert_eq!(stored.boot(), now.boot(), "the host was not booted in between");
/// ```
#[derive(Clone)]
pub struct HostClock {
    monotonic: Clock,
    wall: Wall,
    boot: Arc<str>,
}

#[derive(Clone)]
enum Wall {
    /// The system's, ahead by so many microseconds.
    System(i64),
    Manual(ManualClock),
}

impl HostClock {
    /// Returns the clocks of this host.
    pub fn system() -> HostClock {
        HostClock { monotonic: Clock::monotonic(), wall: Wall::System(0), boot: boot().into() }
    }

    /// Returns the clocks of this host with a wall clock that is ahead by so many seconds. For tests.
    #[doc(hidden)]
    pub fn shifted(secs: i64) -> HostClock {
        HostClock { wall: Wall::System(secs * 1_000_000), ..HostClock::system() }
    }

    /// Returns the clocks of a host with manual clocks, which a test sets.
    #[doc(hidden)]
    pub fn manual(monotonic: &ManualClock, wall: &ManualClock, boot: &str) -> HostClock {
        HostClock { monotonic: monotonic.clock(), wall: Wall::Manual(wall.clone()), boot: boot.into() }
    }

    /// The monotonic clock.
    pub(super) fn monotonic(&self) -> &Clock {
        &self.monotonic
    }

    /// Returns the boot of the host, as far as processes see one monotonic clock in it; empty if that is not known.
    pub fn boot(&self) -> &str {
        &self.boot
    }

    /// Returns by how many microseconds the wall clock is ahead of the monotonic clock.
    pub(super) fn wall_offset(&self) -> u64 {
        match &self.wall {
            Wall::System(by) => (system::time_of_day_ahead() / 1_000).saturating_add_signed(*by),
            Wall::Manual(wall) => wall.now().since(self.monotonic.now()).as_micros(),
        }
    }
}

impl fmt::Debug for HostClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostClock").field("boot", &self.boot).finish_non_exhaustive()
    }
}

/// The boot of the host and the time namespace of this process, which may have a monotonic clock of its own.
fn boot() -> String {
    let Ok(boot) = fs::read_to_string("/proc/sys/kernel/random/boot_id") else { return String::new() };
    // A kernel without time namespaces has one monotonic clock.
    let namespace = fs::read_link("/proc/self/ns/time").unwrap_or_default();
    format!("{} {}", boot.trim(), namespace.display()).trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tollgate_core::{Span, Tick};

    #[test]
    fn the_clocks_of_this_host_show_the_time_of_day() {
        let host = HostClock::system();
        let wall = host.monotonic.now() + Span::from_micros(host.wall_offset());
        assert!(wall > Tick::from_secs(1_577_836_800), "it is later than 2020");
        let ahead = HostClock::shifted(86_400).wall_offset() - host.wall_offset();
        assert!((86_000_000_000..87_000_000_000).contains(&ahead), "{ahead}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_boot_has_a_name() {
        assert_eq!(HostClock::system().boot(), HostClock::system().boot());
        assert!(HostClock::system().boot().len() >= 36);
    }
}
