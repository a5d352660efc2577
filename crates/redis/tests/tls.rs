//! TLS: the server is known by its certificate, or it is not talked to.
#![cfg(feature = "tls")]

use std::time::Duration;

use tollgate_redis::{RedisOpenError, RedisStore};
use tollgate_redis_local::{Port, Server, ServerKind};

const CANARY: &str = "hunter2-canary";

/// A file beside the tests. The certificates are good for this host alone, and for nothing else.
fn file(name: &str) -> String {
    format!("{}/tests/tls/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn open(url: &str) -> Result<RedisStore, RedisOpenError> {
    let store = RedisStore::builder(url).timeout(Duration::from_secs(5)).build().wait();
    if let Err(error) = &store {
        assert!(!format!("{error} {error:?}").contains(CANARY), "{error}");
    }
    store
}

#[test]
fn a_server_is_talked_to_if_its_certificate_is_good() {
    let reserved = Port::reserve();
    let port = reserved.number();
    let (cert, key, ca) = (file("server.pem"), file("server.key"), file("ca.pem"));
    let number = port.to_string();
    let tls = ["--tls-port", &number, "--tls-cert-file", &cert, "--tls-key-file", &key];
    let more = ["--tls-ca-cert-file", &ca, "--tls-auth-clients", "no", "--requirepass", CANARY, "--save", ""];
    let _server = Server::with(ServerKind::Redis, &[&tls[..], &more].concat());
    assert!(open(&format!("rediss://:{CANARY}@127.0.0.1:{port}?ca={ca}")).is_ok());
    let unknown = open(&format!("rediss://:{CANARY}@127.0.0.1:{port}"));
    assert!(unknown.is_err(), "nobody vouches for it");
    let error = open(&format!("rediss://:{CANARY}@127.0.0.1:{port}?ca=/no/such/file"));
    assert!(matches!(error, Err(RedisOpenError::BadSetting(_))));
    assert!(open(&format!("redis://:{CANARY}@127.0.0.1:{port}")).is_err(), "it talks TLS only");
}
