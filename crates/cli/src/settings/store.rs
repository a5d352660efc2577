//! The URL of a store, with the texts of the command.

#[cfg(feature = "dynamodb")]
use tollgate_open::{DynamodbUrl, DynamodbUrlError};
use tollgate_open::{StoreUrl, StoreUrlError};

#[cfg(feature = "dynamodb")]
use super::suggest;
use crate::features;

/// The parameter that the command refuses.
#[cfg(feature = "dynamodb")]
const PREFETCH: &str = "prefetch";

/// The error for `prefetch`, which stores across a network have: a command ends before it could use prefetched credit.
const NO_PREFETCH: &str =
    "prefetch is for programs that acquire often, and a command acquires once: leave it out";

/// Parses the URL of a store.
///
/// # Errors
///
/// What would be valid.
pub(crate) fn parse_store(text: &str) -> Result<StoreUrl, String> {
    let url = text.parse::<StoreUrl>().map_err(|error| message(&error))?;
    match url.prefetch() {
        Some(_) => Err(NO_PREFETCH.into()),
        None => Ok(url),
    }
}

/// Returns the text of an error: that of the library, unless the command has more to say.
fn message(error: &StoreUrlError) -> String {
    let ours = match error {
        StoreUrlError::LeftOut { scheme, feature } => features::missing_store(scheme, feature),
        #[cfg(feature = "dynamodb")]
        StoreUrlError::Dynamodb(error) => table_message(error),
        _ => None,
    };
    ours.unwrap_or_else(|| error.to_string())
}

#[cfg(feature = "dynamodb")]
fn table_message(error: &DynamodbUrlError) -> Option<String> {
    match error {
        DynamodbUrlError::UnknownParameter(name) => Some(unknown_parameter(name)),
        DynamodbUrlError::BadPrefetch | DynamodbUrlError::NoValue(PREFETCH) => Some(NO_PREFETCH.into()),
        _ => None,
    }
}

/// Returns the error for an unknown parameter of a table, with the one that was meant.
#[cfg(feature = "dynamodb")]
fn unknown_parameter(name: &str) -> String {
    let valid: Vec<&str> = DynamodbUrl::PARAMETERS.into_iter().filter(|known| *known != PREFETCH).collect();
    let meant = suggest::nearest(name, &valid);
    let meant = meant.map(|meant| format!("; did you mean {meant:?}?")).unwrap_or_default();
    let known = valid.join(", ");
    let credentials = "credentials are taken from the AWS environment or profile";
    format!("{name:?} is not a parameter of a table{meant} (valid are {known}; {credentials})")
}

#[cfg(all(test, any(feature = "dynamodb", feature = "redis")))]
mod tests {
    use super::*;

    fn said(text: &str) -> String {
        parse_store(text).expect_err(text)
    }

    #[cfg(feature = "redis")]
    #[test]
    fn prefetch_is_refused_on_redis() {
        assert_eq!(said("redis://host?prefetch=5"), NO_PREFETCH);
    }

    #[cfg(feature = "dynamodb")]
    #[test]
    fn prefetch_is_refused_on_a_table() {
        for value in ["prefetch=5", "prefetch=x", "prefetch=", "prefetch"] {
            assert_eq!(said(&format!("dynamodb:limits?{value}")), NO_PREFETCH);
        }
    }

    #[cfg(feature = "dynamodb")]
    #[test]
    fn an_unknown_parameter_of_a_table_is_refused_with_the_one_that_was_meant() {
        let why = said("dynamodb:limits?regoin=x");
        assert!(why.contains("did you mean \"region\"?"), "{why}");
        assert!(why.contains("(valid are region, endpoint, create, chains; credentials"), "{why}");
        let why = said("dynamodb:limits?secret_key=hunter2");
        assert!(!why.contains("prefetch") && !why.contains("hunter2"), "{why}");
    }
}
