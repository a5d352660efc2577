//! `tollgate mock-provider`.

use std::net::{SocketAddr, TcpListener};

use anyhow::{Context as _, Result};
use serde::Serialize;
use tollgate_mock_provider::MockProvider;

use super::shutdown::ServerSignal;
use crate::args::MockProviderArgs;
use crate::context::Context;
use crate::exit::{Exit, UsageError};
use crate::output::{Answer, Output, TableCell, TextPage};

/// Serves until a signal, or until its time is over.
pub(super) fn run(context: &Context, args: MockProviderArgs) -> Result<Output> {
    let provider = provider(&args)?;
    let listener = listen(args.listen)?;
    let address = listener.local_addr()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before the output is written: its reader may send a signal at once.
    let mut shutdown = runtime.block_on(async { ServerSignal::watch() })?;
    // Before the server starts to wait: a process that waits for the port reads this.
    Output::new(MockUpAnswer::new(&args, address)).write(&context.terminal, context.format)?;
    runtime.block_on(async {
        let serving = tokio::spawn(async move { provider.serve(listener).await });
        shutdown.wait(args.seconds).await?;
        serving.abort();
        match serving.await {
            Ok(Err(error)) => Err(error),
            _ => Ok(()),
        }
    })?;
    Ok(Output::silent(Exit::OK))
}

fn provider(args: &MockProviderArgs) -> Result<MockProvider> {
    let mut builder = MockProvider::builder().style(args.style).latency(args.latency.clone()).seed(args.seed);
    if let Some(rps) = args.rps {
        builder = builder.requests_per_second(rps);
    }
    if let Some(burst) = args.burst {
        builder = builder.burst(burst);
    }
    if let Some(tpm) = args.tpm {
        builder = builder.tokens_per_minute(tpm);
    }
    if let Some(concurrency) = args.concurrency {
        builder = builder.concurrency(concurrency);
    }
    if let Some(cap) = args.spend_cap {
        builder = builder.spend_cap(cap);
    }
    if args.no_advice {
        builder = builder.without_advice();
    }
    if args.no_headers {
        builder = builder.without_headers();
    }
    builder = args.change.iter().fold(builder, |builder, change| builder.change(*change));
    builder = args.outage.iter().fold(builder, |builder, outage| builder.outage(*outage));
    builder = args.key.iter().fold(builder, |builder, key| builder.key(key));
    // The builder refuses only values of options.
    builder.build().map_err(|error| UsageError(error.to_string()).into())
}

fn listen(address: SocketAddr) -> Result<TcpListener> {
    let listener = TcpListener::bind(address);
    listener.with_context(|| format!("cannot listen on {address}; name another address, or port 0 for any"))
}

#[derive(Serialize)]
struct MockUpAnswer {
    address: String,
    url: String,
    style: &'static str,
}

impl MockUpAnswer {
    fn new(args: &MockProviderArgs, address: SocketAddr) -> MockUpAnswer {
        MockUpAnswer {
            address: address.to_string(),
            url: format!("http://{address}"),
            style: args.style.as_str(),
        }
    }
}

impl Answer for MockUpAnswer {
    fn text(&self, page: &mut TextPage) {
        page.fields([("url", TableCell::from(&self.url)), ("style", TableCell::name(self.style))]);
        page.gap();
        let (path, body) = match self.style {
            "anthropic" => ("/v1/messages", r#"{"model":"m","max_tokens":16,"messages":[]}"#),
            _ => ("/v1/chat/completions", r#"{"messages":[]}"#),
        };
        page.verbatim(format_args!("curl {}{path} -d '{body}'", self.url));
        page.verbatim(format_args!("curl {}/stats", self.url));
        page.remark("press Ctrl-C to stop");
    }
}
