/// A setting.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SettingKey {
    /// Its name in the config file.
    pub(crate) name: &'static str,
    /// The flag that sets it.
    pub(crate) flag: &'static str,
    /// The environment variable that sets it.
    pub(crate) variable: &'static str,
    /// A valid value.
    pub(crate) example: &'static str,
}

/// The store.
pub(crate) const STORE: SettingKey =
    SettingKey { name: "store", flag: "--store", variable: "TOLLGATE_STORE", example: "file:limits.db" };

/// The namespace that commands work in.
pub(crate) const NAMESPACE: SettingKey = SettingKey {
    name: "namespace",
    flag: "--namespace",
    variable: "TOLLGATE_NAMESPACE",
    example: "tenant-alpha",
};

/// The principal of audit events.
pub(crate) const PRINCIPAL: SettingKey = SettingKey {
    name: "principal",
    flag: "--principal",
    variable: "TOLLGATE_PRINCIPAL",
    example: "alice@example.com",
};

/// Whether output is coloured.
pub(crate) const COLOR: SettingKey =
    SettingKey { name: "color", flag: "--color", variable: "TOLLGATE_COLOR", example: "never" };

/// The timeout of a call to the store.
pub(crate) const STORE_TIMEOUT: SettingKey = SettingKey {
    name: "store_timeout",
    flag: "--store-timeout",
    variable: "TOLLGATE_STORE_TIMEOUT",
    example: "5s",
};

/// How long audit events are kept.
pub(crate) const AUDIT_RETENTION: SettingKey = SettingKey {
    name: "audit_retention",
    flag: "--audit-retention",
    variable: "TOLLGATE_AUDIT_RETENTION",
    example: "90d",
};

/// How long usage is kept.
pub(crate) const USAGE_RETENTION: SettingKey = SettingKey {
    name: "usage_retention",
    flag: "--usage-retention",
    variable: "TOLLGATE_USAGE_RETENTION",
    example: "90d,400d,3660d",
};

/// How long limits and entities are cached.
pub(crate) const CACHE_TTL: SettingKey =
    SettingKey { name: "cache_ttl", flag: "--cache-ttl", variable: "TOLLGATE_CACHE_TTL", example: "60s" };

/// All settings, in the order in which they are shown.
pub(crate) const KEYS: [&SettingKey; 8] =
    [&STORE, &NAMESPACE, &PRINCIPAL, &COLOR, &STORE_TIMEOUT, &AUDIT_RETENTION, &USAGE_RETENTION, &CACHE_TTL];
