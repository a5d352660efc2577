//! One call over HTTP.

use std::time::{Duration, SystemTime};

use anyhow::{Context as _, Result};
use reqwest::header::{HeaderName, HeaderValue};
use reqwest::{Client, NoProxy, Proxy, redirect};
use tollgate::Clock;
use tollgate_batch::TokenUsage;
use tollgate_provider::{Failure, FatalKind, Hint, Response, read, read_failure};

use super::account::AccountConfig;
use super::endpoint::headers;
use super::secret::ApiKey;
use crate::exit;

/// How long a connection may take to come about.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The most bytes of a reply that are read. The longest answers have a few hundred thousand.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// Makes calls, over connections that it keeps.
#[derive(Clone)]
pub(crate) struct HttpCaller {
    client: Client,
}

/// What came back, if anything did.
pub(crate) struct Replied {
    /// `None` if no reply came, or one that is too long.
    pub(crate) status: Option<u16>,
    /// What the call used, where the hint cannot say it.
    pub(crate) usage: Option<TokenUsage>,
    /// How the provider calls the request, for those who want to ask about it.
    pub(crate) request_id: Option<String>,
    pub(crate) body: Vec<u8>,
    /// What the provider says by it.
    pub(crate) hint: Hint,
}

impl HttpCaller {
    /// Calls through a proxy if one is given, else through those of `HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY`, if they are
    /// set; hosts of `NO_PROXY` are called directly.
    ///
    /// # Errors
    ///
    /// [`exit::TokenUsage`] if the proxy has no valid address, which is not shown: it may have a password in it.
    pub(crate) fn new(proxy: Option<&ApiKey>) -> Result<HttpCaller> {
        let agent = concat!("tollgate/", env!("CARGO_PKG_VERSION"));
        // A key must not follow wherever a reply points.
        let client = Client::builder().user_agent(agent).redirect(redirect::Policy::none());
        let mut client = client.connect_timeout(CONNECT_TIMEOUT);
        if let Some(address) = proxy {
            let bad = |_| {
                let why = "--proxy must be an address such as http://user:password@proxy.example:3128";
                exit::UsageError(why.into())
            };
            client = client.proxy(Proxy::all(address.reveal()).map_err(bad)?.no_proxy(NoProxy::from_env()));
        }
        let client = client.build();
        Ok(HttpCaller { client: client.context("no HTTP client can be made")? })
    }

    /// Sends a body to an address of an account and reads what comes back.
    ///
    /// # Cancel safety
    ///
    /// Dropping it closes the connection. Whether the provider goes on is its own affair.
    pub(crate) async fn call(&self, account: &AccountConfig, address: String, body: &str) -> Replied {
        let headers = headers(account, &address);
        let request = self.client.post(address).headers(headers);
        match request.body(body.to_owned()).send().await {
            Ok(response) => received(response).await,
            Err(why) => Replied::none(&why),
        }
    }
}

impl Replied {
    /// Returns true if there was a connection, whatever came of it.
    pub(super) fn has_connected(&self) -> bool {
        self.usage != Some(TokenUsage::Zero)
    }

    /// A reply that is longer than what can be stored. Another call would bring as much, and cost as much.
    fn too_long() -> Replied {
        let hint = Hint::fatal(FatalKind::Request)
            .with_reason(format!("the reply has more than {REPLY_BYTES_MAX} bytes, which cannot be stored"));
        Replied { status: None, usage: Some(TokenUsage::Unknown), request_id: None, body: Vec::new(), hint }
    }

    fn none(why: &reqwest::Error) -> Replied {
        let failure = if why.is_timeout() { Failure::Timeout } else { Failure::Connection };
        let mut hint = read_failure(failure);
        hint.reason = Some(innermost(why));
        // Without a connection nothing was sent that the provider could count.
        let usage = why.is_connect().then_some(TokenUsage::Zero);
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
            Ok(Some(_)) => return Replied::too_long(),
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
