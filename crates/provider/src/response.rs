//! Results of a call: a reply, or a failure.

/// A provider's reply.
///
/// ```
/// use std::time::SystemTime;
/// use tollgate_provider::{Class, Response, read};
///
/// let headers = [("content-type", "application/json")];
/// let reply = Response::new(200, &headers, br#"{"usage":{"prompt_tokens":3}}"#);
/// let hint = read(&reply, SystemTime::UNIX_EPOCH);
/// assert_eq!((hint.class, hint.usage.map(|usage| usage.input)), (Class::Ok, Some(3)));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The HTTP status.
    pub status: u16,
    /// The names and values of the headers. Names may be in any case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, or as much of it as was received. For a stream, all events so far.
    pub body: &'a [u8],
}

impl<'a> Response<'a> {
    /// Creates a reply.
    #[must_use]
    pub fn new(status: u16, headers: &'a [(&'a str, &'a str)], body: &'a [u8]) -> Self {
        Self { status, headers, body }
    }
}

/// Why a call got no reply.
///
/// ```
/// use tollgate_provider::{Failure, read_failure};
///
/// let hint = read_failure(Failure::Connection);
/// assert_eq!(hint.reason.as_deref(), Some(Failure::Connection.as_str()));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// The reply did not arrive before the caller's timeout.
    Timeout,
    /// The connection failed, or was lost before the reply was complete.
    Connection,
    /// The host does not exist, or its certificate is not trusted: no call to it succeeds.
    Address,
    /// The request could not be sent.
    Request,
}

impl Failure {
    /// Describes the failure for users.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Timeout => "no reply in time",
            Self::Connection => "the connection failed or was lost",
            Self::Address => "the address cannot be called",
            Self::Request => "the request could not be sent",
        }
    }
}
