//! The examples of the guide, run as tests.

#[doc = include_str!("../../../docs/guide/batches.md")]
struct Batches;
