//! Endpoints outside of AWS.

use std::net::IpAddr;

use crate::DynamoOpenError;

/// Checks that an endpoint is a URL that can be called and has no secret in it.
///
/// # Errors
///
/// [`DynamoOpenError::BadSetting`] with what is wrong.
pub(crate) fn check(endpoint: &str) -> Result<(), DynamoOpenError> {
    let bad =
        |why: &str| Err(DynamoOpenError::BadSetting(format!("{why}; say it like http://127.0.0.1:8000")));
    let Some((_, rest)) = split(endpoint) else {
        return bad("the endpoint starts neither with http:// nor with https://");
    };
    if rest.contains('@') {
        return bad("the endpoint has a user in it, and calls are signed with credentials instead");
    }
    if host(rest).is_empty() {
        return bad("the endpoint has no host");
    }
    Ok(())
}

/// Returns whether an endpoint is on this host.
pub(crate) fn is_on_this_host(endpoint: &str) -> bool {
    let host = split(endpoint).map_or("", |(_, rest)| host(rest));
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

fn split(endpoint: &str) -> Option<(&str, &str)> {
    endpoint.split_once("://").filter(|(scheme, _)| matches!(*scheme, "http" | "https"))
}

/// Returns the host of a URL without its scheme, with the brackets of an IPv6 address.
fn host(rest: &str) -> &str {
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    match authority.find(']') {
        Some(end) => &authority[..=end],
        None => authority.split(':').next().unwrap_or_default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_host_is_told_from_others() {
        let here = ["http://127.0.0.1:8000", "http://localhost", "https://[::1]:8000/x", "http://127.1.2.3"];
        for endpoint in here {
            assert!(is_on_this_host(endpoint), "{endpoint}");
        }
        let there = ["http://10.0.0.1:8000", "https://localhost.example", "127.0.0.1", "http://[::2]", ""];
        for endpoint in there {
            assert!(!is_on_this_host(endpoint), "{endpoint}");
        }
    }

    #[test]
    fn what_cannot_be_called_is_refused() {
        for endpoint in ["", "localhost:8000", "ftp://localhost", "http://", "http://me:secret@localhost"] {
            let Err(DynamoOpenError::BadSetting(why)) = check(endpoint) else { panic!("{endpoint} passed") };
            assert!(!why.contains("secret"));
        }
        assert_eq!(check("http://127.0.0.1:8000"), Ok(()));
    }
}
