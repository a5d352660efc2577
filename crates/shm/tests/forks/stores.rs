//! The stores that processes share.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use tollgate::dynamo::{DynamoStore, DynamoStoreBuilder};
use tollgate::file::FileStore;
use tollgate::redis::RedisStore;
use tollgate_dynamo_local::{Engine, serve};
use tollgate_redis_local::{Server, ServerKind};

/// How long a store may take to answer on a host that is busy.
pub(crate) const PATIENT: Duration = Duration::from_secs(30);

pub(crate) fn file(folder: &Path) -> FileStore {
    FileStore::open(folder.join("limits.db")).expect("it can be opened")
}

/// A store of its own on a server that all tests share.
pub(crate) fn redis(prefix: &str) -> RedisStore {
    static SERVER: OnceLock<Server> = OnceLock::new();
    let server = SERVER.get_or_init(|| Server::start(ServerKind::Redis));
    let store = RedisStore::builder(server.url()).prefix(prefix).timeout(PATIENT);
    store.build().wait().expect("the server is there")
}

/// A store in a table of its own on a port of this host, which all processes reach that are forked off.
pub(crate) fn dynamo(table: &str) -> DynamoStore {
    dynamo_with(table, |store| store)
}

/// The same with settings of its own.
pub(crate) fn dynamo_with(
    table: &str,
    settings: impl FnOnce(DynamoStoreBuilder) -> DynamoStoreBuilder,
) -> DynamoStore {
    static ENDPOINT: OnceLock<String> = OnceLock::new();
    let endpoint = ENDPOINT.get_or_init(|| {
        let engine = Engine::in_memory().expect("there is memory for an engine");
        let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("there is a port");
        let address = listener.local_addr().expect("it is bound");
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Runtime::new().expect("there are threads");
            runtime.block_on(serve(engine, listener)).expect("it is served");
        });
        format!("http://{address}")
    });
    let store = DynamoStore::builder(table).endpoint(endpoint).create_table(true).timeout(PATIENT);
    settings(store).build().wait().expect("the table is there")
}
