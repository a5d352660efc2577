//! Settings of a registry, and of the catalogs that it opens.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Span;
use tollgate_store::Backend;
use tollgate_store::usage::UsageRetention;

use super::Registry;
use crate::{CatalogError, Result, login, name};

/// The settings of a [`Registry`].
///
/// ```
/// use std::sync::Arc;
/// use std::time::Duration;
/// use tollgate_catalog::Registry;
/// use tollgate_store::Memory;
///
/// let registry = Registry::builder(Arc::new(Memory::default()))
///     .cache_ttl(Duration::from_secs(10))
///     .audit_retention(None)
///     .principal("deploy-bot")
///     .build()?;
/// assert_eq!(registry.open_or_register("default").wait()?.principal(), "deploy-bot");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
#[must_use = "a builder does nothing until it is built"]
pub struct RegistryBuilder {
    backend: Arc<dyn Backend>,
    cache_ttl: Duration,
    cache_max: usize,
    audit_retention: Option<Duration>,
    usage_retention: UsageRetention,
    principal: String,
}

#[derive(Clone, Debug)]
pub(super) struct CatalogSettings {
    pub(super) cache_ttl: Span,
    pub(super) cache_max: usize,
    pub(super) audit_retention: Option<Span>,
    pub(super) usage_retention: UsageRetention,
    pub(super) principal: Arc<str>,
}

impl Default for CatalogSettings {
    fn default() -> CatalogSettings {
        CatalogSettings {
            cache_ttl: Span::from_secs(60),
            cache_max: 10_000,
            audit_retention: Some(Span::from_secs(90 * 86_400)),
            usage_retention: UsageRetention::default(),
            principal: login::login().into(),
        }
    }
}

impl RegistryBuilder {
    pub(super) fn new(backend: Arc<dyn Backend>) -> RegistryBuilder {
        let CatalogSettings { cache_ttl, cache_max, audit_retention, usage_retention, principal } =
            CatalogSettings::default();
        RegistryBuilder {
            backend,
            cache_ttl: cache_ttl.to_duration(),
            cache_max,
            audit_retention: audit_retention.map(Span::to_duration),
            usage_retention,
            principal: principal.to_string(),
        }
    }

    /// Sets how long cached records are valid that other processes may have changed. By default 60
    /// seconds; 0 reads every record every time. With a store that reports its revision, records
    /// are valid as long as the revision stays the same.
    pub fn cache_ttl(self, cache_ttl: Duration) -> RegistryBuilder {
        RegistryBuilder { cache_ttl, ..self }
    }

    /// Sets how many records each catalog caches. By default 10,000; fewer than 2 for none.
    pub fn cache_max(self, cache_max: usize) -> RegistryBuilder {
        RegistryBuilder { cache_max, ..self }
    }

    /// Sets how long audit events are stored. By default 90 days; `None` for ever.
    pub fn audit_retention(self, audit_retention: Option<Duration>) -> RegistryBuilder {
        RegistryBuilder { audit_retention, ..self }
    }

    /// Sets how long records of usage are stored that a [migration](Registry::migrate) takes over
    /// from zae-limiter. By default as [`UsageRetention::default`]. For all other usage it is a
    /// setting of the store.
    pub fn usage_retention(self, usage_retention: UsageRetention) -> RegistryBuilder {
        RegistryBuilder { usage_retention, ..self }
    }

    /// Sets the principal of changes, for audit events. By default it is the user that the program
    /// runs as.
    pub fn principal(self, principal: impl Into<String>) -> RegistryBuilder {
        RegistryBuilder { principal: principal.into(), ..self }
    }

    /// Builds the registry.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Name`] for an invalid principal, [`CatalogError::Invalid`] for an audit
    /// retention of zero.
    pub fn build(self) -> Result<Registry> {
        name::PRINCIPAL.check(&self.principal)?;
        if self.audit_retention == Some(Duration::ZERO) {
            let valid = "at least a microsecond, or None to keep events for ever".into();
            return Err(CatalogError::Invalid { what: "audit_retention", value: "0".into(), valid });
        }
        let settings = CatalogSettings {
            cache_ttl: Span::covering(self.cache_ttl),
            cache_max: self.cache_max,
            audit_retention: self.audit_retention.map(Span::covering),
            usage_retention: self.usage_retention,
            principal: self.principal.into(),
        };
        Ok(Registry::with_settings(self.backend, settings))
    }
}
