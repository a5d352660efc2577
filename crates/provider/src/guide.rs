//! The examples of the guide, run as doc tests.

#[doc = include_str!("../../../docs/guide/providers.md")]
struct Providers;
