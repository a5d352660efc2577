//! The suite that every store runs below the catalog: each promise is a function that makes a store of its own and
//! panics if the promise is not kept.
//!
//! ```
//! use std::sync::Arc;
//!
//! use tollgate_catalog::conformance;
//! use tollgate_store::Memory;
//!
//! conformance::run_one("limits_of_the_first_level_that_has_some_win", |clock| {
//!     Arc::new(Memory::builder().clock(clock).build())
//! });
//! ```
#![allow(clippy::unwrap_used, reason = "a promise that is not kept is told by a panic")]

mod audit;
mod bad_input;
mod buckets;
mod caching;
mod chains;
mod deletion;
mod entities;
mod families;
mod fixture;
mod gone;
mod inspection;
mod layout;
mod limits;
mod namespaces;
mod purge;
mod random;
mod resolution;
mod spy;
mod survey;
mod threads;
mod together;
mod tokens;
mod usage;
mod versions;
mod waiting;

use std::sync::Arc;

use tollgate_store::{Backend, Clock};

use fixture::Suite;

/// A promise: its name, and what proves it.
type NamedPromise = (&'static str, fn(&Suite<'_>));

/// Lists functions as promises under their own names.
macro_rules! promises {
    ($($name:ident),* $(,)?) => {
        pub(super) const PROMISES: &[crate::conformance::NamedPromise] = &[$((stringify!($name), $name)),*];
    };
}
use promises;

const ALL: [&[NamedPromise]; 22] = [
    audit::PROMISES,
    bad_input::PROMISES,
    buckets::PROMISES,
    caching::PROMISES,
    chains::PROMISES,
    deletion::PROMISES,
    entities::PROMISES,
    families::PROMISES,
    gone::PROMISES,
    inspection::PROMISES,
    layout::PROMISES,
    limits::PROMISES,
    namespaces::PROMISES,
    purge::PROMISES,
    resolution::PROMISES,
    survey::PROMISES,
    threads::PROMISES,
    together::PROMISES,
    tokens::PROMISES,
    usage::PROMISES,
    versions::PROMISES,
    waiting::PROMISES,
];

/// Returns the names of all promises, for callers that run them one at a time.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().flatten().map(|(name, _)| *name)
}

/// Proves every promise on empty stores made by `open`, which must tell time by the clock they are given.
///
/// # Panics
///
/// If a promise is not kept; its name is printed.
pub fn run(open: impl Fn(Clock) -> Arc<dyn Backend>) {
    names().for_each(|name| run_one(name, &open));
}

/// Proves one promise.
///
/// # Panics
///
/// If it is not kept, or if there is no promise of this name.
pub fn run_one(name: &str, open: impl Fn(Clock) -> Arc<dyn Backend>) {
    let promise = ALL.into_iter().flatten().find(|(known, _)| *known == name);
    let (_, prove) = promise.unwrap_or_else(|| panic!("there is no promise {name:?}"));
    let _named = PromiseName(name);
    prove(&Suite::new(&open));
}

/// Says which promise was not kept, if a panic ends it.
struct PromiseName<'a>(&'a str);

impl Drop for PromiseName<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("promise not kept: {}", self.0);
        }
    }
}
