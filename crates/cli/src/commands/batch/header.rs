//! Headers that the user adds to every request. Their values may be secret, so no message contains them.

use std::convert::Infallible;

use reqwest::header::{CONTENT_LENGTH, HeaderName, HeaderValue, TRANSFER_ENCODING};

use super::secret::ApiKey;

/// A header and its value, which `Debug` does not show.
pub(crate) type Header = (HeaderName, HeaderValue);

/// Accepts an argument that may be secret. It is parsed later, because clap would repeat it in an error.
pub(crate) fn secret_word(text: &str) -> Result<ApiKey, Infallible> {
    Ok(ApiKey::new(text))
}

/// Parses `Name: value`.
///
/// # Errors
///
/// What is wrong, without the value.
pub(super) fn parse(text: &ApiKey) -> Result<Header, String> {
    let Some((name, value)) = text.reveal().split_once(':') else {
        return Err("a header must be a name, a colon and a value, such as 'X-Team: blue'".into());
    };
    header(name.trim(), value.trim())
}

/// Parses a name and a value.
///
/// # Errors
///
/// What is wrong, without the value.
pub(super) fn header(name: &str, value: &str) -> Result<Header, String> {
    let bad = || "a header has a name that is not valid; valid are letters, digits and -".to_owned();
    let name: HeaderName = name.parse().map_err(|_| bad())?;
    if [CONTENT_LENGTH, TRANSFER_ENCODING].contains(&name) {
        return Err(format!("the header {name} is set by the request itself"));
    }
    let value = HeaderValue::from_str(value);
    let mut value = value.map_err(|_| format!("the value of the header {name} must be printable"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_a_name_and_a_value_that_is_not_shown() {
        let (name, value) = parse(&ApiKey::new("X-Team:  canary: blue ")).unwrap();
        assert_eq!((name.as_str(), value.to_str().unwrap()), ("x-team", "canary: blue"));
        assert!(!format!("{value:?}").contains("canary"));
        for bad in ["canary", "canary canary: x", ": canary", "x: canary\u{1}", "Content-Length: canary"] {
            let why = parse(&ApiKey::new(bad)).unwrap_err();
            assert!(!why.contains("canary"), "{why}");
        }
    }
}
