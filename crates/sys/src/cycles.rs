//! The cycle counter of the processor.

/// Reads the cycle counter of the processor, if it is known how.
///
/// ```
/// if let (Some(start), Some(end)) = (tollgate_sys::cycles(), tollgate_sys::cycles()) {
///     assert_ne!((start, end), (0, 0));
/// }
/// ```
#[inline(always)]
pub fn cycles() -> Option<u64> {
    #[cfg(target_arch = "x86_64")]
    {
        // SAFETY: every processor of this architecture has the instruction.
        Some(unsafe { std::arch::x86_64::_rdtsc() })
    }
    #[cfg(not(target_arch = "x86_64"))]
    {
        None
    }
}
