//! The examples of the guide and of the migration pages, run as tests.

#[doc = include_str!("../../../docs/guide/basic-use.md")]
struct BasicUse;

#[doc = include_str!("../../../docs/guide/custom-limits.md")]
struct CustomLimits;

#[doc = include_str!("../../../docs/guide/hierarchies.md")]
struct Hierarchies;

#[cfg(feature = "workers")]
#[doc = include_str!("../../../docs/migration/concurry.md")]
struct FromConcurry;

#[doc = include_str!("../../../docs/migration/zae-limiter.md")]
struct FromZaeLimiter;

#[doc = include_str!("../../../docs/guide/llm-tokens.md")]
struct LlmTokens;

#[doc = include_str!("../../../docs/guide/shared-sets.md")]
struct SharedSets;

#[doc = include_str!("../../../docs/guide/unavailability.md")]
struct Unavailability;

#[cfg(feature = "workers")]
#[doc = include_str!("../../../docs/guide/workers.md")]
struct WorkerPools;
