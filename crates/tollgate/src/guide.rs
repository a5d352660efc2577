//! The book: pages in the folder `docs` of the repository, whose examples are run by the tests. `mdbook build` makes a site of them.
//!
//! | page | about | types |
//! |---|---|---|
//! | `tutorial.md` | ten minutes: two accounts, three teams, a budget, a 429 | |
//! | `concepts.md` | the words, and what happens by default | |
//! | `guide/basic-use.md` | entities, stored limits, acquire and settle, denials, waiting | [`Limiter`], [`Level`], [`Limits`] |
//! | `guide/hierarchies.md` | keys under projects under organisations | [`NewEntity`], [`Cascade`] |
//! | `guide/llm-tokens.md` | reserve an estimate, settle what was used | [`LimiterLease`] |
//! | `guide/money.md` | budgets in a currency | [`Unit`], [`Limit::quota`] |
//! | `guide/accounts.md` | a pool of accounts, cooldown after a 429 | [`LimitPool`], [`Spread`], [`Lease::set`] |
//! | `guide/shared-sets.md` | limit sets in a store | [`LimitSetBuilder::store`], [`StoredSets`] |
//! | `guide/unavailability.md` | policies while the store is unavailable | [`OnUnavailable`] |
//! | `guide/workers.md` | jobs under limits | `workers::WorkerPool` |
//! | `guide/observing.md` | metrics and logs | [`Observer`], [`Event`] |
//! | `guide/tower.md` | a layer for tower and axum | `tower::LimitLayer` |
//! | `guide/custom-limits.md` | your own rule | [`CustomLimit`] |
//! | `guide/testing.md` | a manual clock, a store that fails | [`ManualClock`], [`FaultStore`](crate::store::FaultStore) |
//!
//! `guide/batches.md` and `guide/providers.md` are about the crates `tollgate-batch` and `tollgate-provider`, `operations.md`, `security.md`
//! and `faq.md` about programs in production.

#[cfg(doc)]
use crate::{
    Cascade, CustomLimit, Event, Lease, Level, Limit, LimitPool, LimitSetBuilder, Limiter, LimiterLease,
    Limits, ManualClock, NewEntity, Observer, OnUnavailable, Spread, StoredSets, Unit,
};

/// The pages, whose examples are doc tests.
#[cfg(doctest)]
mod pages {
    #[doc = include_str!("../../../README.md")]
    struct Readme;

    #[doc = include_str!("../../../docs/tutorial.md")]
    struct Tutorial;

    #[doc = include_str!("../../../docs/install.md")]
    struct Install;

    #[doc = include_str!("../../../docs/concepts.md")]
    struct Concepts;

    #[doc = include_str!("../../../docs/guide/accounts.md")]
    struct SeveralAccounts;

    #[doc = include_str!("../../../docs/guide/basic-use.md")]
    struct BasicUse;

    #[doc = include_str!("../../../docs/guide/custom-limits.md")]
    struct CustomLimits;

    #[cfg(feature = "workers")]
    #[doc = include_str!("../../../docs/migration/concurry.md")]
    struct FromConcurry;

    #[doc = include_str!("../../../docs/migration/zae-limiter.md")]
    struct FromZaeLimiter;

    #[doc = include_str!("../../../docs/guide/hierarchies.md")]
    struct Hierarchies;

    #[doc = include_str!("../../../docs/guide/llm-tokens.md")]
    struct LlmTokens;

    #[doc = include_str!("../../../docs/guide/money.md")]
    struct Money;

    #[doc = include_str!("../../../docs/guide/observing.md")]
    struct Observing;

    #[doc = include_str!("../../../docs/guide/shared-sets.md")]
    struct SharedSets;

    #[doc = include_str!("../../../docs/guide/testing.md")]
    struct Testing;

    #[cfg(feature = "tower")]
    #[doc = include_str!("../../../docs/guide/tower.md")]
    struct Tower;

    #[doc = include_str!("../../../docs/guide/unavailability.md")]
    struct Unavailability;

    #[cfg(feature = "workers")]
    #[doc = include_str!("../../../docs/guide/workers.md")]
    struct WorkerPools;
}
