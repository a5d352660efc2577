use std::fmt;
use std::path::PathBuf;

use super::{DynamodbUrl, RedisAddress};

/// The valid forms, for error messages.
const VALID: &str =
    "valid are memory, file:PATH, such as file:limits.db, shm:NAME, redis://HOST and dynamodb:TABLE";

/// The address of a store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreUrl {
    /// The memory of this process, which is lost when the command ends.
    Memory,
    /// A file that the processes of one host share.
    File(PathBuf),
    /// Named memory that the processes of one host share.
    Shm(String),
    /// A DynamoDB table.
    Dynamodb(DynamodbUrl),
    /// A Redis or Valkey server or cluster.
    Redis(RedisAddress),
}

impl StoreUrl {
    /// Parses the address of a store.
    pub(crate) fn parse(text: &str) -> Result<StoreUrl, String> {
        match text.split_once(':') {
            None if text == "memory" => Ok(StoreUrl::Memory),
            Some(("file", path)) if !path.is_empty() => Ok(StoreUrl::File(path.into())),
            Some(("file", _)) => Err("the path of the file is missing; write it like file:limits.db".into()),
            Some(("shm", name)) if !name.is_empty() => Ok(StoreUrl::Shm(name.into())),
            Some(("shm", _)) => Err("the name of the store is missing; write it like shm:limits".into()),
            Some((scheme, _)) if RedisAddress::is_scheme(scheme) => {
                RedisAddress::parse(text).map(StoreUrl::Redis)
            }
            Some(("dynamodb", rest)) => DynamodbUrl::parse(rest).map(StoreUrl::Dynamodb),
            _ => Err(format!("there is no such store; {VALID}")),
        }
    }
}

impl fmt::Display for StoreUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreUrl::Memory => f.write_str("memory"),
            StoreUrl::File(path) => write!(f, "file:{}", path.display()),
            StoreUrl::Shm(name) => write!(f, "shm:{name}"),
            StoreUrl::Dynamodb(url) => write!(f, "dynamodb:{url}"),
            StoreUrl::Redis(url) => url.fmt(f),
        }
    }
}
