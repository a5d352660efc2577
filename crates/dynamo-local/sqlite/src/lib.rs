//! The SQLite bindings that the workspace links, for a dependency that requires an earlier version
//! of them.
//!
//! The C interface of SQLite is stable, so code for earlier bindings compiles with later ones.

#![no_std]

pub use current::*;
