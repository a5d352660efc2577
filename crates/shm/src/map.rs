//! The memory itself, and the page that tells a forked process from its parent. All unsafe code of the crate is here.
//!
//! Whatever other processes do to the memory, it is only ever accessed as atomic words: no reference to it can be
//! invalidated by another process, and every bit pattern of a word is a valid number.

use std::ffi::c_void;
use std::io;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use rustix::mm::{Advice, MapFlags, ProtFlags};

/// Bytes in a word.
pub(crate) const WORD: u64 = 8;

/// A file as words of memory that all processes share which map it.
pub(crate) struct SharedMap {
    base: NonNull<AtomicU64>,
    words: usize,
}

// SAFETY: a mapping belongs to the process, not to a thread, and all access to it is atomic.
unsafe impl Send for SharedMap {}
// SAFETY: as above.
unsafe impl Sync for SharedMap {}

impl SharedMap {
    /// Maps so many words of a file, which may have fewer as yet: those behind its end must not be touched.
    pub(crate) fn new(file: BorrowedFd<'_>, words: usize) -> io::Result<SharedMap> {
        let bytes = words.checked_mul(WORD as usize).ok_or(io::ErrorKind::InvalidInput)?;
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: a new mapping where the system finds room for it takes the place of nothing.
        let base = unsafe {
            rustix::mm::mmap(ptr::null_mut(), bytes, access, MapFlags::SHARED | MapFlags::NORESERVE, file, 0)
        }?;
        let base = NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(SharedMap { base, words })
    }

    /// Returns how many words are mapped.
    pub(crate) fn len(&self) -> usize {
        self.words
    }

    /// Returns the first words. The file must have as many: the system ends a process that touches one that it has not.
    #[inline]
    pub(crate) fn words(&self, len: usize) -> &[AtomicU64] {
        let len = len.min(self.words);
        // SAFETY: the mapping has these words for as long as `self` is there, a page is aligned for any word, every bit
        // pattern is a number, and all processes change them atomically.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), len) }
    }
}

impl Drop for SharedMap {
    fn drop(&mut self) {
        let bytes = self.words * WORD as usize;
        // SAFETY: it was mapped with this length, and no slice of it outlives `self`. An error leaves it mapped.
        let _ = unsafe { rustix::mm::munmap(self.base.as_ptr().cast::<c_void>(), bytes) };
    }
}

/// Returns the half of a word that the system compares when a thread sleeps on it: the low one.
pub(crate) fn half(word: &AtomicU64) -> &AtomicU32 {
    let low = usize::from(cfg!(target_endian = "big"));
    // SAFETY: a word has two halves, and is aligned for them.
    let half = unsafe { ptr::from_ref(word).cast::<AtomicU32>().add(low) };
    // SAFETY: it is valid for as long as the word. Only the system reads it, never this program: it hands on the address.
    unsafe { &*half }
}

/// Returns a number that differs in a forked process.
pub(crate) fn generation() -> io::Result<u64> {
    static PAGE: OnceLock<Option<ForkPage>> = OnceLock::new();
    static LAST: AtomicU64 = AtomicU64::new(0);
    let page = PAGE.get_or_init(|| ForkPage::new().ok()).as_ref();
    let word = page.ok_or(io::ErrorKind::Unsupported)?.word();
    match word.load(Ordering::Relaxed) {
        0 => {
            let next = LAST.fetch_add(1, Ordering::Relaxed) + 1;
            let _ = word.compare_exchange(0, next, Ordering::Relaxed, Ordering::Relaxed);
            Ok(word.load(Ordering::Relaxed))
        }
        known => Ok(known),
    }
}

/// A page of this process that is zero in a forked child.
struct ForkPage(NonNull<AtomicU64>);

// SAFETY: it is never unmapped, and all access to it is atomic.
unsafe impl Send for ForkPage {}
// SAFETY: as above.
unsafe impl Sync for ForkPage {}

impl ForkPage {
    fn new() -> io::Result<ForkPage> {
        // The system rounds up to what is a page here.
        let (bytes, access) = (4_096, ProtFlags::READ | ProtFlags::WRITE);
        // SAFETY: as for any new mapping.
        let base = unsafe { rustix::mm::mmap_anonymous(ptr::null_mut(), bytes, access, MapFlags::PRIVATE) }?;
        // SAFETY: it is the mapping that was just made, with its length, and no code relies on what is in it.
        unsafe { rustix::mm::madvise(base, bytes, Advice::LinuxWipeOnFork) }?;
        Ok(ForkPage(NonNull::new(base.cast()).ok_or(io::ErrorKind::OutOfMemory)?))
    }

    fn word(&self) -> &AtomicU64 {
        // SAFETY: the page is mapped for as long as the process lives, and is aligned for any word.
        unsafe { self.0.as_ref() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_one_generation() {
        let first = generation().unwrap();
        assert_ne!(first, 0);
        assert_eq!(std::thread::spawn(|| generation().unwrap()).join().unwrap(), first);
    }

    #[test]
    fn the_half_of_a_word_is_its_low_one() {
        let word = AtomicU64::new(7 << 32 | 5);
        assert_eq!(half(&word).load(Ordering::Relaxed), 5);
    }
}
