use std::fmt;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::remote::{NamedLimits, StoredSettings};
use super::{LimitSet, SetAddress, SetShared, StoredBacking, fresh_cell};
use crate::limiter::{Heartbeats, LEASE_TTL, STORE_TIMEOUT};
use crate::observe::Reporter;
use crate::{Config, Observer, OnDrop};
use tollgate_catalog::OnUnavailable;
use tollgate_core::{Limit, LimitError, Limits, LimitsError, Name, Span};
use tollgate_store::{Backend, Clock, Reach, WAITERS_MAX};

/// The namespace of sets in a store, unless they say otherwise.
pub const SETS_NAMESPACE: &str = "limit-sets";

/// Settings of a [`LimitSet`].
///
/// ```
/// use std::time::Duration;
/// use tollgate::{Limit, LimitSet};
///
/// let set = LimitSet::builder()
///     .limits([Limit::per_minute("rpm", 500), Limit::resource("connections", 8)])
///     .config("region", "eu-central-1")
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
    skips_unknown: bool,
    on_drop: OnDrop,
    lease_ttl: Option<Duration>,
    waiters_max: usize,
    store: Option<Arc<dyn Backend>>,
    namespace: String,
    name: String,
    version: u16,
    removed: Vec<String>,
    settings: StoredSettings,
}

impl Default for LimitSetBuilder {
    fn default() -> LimitSetBuilder {
        LimitSetBuilder {
            limits: Vec::new(),
            config: Config::new(),
            clock: Clock::system(),
            observer: None,
            skips_unknown: false,
            on_drop: OnDrop::default(),
            lease_ttl: None,
            waiters_max: WAITERS_MAX,
            store: None,
            namespace: SETS_NAMESPACE.into(),
            name: String::new(),
            version: 1,
            removed: Vec::new(),
            settings: StoredSettings {
                timeout: STORE_TIMEOUT,
                on_unavailable: OnUnavailable::Block,
                local_share: 50,
                heartbeats: Heartbeats::default(),
            },
        }
    }
}

impl LimitSetBuilder {
    /// The last [`version`](LimitSetBuilder::version) there is.
    pub const VERSION_MAX: u16 = 4_095;

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

    /// Keeps the set in a store, under its [name](LimitSetBuilder::name): all callers that open the same store,
    /// namespace and name share it, with its cooldown. Without a store it is this process's own.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{demand, Limit, LimitSet, Memory};
    ///
    /// // Memory, as a store; a file, shared memory or a table are opened in the same way.
    /// let store = Arc::new(Memory::default());
    /// let open = || {
    ///     let limits = [Limit::per_minute("rpm", 1)];
    ///     LimitSet::builder().limits(limits).store(store.clone()).name("openai/blue").build()
    /// };
    /// let (one, other) = (open()?, open()?);
    /// assert!(one.try_acquire(demand! { rpm: 1 }).wait()?.is_admitted());
    /// assert!(!other.try_acquire(demand! { rpm: 1 }).wait()?.is_admitted());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn store(self, store: Arc<dyn Backend>) -> LimitSetBuilder {
        LimitSetBuilder { store: Some(store), ..self }
    }

    /// What the set is called in its store: `openai/blue`. A set in a store must have a name.
    pub fn name(self, name: impl Into<String>) -> LimitSetBuilder {
        LimitSetBuilder { name: name.into(), ..self }
    }

    /// The namespace of the set in its store. By default [`SETS_NAMESPACE`].
    pub fn namespace(self, namespace: impl Into<String>) -> LimitSetBuilder {
        LimitSetBuilder { namespace: namespace.into(), ..self }
    }

    /// The version of these limits, for a set in a store: the numbers that a later version gives a limit stay in force when
    /// a program opens the set with earlier ones, which then learns of them. Of equal versions the last to open the set
    /// decides. Also what was [replaced](LimitSet::replace) or [removed](LimitSet::remove) gives way to a later version. By
    /// default 1, and at most [`VERSION_MAX`](LimitSetBuilder::VERSION_MAX).
    pub fn version(self, version: u16) -> LimitSetBuilder {
        LimitSetBuilder { version, ..self }
    }

    /// Removes a limit that an earlier [version](LimitSetBuilder::version) of a set in a store has named. It is not enough
    /// not to name it: then it stays in force for the programs that do. A set in this process has no earlier version.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tollgate::{demand, Limit, LimitSet, Memory};
    ///
    /// let store = Arc::new(Memory::default());
    /// let set = |limits: Vec<_>| LimitSet::builder().store(store.clone()).name("openai/blue").limits(limits);
    /// let rpm = || Limit::per_minute("rpm", 100);
    /// let old = set(vec![rpm(), Limit::per_day("budget", 1)]).build()?;
    /// assert!(old.try_acquire(demand! { budget: 1 }).wait()?.is_admitted());
    ///
    /// let new = set(vec![rpm()]).version(2).without("budget").build()?;
    /// assert!(new.try_acquire(demand! { rpm: 1 }).wait()?.is_admitted());
    /// assert!(old.try_acquire(demand! { budget: 1 }).wait()?.is_admitted(), "there is no budget any more");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn without(mut self, limit: impl Into<String>) -> LimitSetBuilder {
        self.removed.push(limit.into());
        self
    }

    /// Sets what to do while the store is unavailable. By default to block: calls fail with an error.
    pub fn on_unavailable(mut self, policy: OnUnavailable) -> LimitSetBuilder {
        self.settings.on_unavailable = policy;
        self
    }

    /// What share of each limit, in percent, this process keeps to by itself while the store is away and the policy is
    /// [`OnUnavailable::Local`]. By default 50. Bounded to 1 to 100.
    pub fn local_share(mut self, percent: u8) -> LimitSetBuilder {
        self.settings.local_share = percent.clamp(1, 100);
        self
    }

    /// How long the store may take to answer before it counts as away. By default
    /// [`STORE_TIMEOUT`](crate::limiter::STORE_TIMEOUT).
    pub fn store_timeout(mut self, timeout: Duration) -> LimitSetBuilder {
        self.settings.timeout = timeout;
        self
    }

    /// Sets who sends heartbeats for a lease on a set in a store. By default the lease itself.
    pub fn heartbeats(mut self, heartbeats: Heartbeats) -> LimitSetBuilder {
        self.settings.heartbeats = heartbeats;
        self
    }

    /// The clock; the system's unless it says otherwise. A set in a store goes by the clock of the store.
    pub fn clock(self, clock: Clock) -> LimitSetBuilder {
        LimitSetBuilder { clock, ..self }
    }

    /// The observer that is notified of what happens.
    pub fn observer(self, observer: impl Observer + 'static) -> LimitSetBuilder {
        LimitSetBuilder { observer: Some(Arc::new(observer)), ..self }
    }

    /// Skips names in demands and reports that are no limits of the set, with one warning for each name, because the same
    /// code may run where some limits are switched off. By default they are errors.
    ///
    /// ```
    /// use tollgate::{demand, Limit, LimitSet};
    ///
    /// let builder = LimitSet::builder().limits([Limit::per_minute("rpm", 1)]);
    /// let both = demand! { rpm: 1, tpm: 100 };
    /// assert!(builder.clone().build()?.try_acquire(&both).wait().is_err());
    /// assert!(builder.skip_unknown().build()?.try_acquire(&both).wait()?.is_admitted());
    /// # Ok::<(), tollgate::Error>(())
    /// ```
    pub fn skip_unknown(self) -> LimitSetBuilder {
        LimitSetBuilder { skips_unknown: true, ..self }
    }

    /// Sets what happens to a lease that is dropped without an end.
    pub fn on_drop(self, on_drop: OnDrop) -> LimitSetBuilder {
        LimitSetBuilder { on_drop, ..self }
    }

    /// Takes resources from a holder that has not sent a [heartbeat](crate::Lease::heartbeat) for this long.
    /// By default a lease holds them until it ends; in a store that outlives the process, for
    /// [`LEASE_TTL`](crate::limiter::LEASE_TTL), and the lease sends heartbeats by itself.
    pub fn lease_ttl(self, ttl: Duration) -> LimitSetBuilder {
        LimitSetBuilder { lease_ttl: Some(ttl), ..self }
    }

    /// Sets how many callers may wait. Further ones get an error.
    pub fn waiters_max(self, waiters_max: usize) -> LimitSetBuilder {
        LimitSetBuilder { waiters_max, ..self }
    }

    /// Checks the limits and makes the set.
    ///
    /// # Errors
    ///
    /// A limit that is not valid, two of one name, one that is given and removed, a lease that would expire at once, or a
    /// set in a store without a name, of a version that there is not or with a [custom](Limit::custom) limit. Nothing is asked of the store yet: whether the
    /// limits fit those of other programs is found out by the first use, which is refused if not.
    pub fn build(self) -> Result<LimitSet, LimitsError> {
        let limits = Limits::new(self.limits.into_iter().collect::<Result<Vec<_>, _>>()?)?;
        let removed = removed_names(&self.removed, &limits)?;
        if self.lease_ttl == Some(Duration::ZERO) {
            return Err(LimitsError::LeaseTtlZero);
        }
        let ends_leases = limits.have_resources() || self.on_drop == OnDrop::Refund;
        let lease_ttl = self.lease_ttl.map(Span::covering);
        let (address, clock, lease_ttl) = match self.store {
            None => (SetAddress::local(fresh_cell(&limits)), self.clock, lease_ttl),
            Some(store) => {
                limits.check_storable()?;
                if self.name.is_empty() {
                    return Err(LimitsError::Unnamed);
                }
                if !(1..=LimitSetBuilder::VERSION_MAX).contains(&self.version) {
                    return Err(LimitsError::BadVersion(self.version, LimitSetBuilder::VERSION_MAX));
                }
                let named = NamedLimits { limits: limits.with_cooldown(), removed, version: self.version };
                let (clock, outlives_holders) = (store.clock().clone(), store.reach() != Reach::Process);
                let remote = StoredBacking::new(store, &self.namespace, &self.name, named, self.settings);
                let usual = outlives_holders.then(|| Span::covering(LEASE_TTL));
                (SetAddress::Stored(Box::new(remote)), clock, lease_ttl.or(usual))
            }
        };
        Ok(LimitSet(Arc::new(SetShared {
            address,
            ends_leases,
            names: limits,
            clock,
            config: self.config,
            reporter: Reporter::new(self.observer),
            skips_unknown: self.skips_unknown,
            on_drop: self.on_drop,
            lease_ttl,
            holders: AtomicU64::new(1),
            waiters_max: self.waiters_max,
            changing: Mutex::default(),
        })))
    }
}

fn removed_names(removed: &[String], limits: &Limits) -> Result<Box<[Name]>, LimitsError> {
    let name_of = |name: &String| {
        // What is no name at all is refused by the limit that would have it.
        let name = Limit::resource(name.as_str(), 1).build()?.name().clone();
        if limits.index(&name).is_some() {
            return Err(LimitsError::NamedAndRemoved(name));
        }
        Ok(name)
    };
    removed.iter().map(name_of).collect()
}

/// Without the values of the config, which may be secret.
impl fmt::Debug for LimitSetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitSetBuilder").field("limits", &self.limits).finish_non_exhaustive()
    }
}
