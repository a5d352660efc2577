//! What comes back of a call: a reply, or none.

/// A reply of a provider, as it came.
#[derive(Clone, Copy, Debug)]
pub struct Response<'a> {
    /// The status of HTTP.
    pub status: u16,
    /// Names and values. Names may be in any case.
    pub headers: &'a [(&'a str, &'a str)],
    /// The body, or as much of it as came. Of a stream, all events so far.
    pub body: &'a [u8],
}

impl<'a> Response<'a> {
    /// A reply of these parts.
    #[must_use]
    pub fn new(status: u16, headers: &'a [(&'a str, &'a str)], body: &'a [u8]) -> Self {
        Self { status, headers, body }
    }
}

/// Why a call got no reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Failure {
    /// No reply within the time that the caller gives one.
    Timeout,
    /// No connection, or it was lost before the reply was complete.
    Connection,
    /// The address has no host, or its certificate is not trusted: no call to it will go through.
    Address,
    /// The request could not be sent as it is.
    Request,
}

impl Failure {
    /// What is said of it where people read.
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
