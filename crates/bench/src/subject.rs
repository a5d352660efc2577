//! One side of a row: a closure that does one operation, in a loop the harness controls.
//!
//! A side is built for every measurement. It returns whether the call was admitted, because a denied call takes another
//! path than the one to be measured:
//!
//! ```text
//! ours: Some(|| {
//!     let set = LimitSet::new([Limit::per_minute("rpm", PLENTY)])?;
//!     Ok(each(move || matches!(set.try_acquire(demand! { rpm: 1 }).wait(), Ok(Attempt::Admitted(_)))))
//! }),
//! ```

use std::hint::black_box;

use anyhow::{Result, ensure};

/// Runs an operation many times and returns how many calls were admitted.
pub(crate) type BenchOperation = Box<dyn FnMut(u64) -> u64>;

/// Sets up a side. The setup is not measured.
pub(crate) type Build = fn() -> Result<BenchOperation>;

/// The other program of a row.
pub(crate) struct Peer<T> {
    pub(crate) name: &'static str,
    pub(crate) side: T,
}

/// Picks a side by the name on the command line: `NAME` is ours, `NAME@PEER` the peer's.
pub(crate) fn pick<'a, T>(peer_name: &str, ours: Option<&'a T>, peer: Option<&'a Peer<T>>) -> Option<&'a T> {
    match peer_name {
        "" => ours,
        name => peer.filter(|peer| peer.name == name).map(|peer| &peer.side),
    }
}

/// The loop around one operation. The closure is inlined into it: no dynamic call per operation.
pub(crate) fn each(mut operation: impl FnMut() -> bool + 'static) -> BenchOperation {
    Box::new(move |times| (0..times).map(|_| u64::from(black_box(operation()))).sum())
}

/// Fails if a call was denied, because it took another path than the one to be measured.
pub(crate) fn ensure_admitted(who: &str, admitted: u64, asked: u64) -> Result<()> {
    ensure!(admitted == asked, "{who} admitted only {admitted} of {asked} calls");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_is_done_once() {
        let mut calls = 0_u64;
        let mut operation = each(move || {
            calls += 1;
            calls <= 7
        });
        assert_eq!(operation(10), 7);
    }

    #[test]
    fn a_denial_is_an_error_that_names_the_side() {
        assert!(ensure_admitted("governor", 9, 10).unwrap_err().to_string().contains("governor"));
    }
}
