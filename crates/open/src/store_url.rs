use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

#[cfg(feature = "dynamodb")]
use crate::DynamodbUrl;
#[cfg(feature = "redis")]
use crate::RedisAddress;
use crate::StoreUrlError;

/// The schemes of stores that a build may leave out, each with its feature.
const OPTIONAL_SCHEMES: [(&str, &str); 6] = [
    ("shm", "shm"),
    ("redis", "redis"),
    ("rediss", "redis"),
    ("valkey", "redis"),
    ("valkeys", "redis"),
    ("dynamodb", "dynamodb"),
];

/// The URL of a store. It is valid: only opening the store shows whether it is there.
///
/// `Display` writes the URL without its password, `Debug` shows none either, and [`with_password`](StoreUrl::with_password)
/// returns the text that parses to the same URL.
///
/// # Examples
///
/// ```
/// use tollgate_open::{StoreUrl, StoreUrlError};
///
/// let url: StoreUrl = "file:limits.db".parse()?;
/// assert_eq!(url, StoreUrl::File("limits.db".into()));
/// assert_eq!(url.to_string(), "file:limits.db");
/// assert_eq!("limits.db".parse::<StoreUrl>(), Err(StoreUrlError::UnknownStore));
/// # Ok::<(), StoreUrlError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoreUrl {
    /// The memory of this process. Each opening is a store of its own, which is lost with its last handle.
    Memory,
    /// A file that the processes of one host share.
    File(PathBuf),
    /// Named memory that the processes of one host share.
    #[cfg(all(feature = "shm", target_os = "linux"))]
    Shm(String),
    /// A DynamoDB table.
    #[cfg(feature = "dynamodb")]
    Dynamodb(DynamodbUrl),
    /// A Redis or Valkey server or cluster.
    #[cfg(feature = "redis")]
    Redis(RedisAddress),
}

impl StoreUrl {
    /// Returns the text of the URL with its password, to connect with or to hand to a process that opens the same store. It
    /// parses to the same URL, unless a path in it is not UTF-8.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "redis")] {
    /// use tollgate_open::StoreUrl;
    ///
    /// let url: StoreUrl = "redis://me:secret@cache.example".parse()?;
    /// assert_eq!(url.to_string(), "redis://me:***@cache.example");
    /// assert_eq!(url.with_password(), "redis://me:secret@cache.example");
    /// # }
    /// # Ok::<(), tollgate_open::StoreUrlError>(())
    /// ```
    pub fn with_password(&self) -> String {
        match self {
            #[cfg(feature = "redis")]
            StoreUrl::Redis(address) => address.with_password().to_owned(),
            url => url.to_string(),
        }
    }

    /// Returns how many percent of each capacity a process may hold ahead, if the URL has that parameter.
    ///
    /// # Examples
    ///
    /// ```
    /// # #[cfg(feature = "dynamodb")] {
    /// use tollgate_open::StoreUrl;
    ///
    /// let url: StoreUrl = "dynamodb:limits?prefetch=5".parse()?;
    /// assert_eq!(url.prefetch(), Some(5));
    /// # }
    /// # Ok::<(), tollgate_open::StoreUrlError>(())
    /// ```
    pub fn prefetch(&self) -> Option<u8> {
        match self {
            #[cfg(feature = "dynamodb")]
            StoreUrl::Dynamodb(url) => url.prefetch(),
            #[cfg(feature = "redis")]
            StoreUrl::Redis(address) => address.prefetch(),
            _ => None,
        }
    }
}

impl FromStr for StoreUrl {
    type Err = StoreUrlError;

    fn from_str(text: &str) -> Result<StoreUrl, StoreUrlError> {
        match text.split_once(':') {
            None if text == "memory" => Ok(StoreUrl::Memory),
            Some(("file", "")) => Err(StoreUrlError::NoPath),
            Some(("file", path)) => Ok(StoreUrl::File(path.into())),
            #[cfg(all(feature = "shm", target_os = "linux"))]
            Some(("shm", "")) => Err(StoreUrlError::NoName),
            #[cfg(all(feature = "shm", target_os = "linux"))]
            Some(("shm", name)) => Ok(StoreUrl::Shm(name.into())),
            #[cfg(feature = "redis")]
            Some((scheme, _)) if feature_of(scheme) == Some("redis") => {
                Ok(StoreUrl::Redis(RedisAddress::parse(text)?))
            }
            #[cfg(feature = "dynamodb")]
            Some(("dynamodb", rest)) => Ok(StoreUrl::Dynamodb(rest.parse()?)),
            Some((scheme, _)) => Err(left_out(scheme)),
            None => Err(StoreUrlError::UnknownStore),
        }
    }
}

/// Returns the feature that a scheme needs. A scheme may have a suffix, as in `redis+sentinel`.
fn feature_of(scheme: &str) -> Option<&'static str> {
    let base = scheme.split('+').next().unwrap_or_default();
    OPTIONAL_SCHEMES.iter().find(|(known, _)| *known == base).map(|(_, feature)| *feature)
}

/// Returns the error for a scheme that this build does not have.
fn left_out(scheme: &str) -> StoreUrlError {
    match feature_of(scheme) {
        Some("shm") if !cfg!(target_os = "linux") => StoreUrlError::NeedsLinux,
        Some(feature) => StoreUrlError::LeftOut { scheme: scheme.into(), feature },
        None => StoreUrlError::UnknownStore,
    }
}

/// Formats the URL without its password.
impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Memory => f.write_str("memory"),
            StoreUrl::File(path) => write!(f, "file:{}", path.display()),
            #[cfg(all(feature = "shm", target_os = "linux"))]
            StoreUrl::Shm(name) => write!(f, "shm:{name}"),
            #[cfg(feature = "dynamodb")]
            StoreUrl::Dynamodb(url) => write!(f, "dynamodb:{url}"),
            #[cfg(feature = "redis")]
            StoreUrl::Redis(address) => address.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        text.parse::<StoreUrl>().expect_err(text).to_string()
    }

    #[test]
    fn an_error_says_what_would_be_valid() {
        for text in ["", "limits.db", "amqp://host", "Memory", "memory:", "http+redis://host"] {
            assert!(said(text).contains("valid are memory, file:PATH"), "{text}: {}", said(text));
        }
        assert!(said("file:").contains("like file:limits.db"));
    }

    #[test]
    fn a_scheme_that_the_build_leaves_out_has_its_own_error() {
        for (text, scheme, named, is_built) in [
            ("shm:limits", "shm", "shm", cfg!(all(feature = "shm", target_os = "linux"))),
            ("redis://host", "redis", "redis", cfg!(feature = "redis")),
            ("valkeys+cluster://host", "valkeys+cluster", "redis", cfg!(feature = "redis")),
            ("dynamodb:limits", "dynamodb", "dynamodb", cfg!(feature = "dynamodb")),
        ] {
            let parsed = text.parse::<StoreUrl>();
            let missing = StoreUrlError::LeftOut { scheme: scheme.into(), feature: named };
            let is_missing = parsed == Err(missing) || parsed == Err(StoreUrlError::NeedsLinux);
            assert_eq!((parsed.is_ok(), is_missing), (is_built, !is_built), "{text}: {parsed:?}");
        }
    }

    #[test]
    fn the_text_with_the_password_is_the_same_url() {
        for text in [
            "memory",
            "file:a/b:c?d.db",
            "shm:limits",
            "redis://me:hunter2@host/1?prefix=a&prefetch=5",
            "dynamodb:limits?region=eu-west-1&prefetch=5",
        ] {
            let Ok(url) = text.parse::<StoreUrl>() else { continue };
            assert_eq!(url.with_password(), text);
            assert_eq!(url.prefetch(), text.contains("prefetch").then_some(5));
            assert!(!format!("{url} {url:?}").contains("hunter2"), "{url}");
        }
    }
}
