//! Exit codes.

use std::fmt;
use std::io;

use tollgate::LeaseError;
use tollgate::ReplaceError;
use tollgate::catalog::CatalogError;
use tollgate::limiter::{LimiterError, TicketError};
use tollgate::store::StoreError;

use crate::limits_file::LimitsFileError;
use crate::settings::SettingsError;
use crate::store::OpenFailed;

/// An exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Exit(pub(crate) u8);

impl Exit {
    /// Success.
    pub(crate) const OK: Exit = Exit(0);
    /// A failure without an exit code of its own.
    pub(crate) const FAILURE: Exit = Exit(1);
    /// The command line is not valid. Nothing was written.
    pub(crate) const USAGE: Exit = Exit(2);
    /// A limit denied the call.
    pub(crate) const DENIED: Exit = Exit(3);
    /// The store could not be opened, did not answer or refused.
    pub(crate) const UNAVAILABLE: Exit = Exit(4);
    /// The config file, an environment variable or a limits file is not valid.
    pub(crate) const CONFIG: Exit = Exit(5);

    /// Returns the name of the code in JSON.
    pub(crate) fn kind(self) -> &'static str {
        match self {
            Exit::USAGE => "usage",
            Exit::DENIED => "denied",
            Exit::UNAVAILABLE => "unavailable",
            Exit::CONFIG => "config",
            _ => "failure",
        }
    }

    /// Returns the code of an error: that of the first cause that has one.
    pub(crate) fn of(error: &anyhow::Error) -> Exit {
        error.chain().find_map(of_cause).unwrap_or(Exit::FAILURE)
    }
}

/// An error in the command line that clap cannot detect.
#[derive(Debug)]
pub(crate) struct UsageError(pub(crate) String);

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for UsageError {}

/// A denial by a limit, with the time when it would admit.
#[derive(Debug)]
pub(crate) struct CallDenied(pub(crate) String);

impl fmt::Display for CallDenied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CallDenied {}

fn of_cause(cause: &(dyn std::error::Error + 'static)) -> Option<Exit> {
    if cause.is::<UsageError>() {
        return Some(Exit::USAGE);
    }
    if cause.is::<CallDenied>() {
        return Some(Exit::DENIED);
    }
    if cause.is::<OpenFailed>() {
        return Some(Exit::UNAVAILABLE);
    }
    if cause.is::<SettingsError>() || cause.is::<LimitsFileError>() {
        return Some(Exit::CONFIG);
    }
    if let Some(error) = cause.downcast_ref::<io::Error>() {
        // A reader such as `head` has closed the pipe.
        return (error.kind() == io::ErrorKind::BrokenPipe).then_some(Exit::OK);
    }
    if let Some(error) = cause.downcast_ref::<LimiterError>() {
        return of_acquire(error);
    }
    if let Some(error) = cause.downcast_ref::<CatalogError>() {
        return of_catalog(error);
    }
    if let Some(error) = cause.downcast_ref::<LeaseError>() {
        return of_lease(error);
    }
    if let Some(error) = cause.downcast_ref::<TicketError>() {
        return of_ticket(error);
    }
    if let Some(ReplaceError::Store(error)) = cause.downcast_ref::<ReplaceError>() {
        return of_store(error);
    }
    cause.downcast_ref::<StoreError>().and_then(of_store)
}

fn of_acquire(error: &LimiterError) -> Option<Exit> {
    match error {
        LimiterError::Denied(_) | LimiterError::TimedOut { .. } => Some(Exit::DENIED),
        LimiterError::Demand { .. } | LimiterError::ResourceTwice(_) | LimiterError::TooManyResources(_) => {
            Some(Exit::USAGE)
        }
        LimiterError::Catalog(error) => of_catalog(error),
        LimiterError::Store(error) => of_store(error),
        _ => None,
    }
}

fn of_catalog(error: &CatalogError) -> Option<Exit> {
    match error {
        CatalogError::Name(_)
        | CatalogError::Invalid { .. }
        | CatalogError::EmptyLimits(_)
        | CatalogError::Credit(_)
        | CatalogError::CreditOfResource(_) => Some(Exit::USAGE),
        CatalogError::Store(error) => of_store(error),
        CatalogError::NoSecret { .. } => Some(Exit::UNAVAILABLE),
        _ => None,
    }
}

fn of_lease(error: &LeaseError) -> Option<Exit> {
    match error {
        LeaseError::Usage(_) | LeaseError::OtherResource(..) | LeaseError::TooManyCalls { .. } => {
            Some(Exit::USAGE)
        }
        LeaseError::Store(error) => of_store(error),
        _ => None,
    }
}

fn of_ticket(error: &TicketError) -> Option<Exit> {
    match error {
        TicketError::NotOne(..)
        | TicketError::TooOld
        | TicketError::NotGenuine(_)
        | TicketError::Expired(_) => Some(Exit::USAGE),
        TicketError::Catalog(error) => of_catalog(error),
        TicketError::Degraded => Some(Exit::UNAVAILABLE),
        _ => None,
    }
}

fn of_store(error: &StoreError) -> Option<Exit> {
    match error {
        StoreError::Unavailable(..) | StoreError::Refused(_) => Some(Exit::UNAVAILABLE),
        StoreError::BadCall(_) => Some(Exit::USAGE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use anyhow::Context as _;

    use super::*;

    #[test]
    fn the_cause_decides_whatever_was_said_about_it() {
        let gone = CatalogError::Store(StoreError::Unavailable(Duration::from_secs(5), "locked".into()));
        let wrapped = Err::<(), _>(gone).context("cannot list entities").unwrap_err();
        assert_eq!(Exit::of(&wrapped), Exit::UNAVAILABLE);
        assert_eq!(Exit::of(&UsageError("no".into()).into()), Exit::USAGE);
        assert_eq!(Exit::of(&CatalogError::EntityNotFound("x".into()).into()), Exit::FAILURE);
        assert_eq!(Exit::of(&io::Error::from(io::ErrorKind::BrokenPipe).into()), Exit::OK);
        assert_eq!(Exit::of(&anyhow::anyhow!("else")), Exit::FAILURE);
    }
}
