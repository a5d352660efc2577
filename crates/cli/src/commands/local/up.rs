//! `tollgate local up`: the embedded DynamoDB engine on a port of this host.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::time::Duration;

use anyhow::{Context as _, Result};
use serde::Serialize;
use tollgate_dynamo::DynamoStore;
use tollgate_dynamo_local::{Engine, serve};

use crate::args::LocalUpArgs;
use crate::commands::shutdown::ServerSignal;
use crate::context::Context;
use crate::exit::Exit;
use crate::output::{Answer, Output, TableCell, TextPage};

/// How often expired items are deleted. The service takes days, which is too long for development.
const SWEEP_EVERY: Duration = Duration::from_secs(2);

/// Serves tables until a signal, or until its time is over.
pub(super) fn up(context: &Context, args: LocalUpArgs) -> Result<Output> {
    let engine = match &args.tables {
        Some(path) => Engine::open(path)?,
        None => Engine::in_memory()?,
    };
    let listener = listen(args.port)?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    let store = DynamoStore::builder(&args.table).http_client(engine.http_client()).create_table(true);
    store.build().wait()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    // Before the output is written: its reader may send a signal at once.
    let mut shutdown = runtime.block_on(async { ServerSignal::watch() })?;
    // Before the server starts to wait: a process that waits for the port reads this.
    Output::new(LocalUpAnswer::new(&args, endpoint)).write(&context.terminal, context.format)?;
    runtime.block_on(async {
        let sweeping = tokio::spawn(sweep(engine.clone()));
        let serving = tokio::spawn(serve(engine, listener));
        shutdown.wait(args.seconds).await?;
        sweeping.abort();
        serving.abort();
        match serving.await {
            Ok(Err(error)) => Err(error),
            _ => Ok(()),
        }
    })?;
    Ok(Output::silent(Exit::OK))
}

/// Listens on a loopback address only, because the engine checks no credentials.
fn listen(port: u16) -> Result<TcpListener> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port));
    listener.with_context(|| format!("port {port} cannot be used; name another one, or --port 0 for any"))
}

async fn sweep(engine: Engine) -> io::Result<()> {
    loop {
        tokio::time::sleep(SWEEP_EVERY).await;
        engine.delete_expired().map_err(io::Error::other)?;
    }
}

#[derive(Serialize)]
struct LocalUpAnswer {
    store: String,
    endpoint: String,
    table: String,
    tables: Option<String>,
}

impl LocalUpAnswer {
    fn new(args: &LocalUpArgs, endpoint: String) -> LocalUpAnswer {
        LocalUpAnswer {
            store: format!("dynamodb:{}?endpoint={endpoint}", args.table),
            endpoint,
            table: args.table.clone(),
            tables: args.tables.as_ref().map(|path| path.display().to_string()),
        }
    }
}

impl Answer for LocalUpAnswer {
    fn text(&self, page: &mut TextPage) {
        page.fields([
            ("endpoint", TableCell::from(&self.endpoint)),
            ("table", TableCell::name(&self.table)),
            ("tables in", self.tables.as_deref().unwrap_or("memory").into()),
        ]);
        page.gap();
        page.verbatim(format_args!("tollgate --store '{}' status", self.store));
        page.remark("press Ctrl-C to stop");
    }
}
