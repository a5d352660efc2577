//! One call over HTTP.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Client, redirect};
use tollgate::Clock;
use tollgate_batch::Usage;
use tollgate_provider::{Failure, FatalKind, Hint, Response, read, read_failure};

use super::account::{Account, Api};

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of a reply that are read. The longest answers have a few hundred thousand.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// The version of Anthropic's API that is spoken.
const ANTHROPIC_VERSION: &str = "2023-06-01";

/// Makes calls, over connections that it keeps.
#[derive(Clone)]
pub(crate) struct Caller {
    client: Client,
}

/// What came back, if anything did.
pub(crate) struct Replied {
    /// `None` if no reply came.
    pub(crate) status: Option<u16>,
    /// What the call used, where the hint cannot say it.
    pub(crate) usage: Option<Usage>,
    /// How the provider calls the request, for those who want to ask about it.
    pub(crate) request_id: Option<String>,
    pub(crate) body: Vec<u8>,
    /// What the provider says by it.
    pub(crate) hint: Hint,
}

impl Caller {
    pub(crate) fn new() -> Result<Caller> {
        let agent = concat!("tollgate/", env!("CARGO_PKG_VERSION"));
        // A key must not follow wherever a reply points.
        let client = Client::builder().user_agent(agent).redirect(redirect::Policy::none());
        let client = client.connect_timeout(CONNECT_TIMEOUT).build();
        Ok(Caller { client: client.context("no HTTP client can be made")? })
    }

    /// Sends a body to an account and reads what comes back.
    ///
    /// # Cancel safety
    ///
    /// Dropping it closes the connection. Whether the provider goes on is its own affair.
    pub(crate) async fn call(&self, account: &Account, path: Option<&str>, body: &str) -> Replied {
        let request = self.client.post(address(account, path)).headers(headers(account));
        match request.body(body.to_owned()).send().await {
            Ok(response) => received(response).await,
            Err(why) => Replied::none(&why),
        }
    }
}

impl Replied {
    /// Returns true if there was a connection, whatever came of it.
    pub(super) fn has_connected(&self) -> bool {
        self.usage != Some(Usage::Zero)
    }

    /// A reply that is longer than what can be stored. Another call would bring as much, and cost as much.
    fn too_long(status: u16) -> Replied {
        let hint = Hint::fatal(FatalKind::Request)
            .with_reason(format!("the reply has more than {REPLY_BYTES_MAX} bytes, which cannot be stored"));
        Replied {
            status: Some(status),
            usage: Some(Usage::Unknown),
            request_id: None,
            body: Vec::new(),
            hint,
        }
    }

    fn none(why: &reqwest::Error) -> Replied {
        let failure = if why.is_timeout() { Failure::Timeout } else { Failure::Connection };
        let mut hint = read_failure(failure);
        hint.reason = Some(innermost(why));
        // Without a connection nothing was sent that the provider could count.
        let usage = why.is_connect().then_some(Usage::Zero);
        Replied { status: None, usage, request_id: None, body: Vec::new(), hint }
    }
}

/// The cause that says what happened. What stands above it repeats the address.
fn innermost(why: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = why;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

async fn received(mut response: reqwest::Response) -> Replied {
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Ok(Some(chunk)) if body.len() + chunk.len() <= REPLY_BYTES_MAX => body.extend_from_slice(&chunk),
            Ok(Some(_)) => return Replied::too_long(status),
            Ok(None) => break,
            Err(why) => return Replied::none(&why),
        }
    }
    let text = |(name, value): (&'_ HeaderName, &'_ HeaderValue)| {
        Some((name.to_string(), value.to_str().ok()?.to_owned()))
    };
    let texts: Vec<(String, String)> = headers.iter().filter_map(text).collect();
    let pairs: Vec<(&str, &str)> =
        texts.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let now = SystemTime::UNIX_EPOCH + Duration::from_micros(Clock::system().now().as_micros());
    let hint = read(&Response::new(status, &pairs, &body), now);
    let id = ["x-request-id", "request-id"].iter().find_map(|name| headers.get(*name)?.to_str().ok());
    Replied { status: Some(status), usage: None, request_id: id.map(str::to_owned), body, hint }
}

/// Where a request goes. Addresses of OpenAI's kind have the version in them, and so have the paths.
fn address(account: &Account, path: Option<&str>) -> String {
    let path = path.unwrap_or(match account.api {
        Api::Openai => "/v1/chat/completions",
        Api::Anthropic => "/v1/messages",
    });
    let base = &account.base_url;
    match path.strip_prefix("/v1").filter(|rest| rest.starts_with('/') && base.ends_with("/v1")) {
        Some(rest) => format!("{base}{rest}"),
        None => format!("{base}{path}"),
    }
}

fn headers(account: &Account) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if account.api == Api::Anthropic {
        headers.insert("anthropic-version", HeaderValue::from_static(ANTHROPIC_VERSION));
    }
    let Some(key) = &account.key else { return headers };
    let (name, value) = match account.api {
        Api::Openai => (AUTHORIZATION, format!("Bearer {}", key.reveal())),
        Api::Anthropic => (HeaderName::from_static("x-api-key"), key.reveal().to_owned()),
    };
    // A key is printable ASCII, so this is always a valid one.
    if let Ok(mut value) = HeaderValue::from_str(&value) {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn account(base_url: &str, api: Api) -> Account {
        Account { name: "a".into(), base_url: base_url.into(), api, key: None, limits: Vec::new() }
    }

    #[test]
    fn the_version_stands_in_an_address_once() {
        let openai = account("https://api.openai.com/v1", Api::Openai);
        assert_eq!(address(&openai, None), "https://api.openai.com/v1/chat/completions");
        assert_eq!(address(&openai, Some("/v1/embeddings")), "https://api.openai.com/v1/embeddings");
        assert_eq!(address(&openai, Some("/responses")), "https://api.openai.com/v1/responses");
        let bare = account("http://127.0.0.1:8080", Api::Openai);
        assert_eq!(address(&bare, None), "http://127.0.0.1:8080/v1/chat/completions");
        let anthropic = account("https://api.anthropic.com", Api::Anthropic);
        assert_eq!(address(&anthropic, None), "https://api.anthropic.com/v1/messages");
    }
}
