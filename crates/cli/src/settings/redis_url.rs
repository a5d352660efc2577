use std::fmt;

use super::redacted;

/// The address of a server of Redis or Valkey, of its sentinels, or of a cluster. It may have a password in it, which is
/// never shown.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct RedisAddress(String);

impl RedisAddress {
    /// Whether addresses that begin like this are such ones.
    pub(super) fn is_scheme(scheme: &str) -> bool {
        let base = scheme.split('+').next().unwrap_or_default();
        ["redis", "rediss", "valkey", "valkeys"].contains(&base)
    }

    /// The address that a text says.
    #[cfg(feature = "redis")]
    pub(super) fn parse(text: &str) -> Result<RedisAddress, String> {
        let parsed = text.parse::<tollgate_redis::RedisUrl>().map_err(|why| why.to_string())?;
        match parsed.prefetch() {
            Some(_) => Err(super::TAKES_ONCE.into()),
            None => Ok(RedisAddress(text.into())),
        }
    }

    /// What it says is looked at by programs that know what to do with it.
    #[cfg(not(feature = "redis"))]
    pub(super) fn parse(text: &str) -> Result<RedisAddress, String> {
        Ok(RedisAddress(text.into()))
    }

    /// Returns the whole of it, to connect with.
    #[cfg(feature = "redis")]
    pub(crate) fn with_password(&self) -> &str {
        &self.0
    }
}

/// The address without its password, and without options, one of which may be another one.
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

    #[cfg(feature = "redis")]
    #[test]
    fn a_command_takes_nothing_ahead() {
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
