//! Accounts: base URL, API key and known limits.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::ValueEnum;
use serde::Deserialize;
use tollgate::Limit;
use tollgate_batch::SCOPES_MAX;

use super::endpoint;
use super::header::{self, Header};
use super::key::{self, Chosen, Recipient, Ways};
use super::price::{PriceSource, PriceText, Prices};
use super::secret::{ApiKey, may_be_key, without_values};
use crate::limit_text;
use crate::reading::{read_regular, read_text};
use crate::settings::SettingsError;

/// The maximum number of accounts: as many as a batch can use.
const ACCOUNTS_MAX: usize = SCOPES_MAX;

/// The maximum size of a file of accounts.
const FILE_MAX: u64 = 1 << 20;

/// The maximum size of a key file.
const KEY_FILE_MAX: u64 = 64 << 10;

/// The API of an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Api {
    /// OpenAI, and compatible APIs
    #[default]
    Openai,
    /// Anthropic
    Anthropic,
    /// Azure OpenAI
    Azure,
    /// Gemini: its OpenAI-compatible endpoint, or its own for requests with its paths
    Gemini,
}

/// One account, or one region of it.
#[derive(Clone, Debug)]
pub(crate) struct AccountConfig {
    /// Its name in results and on the screen.
    pub(crate) name: String,
    /// The base URL, to which the path of a request is appended.
    pub(crate) base_url: String,
    pub(crate) api: Api,
    /// The API key, if one is sent.
    pub(crate) key: Option<ApiKey>,
    /// The known limits. Unknown limits are learned.
    pub(crate) limits: Vec<Limit>,
    /// The version of the API in the query, for Azure.
    pub(crate) api_version: Option<String>,
    /// Headers that are added to each request, or replace those of the provider.
    pub(crate) headers: Vec<Header>,
}

/// The error for the name of a variable that may be the key itself, which must not be shown.
const NOT_A_VARIABLE: &str = "the environment variable of the key is not set, and its name is not shown, because it may be \
                              a key; key_env is the name of an environment variable, such as OPENAI_API_KEY";

/// The location of a key.
#[derive(Clone, Debug, Default)]
pub(crate) struct KeyAt {
    /// In this environment variable.
    pub(crate) variable: Option<String>,
    /// In this file, which contains nothing else.
    pub(crate) file: Option<PathBuf>,
}

/// Accounts, and the prices of their models.
#[derive(Debug)]
pub(crate) struct AccountConfigs {
    pub(crate) accounts: Vec<AccountConfig>,
    pub(crate) prices: Prices,
    /// Notices about keys, printed before the start.
    pub(crate) notices: Vec<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountsFile {
    #[serde(default)]
    account: Vec<AccountText>,
    #[serde(default)]
    price: BTreeMap<String, PriceText>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AccountText {
    name: String,
    base_url: String,
    #[serde(default)]
    api: Api,
    key_env: Option<String>,
    key_file: Option<PathBuf>,
    #[serde(default)]
    limits: Vec<String>,
    api_version: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

impl AccountConfigs {
    /// Reads a file of accounts.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] with the file and what is wrong in it.
    pub(crate) fn read(path: &Path, environment: &dyn Fn(&str) -> Option<String>) -> Result<AccountConfigs> {
        let wrong = |why: String| SettingsError(format!("file {}: {why}", path.display()));
        let text = read_text(path, FILE_MAX).map_err(|why| wrong(format!("it cannot be read: {why}")))?;
        let file: AccountsFile = toml::from_str(&text).map_err(|why| wrong(without_values(&text, &why)))?;
        if file.account.is_empty() {
            return Err(wrong("it has no [[account]]".into()).into());
        }
        if file.account.len() > ACCOUNTS_MAX {
            return Err(wrong(format!(
                "it has {} accounts, but may have {ACCOUNTS_MAX}",
                file.account.len()
            ))
            .into());
        }
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut accounts = Vec::<AccountConfig>::with_capacity(file.account.len());
        let mut notices = Vec::new();
        for text in file.account {
            if accounts.iter().any(|account| account.name == text.name) {
                return Err(wrong(format!("two accounts are called {:?}", text.name)).into());
            }
            let named = format!("account {:?}", text.name);
            let account = text.account(folder, environment);
            let (account, notice) = account.map_err(|why| wrong(format!("{named}: {why:#}")))?;
            accounts.push(account);
            notices.extend(notice.map(|notice| format!("{named}: {notice}")));
        }
        let source = PriceSource { source: path.display().to_string(), date: None };
        let prices = Prices::read(&file.price, source).map_err(wrong)?;
        Ok(AccountConfigs { accounts, prices, notices })
    }
}

impl AccountText {
    /// Returns the account, and a notice about its key.
    fn account(
        self,
        folder: &Path,
        environment: &dyn Fn(&str) -> Option<String>,
    ) -> Result<(AccountConfig, Option<String>)> {
        let at = KeyAt { variable: self.key_env, file: self.key_file.map(|file| folder.join(file)) };
        let limits = self.limits.iter().map(|text| limit_text::parse(text).map_err(SettingsError));
        endpoint::check_version(self.api, self.api_version.as_deref()).map_err(SettingsError)?;
        let headers =
            self.headers.iter().map(|(name, value)| header::header(name, value).map_err(SettingsError));
        let base_url = base_url(&self.base_url)?;
        let recipient = Recipient { api: self.api, base_url: &base_url, at, ways: Ways::Fields };
        let Chosen { key, notice } = key::choose(recipient, environment)?;
        let account = AccountConfig {
            name: self.name,
            base_url,
            api: self.api,
            key,
            limits: limits.collect::<Result<_, _>>()?,
            api_version: self.api_version,
            headers: headers.collect::<Result<_, _>>()?,
        };
        Ok((account, notice))
    }
}

impl KeyAt {
    /// Reads the key, if a location is given.
    ///
    /// # Errors
    ///
    /// [`SettingsError`] if the key is not at its location; no message contains the key.
    pub(crate) fn read(&self, environment: &dyn Fn(&str) -> Option<String>) -> Result<Option<ApiKey>> {
        let (key, place) = match (&self.variable, &self.file) {
            (Some(_), Some(_)) => {
                return Err(SettingsError("it has both key_env and key_file; one is enough".into()).into());
            }
            (None, None) => return Ok(None),
            (Some(variable), None) => {
                let missing = || {
                    if may_be_key(variable) {
                        SettingsError(NOT_A_VARIABLE.into())
                    } else {
                        SettingsError(format!("the environment variable {variable} of the key is not set"))
                    }
                };
                (environment(variable).ok_or_else(missing)?, variable.clone())
            }
            (None, Some(file)) => {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                let place =
                    if may_be_key(&name) { "the key file".into() } else { file.display().to_string() };
                let read = read_regular(file, KEY_FILE_MAX);
                let wrong = |why| SettingsError(format!("the key in {place} cannot be read: {why}"));
                (read.map_err(wrong)?, place)
            }
        };
        let key = key.trim();
        if key.is_empty() || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
            let why = "must be one word of printable ASCII";
            return Err(SettingsError(format!("the key in {place} {why}")).into());
        }
        Ok(Some(ApiKey::new(key)))
    }
}

/// Parses a base URL.
///
/// # Errors
///
/// [`SettingsError`] with what would be valid.
pub(crate) fn base_url(text: &str) -> Result<String, SettingsError> {
    let bad = |why: &str| {
        SettingsError(format!("the base URL {why}; valid is one such as https://api.openai.com/v1"))
    };
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let rest = rest.ok_or_else(|| bad("must begin with http:// or https://"))?;
    // A password would be sent, and shown: keys have options of their own.
    if rest.contains('@') {
        return Err(bad("must not contain a user or a password"));
    }
    if rest.is_empty()
        || rest.starts_with('/')
        || rest.contains(|c: char| c.is_whitespace() || c == '?' || c == '#')
    {
        return Err(bad("must have a host, and no query"));
    }
    Ok(text.trim_end_matches('/').into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<AccountConfigs, String> {
        static NUMBER: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NUMBER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("tollgate-accounts-{}-{number}.toml", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let environment = |name: &str| (name == "KEY").then(|| " canary-key\n".to_owned());
        let read = AccountConfigs::read(&path, &environment);
        std::fs::remove_file(&path).unwrap();
        read.map_err(|why| format!("{why:#}"))
    }

    const FULL: &str = r#"
        [[account]]
        name = "blue"
        base_url = "https://api.openai.com/v1/"
        key_env = "KEY"
        limits = ["rpm:500", "connections:20/at-once"]

        [[account]]
        name = "claude"
        base_url = "http://127.0.0.1:8080"
        api = "anthropic"
        headers = { "X-Team" = "canary" }

        [price."gpt-4o*"]
        input = "2.50"
        output = "10"
    "#;

    #[test]
    fn a_file_of_accounts_is_read_and_shows_no_key() {
        let AccountConfigs { accounts, prices, notices } = read(FULL).unwrap();
        let notice = "account \"claude\": no key is sent to 127.0.0.1; key_env or key_file sends one";
        assert_eq!(notices, [notice]);
        assert_eq!(accounts[0].base_url, "https://api.openai.com/v1");
        assert_eq!(accounts[0].key.as_ref().unwrap().reveal(), "canary-key");
        assert_eq!(accounts[0].limits.len(), 2);
        assert_eq!((accounts[1].api, accounts[1].key.is_none()), (Api::Anthropic, true));
        assert_eq!(accounts[1].headers[0].0, "x-team");
        assert!(prices.of("gpt-4o").is_some());
        assert!(!format!("{accounts:?}").contains("canary"));
    }

    #[test]
    fn an_invalid_file_is_refused_with_the_reason() {
        let one = |rest: &str| format!("[[account]]\nname = \"a\"\nbase_url = \"https://x.example\"\n{rest}");
        for (text, what) in [
            (String::new(), "no [[account]]"),
            ("[[account]]\nname = \"a\"".into(), "base_url"),
            (one("kee_env = \"KEY\""), "kee_env"),
            (one("key_env = \"NONE\""), "NONE"),
            (one("key_env = \"KEY\"\nkey_file = \"k\""), "one is enough"),
            (one("key_file = \"not-there\""), "not-there"),
            (one("key_file = \"/dev/zero\""), "not a regular file"),
            (one("limits = [\"rpm\"]"), "rpm"),
            (one("api_version = \"1\""), "for accounts of azure only"),
            (one("headers = { \"a b\" = \"x\" }"), "a name that is not valid"),
            (one(&one("")), "two accounts are called \"a\""),
            (one("[price.m]\ninput = \"x\"\noutput = \"1\""), "price of m: input"),
        ] {
            let why = read(&text).unwrap_err();
            assert!(why.contains(what), "{text}: {why}");
        }
    }

    #[test]
    fn a_key_in_the_wrong_place_is_in_no_message() {
        let one = |rest: &str| format!("[[account]]\nname = \"a\"\nbase_url = \"https://x.example\"\n{rest}");
        let keys = ["sk-canary", "sk-proj-canary_0123456789", "canary0123456789abcdef0123456789"];
        for key in keys {
            for (text, what) in [
                (one(&format!("key = \"{key}\"")), "unknown field `key`"),
                (one(&format!("api_key = '{key}'")), "unknown field `api_key`"),
                (one(&format!("key = {key}")), "line 4"),
                (one(&format!("key_env = \"{key}\"")), "name of an environment variable"),
                (one(&format!("key_file = \"{key}\"")), "the key file"),
                (one(&format!("api = \"{key}\"")), "unknown variant"),
                (one(&format!("limits = \"{key}\"")), "invalid type"),
                (one(&format!("key_env = [\"{key}\"]")), "invalid type"),
            ] {
                let why = read(&text).unwrap_err();
                assert!(!why.contains("canary"), "{text}: {why}");
                assert!(why.contains(what), "{text}: {why}");
            }
        }
    }

    #[test]
    fn a_base_url_has_a_host_and_nothing_that_must_not_be_shown() {
        for bad in [
            "",
            "api.openai.com",
            "ftp://x",
            "https://",
            "https:///v1",
            "https://u:p@x",
            "https://x/?k=1",
            "https://x y",
        ] {
            let why = base_url(bad).unwrap_err().to_string();
            assert!(!why.contains("u:p"), "{why}");
        }
    }
}
