//! A provider in the making.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Duration;

use tollgate::{Clock, Limit, LimitBuilder, LimitsError, UNBOUNDED};

use crate::provider::ProviderState;
use crate::{Outage, OutageKind, Stats, Style};

pub(crate) const REQUESTS: &str = "requests";
pub(crate) const TOKENS: &str = "tokens";
pub(crate) const CONCURRENCY: &str = "concurrency";

/// How long the head of a request may take, and its body, unless the user says otherwise.
const PATIENCE: Duration = Duration::from_secs(30);

/// A mock provider. Cloning is cheap, and clones are the same provider.
#[derive(Clone)]
pub struct MockProvider {
    pub(crate) desk: Arc<ProviderState>,
}

impl MockProvider {
    /// A provider without limits, to which they can be given.
    pub fn builder() -> MockProviderBuilder {
        MockProviderBuilder::default()
    }

    /// What came in so far, and what became of it; what `GET /stats` answers.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.desk.stats()
    }
}

impl fmt::Debug for MockProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockProvider").finish_non_exhaustive()
    }
}

/// What is wrong with a provider that cannot be made.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A limit is not valid.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// An outage has a status that is no failure.
    #[error("an outage answers with 429 or a status from 500 to 599, not with {0}")]
    OutageStatus(u16),
}

/// A provider in the making.
#[derive(Clone, Debug)]
#[must_use = "a builder does nothing until it is built"]
pub struct MockProviderBuilder {
    pub(crate) style: Style,
    pub(crate) advice: bool,
    pub(crate) headers: bool,
    pub(crate) rates: Rates,
    pub(crate) changes: Vec<LimitChange>,
    pub(crate) latency: RangeInclusive<Duration>,
    pub(crate) outages: Vec<Outage>,
    pub(crate) keys: BTreeSet<String>,
    pub(crate) spend_cap: Option<u64>,
    pub(crate) seed: u64,
    pub(crate) clock: Clock,
    pub(crate) patience: Duration,
}

impl Default for MockProviderBuilder {
    fn default() -> MockProviderBuilder {
        MockProviderBuilder {
            style: Style::default(),
            advice: true,
            headers: true,
            rates: Rates::default(),
            changes: Vec::new(),
            latency: Duration::ZERO..=Duration::ZERO,
            outages: Vec::new(),
            keys: BTreeSet::new(),
            spend_cap: None,
            seed: 0,
            clock: Clock::system(),
            patience: PATIENCE,
        }
    }
}

impl MockProviderBuilder {
    /// Whose manners it has. OpenAI's if not said.
    pub fn style(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// Refusals do not say how long to wait.
    pub fn without_advice(self) -> Self {
        Self { advice: false, ..self }
    }

    /// Replies do not say how the limits stand.
    pub fn without_headers(self) -> Self {
        Self { headers: false, ..self }
    }

    /// How many calls a second. Without limit if not said.
    pub fn requests_per_second(mut self, requests: u64) -> Self {
        self.rates.requests_per_second = Some(requests);
        self
    }

    /// How many calls at once after a pause. As many as a second has if not said.
    pub fn burst(mut self, requests: u64) -> Self {
        self.rates.burst = Some(requests);
        self
    }

    /// How many tokens a minute, in both directions. Without limit if not said.
    pub fn tokens_per_minute(mut self, tokens: u64) -> Self {
        self.rates.tokens_per_minute = Some(tokens);
        self
    }

    /// How many calls may be answered at the same time. Without limit if not said.
    pub fn concurrency(mut self, calls: u64) -> Self {
        self.rates.concurrency = Some(calls);
        self
    }

    /// The limits change at a time.
    pub fn change(mut self, change: LimitChange) -> Self {
        self.changes.push(change);
        self
    }

    /// How long an answer takes: from the shortest to the longest, by the seed. No time if not said.
    pub fn latency(self, latency: RangeInclusive<Duration>) -> Self {
        Self { latency, ..self }
    }

    /// Calls that fail. Of several outages that meet a call, the first given counts.
    pub fn outage(mut self, outage: Outage) -> Self {
        self.outages.push(outage);
        self
    }

    /// A key that may call. If none is given all may.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.keys.insert(key.into());
        self
    }

    /// The money runs out after so many answers. Never if not said.
    pub fn spend_cap(self, answers: u64) -> Self {
        Self { spend_cap: Some(answers), ..self }
    }

    /// Where the random numbers begin. 0 if not said.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Where time comes from. The system's clock if not said.
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// How long the head of a request may take, and its body. Thirty seconds if not said; always by the system's clock.
    pub fn patience(self, patience: Duration) -> Self {
        Self { patience, ..self }
    }

    /// The provider. Its time begins now.
    ///
    /// # Errors
    ///
    /// If a limit is not valid, or an outage has a status that is no failure.
    pub fn build(self) -> Result<MockProvider, BuildError> {
        for outage in &self.outages {
            if let OutageKind::Status(status) = outage.trouble()
                && !OutageKind::is_status(status)
            {
                return Err(BuildError::OutageStatus(status));
            }
        }
        Ok(MockProvider { desk: ProviderState::open(self)? })
    }
}

/// Limits that hold from a time on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct LimitChange {
    pub(crate) after: Duration,
    pub(crate) rates: Rates,
}

impl LimitChange {
    /// Nothing changes yet, so long after the provider was made.
    pub fn after(after: Duration) -> LimitChange {
        LimitChange { after, rates: Rates::default() }
    }

    /// From then on there are so many calls a second, and as many at once unless a burst is given.
    pub fn requests_per_second(mut self, requests: u64) -> LimitChange {
        self.rates.requests_per_second = Some(requests);
        self
    }

    /// From then on there may be so many calls at once after a pause.
    pub fn burst(mut self, requests: u64) -> LimitChange {
        self.rates.burst = Some(requests);
        self
    }

    /// From then on there are so many tokens a minute.
    pub fn tokens_per_minute(mut self, tokens: u64) -> LimitChange {
        self.rates.tokens_per_minute = Some(tokens);
        self
    }

    /// From then on so many calls may be answered at the same time.
    pub fn concurrency(mut self, calls: u64) -> LimitChange {
        self.rates.concurrency = Some(calls);
        self
    }
}

/// How much there is, as far as it is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rates {
    pub(crate) requests_per_second: Option<u64>,
    pub(crate) burst: Option<u64>,
    pub(crate) tokens_per_minute: Option<u64>,
    pub(crate) concurrency: Option<u64>,
}

impl Rates {
    /// These, with what a change says in place of what they said.
    pub(crate) fn changed(self, by: Rates) -> Rates {
        Rates {
            requests_per_second: by.requests_per_second.or(self.requests_per_second),
            // A burst belongs to its rate.
            burst: by.burst.or(self.burst.filter(|_| by.requests_per_second.is_none())),
            tokens_per_minute: by.tokens_per_minute.or(self.tokens_per_minute),
            concurrency: by.concurrency.or(self.concurrency),
        }
    }

    /// The limits. What is not said is unbounded, so that a change can bound it.
    pub(crate) fn limits(self) -> [LimitBuilder; 3] {
        let requests = Limit::per_second(REQUESTS, self.requests_per_second.unwrap_or(UNBOUNDED));
        let requests = match self.burst.filter(|_| self.requests_per_second.is_some()) {
            Some(burst) => requests.burst(burst),
            None => requests,
        };
        [
            requests,
            Limit::per_minute(TOKENS, self.tokens_per_minute.unwrap_or(UNBOUNDED)),
            Limit::resource(CONCURRENCY, self.concurrency.unwrap_or(UNBOUNDED)),
        ]
    }
}
