//! URLs of stores.
//!
//! ```text
//! redis://[USER[:PASSWORD]@]HOST[:PORT][/DB][?OPTIONS]
//! redis+sentinel://[USER[:PASSWORD]@]HOST[:PORT],HOST[:PORT]/MASTER[/DB][?OPTIONS]
//! redis+cluster://[USER[:PASSWORD]@]HOST[:PORT],HOST[:PORT][?OPTIONS]
//! ```

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

const PORT: u16 = 6379;
const SENTINEL_PORT: u16 = 26379;

/// The default prefix of all keys.
const PREFIX: &str = "tollgate";

/// The address of a store and its options. Neither `Debug` nor `Display` shows the password.
///
/// ```
/// use tollgate_redis::RedisUrl;
///
/// let url: RedisUrl = "redis://ann:secret@cache.example:6380/2?prefetch=5".parse()?;
/// assert_eq!(url.prefetch(), Some(5));
/// assert!(!url.to_string().contains("secret"));
/// # Ok::<(), tollgate_redis::UrlError>(())
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl {
    pub(crate) service: Deployment,
    pub(crate) hosts: Vec<(String, u16)>,
    pub(crate) is_encrypted: bool,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<String>,
    pub(crate) database: i64,
    pub(crate) sentinel_password: Option<String>,
    /// The file with the root certificates; those of the web by default.
    pub(crate) ca: Option<String>,
    /// The prefix of all keys.
    pub(crate) prefix: String,
    pub(crate) timeout: Option<Duration>,
    /// Whether a server is accepted that evicts keys when its memory is full.
    pub(crate) accepts_eviction: bool,
    /// How many percent of each capacity a process may hold ahead; by default nothing.
    pub(crate) prefetch: Option<u8>,
}

/// The kind of server at the address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Deployment {
    /// A server.
    Single,
    /// Sentinels that know the address of the master of this name.
    Sentinel(String),
    /// Nodes of a cluster.
    Cluster,
}

/// Why an address is not valid. It never quotes the address, which may have a password in it.
///
/// ```
/// use tollgate_redis::{RedisUrl, UrlError};
///
/// let error: UrlError = "http://cache.example".parse::<RedisUrl>().unwrap_err();
/// assert!(error.to_string().contains("redis+sentinel"), "{error}");
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UrlError(String);

fn bad<T>(why: impl Into<String>) -> Result<T, UrlError> {
    Err(UrlError(why.into()))
}

impl FromStr for RedisUrl {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<RedisUrl, UrlError> {
        let Some((scheme, rest)) = text.split_once("://") else {
            return bad("an address starts with redis://, rediss://, redis+sentinel:// or redis+cluster://");
        };
        let (base, kind) = scheme.split_once('+').unwrap_or((scheme, ""));
        let is_encrypted = match base {
            "redis" | "valkey" => false,
            "rediss" | "valkeys" => true,
            _ => return bad("the scheme is none of redis, rediss, redis+sentinel and redis+cluster"),
        };
        let (rest, options) = rest.split_once('?').unwrap_or((rest, ""));
        let (place, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, hosts) = place.rsplit_once('@').map_or((None, place), |(who, it)| (Some(who), it));
        let (service, database) = service(kind, path)?;
        let port = if matches!(service, Deployment::Sentinel(_)) { SENTINEL_PORT } else { PORT };
        let hosts = hosts.split(',').map(|host| host_of(host, port)).collect::<Result<Vec<_>, _>>()?;
        if service == Deployment::Single && hosts.len() > 1 {
            return bad(
                "several hosts are a cluster or sentinels; write redis+cluster:// or redis+sentinel://",
            );
        }
        let (user, password) = credentials.map_or(Ok((None, None)), credentials_of)?;
        let mut url = RedisUrl {
            service,
            hosts,
            is_encrypted,
            user,
            password,
            database,
            sentinel_password: None,
            ca: None,
            prefix: PREFIX.into(),
            timeout: None,
            accepts_eviction: false,
            prefetch: None,
        };
        options.split('&').filter(|option| !option.is_empty()).try_for_each(|option| url.set(option))?;
        Ok(url)
    }
}

impl RedisUrl {
    /// Returns how many percent of each capacity a process may hold ahead, if the address has that option.
    pub fn prefetch(&self) -> Option<u8> {
        self.prefetch
    }

    fn set(&mut self, option: &str) -> Result<(), UrlError> {
        let (name, value) = option.split_once('=').unwrap_or((option, ""));
        let text = decoded(value)?;
        match name {
            "prefix" => {
                check_prefix(&text)?;
                self.prefix = text;
            }
            "timeout" => self.timeout = Some(millis_of(&text)?),
            "evicting" if text == "accept" => self.accepts_eviction = true,
            "evicting" if text == "refuse" => self.accepts_eviction = false,
            "evicting" => return bad("evicting is refuse or accept"),
            "prefetch" => self.prefetch = Some(percent_of(&text)?),
            "ca" => self.ca = Some(text),
            "sentinel_password" => self.sentinel_password = Some(text),
            _ => {
                return bad(format!(
                    "{name:?} is no option of an address; there are prefix, timeout, evicting, prefetch, ca \
                     and sentinel_password"
                ));
            }
        }
        Ok(())
    }
}

pub(crate) fn check_prefix(prefix: &str) -> Result<(), UrlError> {
    match prefix.is_empty() || prefix.contains(['{', '}']) {
        true => bad("a prefix is not empty and has no braces, which mark what decides the slot of a key"),
        false => Ok(()),
    }
}

fn service(kind: &str, path: &str) -> Result<(Deployment, i64), UrlError> {
    let database = |text: &str| match text {
        "" => Ok(0),
        text => match text.parse::<u32>() {
            Ok(number) => Ok(i64::from(number)),
            Err(_) => bad("what follows the host is the number of a database"),
        },
    };
    match kind {
        "" => Ok((Deployment::Single, database(path)?)),
        "sentinel" => {
            let (master, number) = path.split_once('/').unwrap_or((path, ""));
            if master.is_empty() {
                return bad("the name of the master is missing: redis+sentinel://HOST/MASTER");
            }
            Ok((Deployment::Sentinel(decoded(master)?), database(number)?))
        }
        "cluster" if path.is_empty() => Ok((Deployment::Cluster, 0)),
        "cluster" => bad("a cluster has no numbered databases; end the address behind its hosts"),
        _ => bad("behind the + stands sentinel or cluster"),
    }
}

fn host_of(text: &str, port: u16) -> Result<(String, u16), UrlError> {
    let (host, rest) = match text.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, rest)) => (host, rest.strip_prefix(':')),
        None => text.split_once(':').map_or((text, None), |(host, port)| (host, Some(port))),
    };
    if host.is_empty() {
        return bad("a host is missing");
    }
    match rest.map_or(Ok(port), str::parse) {
        Ok(port) => Ok((host.to_owned(), port)),
        Err(_) => bad("what stands behind a host is no port"),
    }
}

fn credentials_of(text: &str) -> Result<(Option<String>, Option<String>), UrlError> {
    let (user, password) = text.split_once(':').map_or((text, None), |(user, it)| (user, Some(it)));
    let user = Some(decoded(user)?).filter(|user| !user.is_empty());
    Ok((user, password.map(decoded).transpose()?))
}

/// Parses `500ms`, `5s`, or a number of milliseconds.
fn millis_of(text: &str) -> Result<Duration, UrlError> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1),
        None => text.strip_suffix('s').map_or((text, 1), |number| (number, 1_000)),
    };
    match number.parse::<u32>() {
        Ok(number) if number > 0 => Ok(Duration::from_millis(u64::from(number) * unit)),
        _ => bad("timeout is a time such as 500ms or 5s"),
    }
}

fn percent_of(text: &str) -> Result<u8, UrlError> {
    match text.parse() {
        Ok(percent) if (1..=100).contains(&percent) => Ok(percent),
        _ => bad("prefetch is a percentage of the capacities, such as prefetch=5"),
    }
}

fn decoded(text: &str) -> Result<String, UrlError> {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let code = part.get(..2).and_then(|code| u8::from_str_radix(code, 16).ok());
        let Some(code) = code else { return bad("a % stands before two hexadecimal digits") };
        bytes.push(code);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(bytes).or_else(|_| bad("what is written with % is no UTF-8"))
}

/// Writes the address without its password.
impl fmt::Display for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let base = if self.is_encrypted { "rediss" } else { "redis" };
        let kind = match self.service {
            Deployment::Single => "",
            Deployment::Sentinel(_) => "+sentinel",
            Deployment::Cluster => "+cluster",
        };
        write!(f, "{base}{kind}://")?;
        for (place, (host, port)) in self.hosts.iter().enumerate() {
            let comma = if place > 0 { "," } else { "" };
            let (open, close) = if host.contains(':') { ("[", "]") } else { ("", "") };
            write!(f, "{comma}{open}{host}{close}:{port}")?;
        }
        if let Deployment::Sentinel(master) = &self.service {
            write!(f, "/{master}")?;
        }
        if self.database != 0 { write!(f, "/{}", self.database) } else { Ok(()) }
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RedisUrl").field(&self.to_string()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> RedisUrl {
        text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn addresses_say_where_the_store_is() {
        let url = parsed("redis://localhost");
        assert_eq!((&url.service, url.hosts[0].1, url.database), (&Deployment::Single, 6379, 0));
        let url =
            parsed("rediss://me:p%40ss%3A@[::1]:7000/3?prefix=a&timeout=500ms&evicting=accept&prefetch=5");
        assert!(url.is_encrypted && url.accepts_eviction && url.prefetch == Some(5));
        assert_eq!(url.hosts, [("::1".to_owned(), 7000)]);
        assert_eq!((url.user.as_deref(), url.password.as_deref()), (Some("me"), Some("p@ss:")));
        assert_eq!((url.prefix.as_str(), url.database), ("a", 3));
        assert_eq!(url.timeout, Some(Duration::from_millis(500)));
        let url = parsed("redis+sentinel://:secret@a,b:27000/mymaster/2?sentinel_password=x");
        assert_eq!(url.hosts, [("a".to_owned(), 26379), ("b".to_owned(), 27000)]);
        assert_eq!((url.service, url.database), (Deployment::Sentinel("mymaster".into()), 2));
        assert_eq!(parsed("valkey+cluster://a,b").service, Deployment::Cluster);
    }

    #[test]
    fn what_is_no_address_is_refused_without_telling_the_password() {
        for text in [
            "localhost",
            "http://hunter2@a",
            "redis://hunter2@a,b",
            "redis://:hunter2@",
            "redis://:hunter2@a:x",
            "redis://:hunter2@a/x",
            "redis://:hunter2%@a",
            "redis://:hunter2%zz@a",
            "redis://:hunter2@a?prefix=",
            "redis://:hunter2@a?prefix={}",
            "redis://:hunter2@a?timeout=0",
            "redis://:hunter2@a?evicting=maybe",
            "redis://:hunter2@a?prefetch=0",
            "redis://:hunter2@a?prefetch=101",
            "redis://:hunter2@a?colour=red",
            "redis+sentinel://:hunter2@a",
            "redis+cluster://:hunter2@a/1",
            "redis+ring://:hunter2@a",
        ] {
            let why = text.parse::<RedisUrl>().expect_err(text).to_string();
            assert!(!why.contains("hunter2"), "{why}");
        }
    }

    #[test]
    fn neither_form_of_an_address_tells_the_password() {
        let url = parsed("rediss+sentinel://me:hunter2@a,b/master/1?sentinel_password=hunter2");
        assert_eq!(url.to_string(), "rediss+sentinel://a:26379,b:26379/master/1");
        assert!(!format!("{url:?}").contains("hunter2"));
    }
}
