//! Commands on a Redis server: the sessions of the file store, replayed.
#![cfg(all(unix, feature = "redis"))]

mod support;

use std::process::{Command, Output};

use support::sandbox::Sandbox;
use support::session;
use tollgate_redis_local::{Server, ServerKind};

macro_rules! sessions {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            session::replay_on(stringify!($name), &Server::start(ServerKind::Redis).url());
        }
    )*};
}

// Those that look at the file itself have no meaning here.
sessions![audit, calls, entities, limits, limits_file, namespaces, run, tickets];

/// No output may have this in it.
const CANARY: &str = "hunter2-canary";

fn tollgate(store: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
    command
        .args(arguments)
        .env("TOLLGATE_STORE", store)
        .env_remove("TOLLGATE_CONFIG")
        .env("HOME", "/nonexistent");
    let output = command.output().expect("the command can be started");
    for said in [&output.stdout, &output.stderr] {
        assert!(!String::from_utf8_lossy(said).contains(CANARY), "{output:?}");
    }
    output
}

#[test]
fn commands_on_redis_share_what_they_know() {
    for kind in ServerKind::ALL {
        let server = Server::with(kind, &["--save", "", "--requirepass", CANARY]);
        let store = format!("redis://:{CANARY}@127.0.0.1:{}", server.port());
        let codes = [
            &["system", "set-defaults", "-l", "rpm:2", "--yes"][..],
            &["acquire", "me", "gpt", "rpm=1"],
            &["acquire", "me", "gpt", "rpm=1"],
            &["acquire", "me", "gpt", "rpm=1"],
            &["status"],
            &["config", "show"],
        ]
        .map(|arguments| tollgate(&store, arguments).status.code());
        assert_eq!(codes, [Some(0), Some(0), Some(0), Some(3), Some(0), Some(0)]);
    }
}

#[test]
fn the_page_about_redis_is_true() {
    let server = Server::start(ServerKind::Redis);
    let block = session::shell_block("docs/redis.md");
    assert!(block.contains("127.0.0.1:6379"), "{block}");
    let block = block.replace("127.0.0.1:6379", &format!("127.0.0.1:{}", server.port()));
    let ran = Sandbox::new().shell(&format!("set -e\n{block}tollgate peek user-1 gpt-4 --json"));
    assert!(ran.exit == 0 && ran.stdout.contains("\"available\": 59"), "{ran:?}");
    let keys = format!("{:?}", server.command(&["KEYS", "{staging}*"]));
    assert!(keys.contains("{staging}"), "the prefix is in use: {keys}");
}

#[test]
fn check_finds_what_cannot_be_read_on_the_server() {
    let server = Server::start(ServerKind::Redis);
    assert_eq!(tollgate(&server.url(), &["system", "set-defaults", "-l", "rpm:2"]).status.code(), Some(0));
    assert_eq!(tollgate(&server.url(), &["acquire", "me", "gpt", "rpm=1"]).status.code(), Some(0));
    assert_eq!(tollgate(&server.url(), &["check"]).status.code(), Some(0));
    server.command(&["SET", "{tollgate}b:\u{2}ns\u{2}me\u{3}gpt", ""]);
    let checked = tollgate(&server.url(), &["check"]);
    let said = String::from_utf8_lossy(&checked.stdout);
    assert_eq!(checked.status.code(), Some(1), "{checked:?}");
    assert!(said.contains("1 problem") && said.contains("the server"), "{said}");
}

#[test]
fn a_refused_connection_is_reported_before_the_timeout() {
    let port = tollgate_redis_local::Port::reserve();
    let store = format!("redis://127.0.0.1:{}", port.number());
    // If the connection were retried until the timeout, the test would not end.
    let output = tollgate(&store, &["status", "--store-timeout", "1d"]);
    assert_eq!(output.status.code(), Some(4), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).contains("refused"), "{output:?}");
}

#[test]
fn a_wrong_password_is_reported_without_showing_it() {
    let server = Server::with(ServerKind::Redis, &["--save", "", "--requirepass", "right"]);
    let output = tollgate(&format!("redis://:{CANARY}@127.0.0.1:{}", server.port()), &["status"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stdout).contains("no permission"), "{output:?}");
}
