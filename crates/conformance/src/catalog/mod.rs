//! The suite for the catalog on a store: each law is a function that opens a store of its own and panics if it does not hold.
#![allow(clippy::unwrap_used, reason = "a law that does not hold is reported by a panic")]

mod audit;
mod bad_input;
mod buckets;
mod caching;
mod chains;
mod deleted_namespace;
mod deletion;
mod entities;
mod fixture;
mod inspection;
mod keys;
mod layout;
mod limits;
mod listing;
mod login;
mod managed_sets;
mod namespaces;
mod purge;
mod reparent;
mod resolution;
mod spy;
mod threads;
mod tokens;
mod usage;
mod versions;
mod waiting;

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::OpenBackend;

/// A law: its name, and the function that checks it.
type NamedLaw = (&'static str, fn(OpenBackend<'_>));

/// Lists functions as laws under their own names.
macro_rules! laws {
    ($($name:ident),* $(,)?) => {
        pub(super) const LAWS: &[crate::catalog::NamedLaw] = &[$((stringify!($name), $name)),*];
    };
}
use laws;

const ALL: [&[NamedLaw]; 22] = [
    audit::LAWS,
    bad_input::LAWS,
    buckets::LAWS,
    caching::LAWS,
    chains::LAWS,
    deleted_namespace::LAWS,
    deletion::LAWS,
    entities::LAWS,
    inspection::LAWS,
    layout::LAWS,
    limits::LAWS,
    listing::LAWS,
    managed_sets::LAWS,
    namespaces::LAWS,
    purge::LAWS,
    reparent::LAWS,
    resolution::LAWS,
    threads::LAWS,
    tokens::LAWS,
    usage::LAWS,
    versions::LAWS,
    waiting::LAWS,
];

/// Returns the names of all laws, for callers that run them one at a time.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.into_iter().flatten().map(|(name, _)| *name)
}

/// Checks every law on stores made by `open`, up to the first that does not hold.
///
/// # Panics
///
/// If a law does not hold; its name is printed.
pub fn run(open: OpenBackend<'_>) {
    names().for_each(|name| run_one(name, open));
}

/// Checks every law on stores made by `open`, and returns the names of those that do not hold.
pub fn broken(open: OpenBackend<'_>) -> Vec<&'static str> {
    let is_broken = |name: &&str| catch_unwind(AssertUnwindSafe(|| run_one(name, open))).is_err();
    names().filter(is_broken).collect()
}

/// Checks one law.
///
/// # Panics
///
/// If it does not hold, or if there is no law of this name.
pub fn run_one(name: &str, open: OpenBackend<'_>) {
    let law = ALL.into_iter().flatten().find(|(known, _)| *known == name);
    let (_, check) = law.unwrap_or_else(|| panic!("there is no law {name:?}"));
    let _named = LawName(name);
    check(open);
}

/// Prints which law does not hold, if a panic ends it.
struct LawName<'a>(&'a str);

impl Drop for LawName<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("does not hold: {}", self.0);
        }
    }
}
