//! Processes of this host as others can look for them, and ids of holders that name their process, so that others
//! can find that it has ended.
//!
//! An id is made of four numbers of 32 bits: a tag for the boot of the host and its space of process ids, the process
//! id, the low bits of when the process started, and a counter, whose highest bit is set if the holder lives as long as the
//! process. Only a process with the same tag can look for it, so holders of another tag are never judged.

use std::collections::HashMap;
use std::fs;
use std::hash::{BuildHasher, RandomState};
use std::io::Read;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::{PerProcess, generation};

/// A process or a thread, as other processes on this host can look for it.
///
/// # Examples
///
/// ```
/// use tollgate_store::Process;
///
/// let this = Process::this();
/// assert!(this.is_there());
/// // Another process with the same id, which has started at another time.
/// let other = Process { started: this.started.wrapping_add(1), ..this };
/// # #[cfg(target_os = "linux")]
/// assert!(!other.is_there());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Process {
    /// The boot of the host and its space of process ids. A process with another tag cannot be looked for.
    pub tag: u32,
    /// The id of the process, or of the thread.
    pub pid: u32,
    /// The low bits of when it started, in ticks since the boot: a process id is given again.
    pub started: u32,
}

/// The bit of an id of a holder that lives as long as its process.
const LIVING: u128 = 1 << 31;

/// Returns the id of a new holder, which names its process and is unlike that of any other. A holder that is silent for
/// too long has expired, though its process may live.
pub fn new_holder_id() -> u128 {
    static COUNTER: AtomicU32 = AtomicU32::new(0);
    let Process { tag, pid, started } = Process::this();
    let counter = u128::from(COUNTER.fetch_add(1, Ordering::Relaxed)) & (LIVING - 1);
    u128::from(tag) << 96 | u128::from(pid) << 64 | u128::from(started) << 32 | counter
}

/// Returns an id as [`new_holder_id`] does, for a holder that lives as long as its process, whatever the clocks show. Only a
/// process that cannot look for it goes by the time that it was silent.
pub fn new_living_holder() -> u128 {
    new_holder_id() | LIVING
}

/// The processes that were found alive or ended. Each process is looked for once.
///
/// # Examples
///
/// ```
/// use tollgate_store::{LivenessCache, new_holder_id, new_living_holder};
///
/// let mut liveness = LivenessCache::default();
/// assert!(!liveness.is_gone(new_holder_id()));
/// // Only a living holder is kept for as long as its process is there.
/// assert!(liveness.lives(new_living_holder()) && !liveness.lives(new_holder_id()));
/// ```
#[derive(Debug, Default)]
pub struct LivenessCache(HashMap<Process, bool>);

impl LivenessCache {
    /// Returns true if the process of a [holder](new_holder_id) has ended.
    pub fn is_gone(&mut self, holder: u128) -> bool {
        let (tag, pid, started) = ((holder >> 96) as u32, (holder >> 64) as u32, (holder >> 32) as u32);
        self.has_ended(Process { tag, pid, started })
    }

    /// Returns true if the process of a [living holder](new_living_holder) was found alive.
    pub fn lives(&mut self, holder: u128) -> bool {
        let is_seen = (holder >> 96) as u32 == Process::this().tag;
        holder & LIVING != 0 && is_seen && !self.is_gone(holder)
    }

    /// Returns true if a process has ended. For one that cannot be looked for it returns false.
    pub fn has_ended(&mut self, process: Process) -> bool {
        let this = Process::this();
        if process.tag != this.tag || process == this {
            return false;
        }
        *self.0.entry(process).or_insert_with(|| !process.is_there())
    }
}

impl Process {
    /// Returns this process. A forked process is another one.
    pub fn this() -> Process {
        static THESE: OnceLock<PerProcess<OnceLock<Process>>> = OnceLock::new();
        let process = generation().into();
        let this = THESE.get_or_init(|| PerProcess::new(process)).get(process);
        *this.get_or_init(|| Process::named().unwrap_or_else(Process::nameless))
    }

    fn named() -> Option<Process> {
        let boot = fs::read("/proc/sys/kernel/random/boot_id").ok()?;
        let pids = fs::read_link("/proc/self/ns/pid").ok()?;
        let text = [&boot, pids.as_os_str().as_encoded_bytes()].concat();
        // Zero is what an id that was made elsewhere is likely to begin with.
        let tag = fnv(&text).max(1);
        let life = life_of("self")?;
        Some(Process { tag, pid: std::process::id(), started: life.started })
    }

    /// Returns this thread, if threads can be looked for on this host.
    pub fn this_thread() -> Option<Process> {
        let life = life_of("thread-self")?;
        let tag = Process::this().tag;
        Some(Process { tag, pid: life.pid, started: life.started })
    }

    /// Returns numbers that no other process has, for hosts where processes cannot be looked for.
    fn nameless() -> Process {
        let random = RandomState::new().hash_one(std::process::id());
        Process { tag: (random >> 32) as u32 | 1, pid: 0, started: random as u32 }
    }

    /// Returns true if the process is alive, or may be: as long as any of its threads is.
    pub fn is_there(self) -> bool {
        self.is_alive(|| self.has_threads())
    }

    /// Returns true if the [thread](Process::this_thread) is alive, or may be.
    pub fn is_there_as_thread(self) -> bool {
        self.is_alive(|| false)
    }

    /// Returns true if it is alive, or may be. If the system reports that it has ended, `lives_on` decides.
    #[cfg(unix)]
    fn is_alive(self, lives_on: impl FnOnce() -> bool) -> bool {
        use rustix::process::{Pid, test_kill_process};
        let pid = i32::try_from(self.pid).ok().and_then(Pid::from_raw);
        // `/proc` may leave out a process that this one may not inspect; this test does not.
        let none = |pid: Pid| test_kill_process(pid) == Err(rustix::io::Errno::SRCH);
        if pid.is_none_or(none) {
            return pid.is_none();
        }
        life_of(&self.pid.to_string())
            .is_none_or(|life| life.started == self.started && (!life.has_ended() || lives_on()))
    }

    #[cfg(not(unix))]
    fn is_alive(self, _: impl FnOnce() -> bool) -> bool {
        true
    }

    /// Returns true if any thread of the process is alive. Its own state is that of its first thread, which may have ended before others.
    fn has_threads(self) -> bool {
        let Ok(threads) = fs::read_dir(format!("/proc/{}/task", self.pid)) else { return false };
        let lives = |thread: &str| {
            let life = life_of(&format!("{}/task/{thread}", self.pid));
            life.is_some_and(|life| !life.has_ended())
        };
        threads.flatten().any(|thread| thread.file_name().to_str().is_some_and(lives))
    }
}

/// What the system says about a process or a thread.
struct ProcessLife {
    pid: u32,
    state: char,
    /// In ticks since the boot.
    started: u32,
}

impl ProcessLife {
    fn has_ended(&self) -> bool {
        matches!(self.state, 'Z' | 'X')
    }
}

fn life_of(process: &str) -> Option<ProcessLife> {
    // A line of numbers is shorter than this; where it is read in pieces, each piece costs as much as the line.
    let mut stat = [0; 2_048];
    let read = fs::File::open(format!("/proc/{process}/stat")).and_then(|mut file| file.read(&mut stat));
    // The name of the program may be no text.
    let stat = String::from_utf8_lossy(&stat[..read.ok()?]);
    let pid = stat.split(' ').next()?.parse().ok()?;
    // It is in brackets and may have anything in it.
    let mut fields = stat.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    let started: u64 = fields.nth(18)?.parse().ok()?;
    Some(ProcessLife { pid, state, started: started as u32 })
}

/// FNV-1a, which is the same in every process.
fn fnv(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_holders_have_one_id() {
        let ids: std::collections::HashSet<u128> = (0..1_000).map(|_| new_holder_id()).collect();
        assert_eq!(ids.len(), 1_000);
    }

    #[test]
    fn this_process_is_there_and_those_of_other_hosts_are_not_judged() {
        let mut census = LivenessCache::default();
        assert!(!census.is_gone(new_holder_id()));
        for foreign in [0, 1, u128::MAX, new_holder_id() ^ 1 << 96] {
            assert!(!census.is_gone(foreign));
        }
    }

    #[test]
    fn only_a_living_holder_of_a_process_that_is_seen_lives() {
        let mut census = LivenessCache::default();
        let living = new_living_holder();
        assert!(census.lives(living) && !census.lives(new_holder_id()));
        for other in [0, u128::MAX, living ^ 1 << 96] {
            assert!(!census.lives(other));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_process_that_never_was_or_started_at_another_time_is_gone() {
        let mut census = LivenessCache::default();
        let this = new_holder_id();
        assert!(census.is_gone(this ^ 1 << 40), "the process id is that of another process now");
        let no_such_pid = this & !(0xFFFF_FFFF << 64) | 0x7FFF_FFFE << 64;
        assert!(census.is_gone(no_such_pid));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_thread_is_there_until_it_ends() {
        let this = Process::this_thread().expect("threads can be looked for");
        assert!(this.is_there_as_thread());
        let other = std::thread::spawn(Process::this_thread).join().expect("it does not panic");
        let other = other.expect("threads can be looked for");
        assert_ne!(other, this);
        // It is joined a moment before it is gone.
        while other.is_there_as_thread() {}
    }

    #[test]
    fn the_start_of_a_process_is_read_whatever_it_is_called() {
        #[cfg(target_os = "linux")]
        assert!(life_of("self").is_some());
        assert!(life_of("no such process").is_none());
    }
}
