//! The builder of a mock provider.

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

/// The default timeout for the headers of a request, and for its body.
const READ_TIMEOUT: Duration = Duration::from_secs(30);

/// A mock provider. Clones are cheap, and share their state.
///
/// ```
/// use tollgate_mock_provider::MockProvider;
///
/// let provider = MockProvider::builder().requests_per_second(10).burst(20).build()?;
/// assert_eq!(provider.stats().calls, 0);
/// # Ok::<(), tollgate_mock_provider::BuildError>(())
/// ```
#[derive(Clone)]
pub struct MockProvider {
    pub(crate) state: Arc<ProviderState>,
}

impl MockProvider {
    /// Returns a builder for a provider without limits.
    pub fn builder() -> MockProviderBuilder {
        MockProviderBuilder::default()
    }

    /// Returns the counts of all calls so far, like `GET /stats`.
    #[must_use]
    pub fn stats(&self) -> Stats {
        self.state.stats()
    }
}

impl fmt::Debug for MockProvider {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MockProvider").finish_non_exhaustive()
    }
}

/// Settings that are not valid.
///
/// ```
/// use tollgate_mock_provider::{BuildError, MockProvider, Outage, OutageKind};
///
/// let outage = Outage::every(2, OutageKind::Status(200));
/// let error = MockProvider::builder().outage(outage).build().unwrap_err();
/// assert!(matches!(error, BuildError::OutageStatus(200)));
/// ```
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BuildError {
    /// A limit is not valid.
    #[error(transparent)]
    Limits(#[from] LimitsError),
    /// The status of an outage is not that of a failure.
    #[error("an outage answers with 429 or a status from 500 to 599, not with {0}")]
    OutageStatus(u16),
}

/// Builds a [`MockProvider`].
///
/// ```
/// use std::time::Duration;
/// use tollgate_mock_provider::{MockProvider, MockProviderBuilder, Outage, OutageKind, Style};
///
/// let builder: MockProviderBuilder = MockProvider::builder()
///     .style(Style::Anthropic)
///     .tokens_per_minute(80_000)
///     .latency(Duration::from_millis(50)..=Duration::from_millis(200))
///     .outage(Outage::every(100, OutageKind::Status(529)))
///     .seed(7);
/// builder.build()?;
/// # Ok::<(), tollgate_mock_provider::BuildError>(())
/// ```
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
    pub(crate) read_timeout: Duration,
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
            read_timeout: READ_TIMEOUT,
        }
    }
}

impl MockProviderBuilder {
    /// Sets the provider whose formats are used. The default is OpenAI.
    pub fn style(self, style: Style) -> Self {
        Self { style, ..self }
    }

    /// Leaves the wait out of denials.
    pub fn without_advice(self) -> Self {
        Self { advice: false, ..self }
    }

    /// Leaves the headers about limits out of replies.
    pub fn without_headers(self) -> Self {
        Self { headers: false, ..self }
    }

    /// Sets the calls per second. Unlimited by default.
    pub fn requests_per_second(mut self, requests: u64) -> Self {
        self.rates.requests_per_second = Some(requests);
        self
    }

    /// Sets the calls at once after a pause. The default is the calls per second.
    pub fn burst(mut self, requests: u64) -> Self {
        self.rates.burst = Some(requests);
        self
    }

    /// Sets the tokens per minute, in both directions. Unlimited by default.
    pub fn tokens_per_minute(mut self, tokens: u64) -> Self {
        self.rates.tokens_per_minute = Some(tokens);
        self
    }

    /// Sets how many calls are answered at the same time. Unlimited by default.
    pub fn concurrency(mut self, calls: u64) -> Self {
        self.rates.concurrency = Some(calls);
        self
    }

    /// Adds a change of the limits at a later time.
    pub fn change(mut self, change: LimitChange) -> Self {
        self.changes.push(change);
        self
    }

    /// Sets the shortest and the longest time until an answer; the seed chooses in between. Zero by
    /// default.
    pub fn latency(self, latency: RangeInclusive<Duration>) -> Self {
        Self { latency, ..self }
    }

    /// Adds calls that fail. If several outages apply to a call, the first one counts.
    pub fn outage(mut self, outage: Outage) -> Self {
        self.outages.push(outage);
        self
    }

    /// Adds a valid key. All keys are valid by default.
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.keys.insert(key.into());
        self
    }

    /// Sets after how many answers the account is exhausted. Never by default.
    pub fn spend_cap(self, answers: u64) -> Self {
        Self { spend_cap: Some(answers), ..self }
    }

    /// Sets the seed of the random numbers. 0 by default.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets the clock. The system's clock by default.
    pub fn clock(self, clock: Clock) -> Self {
        Self { clock, ..self }
    }

    /// Sets the timeout for the headers of a request, and for its body, by the system's clock. 30
    /// seconds by default.
    pub fn read_timeout(self, read_timeout: Duration) -> Self {
        Self { read_timeout, ..self }
    }

    /// Creates the provider. Its time starts now.
    ///
    /// # Errors
    ///
    /// Returns [`BuildError`] if a limit is not valid, or the status of an outage is not that of a
    /// failure.
    pub fn build(self) -> Result<MockProvider, BuildError> {
        for outage in &self.outages {
            if let OutageKind::Status(status) = outage.kind()
                && !OutageKind::is_status(status)
            {
                return Err(BuildError::OutageStatus(status));
            }
        }
        Ok(MockProvider { state: ProviderState::open(self)? })
    }
}

/// A change of the limits at a later time. Limits that are not set stay as they are.
///
/// ```
/// use std::time::Duration;
/// use tollgate_mock_provider::{LimitChange, MockProvider};
///
/// let change = LimitChange::after(Duration::from_secs(10)).requests_per_second(1);
/// MockProvider::builder().requests_per_second(5).change(change).build()?;
/// # Ok::<(), tollgate_mock_provider::BuildError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub struct LimitChange {
    pub(crate) after: Duration,
    pub(crate) rates: Rates,
}

impl LimitChange {
    /// Creates a change at this time after the provider was built.
    pub fn after(after: Duration) -> LimitChange {
        LimitChange { after, rates: Rates::default() }
    }

    /// Sets the calls per second, and as many at once unless a burst is set.
    pub fn requests_per_second(mut self, requests: u64) -> LimitChange {
        self.rates.requests_per_second = Some(requests);
        self
    }

    /// Sets the calls at once after a pause.
    pub fn burst(mut self, requests: u64) -> LimitChange {
        self.rates.burst = Some(requests);
        self
    }

    /// Sets the tokens per minute.
    pub fn tokens_per_minute(mut self, tokens: u64) -> LimitChange {
        self.rates.tokens_per_minute = Some(tokens);
        self
    }

    /// Sets how many calls are answered at the same time.
    pub fn concurrency(mut self, calls: u64) -> LimitChange {
        self.rates.concurrency = Some(calls);
        self
    }
}

/// The rates that are set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rates {
    pub(crate) requests_per_second: Option<u64>,
    pub(crate) burst: Option<u64>,
    pub(crate) tokens_per_minute: Option<u64>,
    pub(crate) concurrency: Option<u64>,
}

impl Rates {
    /// Returns these rates with those of a change in place of them.
    pub(crate) fn changed(self, by: Rates) -> Rates {
        Rates {
            requests_per_second: by.requests_per_second.or(self.requests_per_second),
            // A burst belongs to its rate.
            burst: by.burst.or(self.burst.filter(|_| by.requests_per_second.is_none())),
            tokens_per_minute: by.tokens_per_minute.or(self.tokens_per_minute),
            concurrency: by.concurrency.or(self.concurrency),
        }
    }

    /// Returns the limits. Rates that are not set are unbounded, so that a change can bound them.
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
