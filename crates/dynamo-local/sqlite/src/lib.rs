//! The bindings of SQLite that the workspace links, for a dependency that asks for an earlier version of them.
//!
//! SQLite keeps its C interface, so what was written for earlier bindings compiles with later ones.

#![no_std]

pub use current::*;
