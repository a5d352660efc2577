//! A mock LLM provider: a small HTTP server with the limits, throttling and failures of the real
//! ones, for tests of their clients.
//!
//! ```no_run
//! use std::net::TcpListener;
//! use tollgate_mock_provider::{MockProvider, Style};
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let builder = MockProvider::builder().style(Style::Anthropic);
//! let provider = builder.requests_per_second(10).burst(20).build()?;
//! let listener = TcpListener::bind("127.0.0.1:0")?;
//! println!("http://{}/v1/messages", listener.local_addr()?);
//! provider.serve(listener).await?;
//! # Ok(())
//! # }
//! ```
//!
//! The limits are a [`LimitSet`](tollgate::LimitSet), so they are exact: with a burst of twenty,
//! the twenty-first call at once is denied, and is admitted at the microsecond that the denial
//! reports, rounded up to the precision of the style. Time comes from a [`Clock`](tollgate::Clock),
//! which may be a manual clock; then latency, outages and limits follow it, and nothing sleeps.
//!
//! # Endpoints
//!
//! | request | reply |
//! |---|---|
//! | `POST /v1/chat/completions`, `/v1/responses`, `/v1/embeddings` | as OpenAI does |
//! | `POST /v1/messages` | as Anthropic does |
//! | `GET /stats` | [`Stats`] as JSON |
//! | `GET /healthz` | `ok` |
//!
//! Requests that ask for a stream get one. The path may have another prefix, as with deployments of
//! Azure. The usage of a call depends on its request and the seed only. A call is charged its usage
//! when it starts: unlike the real ones, this provider knows it in advance. There is no
//! authentication unless keys are set: any client that reaches the listener can call, so bind it to
//! a loopback address.

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
pub use error_responses::MockReply;
pub use outage::{Outage, OutageKind};
pub use stats::{KeyStats, Stats};
pub use style::{Style, UnknownStyle};
