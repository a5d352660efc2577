//! A store on Redis, opened by its URL.
#![cfg(feature = "redis")]

use std::time::Duration;

use tollgate_open::{OpenError, OpenOptions, StoreUrl};
use tollgate_redis_local::{Port, Server, ServerKind};

fn url(text: &str) -> StoreUrl {
    text.parse().expect("it is a URL")
}

#[test]
fn a_server_is_opened_with_the_parameters_of_the_url() {
    let server = Server::start(ServerKind::Redis);
    let (url, options) = (url(&format!("{}?prefix=mine&prefetch=5", server.url())), OpenOptions::default());
    assert!(url.exists(&options).wait(), "a server is never created");
    let store = url.open(&options).wait().expect("the server is there");
    assert!(store.clock().now().as_micros() > 0);
    assert_eq!(url.damages(&options).wait().expect("the server answers"), []);
}

#[test]
fn a_refused_connection_is_reported_within_its_own_time() {
    let port = Port::reserve();
    let url = url(&format!("redis://:hunter2@127.0.0.1:{}", port.number()));
    // If the connection were retried until the timeout, the test would not end.
    let options =
        OpenOptions::default().timeout(Duration::from_secs(86_400)).connect_within(Duration::from_millis(50));
    let error = url.open(&options).wait().err().expect("there is no server");
    assert!(matches!(error, OpenError::Redis(_)), "{error:?}");
    assert!(!format!("{error} {error:?}").contains("hunter2"), "{error:?}");
}
