//! The examples of the guide, run as tests.

#[doc = include_str!("../../../docs/guide/basic-use.md")]
struct BasicUse;

#[doc = include_str!("../../../docs/guide/hierarchies.md")]
struct Hierarchies;

#[doc = include_str!("../../../docs/guide/llm-tokens.md")]
struct LlmTokens;

#[doc = include_str!("../../../docs/guide/unavailability.md")]
struct Unavailability;
