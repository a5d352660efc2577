//! What can go wrong with a call to the server.

use std::time::Duration;

use redis::{ErrorKind, RedisError, ServerErrorKind};
use tollgate_store::StoreError;

/// Why a call to the server failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ServerError {
    /// No connection could be made.
    #[error("no connection to {0}: {1}; check the address and whether the server runs")]
    NoConnection(String, String),
    /// The connection broke.
    #[error("the connection to Redis broke ({0})")]
    Lost(String),
    /// No answer in time.
    #[error("Redis did not answer in time; check the network and the load of the server")]
    Timeout,
    /// The server cannot serve just now: it loads its data, is a replica, has lost its master, or a slot is on its way.
    #[error("Redis cannot serve just now: {0}")]
    Busy(String),
    /// The slot is at another node.
    #[error("the slot is at {0}")]
    Moved(String),
    /// The slot is on its way to another node, which is to be asked this once.
    #[error("the slot is on its way to {0}")]
    Ask(String),
    /// The server does not know the script.
    #[error("Redis does not know the script")]
    NoScript,
    /// Others changed the same values again and again.
    #[error("others changed the same values {0} times in a row; try again")]
    Conflict(usize),
    /// The server has no memory left.
    #[error("Redis has no memory left ({0}); give it more, or let less be kept")]
    OutOfMemory(String),
    /// Something that is no answer of Redis, or none that this version knows.
    #[error("what came is no answer of Redis: {0}")]
    Garbage(String),
    /// The caller may not do this.
    #[error("no permission: {0}; check the user, the password and the rights of the user")]
    AccessDenied(String),
    /// What is stored is not ours, or damaged.
    #[error("what is stored cannot be read: {0}")]
    Unreadable(String),
    /// Something that this version knows nothing about.
    #[error("Redis refused the call: {0}")]
    Other(String),
}

impl ServerError {
    /// Whether it may be over in a moment, so that another try is worth it.
    pub fn is_passing(&self) -> bool {
        !matches!(self, ServerError::AccessDenied(_) | ServerError::Unreadable(_) | ServerError::Other(_))
    }

    /// Whether it says why there is no service, rather than that no answer came or where else to ask.
    pub(crate) fn is_telling(&self) -> bool {
        !matches!(
            self,
            ServerError::Timeout | ServerError::NoScript | ServerError::Moved(_) | ServerError::Ask(_)
        )
    }

    /// Whether the connection is of no use any more.
    pub(crate) fn breaks(&self) -> bool {
        match self {
            // Those who say this will serve in a moment; all others who are busy are not who should be asked.
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

    /// What an error of the client says. It never quotes what was sent, so it names no secret.
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
            // How servers say it whose scripts wrap what their commands say.
            _ if text.contains("ACL") || text.contains("NOPERM") => ServerError::AccessDenied(text),
            _ if text.contains("OOM command not allowed") => ServerError::OutOfMemory(text),
            // A slot that is on its way, seen from within a script.
            _ if text.contains("READONLY") || text.contains("Script attempted to access") => {
                ServerError::Busy(text)
            }
            _ => ServerError::Other(text),
        }
    }
}
