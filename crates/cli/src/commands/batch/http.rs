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

/// The timeout of a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// The maximum size of a reply. The longest have a few hundred thousand bytes.
const REPLY_BYTES_MAX: usize = 64 << 20;

/// Makes calls over pooled connections.
#[derive(Clone)]
pub(crate) struct HttpCaller {
    client: Client,
}

/// The outcome of a call.
pub(crate) struct Replied {
    /// `None` without a reply, or if it is too long.
    pub(crate) status: Option<u16>,
    /// What the call used, where the hint does not have it.
    pub(crate) usage: Option<TokenUsage>,
    /// The provider's id of the request, for questions to its support.
    pub(crate) request_id: Option<String>,
    pub(crate) body: Vec<u8>,
    /// The interpretation of the reply.
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
        // Rustls needs a provider by name. It fails if the store has named one already, which is the same.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let agent = concat!("tollgate/", env!("CARGO_PKG_VERSION"));
        // Redirects are not followed, because the key must not be sent to another host.
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
        Ok(HttpCaller { client: client.context("the HTTP client cannot be created")? })
    }

    /// Sends a body to an address of an account and reads the reply.
    ///
    /// # Cancel safety
    ///
    /// Dropping it closes the connection. The provider may still process the request.
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
    /// Returns true if there was a connection, whatever its outcome.
    pub(super) fn has_connected(&self) -> bool {
        self.usage != Some(TokenUsage::Zero)
    }

    /// Returns the outcome for a reply that is too long to store. It is fatal, because a retry would cost as much.
    fn too_long() -> Replied {
        let hint = Hint::fatal(FatalKind::Request)
            .with_reason(format!("the reply has more than {REPLY_BYTES_MAX} bytes, which cannot be stored"));
        Replied { status: None, usage: Some(TokenUsage::Unknown), request_id: None, body: Vec::new(), hint }
    }

    fn none(why: &reqwest::Error) -> Replied {
        let failure = if why.is_timeout() { Failure::Timeout } else { Failure::Connection };
        let mut hint = read_failure(failure);
        hint.reason = Some(innermost(why));
        // Without a connection nothing was sent, so the provider counts nothing.
        let usage = why.is_connect().then_some(TokenUsage::Zero);
        Replied { status: None, usage, request_id: None, body: Vec::new(), hint }
    }
}

/// Returns the innermost cause. The outer ones repeat the address.
fn innermost(why: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = why;
    while let Some(next) = cause.source() {
        cause = next;
    }
    cause.to_string()
}

async fn received(mut response: reqwest::Response) -> Replied {
    let status = response.status().as_u16();
    let headers = response.headers().clone();
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
