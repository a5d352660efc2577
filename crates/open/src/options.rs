use std::time::Duration;

use tollgate_store::usage::UsageRetention;

/// Settings of a store that its URL does not have.
///
/// # Examples
///
/// ```
/// use std::time::Duration;
///
/// use tollgate_open::{OpenOptions, StoreUrl};
///
/// let options = OpenOptions::default().timeout(Duration::from_secs(1));
/// assert!(StoreUrl::Memory.open(&options).wait().is_ok());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[must_use = "options do nothing until a store is opened with them"]
pub struct OpenOptions {
    pub(crate) timeout: Option<Duration>,
    pub(crate) usage_retention: UsageRetention,
    pub(crate) connect_within: Option<Duration>,
}

impl OpenOptions {
    /// Sets the timeout of each call to the store. By default the URL has it (`timeout=` of Redis), or it is 5 seconds.
    pub fn timeout(self, timeout: Duration) -> OpenOptions {
        OpenOptions { timeout: Some(timeout), ..self }
    }

    /// Sets how long the records of usage are kept that this process writes; [`UsageRetention::default`] by default.
    pub fn usage_retention(self, usage_retention: UsageRetention) -> OpenOptions {
        OpenOptions { usage_retention, ..self }
    }

    /// Sets for how long opening is retried while no host accepts a connection; by default for the timeout of a call, so
    /// that a service may be started before its server. A command should report a refused connection at once. Only Redis
    /// has a connection that can be refused and retried.
    pub fn connect_within(self, time: Duration) -> OpenOptions {
        OpenOptions { connect_within: Some(time), ..self }
    }
}
