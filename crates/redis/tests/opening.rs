//! Opening a store: what is refused, and in which words.

use std::time::Duration;

use tollgate_core::{Limit, Limits, demand};
use tollgate_redis::{RedisOpenError, RedisStore, ServerError};
use tollgate_redis_local::{Cluster, Port, Server, ServerKind};
use tollgate_store::{BucketRef, Key, Op, Step, Store, StoreError, Transaction, TxnOutcome};

/// No message may have this in it.
const CANARY: &str = "hunter2-canary";

fn open(url: &str) -> Result<RedisStore, RedisOpenError> {
    RedisStore::builder(url).timeout(Duration::from_secs(5)).build().wait()
}

fn refused(url: &str) -> RedisOpenError {
    let error = open(url).expect_err("it is refused");
    for said in [error.to_string(), format!("{error:?}")] {
        assert!(!said.contains(CANARY), "{said}");
    }
    error
}

#[test]
fn a_server_that_evicts_is_refused_unless_that_is_accepted() {
    for kind in ServerKind::ALL {
        let evicting = ["--save", "", "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"];
        let server = Server::with(kind, &evicting);
        let error = refused(&server.url());
        assert!(
            matches!(&error, RedisOpenError::Evicting(_, _, policy) if policy == "allkeys-lru"),
            "{error}"
        );
        assert!(error.to_string().contains("noeviction"), "{error}");
        assert!(open(&format!("{}?evicting=accept", server.url())).is_ok());
        assert!(RedisStore::builder(server.url()).accept_eviction(true).build().wait().is_ok());
        // A policy without a bound on the memory evicts nothing.
        server.command(&["CONFIG", "SET", "maxmemory", "0"]);
        assert!(open(&server.url()).is_ok());
        server.command(&["CONFIG", "SET", "maxmemory", "100mb"]);
        server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
        assert!(open(&server.url()).is_ok());
    }
}

#[test]
fn a_host_that_refuses_is_reported_at_once_to_who_is_in_a_hurry() {
    let port = Port::reserve();
    let url = format!("redis://127.0.0.1:{}", port.number());
    let timeout = Duration::from_secs(600);
    let builder = RedisStore::builder(&url).timeout(timeout).connect_within(Duration::from_millis(500));
    let error = builder.build().wait().expect_err("no server listens");
    let RedisOpenError::Unavailable { waited, error: ServerError::NoConnection(..), .. } = &error else {
        panic!("{error}");
    };
    // Long before the timeout, on however busy a machine.
    assert!(*waited < timeout / 4, "{error}");
    assert!(error.to_string().contains("refused"), "{error}");
}

#[test]
fn a_wrong_password_is_refused_and_never_told() {
    for kind in ServerKind::ALL {
        let server = Server::with(kind, &["--save", "", "--requirepass", "right"]);
        let port = server.port();
        for url in
            [format!("redis://:{CANARY}@127.0.0.1:{port}"), format!("redis://me:{CANARY}@127.0.0.1:{port}")]
        {
            let error = refused(&url);
            assert!(matches!(error, RedisOpenError::Refused(_, ServerError::AccessDenied(_))), "{error}");
        }
        let error = refused(&server.url());
        assert!(matches!(error, RedisOpenError::Refused(_, ServerError::AccessDenied(_))), "{error}");
        let store = open(&format!("redis://:right@127.0.0.1:{port}")).expect("the password is right");
        assert!(!format!("{store:?}").contains("right"));
    }
}

#[test]
fn a_user_without_rights_is_refused_and_one_that_may_not_look_around_is_not() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let port = server.port();
        let rules = [
            "ACL",
            "SETUSER",
            "plain",
            "on",
            &format!(">{CANARY}"),
            "~{tollgate}*",
            "+@all",
            "-info",
            "-config",
        ];
        server.command(&rules);
        assert!(open(&format!("redis://plain:{CANARY}@127.0.0.1:{port}")).is_ok());
        server.command(&["ACL", "SETUSER", "none", "on", &format!(">{CANARY}"), "~other*", "+@all"]);
        let error = refused(&format!("redis://none:{CANARY}@127.0.0.1:{port}"));
        assert!(matches!(error, RedisOpenError::Refused(_, ServerError::AccessDenied(_))), "{error}");
        server.command(&["ACL", "SETUSER", "mute", "on", &format!(">{CANARY}"), "~*", "+@all", "-evalsha"]);
        let error = refused(&format!("redis://mute:{CANARY}@127.0.0.1:{port}"));
        assert!(matches!(error, RedisOpenError::Refused(_, ServerError::AccessDenied(_))), "{error}");
    }
}

#[test]
fn a_node_of_a_cluster_is_none_by_itself() {
    let cluster = Cluster::start(ServerKind::Redis);
    let away = (cluster.node_of("{tollgate}") + 1) % 3;
    let error = refused(&cluster.nodes[away].url());
    assert!(error.to_string().contains("redis+cluster://"), "{error}");
    assert!(open(&cluster.url()).is_ok());
}

#[test]
fn a_server_without_memory_is_away_and_has_taken_nothing() {
    for kind in ServerKind::ALL {
        let server = Server::start(kind);
        let store = open(&server.url()).expect("the server is there");
        let limits = Limits::new([Limit::per_day("calls", 10)]).expect("it is valid");
        let (key, costs) = (Key::new(&["me", "it"]), limits.costs(&demand! { calls: 1 }).expect("it fits"));
        let place = BucketRef { namespace: "memory", key: &key, limits: &limits };
        let take = || {
            let steps = [Step { place, op: Op::Take { costs: &costs, term: None } }];
            store.apply(&Transaction { id: None, steps: &steps, metered: false }).wait()
        };
        assert!(matches!(take(), Ok(TxnOutcome::Done(_))));
        server.command(&["CONFIG", "SET", "maxmemory", "1"]);
        let error = take().expect_err("there is no memory");
        assert!(matches!(&error, StoreError::Unavailable(_, why) if why.contains("memory")), "{error}");
        server.command(&["CONFIG", "SET", "maxmemory", "0"]);
        assert_eq!(store.peek(&place).wait().expect("it is back")[0].available(), 9);
    }
}

#[test]
fn nobody_there_is_told_within_the_timeout() {
    let port = Port::reserve();
    let url = format!("redis://:{CANARY}@127.0.0.1:{}", port.number());
    let error = RedisStore::builder(url).timeout(Duration::from_secs(2)).build().wait();
    let error = error.expect_err("nobody listens");
    assert!(!format!("{error} {error:?}").contains(CANARY));
    let RedisOpenError::Unavailable { waited, error: cause, .. } = error else { panic!("{error}") };
    // What a busy host adds is no fault of the store: only that it ends is its promise.
    assert!(waited <= Duration::from_secs(30), "{waited:?}");
    assert!(matches!(cause, ServerError::NoConnection(..)), "{cause}");
}

#[test]
fn what_cannot_be_an_address_is_refused() {
    assert!(matches!(refused("redis+cluster://a/1"), RedisOpenError::BadUrl(_)));
    if cfg!(not(feature = "tls")) {
        assert!(matches!(refused(&format!("rediss://:{CANARY}@127.0.0.1")), RedisOpenError::BadSetting(_)));
    }
    let error = RedisStore::builder("redis://127.0.0.1").prefix("{}").build().wait();
    assert!(matches!(error, Err(RedisOpenError::BadUrl(_))));
}
