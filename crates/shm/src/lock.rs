//! The lock: one word that names its owner, so that other processes notice when the owner has ended.
//!
//! The low half of the word is the id of the thread, with a bit if others sleep on it; the high half is when the thread
//! started, because ids are reused. One compare-and-swap writes all of it, so there is no instant at which the owner of
//! the lock is unknown. A sleeping thread checks from time to time whether the owner still exists, and takes the lock
//! over from one that does not. The journal then undoes what that owner was doing.

use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use rustix::thread::futex;
use tollgate_core::Span;
use tollgate_store::{Clock, Process};

use crate::error::TxnAbort;
use crate::map::{self, half};

/// Set while other threads sleep on the lock.
const SLEEPERS: u64 = 1 << 31;
const THREAD: u64 = SLEEPERS - 1;

/// How often a thread checks a lock that is taken before it sleeps. The owner is done in a microsecond.
const SPINS: u32 = 100;

/// How long a thread sleeps before it checks whether the owner still exists, at first and at most. It is woken when the
/// lock is free, so this is for owners that were killed, and for sleepers that were stopped or killed when they were
/// woken. A thousand sleepers that check often would leave the owner no processor.
const LOOKS: [Duration; 2] = [Duration::from_millis(5), Duration::from_millis(160)];

/// This thread, as the lock names it.
fn this_thread(tag: u32) -> Result<u64, TxnAbort> {
    thread_local! {
        static THIS: Cell<(u64, u64)> = const { Cell::new((0, 0)) };
    }
    let generation = map::generation().map_err(|_| TxnAbort::NoProcesses)?;
    let (known, name) = THIS.get();
    if known == generation {
        return Ok(name);
    }
    let thread = Process::this_thread().filter(|thread| thread.tag == tag).ok_or(TxnAbort::NoProcesses)?;
    let name = u64::from(thread.started) << 32 | u64::from(thread.pid) & THREAD;
    THIS.set((generation, name));
    Ok(name)
}

/// Returns whether the owner that a lock word names exists, or may exist.
fn is_there(tag: u32, name: u64) -> bool {
    let (pid, started) = ((name & THREAD) as u32, (name >> 32) as u32);
    pid != 0 && Process { tag, pid, started }.is_there_as_thread()
}

/// Takes the lock, from its owner if that has ended.
#[inline]
pub(crate) fn take(word: &AtomicU64, tag: u32, timeout: Duration) -> Result<(), TxnAbort> {
    let this = this_thread(tag)?;
    match word.compare_exchange(0, this, Ordering::Acquire, Ordering::Relaxed) {
        Ok(_) => Ok(()),
        Err(_) => wait(word, tag, this, timeout),
    }
}

#[cold]
fn wait(word: &AtomicU64, tag: u32, this: u64, timeout: Duration) -> Result<(), TxnAbort> {
    for _ in 0..SPINS {
        if word.load(Ordering::Relaxed) == 0
            && word.compare_exchange(0, this, Ordering::Acquire, Ordering::Relaxed).is_ok()
        {
            return Ok(());
        }
        spin_loop();
    }
    let clock = Clock::system();
    // The timeout starts again whenever the lock has a new owner, however many threads wait for it.
    let mut until = clock.now() + Span::covering(timeout);
    let (mut look, mut seen) = (LOOKS[0], 0);
    loop {
        let owner = word.load(Ordering::Relaxed);
        // Other threads may sleep as well: a thread that has slept sets `SLEEPERS`, so that its release wakes one of
        // them.
        if owner == 0 {
            if word.compare_exchange(0, this | SLEEPERS, Ordering::Acquire, Ordering::Relaxed).is_ok() {
                return Ok(());
            }
            continue;
        }
        let awaited = owner | SLEEPERS;
        if owner != awaited
            && word.compare_exchange(owner, awaited, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            continue;
        }
        if seen == awaited {
            if !is_there(tag, owner)
                && word
                    .compare_exchange(awaited, this | SLEEPERS, Ordering::Acquire, Ordering::Relaxed)
                    .is_ok()
            {
                return Ok(());
            }
            if clock.now() >= until {
                return Err(TxnAbort::Locked(timeout));
            }
        } else {
            seen = awaited;
            until = clock.now() + Span::covering(timeout);
        }
        sleep(word, awaited, look);
        look = (look * 2).min(LOOKS[1]);
    }
}

/// Releases the lock.
#[inline]
pub(crate) fn release(word: &AtomicU64) {
    if word.swap(0, Ordering::Release) & SLEEPERS != 0 {
        wake(word, 1);
    }
}

/// Sleeps while the word has this value, until it is woken or the time is over.
pub(crate) fn sleep(word: &AtomicU64, while_it_is: u64, most: Duration) {
    let most = futex::Timespec { tv_sec: most.as_secs() as i64, tv_nsec: i64::from(most.subsec_nanos()) };
    // Woken, timed out, interrupted or too late to sleep: the caller looks again in each case.
    let _ = futex::wait(half(word), futex::Flags::empty(), while_it_is as u32, Some(&most));
}

/// Wakes some threads that sleep on the word.
pub(crate) fn wake(word: &AtomicU64, most: u32) {
    // There may be no sleeper.
    let _ = futex::wake(half(word), futex::Flags::empty(), most);
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATIENT: Duration = Duration::from_secs(60);

    #[test]
    fn threads_have_the_lock_one_after_the_other() {
        let (word, tag) = (AtomicU64::new(0), Process::this().tag);
        let (counter, turns) = (AtomicU64::new(0), 20_000);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..turns {
                        take(&word, tag, PATIENT).unwrap();
                        let count = counter.load(Ordering::Relaxed);
                        counter.store(count + 1, Ordering::Relaxed);
                        release(&word);
                    }
                });
            }
        });
        assert_eq!((counter.into_inner(), word.into_inner()), (4 * turns, 0));
    }

    #[test]
    fn a_lock_whose_owner_is_gone_is_taken_over() {
        let (word, tag) = (AtomicU64::new(0), Process::this().tag);
        std::thread::scope(|scope| {
            scope.spawn(|| take(&word, tag, PATIENT).unwrap());
        });
        assert_ne!(word.load(Ordering::Relaxed), 0);
        take(&word, tag, PATIENT).unwrap();
        release(&word);
        // Ids that no thread ever had.
        for rubbish in [1 << 40 | 1, u64::MAX, SLEEPERS, 5 << 32] {
            word.store(rubbish, Ordering::Relaxed);
            take(&word, tag, PATIENT).unwrap();
            release(&word);
        }
    }

    #[test]
    fn a_lock_that_is_not_let_go_is_not_waited_for_for_ever() {
        let (word, tag) = (AtomicU64::new(0), Process::this().tag);
        take(&word, tag, PATIENT).unwrap();
        let short = Duration::from_millis(5);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| take(&word, tag, short));
            assert!(matches!(other.join().unwrap(), Err(TxnAbort::Locked(waited)) if waited == short));
        });
    }
}
