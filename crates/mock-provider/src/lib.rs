//! A mock provider of language models: a small HTTP server that limits, throttles and fails as the real ones
//! do, for tests of whatever calls them.
//!
//! ```no_run
//! use std::net::TcpListener;
//! use tollgate_mock_provider::{MockProvider, Style};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let provider = MockProvider::builder().style(Style::Anthropic).requests_per_second(10).burst(20).build()?;
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! println!("http://{}/v1/messages", listener.local_addr()?);
//! provider.serve(listener).await?;
//! # Ok(())
//! # }
//! ```
//!
//! Its limits are a [`LimitSet`](tollgate::LimitSet) of our own, so they are exact: with a burst of twenty, the
//! twenty-first call at once is refused, and may come again at the microsecond that the refusal says, rounded up to
//! what its style can say. Time comes from a [`Clock`](tollgate::Clock), which may be a manual clock; then latency,
//! outages and limits all go by that, and nothing sleeps.
//!
//! # What it answers
//!
//! | request | reply |
//! |---|---|
//! | `POST /v1/chat/completions`, `/v1/responses`, `/v1/embeddings` | as OpenAI does |
//! | `POST /v1/messages` | as Anthropic does |
//! | `GET /stats` | [`Stats`] as JSON |
//! | `GET /healthz` | `ok` |
//!
//! Requests that ask for a stream get one. The part before the name may differ, as with deployments of Azure. What a call used depends on its request and the
//! seed, and nothing else. A call is charged what it will use when it begins: unlike the real ones, this provider
//! knows that in advance. There are no accounts: any client that reaches the listener can call, so bind it to a
//! loopback address.

mod answer;
mod builder;
mod error_responses;
mod outage;
mod provider;
mod random;
mod route;
mod server;
mod stats;
mod stream;
mod style;

pub use builder::{BuildError, LimitChange, MockProvider, MockProviderBuilder};
pub use outage::{Outage, OutageKind};
pub use stats::{KeyStats, Stats};
pub use style::{Style, UnknownStyle};
