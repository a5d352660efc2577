use std::fmt;
use std::path::PathBuf;

#[cfg(feature = "dynamodb")]
use super::DynamodbUrl;
#[cfg(feature = "redis")]
use super::RedisAddress;
use crate::features;

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
    /// Parses the address of a store.
    pub(crate) fn parse(text: &str) -> Result<StoreUrl, String> {
        let parts = text.split_once(':');
        if let Some(missing) = parts.and_then(|(scheme, _)| features::missing_store(scheme)) {
            return Err(missing);
        }
        match parts {
            None if text == "memory" => Ok(StoreUrl::Memory),
            Some(("file", path)) if !path.is_empty() => Ok(StoreUrl::File(path.into())),
            Some(("file", _)) => Err("the path of the file is missing; write it like file:limits.db".into()),
            #[cfg(all(feature = "shm", target_os = "linux"))]
            Some(("shm", name)) if !name.is_empty() => Ok(StoreUrl::Shm(name.into())),
            #[cfg(all(feature = "shm", target_os = "linux"))]
            Some(("shm", _)) => Err("the name of the store is missing; write it like shm:limits".into()),
            #[cfg(feature = "redis")]
            Some((scheme, _)) if RedisAddress::is_scheme(scheme) => {
                RedisAddress::parse(text).map(StoreUrl::Redis)
            }
            #[cfg(feature = "dynamodb")]
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
            #[cfg(all(feature = "shm", target_os = "linux"))]
            StoreUrl::Shm(name) => write!(f, "shm:{name}"),
            #[cfg(feature = "dynamodb")]
            StoreUrl::Dynamodb(url) => write!(f, "dynamodb:{url}"),
            #[cfg(feature = "redis")]
            StoreUrl::Redis(url) => url.fmt(f),
        }
    }
}
