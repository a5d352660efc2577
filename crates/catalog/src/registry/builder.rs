//! Settings of a registry, and of the catalogs that it opens.

use std::sync::Arc;
use std::time::Duration;

use tollgate_core::Span;
use tollgate_store::Backend;
use tollgate_store::usage::UsageRetention;

use super::Registry;
use crate::{CatalogError, Result, login, name};

/// Settings of a [`Registry`].
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

    /// How long what others may have changed is believed; 60 seconds if not said, 0 to read everything every time. A
    /// store that reports its revision is believed for as long as that stays the same.
    pub fn cache_ttl(self, cache_ttl: Duration) -> RegistryBuilder {
        RegistryBuilder { cache_ttl, ..self }
    }

    /// How many records each catalog remembers; 10,000 if not said, fewer than 2 for none.
    pub fn cache_max(self, cache_max: usize) -> RegistryBuilder {
        RegistryBuilder { cache_max, ..self }
    }

    /// How long audit events are kept; 90 days if not said, `None` for ever.
    pub fn audit_retention(self, audit_retention: Option<Duration>) -> RegistryBuilder {
        RegistryBuilder { audit_retention, ..self }
    }

    /// How long records of usage are kept that a [migration](Registry::migrate) takes over from the original; as
    /// [`UsageRetention::default`] if not said. For how long others are kept is a setting of the store.
    pub fn usage_retention(self, usage_retention: UsageRetention) -> RegistryBuilder {
        RegistryBuilder { usage_retention, ..self }
    }

    /// Who makes the changes, for audit events; the user that the program runs as if not said.
    pub fn principal(self, principal: impl Into<String>) -> RegistryBuilder {
        RegistryBuilder { principal: principal.into(), ..self }
    }

    /// The registry.
    ///
    /// # Errors
    ///
    /// [`CatalogError::Name`] for a principal that is not valid, [`CatalogError::Invalid`] for events that would be gone
    /// at once.
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
