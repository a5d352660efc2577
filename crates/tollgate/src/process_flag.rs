//! A flag of a lease, with the process that took the lease.

use tollgate_store::generation;

/// Whether a lease is open, and the process that took it. It fills a word, as the other fields of a lease do: a lease is moved in
/// words, and reading a word that was written in pieces a moment before stalls the processor, because the stores are not forwarded
/// (bench rows `core/acquire-settle-3-limits` and `limiter/acquire-settle-2-limits`).
#[derive(Clone, Copy, Default)]
pub(crate) struct ProcessFlag(u64);

impl ProcessFlag {
    /// Makes the flag of a lease that this process takes.
    #[inline(always)]
    pub(crate) fn of_this_process(yes: bool) -> ProcessFlag {
        ProcessFlag(u64::from(generation()) << 1 | u64::from(yes))
    }

    #[inline(always)]
    pub(crate) fn is(self) -> bool {
        self.0 & 1 != 0
    }

    #[inline(always)]
    pub(crate) fn set(&mut self, yes: bool) {
        self.0 = self.0 & !1 | u64::from(yes);
    }

    /// Clears the flag, and returns it as it was.
    #[inline]
    pub(crate) fn take(&mut self) -> ProcessFlag {
        let flag = *self;
        self.set(false);
        flag
    }

    #[inline(always)]
    pub(crate) fn is_of_this_process(self) -> bool {
        self.0 >> 1 == u64::from(generation())
    }
}
