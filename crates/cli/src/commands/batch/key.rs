//! The choice of the API key for a host.

use anyhow::Result;

use super::account::{Api, KeyAt};
use super::endpoint::is_azure;
use super::secret::ApiKey;

/// The recipient of a key.
pub(super) struct Recipient<'a> {
    pub(super) api: Api,
    pub(super) base_url: &'a str,
    /// The location of the key, if it was given.
    pub(super) at: KeyAt,
    /// The names of the two settings for a key in notices.
    pub(super) ways: Ways,
}

/// How a user gives the location of a key.
#[derive(Clone, Copy)]
pub(super) enum Ways {
    /// By options of the command line.
    Options,
    /// By fields of an account.
    Fields,
}

impl Ways {
    fn env(self) -> &'static str {
        match self {
            Ways::Options => "--key-env",
            Ways::Fields => "key_env",
        }
    }

    fn file(self) -> &'static str {
        match self {
            Ways::Options => "--key-file",
            Ways::Fields => "key_file",
        }
    }

    /// Formats the setting that sends the key of an environment variable.
    fn env_of(self, variable: &str) -> String {
        match self {
            Ways::Options => format!("--key-env {variable}"),
            Ways::Fields => format!("key_env = \"{variable}\""),
        }
    }
}

/// The key, if there is one, and a notice about it.
pub(super) struct Chosen {
    pub(super) key: Option<ApiKey>,
    pub(super) notice: Option<String>,
}

/// Chooses the key for an address. The key in a provider's usual environment variable is sent to that provider only: another
/// host gets a key only if the user names one.
///
/// # Errors
///
/// Those of [`KeyAt::read`].
pub(super) fn choose(
    recipient: Recipient<'_>,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Chosen> {
    let Recipient { api, base_url, at, ways } = recipient;
    if at.variable.is_some() || at.file.is_some() {
        return Ok(Chosen { key: at.read(environment)?, notice: None });
    }
    let (host, is_private) = host_of(base_url);
    match usual_variable(base_url).filter(|_| is_private) {
        Some(variable) if environment(variable).is_some() => {
            let at = KeyAt { variable: Some(variable.into()), file: None };
            Ok(Chosen { key: at.read(environment)?, notice: None })
        }
        Some(variable) => Ok(Chosen {
            key: None,
            notice: Some(format!(
                "no key is sent to {host}: {variable} is not set; {} or {} sends one",
                ways.env(),
                ways.file()
            )),
        }),
        None => Ok(Chosen { key: None, notice: Some(no_key(api, host, ways, environment)) }),
    }
}

fn no_key(api: Api, host: &str, ways: Ways, environment: &dyn Fn(&str) -> Option<String>) -> String {
    let (variable, own) = match api {
        Api::Openai => ("OPENAI_API_KEY", "https://api.openai.com"),
        Api::Anthropic => ("ANTHROPIC_API_KEY", "https://api.anthropic.com"),
        Api::Azure => ("AZURE_OPENAI_API_KEY", "https hosts of Azure"),
        Api::Gemini => ("GEMINI_API_KEY", "https://generativelanguage.googleapis.com"),
    };
    match environment(variable) {
        Some(_) => format!(
            "no key is sent to {host}: {variable} goes to {own} only; {} sends it",
            ways.env_of(variable)
        ),
        None => format!("no key is sent to {host}; {} or {} sends one", ways.env(), ways.file()),
    }
}

/// Returns the usual environment variable of the provider at this address.
fn usual_variable(base_url: &str) -> Option<&'static str> {
    let (host, _) = host_of(base_url);
    let is_of =
        |name: &str| host == name || host.strip_suffix(name).is_some_and(|region| region.ends_with('.'));
    match host {
        _ if is_of("api.openai.com") => Some("OPENAI_API_KEY"),
        _ if is_of("api.anthropic.com") => Some("ANTHROPIC_API_KEY"),
        _ if is_of("generativelanguage.googleapis.com") => Some("GEMINI_API_KEY"),
        _ if is_azure(base_url) => Some("AZURE_OPENAI_API_KEY"),
        _ => None,
    }
}

/// Returns the host of an address, and whether the connection is encrypted.
pub(super) fn host_of(base_url: &str) -> (&str, bool) {
    let (scheme, rest) = base_url.split_once("://").unwrap_or(("", base_url));
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
    (host, scheme == "https")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_usual_key_goes_to_the_hosts_of_its_provider_only() {
        for (host, variable) in [
            ("api.openai.com", Some("OPENAI_API_KEY")),
            ("eu.api.openai.com", Some("OPENAI_API_KEY")),
            ("api.anthropic.com", Some("ANTHROPIC_API_KEY")),
            ("generativelanguage.googleapis.com", Some("GEMINI_API_KEY")),
            ("me.openai.azure.com", Some("AZURE_OPENAI_API_KEY")),
            ("me.openai.azure.com.evil.example", None),
            ("evilapi.openai.com", None),
            ("api.openai.com.evil.example", None),
            ("127.0.0.1", None),
        ] {
            assert_eq!(usual_variable(&format!("https://{host}/v1")), variable, "{host}");
        }
        assert_eq!(host_of("https://api.openai.com:443/v1"), ("api.openai.com", true));
        assert_eq!(host_of("http://api.openai.com"), ("api.openai.com", false));
    }
}
