use std::fmt;
use std::str::FromStr;

/// A DynamoDB table and its location. It never has credentials: the name of a store appears on command lines, in files
/// and in messages.
///
/// | parameter | meaning |
/// |---|---|
/// | `region=NAME` | the region; by default that of the environment or the profile |
/// | `endpoint=URL` | the URL of the service, if it is not a region of AWS |
/// | `create=true` | create the table if it does not exist; by default a missing table is an error |
/// | `chains=transaction` | write a call that acquires from several buckets as one transaction; by default `parallel` |
/// | `prefetch=PERCENT` | hold up to so many percent of each capacity ahead; by default nothing |
///
/// # Examples
///
/// ```
/// use tollgate_open::{DynamodbUrl, DynamodbUrlError};
///
/// let url: DynamodbUrl = "limits?region=eu-west-1&prefetch=5".parse()?;
/// assert_eq!((url.table(), url.prefetch()), ("limits", Some(5)));
/// assert_eq!("limits?create=yes".parse::<DynamodbUrl>(), Err(DynamodbUrlError::BadCreate));
/// # Ok::<(), DynamodbUrlError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DynamodbUrl {
    pub(crate) table: String,
    pub(crate) region: Option<String>,
    pub(crate) endpoint: Option<String>,
    /// Whether to create the table if it does not exist.
    pub(crate) creates: bool,
    /// Whether a call that acquires from several buckets is one transaction.
    pub(crate) transacts_chains: bool,
    /// How many percent of each capacity a process may hold ahead.
    pub(crate) prefetch: Option<u8>,
}

/// Why a text is not a table with its parameters. It does not quote the value of a parameter, which may be a secret by
/// mistake.
///
/// # Examples
///
/// ```
/// use tollgate_open::{DynamodbUrl, DynamodbUrlError};
///
/// let error = "limits?secret_key=hunter2".parse::<DynamodbUrl>().unwrap_err();
/// assert_eq!(error, DynamodbUrlError::UnknownParameter("secret_key".into()));
/// assert!(!error.to_string().contains("hunter2"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DynamodbUrlError {
    /// The table has no name.
    #[error("the name of the table is missing; write it like dynamodb:limits")]
    NoTable,
    /// The service has no tables of such a name.
    #[error("the name of a table has 3 to 255 characters of a-z, A-Z, 0-9, _, . and -")]
    BadTable,
    /// There is no such parameter.
    #[error(
        "{name:?} is not a parameter of a table (valid are {known}; credentials are taken from the AWS environment or \
         profile)",
        name = .0,
        known = DynamodbUrl::PARAMETERS.join(", ")
    )]
    UnknownParameter(String),
    /// A parameter has no value.
    #[error("{0} has no value; write {0}=VALUE, or leave it out")]
    NoValue(&'static str),
    /// The endpoint is not the URL of a service.
    #[error("the endpoint is not a URL; write it like endpoint=http://127.0.0.1:8000")]
    BadEndpoint,
    /// The endpoint has credentials in it.
    #[error("the endpoint has a user in it; credentials are taken from the AWS environment or profile")]
    EndpointWithUser,
    /// `create` is neither true nor false.
    #[error("create is true or false")]
    BadCreate,
    /// `chains` is neither parallel nor transaction.
    #[error("chains is parallel or transaction")]
    BadChains,
    /// `prefetch` is not a percentage.
    #[error("prefetch is a percentage of the capacities, such as prefetch=5")]
    BadPrefetch,
}

impl DynamodbUrl {
    /// The parameters of a table.
    pub const PARAMETERS: [&str; 5] = ["region", "endpoint", "create", "chains", "prefetch"];

    /// Returns the name of the table.
    pub fn table(&self) -> &str {
        &self.table
    }

    /// Returns how many percent of each capacity a process may hold ahead, if the URL has that parameter.
    pub fn prefetch(&self) -> Option<u8> {
        self.prefetch
    }
}

/// Parses the name of a table with its parameters, such as `limits?region=eu-west-1`.
impl FromStr for DynamodbUrl {
    type Err = DynamodbUrlError;

    fn from_str(text: &str) -> Result<DynamodbUrl, DynamodbUrlError> {
        let (table, parameters) = text.split_once('?').unwrap_or((text, ""));
        let mut url = DynamodbUrl { table: parse_table(table)?, ..DynamodbUrl::default() };
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let known = DynamodbUrl::PARAMETERS.into_iter().find(|known| *known == name);
            match known.ok_or_else(|| DynamodbUrlError::UnknownParameter(name.into()))? {
                name if value.is_empty() => return Err(DynamodbUrlError::NoValue(name)),
                name => url.set(name, value)?,
            }
        }
        Ok(url)
    }
}

impl DynamodbUrl {
    /// Sets a parameter, which is one of [`PARAMETERS`](DynamodbUrl::PARAMETERS).
    fn set(&mut self, name: &str, value: &str) -> Result<(), DynamodbUrlError> {
        match name {
            "region" => self.region = Some(value.into()),
            "endpoint" => self.endpoint = Some(parse_endpoint(value)?),
            "create" => self.creates = parse_create(value)?,
            "chains" => self.transacts_chains = parse_chains(value)?,
            _ => self.prefetch = Some(parse_prefetch(value)?),
        }
        Ok(())
    }
}

impl fmt::Display for DynamodbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table)?;
        let prefetch = self.prefetch.map(|percent| percent.to_string());
        let creates = self.creates.then_some("true");
        let chains = self.transacts_chains.then_some("transaction");
        let values = [self.region.as_deref(), self.endpoint.as_deref(), creates, chains, prefetch.as_deref()];
        let set = DynamodbUrl::PARAMETERS.iter().zip(values).filter_map(|(name, value)| Some((name, value?)));
        for (index, (name, value)) in set.enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

/// Validates the name of a table by the rules of the service.
fn parse_table(table: &str) -> Result<String, DynamodbUrlError> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    match table.len() {
        0 => Err(DynamodbUrlError::NoTable),
        3..=255 if table.chars().all(is_valid) => Ok(table.into()),
        _ => Err(DynamodbUrlError::BadTable),
    }
}

fn parse_endpoint(endpoint: &str) -> Result<String, DynamodbUrlError> {
    let rest = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"));
    match rest {
        Some(rest) if rest.contains('@') => Err(DynamodbUrlError::EndpointWithUser),
        Some(rest) if !rest.is_empty() => Ok(endpoint.into()),
        _ => Err(DynamodbUrlError::BadEndpoint),
    }
}

fn parse_create(text: &str) -> Result<bool, DynamodbUrlError> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err(DynamodbUrlError::BadCreate),
    }
}

fn parse_chains(text: &str) -> Result<bool, DynamodbUrlError> {
    match text {
        "transaction" => Ok(true),
        "parallel" => Ok(false),
        _ => Err(DynamodbUrlError::BadChains),
    }
}

/// Parses a percentage. The bounds are those of an address of Redis.
fn parse_prefetch(text: &str) -> Result<u8, DynamodbUrlError> {
    match text.parse() {
        Ok(percent) if (1..=100).contains(&percent) => Ok(percent),
        _ => Err(DynamodbUrlError::BadPrefetch),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> DynamodbUrl {
        text.parse().unwrap_or_else(|why| panic!("{text}: {why}"))
    }

    #[test]
    fn a_table_is_shown_as_it_was_written() {
        for text in [
            "limits",
            "limits?region=eu-west-1&chains=transaction&prefetch=5",
            "my.Table-1?endpoint=http://127.0.0.1:8000&create=true",
        ] {
            assert_eq!(parsed(text).to_string(), text);
        }
        assert_eq!(parsed("limits?create=false").to_string(), "limits");
    }

    #[test]
    fn an_error_says_what_would_be_valid() {
        for (text, said) in [
            ("", "like dynamodb:limits"),
            ("ab", "3 to 255"),
            ("a/b/c", "3 to 255"),
            ("limits?regoin=x", "valid are region, endpoint"),
            ("limits?region=", "region=VALUE"),
            ("limits?prefetch=", "leave it out"),
            ("limits?prefetch=0", "a percentage"),
            ("limits?prefetch=101", "a percentage"),
            ("limits?create=yes", "true or false"),
            ("limits?chains=both", "parallel or transaction"),
            ("limits?endpoint=127.0.0.1", "like endpoint=http://"),
        ] {
            let why = text.parse::<DynamodbUrl>().unwrap_err().to_string();
            assert!(why.contains(said), "{text}: {why}");
        }
    }

    #[test]
    fn a_secret_is_refused_and_not_repeated() {
        for text in ["limits?secret_key=hunter2", "limits?endpoint=http://me:hunter2@localhost"] {
            let why = text.parse::<DynamodbUrl>().unwrap_err().to_string();
            assert!(why.contains("the AWS environment or profile") && !why.contains("hunter2"), "{why}");
        }
    }
}
