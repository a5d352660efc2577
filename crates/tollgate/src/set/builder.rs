use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tollgate_core::{Limit, LimitError, Limits, LimitsError, Span, Tick};
use tollgate_store::{Cell, Clock, Key, WAITERS_MAX};

use super::{LimitSet, Shared};
use crate::observe::Reporter;
use crate::{Config, Observer, OnDrop};

/// Settings of a [`LimitSet`].
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limit, LimitSet};
///
/// let set = LimitSet::builder()
///     .limits([Limit::per_minute("rpm", 500), Limit::resource("connections", 8)])
///     .config("region", "eu-central-1")
///     .strict(true)
///     .build()?;
/// assert_eq!(set.config()["region"], "eu-central-1");
/// # Ok::<(), tollgate::LimitsError>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct LimitSetBuilder {
    limits: Vec<Result<Limit, LimitError>>,
    config: Config,
    clock: Clock,
    observer: Option<Arc<dyn Observer>>,
    strict: bool,
    on_drop: OnDrop,
    lease_ttl: Option<Duration>,
    waiters_max: usize,
}

impl Default for LimitSetBuilder {
    fn default() -> LimitSetBuilder {
        LimitSetBuilder {
            limits: Vec::new(),
            config: Config::new(),
            clock: Clock::system(),
            observer: None,
            strict: false,
            on_drop: OnDrop::default(),
            lease_ttl: None,
            waiters_max: WAITERS_MAX,
        }
    }
}

impl LimitSetBuilder {
    /// Adds limits.
    pub fn limits<I>(mut self, limits: I) -> LimitSetBuilder
    where
        I: IntoIterator,
        I::Item: TryInto<Limit>,
        LimitError: From<<I::Item as TryInto<Limit>>::Error>,
    {
        self.limits.extend(limits.into_iter().map(|limit| limit.try_into().map_err(LimitError::from)));
        self
    }

    /// Says something about the set, which its leases pass on: `region`, `account`, `endpoint`.
    pub fn config(mut self, key: impl Into<String>, value: impl Into<String>) -> LimitSetBuilder {
        self.config.insert(key.into(), value.into());
        self
    }

    /// The clock; the system's unless it says otherwise.
    pub fn clock(self, clock: Clock) -> LimitSetBuilder {
        LimitSetBuilder { clock, ..self }
    }

    /// Who is told what happens.
    pub fn observer(self, observer: impl Observer + 'static) -> LimitSetBuilder {
        LimitSetBuilder { observer: Some(Arc::new(observer)), ..self }
    }

    /// Whether a name that is no limit of the set is an error. By default it is skipped with a warning.
    pub fn strict(self, strict: bool) -> LimitSetBuilder {
        LimitSetBuilder { strict, ..self }
    }

    /// What happens to a lease that is dropped without a word.
    pub fn on_drop(self, on_drop: OnDrop) -> LimitSetBuilder {
        LimitSetBuilder { on_drop, ..self }
    }

    /// Takes resources from a holder that has not sent a [heartbeat](crate::Lease::heartbeat) for this long.
    /// By default a lease holds them until it ends.
    pub fn lease_ttl(self, ttl: Duration) -> LimitSetBuilder {
        LimitSetBuilder { lease_ttl: Some(ttl), ..self }
    }

    /// How many may wait before another is turned away.
    pub fn waiters_max(self, waiters_max: usize) -> LimitSetBuilder {
        LimitSetBuilder { waiters_max, ..self }
    }

    /// Checks the limits and makes the set.
    ///
    /// # Errors
    ///
    /// A limit that is not valid, two of one name, or a lease that would expire at once.
    pub fn build(self) -> Result<LimitSet, LimitsError> {
        let limits = Limits::new(self.limits.into_iter().collect::<Result<Vec<_>, _>>()?)?;
        if self.lease_ttl == Some(Duration::ZERO) {
            return Err(LimitsError::LeaseTtlZero);
        }
        let cell = Cell::new(Key::new::<&str>(&[]), limits.clone(), Tick::ZERO);
        let ends_leases = limits.have_resources() || self.on_drop == OnDrop::Refund;
        Ok(LimitSet(Arc::new(Shared {
            cell,
            ends_leases,
            names: limits,
            clock: self.clock,
            config: self.config,
            reporter: Reporter::new(self.observer),
            strict: self.strict,
            on_drop: self.on_drop,
            lease_ttl: self.lease_ttl.map(Span::covering),
            holders: AtomicU64::new(1),
            waiters_max: self.waiters_max,
            changing: Mutex::default(),
        })))
    }
}

/// Without the values of the config, which may be secret.
impl fmt::Debug for LimitSetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitSetBuilder").field("limits", &self.limits).finish_non_exhaustive()
    }
}
