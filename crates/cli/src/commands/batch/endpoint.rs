//! Endpoint of an account: the address of a request and the headers that it is sent with, by provider.

use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::account::{AccountConfig, Api};

/// The version of Anthropic's API.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// The default version of Azure's API.
const AZURE_VERSION: &str = "2024-10-21";

/// Returns the address of a request. Both base URLs and paths of requests may contain the API version.
///
/// # Errors
///
/// The request does not name the model that its address needs.
pub(super) fn address(account: &AccountConfig, path: Option<&str>, model: &str) -> Result<String, String> {
    let base = &account.base_url;
    let path = path.unwrap_or(match account.api {
        Api::Openai | Api::Azure => "/v1/chat/completions",
        Api::Anthropic => "/v1/messages",
        Api::Gemini => "/openai/chat/completions",
    });
    match account.api {
        Api::Openai | Api::Anthropic => Ok(joined(base, path, "/v1")),
        Api::Gemini => Ok(joined(base, path, "/v1beta")),
        Api::Azure => azure(account, path, model),
    }
}

/// Returns an address of Azure: with the deployment, which requests name as their model, and a version in the query, unless
/// the base URL ends in `/openai/v1`.
fn azure(account: &AccountConfig, path: &str, model: &str) -> Result<String, String> {
    let base = &account.base_url;
    let given = account.api_version.as_deref();
    let rest = path.strip_prefix("/v1").filter(|rest| rest.starts_with('/')).unwrap_or(path);
    if base.ends_with("/openai/v1") {
        return Ok(with_version(format!("{base}{rest}"), given));
    }
    let version = given.or(Some(AZURE_VERSION));
    if base.contains("/deployments/") {
        return Ok(with_version(format!("{base}{rest}"), version));
    }
    if model.is_empty() {
        return Err("it has no model, which is the name of the deployment on Azure".into());
    }
    let base = base.strip_suffix("/openai").unwrap_or(base);
    Ok(with_version(format!("{base}/openai/deployments/{}{rest}", encoded(model)), version))
}

fn with_version(address: String, version: Option<&str>) -> String {
    match version {
        Some(version) => format!("{address}?api-version={}", encoded(version)),
        None => address,
    }
}

/// Joins base URL and path, with the version only once.
fn joined(base: &str, path: &str, version: &str) -> String {
    match path.strip_prefix(version).filter(|rest| rest.starts_with('/') && base.ends_with(version)) {
        Some(rest) => format!("{base}{rest}"),
        None => format!("{base}{path}"),
    }
}

/// Percent-encodes a text for a path or a query.
fn encoded(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    text.bytes()
        .map(|byte| if is_plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Refuses an API version for providers that have none.
///
/// # Errors
///
/// What is wrong.
pub(super) fn check_version(api: Api, version: Option<&str>) -> Result<(), String> {
    match (api, version) {
        (Api::Azure, _) | (_, None) => Ok(()),
        (_, Some(_)) => Err("an API version is for accounts of azure only".into()),
    }
}

/// Returns true if a base URL is one of Azure's own, so that the key for Azure may go there.
pub(super) fn is_azure(base_url: &str) -> bool {
    let host = base_url.strip_prefix("https://").and_then(|rest| rest.split(['/', ':']).next());
    let ours = [".openai.azure.com", ".cognitiveservices.azure.com", ".services.ai.azure.com"];
    host.is_some_and(|host| ours.iter().any(|end| host.ends_with(end)))
}

/// Returns the model of a request, from its body or its path (`/models/NAME:generateContent`).
pub(super) fn model_of(model: String, path: Option<&str>) -> String {
    if !model.is_empty() {
        return model;
    }
    let named = path.and_then(|path| path.split_once("/models/")?.1.split([':', '/', '?']).next());
    named.unwrap_or_default().to_owned()
}

/// Returns the headers of a request: those of the provider, then those that the account adds or replaces.
pub(super) fn headers(account: &AccountConfig, address: &str) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if account.api == Api::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    if let Some((name, value)) = key(account, address) {
        headers.insert(name, value);
    }
    for (name, value) in &account.headers {
        headers.insert(name, value.clone());
    }
    headers
}

/// Returns the header with the key.
fn key(account: &AccountConfig, address: &str) -> Option<(HeaderName, HeaderValue)> {
    let key = account.key.as_ref()?.reveal();
    let bearer = || (AUTHORIZATION, format!("Bearer {key}"));
    let (name, value) = match account.api {
        Api::Openai => bearer(),
        // Gemini's endpoint for clients of OpenAI takes the key as OpenAI does.
        Api::Gemini if address.contains("/openai/") => bearer(),
        Api::Gemini => (HeaderName::from_static("x-goog-api-key"), key.to_owned()),
        Api::Anthropic => (HeaderName::from_static("x-api-key"), key.to_owned()),
        Api::Azure => (HeaderName::from_static("api-key"), key.to_owned()),
    };
    // A key is printable ASCII, so it is always valid.
    let mut value = HeaderValue::from_str(&value).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::batch::secret::ApiKey;

    fn account(base_url: &str, api: Api) -> AccountConfig {
        AccountConfig {
            name: "a".into(),
            base_url: base_url.into(),
            api,
            key: Some(ApiKey::new("canary")),
            limits: Vec::new(),
            api_version: None,
            headers: Vec::new(),
        }
    }

    fn at(base: &str, api: Api, path: Option<&str>) -> String {
        address(&account(base, api), path, "my model").unwrap()
    }

    #[test]
    fn an_address_contains_the_version_once() {
        let openai = "https://api.openai.com/v1";
        for (path, address) in [
            (None, "https://api.openai.com/v1/chat/completions"),
            (Some("/v1/embeddings"), "https://api.openai.com/v1/embeddings"),
            (Some("/responses"), "https://api.openai.com/v1/responses"),
        ] {
            assert_eq!(at(openai, Api::Openai, path), address);
        }
        assert_eq!(
            at("http://127.0.0.1:8080", Api::Openai, None),
            "http://127.0.0.1:8080/v1/chat/completions"
        );
        assert_eq!(
            at("https://api.anthropic.com", Api::Anthropic, None),
            "https://api.anthropic.com/v1/messages"
        );
    }

    #[test]
    fn azure_has_deployments_and_a_version_in_the_query() {
        let host = "https://me.openai.azure.com";
        let deployed =
            format!("{host}/openai/deployments/my%20model/chat/completions?api-version=2024-10-21");
        for base in [host.to_owned(), format!("{host}/openai")] {
            for path in [None, Some("/chat/completions"), Some("/v1/chat/completions")] {
                assert_eq!(at(&base, Api::Azure, path), deployed);
            }
        }
        assert_eq!(
            at(&format!("{host}/openai/deployments/blue"), Api::Azure, None),
            format!("{host}/openai/deployments/blue/chat/completions?api-version=2024-10-21")
        );
        assert_eq!(
            at(&format!("{host}/openai/v1"), Api::Azure, None),
            format!("{host}/openai/v1/chat/completions")
        );
        let preview =
            AccountConfig { api_version: Some("2025-04-01-preview".into()), ..account(host, Api::Azure) };
        assert!(address(&preview, None, "m").unwrap().ends_with("?api-version=2025-04-01-preview"));
        assert!(address(&preview, None, "").is_err(), "no deployment is named");
        assert!(is_azure(host) && is_azure("https://me.cognitiveservices.azure.com/openai"));
        for other in
            ["http://me.openai.azure.com", "https://evil.example/.openai.azure.com", "https://azure.com"]
        {
            assert!(!is_azure(other), "{other}");
        }
    }

    #[test]
    fn gemini_is_called_in_its_own_way_or_in_that_of_openai() {
        let base = "https://generativelanguage.googleapis.com/v1beta";
        let own = "/v1beta/models/gemini-2.5-flash:generateContent";
        assert_eq!(at(base, Api::Gemini, None), format!("{base}/openai/chat/completions"));
        assert_eq!(
            at(base, Api::Gemini, Some(own)),
            format!("{base}/models/gemini-2.5-flash:generateContent")
        );
        assert_eq!(model_of(String::new(), Some(own)), "gemini-2.5-flash");
        assert_eq!(model_of("m".into(), Some(own)), "m");
    }

    #[test]
    fn each_provider_has_its_own_header_for_the_key_and_none_shows_it() {
        for (api, address, name) in [
            (Api::Openai, "/v1/x", "authorization"),
            (Api::Azure, "/openai/v1/x", "api-key"),
            (Api::Anthropic, "/v1/messages", "x-api-key"),
            (Api::Gemini, "/v1beta/models/m:generateContent", "x-goog-api-key"),
            (Api::Gemini, "/v1beta/openai/chat/completions", "authorization"),
        ] {
            let headers = headers(&account("https://x", api), address);
            assert!(headers[name].to_str().unwrap().ends_with("canary"), "{api:?}");
            assert!(!format!("{headers:?}").contains("canary"), "{api:?}");
        }
    }
}
