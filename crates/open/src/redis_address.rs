use std::fmt;

use tollgate_redis::{RedisUrl, UrlError};

use crate::redacted;

/// The address of a Redis or Valkey server, of its sentinels, or of a cluster. It may contain a password, which neither
/// `Display` nor `Debug` shows.
///
/// | parameter | meaning |
/// |---|---|
/// | `prefix=TEXT` | the prefix of all keys; by default `tollgate` |
/// | `timeout=TIME` | the timeout of a call, such as `500ms`; the one of [`OpenOptions`](crate::OpenOptions) wins |
/// | `evicting=accept` | accept a server that evicts keys when its memory is full; by default it is refused |
/// | `prefetch=PERCENT` | hold up to so many percent of each capacity ahead; by default nothing |
/// | `ca=PATH` | the file with the root certificates; by default those of the web |
/// | `sentinel_password=TEXT` | the password of the sentinels |
///
/// # Examples
///
/// ```
/// use tollgate_open::{StoreUrl, StoreUrlError};
///
/// let url: StoreUrl = "redis+sentinel://:secret@10.0.0.1,10.0.0.2/main?prefetch=5".parse()?;
/// let StoreUrl::Redis(address) = url else { unreachable!("its scheme is that of Redis") };
/// assert_eq!(address.prefetch(), Some(5));
/// assert_eq!(address.to_string(), "redis+sentinel://:***@10.0.0.1,10.0.0.2/main?prefetch=5");
/// # Ok::<(), StoreUrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RedisAddress {
    text: String,
    prefetch: Option<u8>,
}

impl RedisAddress {
    /// Parses an address.
    pub(crate) fn parse(text: &str) -> Result<RedisAddress, UrlError> {
        let url: RedisUrl = text.parse()?;
        Ok(RedisAddress { text: text.into(), prefetch: url.prefetch() })
    }

    /// Returns the address with its password, to connect with.
    pub fn with_password(&self) -> &str {
        &self.text
    }

    /// Returns how many percent of each capacity a process may hold ahead, if the address has that parameter.
    pub fn prefetch(&self) -> Option<u8> {
        self.prefetch
    }
}

/// Formats the address without its password, and without parameters if one of them is a password.
impl fmt::Display for RedisAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = redacted(&self.text);
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
    fn no_password_is_shown() {
        for (text, shown) in [
            ("redis://me:hunter2@host/1?prefix=a", "redis://me:***@host/1?prefix=a"),
            ("redis+sentinel://:hunter2@a,b/m?sentinel_password=hunter2", "redis+sentinel://:***@a,b/m"),
        ] {
            let address = RedisAddress::parse(text).unwrap();
            assert_eq!((address.to_string().as_str(), format!("{address:?}").as_str()), (shown, shown));
            assert_eq!(address.with_password(), text);
        }
    }
}
