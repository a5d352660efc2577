use std::fmt;

use super::redacted;

/// The address of a Redis or Valkey server, of its sentinels, or of a cluster. It may contain a password, which is never
/// shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RedisAddress(String);

impl RedisAddress {
    /// Returns whether a scheme is one of Redis or Valkey.
    pub(super) fn is_scheme(scheme: &str) -> bool {
        let base = scheme.split('+').next().unwrap_or_default();
        ["redis", "rediss", "valkey", "valkeys"].contains(&base)
    }

    /// Parses an address.
    pub(super) fn parse(text: &str) -> Result<RedisAddress, String> {
        let parsed = text.parse::<tollgate_redis::RedisUrl>().map_err(|why| why.to_string())?;
        match parsed.prefetch() {
            Some(_) => Err(super::NO_PREFETCH.into()),
            None => Ok(RedisAddress(text.into())),
        }
    }

    /// Returns the address with its password, to connect with.
    pub(crate) fn with_password(&self) -> &str {
        &self.0
    }
}

/// Formats the address without its password, and without parameters if one of them is a password.
impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = redacted(&self.0);
        let is_secret = shown.contains("password=");
        let end = shown.find('?').filter(|_| is_secret).unwrap_or(shown.len());
        f.write_str(&shown[..end])
    }
}

impl fmt::Debug for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefetch_is_refused() {
        let why = RedisAddress::parse("redis://host?prefetch=5").unwrap_err();
        assert!(why.contains("leave it out"), "{why}");
    }

    #[test]
    fn no_password_is_shown() {
        for (text, shown) in [
            ("redis://me:hunter2@host/1?prefix=a", "redis://me:***@host/1?prefix=a"),
            ("redis+sentinel://:hunter2@a,b/m?sentinel_password=hunter2", "redis+sentinel://:***@a,b/m"),
        ] {
            let url = RedisAddress(text.into());
            assert_eq!((url.to_string().as_str(), format!("{url:?}").as_str()), (shown, shown));
        }
    }
}
