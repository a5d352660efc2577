use std::sync::Arc;
use std::time::Duration;

use tollgate_catalog::{Catalog, OnUnavailable};
use tollgate_core::Span;
use tollgate_store::{Backend, PerProcess, Reach, WAITERS_MAX, generation};

use super::{Limiter, LimiterSettings, LimiterShared};
use crate::observe::Reporter;
use crate::store_client::StoreClient;
use crate::{Observer, OnDrop};

/// How long the holder of a resource may be silent, in stores that outlive it, unless the limiter says otherwise.
pub const LEASE_TTL: Duration = Duration::from_secs(60);

/// How long a store may take to answer, unless the limiter says otherwise.
pub const STORE_TIMEOUT: Duration = Duration::from_secs(5);

/// Who sends the heartbeats of a lease.
///
/// ```
/// use std::time::Duration;
/// use tollgate::limiter::Heartbeats;
/// use tollgate::{Limit, LimitSet};
///
/// // A worker that hangs loses its slot after half a minute, though its process lives.
/// let builder = LimitSet::builder().limits([Limit::resource("slots", 4)]);
/// let set = builder.lease_ttl(Duration::from_secs(30)).heartbeats(Heartbeats::Manual).build()?;
/// let lease = set.acquire(tollgate::demand! {}).wait()?;
/// assert!(lease.heartbeat().wait()?, "it is still ours");
/// # Ok::<(), tollgate::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heartbeats {
    /// The limiter, for as long as the lease is open and the process lives. Where processes can see each other, in a file and in
    /// shared memory, that the process lives is enough: one that is stopped for longer than the time to live, or has another
    /// clock, keeps what it holds.
    #[default]
    Automatic,
    /// The holder itself, by [`LimiterLease::heartbeat`](super::LimiterLease::heartbeat): one that hangs loses what it holds.
    Manual,
}

impl Heartbeats {
    /// An id for a holder whose heartbeats are sent in this way.
    pub(crate) fn new_holder_id(self, store: &dyn Backend) -> u128 {
        match self {
            Heartbeats::Automatic => store.new_living_holder(),
            Heartbeats::Manual => store.new_holder_id(),
        }
    }
}

/// Settings of a [`Limiter`].
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate::{Limiter, Memory, OnUnavailable, Registry};
///
/// let catalog = Registry::new(Arc::new(Memory::default())).open_or_register("default").wait()?;
/// let limiter = Limiter::builder(catalog)
///     .on_unavailable(OnUnavailable::Local)
///     .local_share(20)
///     .store_timeout(Duration::from_millis(200))
///     .build();
/// assert_eq!(limiter.waiting(), 0);
/// # Ok::<(), tollgate::Error>(())
/// ```
#[must_use = "a builder does nothing until it is built"]
pub struct LimiterBuilder {
    catalog: Catalog,
    observer: Option<Arc<dyn Observer>>,
    settings: LimiterSettings,
}

impl LimiterBuilder {
    pub(super) fn new(catalog: Catalog) -> LimiterBuilder {
        let outlives_holders = catalog.backend().reach() != Reach::Process;
        let settings = LimiterSettings {
            timeout: STORE_TIMEOUT,
            on_unavailable: None,
            local_share: 50,
            lease_ttl: outlives_holders.then(|| Span::covering(LEASE_TTL)),
            heartbeats: Heartbeats::default(),
            on_drop: OnDrop::default(),
            waiters_max: WAITERS_MAX,
        };
        LimiterBuilder { catalog, observer: None, settings }
    }

    fn with(mut self, change: impl FnOnce(&mut LimiterSettings)) -> LimiterBuilder {
        change(&mut self.settings);
        self
    }

    /// Sets what to do while the store is unavailable. By default what is stored with the system limits, and to block where
    /// nothing is.
    pub fn on_unavailable(self, policy: OnUnavailable) -> LimiterBuilder {
        self.with(|settings| settings.on_unavailable = Some(policy))
    }

    /// What share of each limit, in percent, a process keeps to by itself while the store is away and the policy is
    /// [`OnUnavailable::Local`]. By default 50. Bounded to 1 to 100.
    pub fn local_share(self, percent: u8) -> LimiterBuilder {
        self.with(|settings| settings.local_share = percent.clamp(1, 100))
    }

    /// How long the store may take to answer before it counts as away. By default [`STORE_TIMEOUT`].
    pub fn store_timeout(self, timeout: Duration) -> LimiterBuilder {
        self.with(|settings| settings.timeout = timeout)
    }

    /// Takes resources from a holder that was silent for this long. By default [`LEASE_TTL`] where the store
    /// outlives the process, and never in memory.
    pub fn lease_ttl(self, ttl: Duration) -> LimiterBuilder {
        self.with(|settings| settings.lease_ttl = Some(Span::covering(ttl.max(Duration::from_micros(1)))))
    }

    /// Sets who sends heartbeats.
    pub fn heartbeats(self, heartbeats: Heartbeats) -> LimiterBuilder {
        self.with(|settings| settings.heartbeats = heartbeats)
    }

    /// Sets what happens to a lease that is dropped without an end. See [`OnDrop`].
    pub fn on_drop(self, on_drop: OnDrop) -> LimiterBuilder {
        self.with(|settings| settings.on_drop = on_drop)
    }

    /// Sets how many callers may wait for one bucket. Further ones get an error.
    pub fn waiters_max(self, waiters_max: usize) -> LimiterBuilder {
        self.with(|settings| settings.waiters_max = waiters_max)
    }

    /// The observer that is notified of what happens.
    pub fn observer(self, observer: impl Observer + 'static) -> LimiterBuilder {
        LimiterBuilder { observer: Some(Arc::new(observer)), ..self }
    }

    /// The limiter.
    pub fn build(self) -> Limiter {
        let LimiterBuilder { catalog, observer, settings } = self;
        let backend = Arc::clone(catalog.backend());
        Limiter(Arc::new(LimiterShared {
            clock: backend.clock().clone(),
            store: StoreClient::new(backend, catalog.namespace_id(), settings.timeout).of_entities(),
            catalog,
            routes: PerProcess::new(generation().into()),
            reporter: Reporter::new(observer),
            settings,
        }))
    }
}
