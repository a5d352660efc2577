//! The examples of the guide, run as tests.

#[doc = include_str!("../../../docs/guide/providers.md")]
struct Providers;
