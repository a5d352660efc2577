use std::fmt;

use super::{NO_PREFETCH, suggest};

const PARAMETERS: [&str; 4] = ["region", "endpoint", "create", "chains"];

/// A DynamoDB table and its location. It never has credentials: the name of a store appears on command lines, in files
/// and in messages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DynamodbUrl {
    /// The table.
    pub(crate) table: String,
    /// The region; by default that of the environment or the profile.
    pub(crate) region: Option<String>,
    /// The URL of the service, if it is not a region of AWS.
    pub(crate) endpoint: Option<String>,
    /// Whether to create the table if it does not exist.
    pub(crate) creates: bool,
    /// Whether a call that acquires from several buckets is one transaction.
    pub(crate) transacts_chains: bool,
}

impl DynamodbUrl {
    /// Parses the name of a table with its parameters, such as `limits?region=eu-west-1`.
    pub(super) fn parse(text: &str) -> Result<DynamodbUrl, String> {
        let (table, parameters) = text.split_once('?').unwrap_or((text, ""));
        let mut url = DynamodbUrl { table: parse_table(table)?, ..DynamodbUrl::default() };
        for parameter in parameters.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            match name {
                _ if value.is_empty() && PARAMETERS.contains(&name) => {
                    return Err(format!("{name} has no value; write {name}=VALUE, or leave it out"));
                }
                "region" => url.region = Some(value.into()),
                "endpoint" => url.endpoint = Some(parse_endpoint(value)?),
                "create" => url.creates = parse_bool(value)?,
                "chains" => url.transacts_chains = parse_chains(value)?,
                "prefetch" => return Err(NO_PREFETCH.into()),
                // The value is not repeated: it may be a secret.
                _ => return Err(unknown(name)),
            }
        }
        Ok(url)
    }
}

impl fmt::Display for DynamodbUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.table)?;
        let creates = self.creates.then_some("true");
        let chains = self.transacts_chains.then_some("transaction");
        let values = [self.region.as_deref(), self.endpoint.as_deref(), creates, chains];
        let set = PARAMETERS.iter().zip(values).filter_map(|(name, value)| Some((name, value?)));
        for (index, (name, value)) in set.enumerate() {
            write!(f, "{}{name}={value}", if index == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

/// Validates the name of a table by the rules of the service.
fn parse_table(table: &str) -> Result<String, String> {
    let is_valid = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    match table.len() {
        0 => Err("the name of the table is missing; write it like dynamodb:limits".into()),
        3..=255 if table.chars().all(is_valid) => Ok(table.into()),
        _ => Err("the name of a table has 3 to 255 characters of a-z, A-Z, 0-9, _, . and -".into()),
    }
}

fn parse_endpoint(endpoint: &str) -> Result<String, String> {
    let rest = endpoint.strip_prefix("http://").or_else(|| endpoint.strip_prefix("https://"));
    match rest {
        Some(rest) if rest.contains('@') => {
            Err("the endpoint has a user in it; credentials are taken from the AWS environment or profile"
                .into())
        }
        Some(rest) if !rest.is_empty() => Ok(endpoint.into()),
        _ => Err("the endpoint is not a URL; write it like endpoint=http://127.0.0.1:8000".into()),
    }
}

fn parse_bool(text: &str) -> Result<bool, String> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        _ => Err("create is true or false".into()),
    }
}

fn parse_chains(text: &str) -> Result<bool, String> {
    match text {
        "transaction" => Ok(true),
        "parallel" => Ok(false),
        _ => Err("chains is parallel or transaction".into()),
    }
}

fn unknown(name: &str) -> String {
    let meant = suggest::nearest(name, &PARAMETERS);
    let meant = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
    let known = PARAMETERS.join(", ");
    let credentials = "credentials are taken from the AWS environment or profile";
    format!("{name:?} is not a parameter of a table{meant} (valid are {known}; {credentials})")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_is_shown_as_it_was_written() {
        for text in [
            "limits",
            "limits?region=eu-west-1&chains=transaction",
            "my.Table-1?endpoint=http://127.0.0.1:8000&create=true",
        ] {
            assert_eq!(DynamodbUrl::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(DynamodbUrl::parse("limits?create=false").unwrap().to_string(), "limits");
    }

    #[test]
    fn an_error_says_what_would_be_valid() {
        for (text, said) in [
            ("", "like dynamodb:limits"),
            ("ab", "3 to 255"),
            ("a/b/c", "3 to 255"),
            ("limits?regoin=x", "did you mean \"region\"?"),
            ("limits?region=", "region=VALUE"),
            ("limits?prefetch=5", "leave it out"),
            ("limits?create=yes", "true or false"),
            ("limits?chains=both", "parallel or transaction"),
            ("limits?endpoint=127.0.0.1", "like endpoint=http://"),
        ] {
            let why = DynamodbUrl::parse(text).unwrap_err();
            assert!(why.contains(said), "{text}: {why}");
        }
    }

    #[test]
    fn a_secret_is_refused_and_not_repeated() {
        for text in ["limits?secret_key=hunter2", "limits?endpoint=http://me:hunter2@localhost"] {
            let why = DynamodbUrl::parse(text).unwrap_err();
            assert!(why.contains("the AWS environment or profile") && !why.contains("hunter2"), "{why}");
        }
    }
}
