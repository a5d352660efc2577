//! Settings of a limiter, and how it is opened.

use std::sync::Arc;
use std::time::Duration;

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use tollgate::catalog::CatalogError;
use tollgate::limiter::{DEFAULT_NAMESPACE, Heartbeats};
use tollgate::store::Backend;
use tollgate::{Clock, Limiter, Memory, OnDrop, OnUnavailable, Registry};

use crate::amount::{shown, span, text};
use crate::clock::PyManualClock;
use crate::error::{IntoPyErr, invalid};
use crate::input::one_of;
use crate::observing::ObserverTarget;
use crate::set_settings::whole;
use crate::stores::{StoreAddress, StoreOpenError, StoreOptions};

/// What a process does while the store is unavailable, as it is called in Python.
pub(crate) const POLICIES: [(OnUnavailable, &str); 3] =
    [(OnUnavailable::Block, "block"), (OnUnavailable::Allow, "allow"), (OnUnavailable::Local, "local")];

/// The settings that a caller gave.
#[derive(Default)]
pub(super) struct LimiterOptions {
    namespace: Option<String>,
    creates_namespace: Option<bool>,
    principal: Option<String>,
    cache_ttl: Option<Duration>,
    on_unavailable: Option<OnUnavailable>,
    local_share: Option<u8>,
    lease_ttl: Option<Duration>,
    heartbeats: Option<Heartbeats>,
    on_drop: Option<OnDrop>,
    waiters_max: Option<usize>,
    observer: Option<Arc<ObserverTarget>>,
    clock: Option<Clock>,
    store: StoreOptions,
}

impl LimiterOptions {
    /// Reads the keywords of the constructor. `None` stands for the default.
    ///
    /// # Errors
    ///
    /// `TypeError` for an unknown keyword, and `InvalidValue`.
    pub(super) fn of(settings: Option<&Bound<'_, PyDict>>) -> PyResult<LimiterOptions> {
        let mut options = LimiterOptions::default();
        for (name, value) in settings.iter().flat_map(|settings| settings.iter()) {
            let name: String = name.extract()?;
            options.set(&name, &value)?;
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let py = value.py();
        let given = !value.is_none();
        match name {
            "namespace" => self.namespace = given.then(|| word(name, value)).transpose()?,
            "create_namespace" => self.creates_namespace = given.then(|| value.extract()).transpose()?,
            "principal" => self.principal = given.then(|| word(name, value)).transpose()?,
            "cache_ttl" => self.cache_ttl = given.then(|| span(name, value)).transpose()?,
            "on_unavailable" => {
                let policy = |value| one_of(py, name, &word(name, value)?, &POLICIES);
                self.on_unavailable = given.then(|| policy(value)).transpose()?;
            }
            "local_share" => {
                // From 1 to 100.
                let share = |value| whole(name, value, 1, 100).map(|share| share as u8);
                self.local_share = given.then(|| share(value)).transpose()?;
            }
            "store_timeout" => self.store.timeout = given.then(|| positive(name, value)).transpose()?,
            "connect_within" => self.store.connect_within = given.then(|| span(name, value)).transpose()?,
            "lease_ttl" => self.lease_ttl = given.then(|| positive(name, value)).transpose()?,
            "heartbeats" => {
                let known = [(Heartbeats::Automatic, "automatic"), (Heartbeats::Manual, "manual")];
                let sent = |value| one_of(py, name, &word(name, value)?, &known);
                self.heartbeats = given.then(|| sent(value)).transpose()?;
            }
            "on_drop" => {
                let known = [(OnDrop::Keep, "keep"), (OnDrop::Refund, "refund")];
                let kept = |value| one_of(py, name, &word(name, value)?, &known);
                self.on_drop = given.then(|| kept(value)).transpose()?;
            }
            "waiters_max" => {
                let most = |value| whole(name, value, 0, u32::MAX.into()).map(|most| most as usize);
                self.waiters_max = given.then(|| most(value)).transpose()?;
            }
            "observer" => {
                self.observer = given.then(|| ObserverTarget::of(value).map(Arc::new)).transpose()?;
            }
            "clock" => self.clock = given.then(|| clock(value)).transpose()?,
            _ => {
                let text = format!("Limiter() got an unexpected keyword argument {name:?}");
                return Err(PyTypeError::new_err(text));
            }
        }
        Ok(())
    }

    /// Parses the URL of the store.
    ///
    /// # Errors
    ///
    /// `InvalidValue`.
    pub(super) fn address(&self, py: Python<'_>, url: &str) -> PyResult<StoreAddress> {
        let address = StoreAddress::parse(py, url, self.store)?;
        if self.clock.is_some() && !address.is_memory() {
            return Err(invalid(py, "clock: a limiter on a store goes by the clock of its store"));
        }
        Ok(address)
    }

    /// Opens the store and the namespace.
    pub(super) async fn open(self, address: StoreAddress) -> Result<OpenedLimiter, LimiterOpenError> {
        let backend: Arc<dyn Backend> = match self.clock {
            Some(clock) => Arc::new(Memory::builder().clock(clock).build()),
            None => address.clone().open().await.map_err(LimiterOpenError::Store)?.backend,
        };
        let mut registry = Registry::builder(backend);
        if let Some(ttl) = self.cache_ttl {
            registry = registry.cache_ttl(ttl);
        }
        if let Some(principal) = &self.principal {
            registry = registry.principal(principal);
        }
        let registry = registry.build().map_err(LimiterOpenError::Catalog)?;
        let namespace = self.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        let catalog = if self.creates_namespace.unwrap_or(true) {
            registry.open_or_register(namespace).await
        } else {
            registry.open(namespace).await
        };
        let mut limiter = Limiter::builder(catalog.map_err(LimiterOpenError::Catalog)?);
        if let Some(policy) = self.on_unavailable {
            limiter = limiter.on_unavailable(policy);
        }
        if let Some(percent) = self.local_share {
            limiter = limiter.local_share(percent);
        }
        if let Some(timeout) = self.store.timeout {
            limiter = limiter.store_timeout(timeout);
        }
        if let Some(ttl) = self.lease_ttl {
            limiter = limiter.lease_ttl(ttl);
        }
        if let Some(heartbeats) = self.heartbeats {
            limiter = limiter.heartbeats(heartbeats);
        }
        if let Some(on_drop) = self.on_drop {
            limiter = limiter.on_drop(on_drop);
        }
        if let Some(most) = self.waiters_max {
            limiter = limiter.waiters_max(most);
        }
        if let Some(observer) = &self.observer {
            limiter = limiter.observer(observer.watch());
        }
        Ok(OpenedLimiter { limiter: limiter.build(), registry, address, observer: self.observer })
    }
}

fn word(what: &str, value: &Bound<'_, PyAny>) -> PyResult<String> {
    let found = value.cast::<PyString>();
    let found =
        found.map_err(|_| PyTypeError::new_err(format!("{what} is {}, but must be a text", shown(value))));
    text(what, found?).map(str::to_owned)
}

fn clock(value: &Bound<'_, PyAny>) -> PyResult<Clock> {
    let clock = value.cast::<PyManualClock>().map_err(|_| {
        PyTypeError::new_err(format!("clock is {}, but must be a tollgate.testing.ManualClock", shown(value)))
    })?;
    Ok(clock.get().clock())
}

fn positive(what: &str, value: &Bound<'_, PyAny>) -> PyResult<Duration> {
    let duration = span(what, value)?;
    if duration.is_zero() {
        return Err(invalid(value.py(), format!("{what} is 0, but must be longer")));
    }
    Ok(duration)
}

/// A limiter that was opened.
pub(super) struct OpenedLimiter {
    pub(super) limiter: Limiter,
    pub(super) registry: Registry,
    pub(super) address: StoreAddress,
    pub(super) observer: Option<Arc<ObserverTarget>>,
}

/// Why a limiter cannot be opened.
pub(super) enum LimiterOpenError {
    Store(StoreOpenError),
    Catalog(CatalogError),
}

impl IntoPyErr for LimiterOpenError {
    fn into_py_err(self, py: Python<'_>) -> PyErr {
        match self {
            LimiterOpenError::Store(error) => error.into_py_err(py),
            LimiterOpenError::Catalog(error) => error.into_py_err(py),
        }
    }
}
