//! A table of DynamoDB, opened by its URL.
#![cfg(feature = "dynamodb")]

use std::net::{Ipv4Addr, TcpListener};

use tokio::runtime::Runtime;
use tollgate_dynamo_local::{Engine, serve};
use tollgate_open::{OpenError, OpenOptions, StoreUrl};

/// A local engine that is served until it is dropped.
struct LocalTables {
    endpoint: String,
    _runtime: Runtime,
}

impl LocalTables {
    fn serve() -> LocalTables {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port is free");
        let endpoint = format!("http://{}", listener.local_addr().expect("it is bound"));
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a thread can be started");
        runtime.spawn(serve(Engine::in_memory().expect("there is memory"), listener));
        LocalTables { endpoint, _runtime: runtime }
    }

    fn url(&self, parameters: &str) -> StoreUrl {
        let text = format!("dynamodb:limits?endpoint={}{parameters}", self.endpoint);
        text.parse().expect("it is a URL")
    }
}

#[test]
fn a_table_is_created_only_if_the_url_says_so() {
    let (tables, options) = (LocalTables::serve(), OpenOptions::default());
    let (url, creating) = (tables.url(""), tables.url("&create=true"));
    let error = url.open(&options).wait().err().expect("there is no table");
    assert!(matches!(&error, OpenError::NoTable { table, .. } if table == "limits"), "{error:?}");
    assert!(error.to_string().contains(&creating.to_string()), "{error}");
    assert!(url.exists(&options).wait(), "opening it would not create it");
    // Neither of these creates it.
    assert!(!creating.exists(&options).wait());
    assert_eq!(creating.damages(&options).wait().expect("it need not be there"), []);
    assert!(!creating.exists(&options).wait());
    let store = creating.open(&options).wait().expect("it can be created");
    assert!(store.clock().now().as_micros() > 0);
    assert!(creating.exists(&options).wait());
    assert!(url.open(&options).wait().is_ok());
    let damages = url.damages(&options).wait().expect("the table is there");
    assert!(damages.iter().all(|damage| damage.part == "the table"), "{damages:?}");
}

#[test]
fn a_task_opens_a_store_as_a_thread_does() {
    let tables = LocalTables::serve();
    let url = tables.url("&create=true&prefetch=5");
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("it needs no thread");
    let opened = runtime.block_on(async { url.open(&OpenOptions::default()).await });
    assert!(opened.is_ok(), "{:?}", opened.err());
}
