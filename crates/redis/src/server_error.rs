//! Errors of calls to the server.

use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use tollgate_store::StoreError;

/// Why a call to the server failed.
///
/// ```
/// use tollgate_redis::ServerError;
///
/// assert!(ServerError::Timeout.is_passing());
/// assert!(!ServerError::AccessDenied("NOPERM".into()).is_passing());
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No connection could be made.
    #[error("no connection to {0}: {1}; check the address and whether the server runs")]
    NoConnection(String, String),
    /// The connection broke.
    #[error("the connection to Redis broke ({0})")]
    Lost(String),
    /// No reply came in time.
    #[error("Redis did not answer in time; check the network and the load of the server")]
    Timeout,
    /// The server cannot serve just now: it loads its data, is a replica, has lost its master, or a slot is being moved.
    #[error("Redis cannot serve just now: {0}")]
    Busy(String),
    /// The slot is at another node.
    #[error("the slot is at {0}")]
    Moved(String),
    /// The slot is being moved to another node, which may have the keys already.
    #[error("the slot is on its way to {0}")]
    Ask(String),
    /// The server does not know the script.
    #[error("Redis does not know the script")]
    NoScript,
    /// Other clients changed the same values again and again.
    #[error("others changed the same values {0} times in a row; try again")]
    Conflict(usize),
    /// The server has no memory left.
    #[error("Redis has no memory left ({0}); give it more, or let less be kept")]
    OutOfMemory(String),
    /// The reply is not one of Redis, or not one that this version can parse.
    #[error("what came is no answer of Redis: {0}")]
    Garbage(String),
    /// The user lacks a right.
    #[error("no permission: {0}; check the user, the password and the rights of the user")]
    AccessDenied(String),
    /// A stored value is not ours, or damaged.
    #[error("what is stored cannot be read: {0}")]
    Unreadable(String),
    /// Any other error of the server.
    #[error("Redis refused the call: {0}")]
    Other(String),
}

impl ServerError {
    /// Returns whether it may be over in a moment, so that a retry is worth it.
    pub fn is_passing(&self) -> bool {
        !matches!(self, ServerError::AccessDenied(_) | ServerError::Unreadable(_) | ServerError::Other(_))
    }

    /// Returns whether it names a cause, rather than a missing reply or a redirect.
    pub(crate) fn names_cause(&self) -> bool {
        !matches!(
            self,
            ServerError::Timeout | ServerError::NoScript | ServerError::Moved(_) | ServerError::Ask(_)
        )
    }

    /// Returns whether the connection has to be dropped.
    pub(crate) fn breaks(&self) -> bool {
        match self {
            // A server with one of these errors will serve in a moment; any other busy one is the wrong server.
            ServerError::Busy(why) => {
                !["TRYAGAIN", "LOADING", "Script attempted"].iter().any(|it| why.contains(it))
            }
            ServerError::NoConnection(..)
            | ServerError::Lost(_)
            | ServerError::Timeout
            | ServerError::Garbage(_)
            | ServerError::AccessDenied(_) => true,
            _ => false,
        }
    }

    pub(crate) fn into_error(self, waited: Duration) -> StoreError {
        match self.is_passing() {
            true => StoreError::Unavailable(waited, self.to_string()),
            false => StoreError::Refused(self.to_string()),
        }
    }

    /// Converts an error of the client library. It never quotes what was sent, so it shows no secret.
    pub(crate) fn of(error: &RedisError) -> ServerError {
        let code = error.code().unwrap_or_default();
        let text = || match (code, error.detail()) {
            ("", Some(detail)) => detail.to_owned(),
            ("", None) => error.category().to_owned(),
            (code, detail) => format!("{code} {}", detail.unwrap_or_default()).trim_end().to_owned(),
        };
        let node = || error.redirect_node().map(|(node, _)| node.to_owned()).unwrap_or_default();
        match error.kind() {
            ErrorKind::Server(ServerErrorKind::NoScript) => ServerError::NoScript,
            ErrorKind::Server(ServerErrorKind::Moved) => ServerError::Moved(node()),
            ErrorKind::Server(ServerErrorKind::Ask) => ServerError::Ask(node()),
            ErrorKind::Server(
                ServerErrorKind::BusyLoading
                | ServerErrorKind::TryAgain
                | ServerErrorKind::ClusterDown
                | ServerErrorKind::MasterDown
                | ServerErrorKind::ReadOnly,
            ) => ServerError::Busy(text()),
            ErrorKind::Server(ServerErrorKind::NoPerm) | ErrorKind::AuthenticationFailed => {
                ServerError::AccessDenied(text())
            }
            ErrorKind::Io if error.is_timeout() => ServerError::Timeout,
            ErrorKind::Io => ServerError::Lost(error.to_string()),
            ErrorKind::Parse | ErrorKind::UnexpectedReturnType => {
                ServerError::Garbage(error.category().into())
            }
            _ => ServerError::of_code(code, text()),
        }
    }

    fn of_code(code: &str, text: String) -> ServerError {
        match code {
            "NOAUTH" | "WRONGPASS" | "NOPERM" => ServerError::AccessDenied(text),
            "OOM" => ServerError::OutOfMemory(text),
            "BUSY" | "UNKILLABLE" | "MISCONF" | "NOREPLICAS" | "FAILOVER" | "UNBLOCKED" => {
                ServerError::Busy(text)
            }
            // Some servers wrap the errors of commands in errors of the script.
            _ if text.contains("ACL") || text.contains("NOPERM") => ServerError::AccessDenied(text),
            _ if text.contains("OOM command not allowed") => ServerError::OutOfMemory(text),
            // A slot that is being moved, as scripts see it.
            _ if text.contains("READONLY") || text.contains("Script attempted to access") => {
                ServerError::Busy(text)
            }
            _ => ServerError::Other(text),
        }
    }
}
