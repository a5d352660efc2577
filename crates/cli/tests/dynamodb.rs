//! Commands on a DynamoDB table: the sessions of the file store, replayed.
#![cfg(all(unix, feature = "local"))]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;

use support::sandbox::Sandbox;
use support::session;
use support::tables::Tables;
use tollgate_redis_local::Port;

macro_rules! sessions {
    ($($name:ident),* $(,)?) => {$(
        #[test]
        fn $name() {
            session::replay_on(stringify!($name), &Tables::up().store);
        }
    )*};
}

// Those that look at the file itself have no meaning here.
sessions![audit, calls, entities, limits, limits_file, namespaces, run, tickets];

#[test]
fn a_table_that_is_not_there_is_not_made_and_the_way_to_make_it_is_told() {
    let tables = Tables::up();
    let (creating, sandbox) = (tables.another("other"), Sandbox::new());
    let missing = creating.replace("&create=true", "");
    let ran = sandbox.tollgate(&["check", "--store", &missing]);
    assert_eq!(ran.exit, 4, "{ran:?}");
    let said = ran.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(said.contains("there is no table \"other\"") && said.contains("deploy/"), "{said}");
    assert!(said.replace(' ', "").contains(&creating.replace(' ', "")), "{said}");
    // A dry run creates no table either.
    let ran = sandbox.tollgate(&["entity", "create", "key-1", "--dry-run", "--store", &creating]);
    assert_eq!((ran.exit, ran.stdout.as_str()), (0, "would create entity key-1\n"), "{ran:?}");
    assert_eq!(sandbox.tollgate(&["check", "--store", &missing]).exit, 4);
    let ran = sandbox.tollgate(&["version", "--store", &creating]);
    assert!(ran.stdout.contains("does not exist yet"), "{ran:?}");
    // A command that asks for the table and writes gets it.
    assert_eq!(sandbox.tollgate(&["check", "--store", &creating]).exit, 4, "a look makes nothing");
    let ran = sandbox.tollgate(&["system", "set-defaults", "-l", "rpm:10", "--store", &creating]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert_eq!(sandbox.tollgate(&["check", "--store", &missing]).exit, 0);
}

#[test]
fn the_page_about_dynamodb_is_true() {
    let (sandbox, port) = (Sandbox::new(), Port::reserve());
    let mut script = session::shell_block("docs/dynamodb.md");
    // The port may be in use here, and on a busy machine the server may take longer than in the page.
    for (from, to) in [
        ("tollgate local up", format!("tollgate local up --port {}", port.number())),
        (":8000", format!(":{}", port.number())),
        ("sleep 1\n", "until grep -q 127.0.0.1 local.log; do sleep 0.1; done\n".into()),
    ] {
        assert!(script.contains(from), "{from} is not in {script}");
        script = script.replace(from, &to);
    }
    let ran =
        sandbox.shell(&format!("trap 'kill $!' EXIT\nset -e\n{script}tollgate peek user-1 gpt-4 --json"));
    assert!(ran.exit == 0 && ran.stdout.contains("\"available\": 59"), "{ran:?}");
}

#[test]
fn a_signal_shuts_the_server_down_cleanly() {
    assert_eq!(Tables::up().end(), Some(0));
}

#[test]
fn an_unavailable_service_has_its_own_exit_code() {
    let mut tables = Tables::up();
    tables.end();
    let ran = Sandbox::new().tollgate(&["status", "--store", &tables.store, "--store-timeout", "300ms"]);
    assert_eq!(ran.exit, 4, "{ran:?}");
    assert!(ran.stdout.contains("reachable  no"), "{ran:?}");
}

#[test]
fn several_aggregators_count_the_stream_once() {
    let tables = Tables::up();
    let sandbox = Sandbox::new().with_store(&tables.store);
    let aggregate = |words: &[&str]| {
        let ran = sandbox.tollgate(&[&["aggregate", "--once", "--json"], words].concat());
        assert_eq!(ran.exit, 0, "{ran:?}");
        serde_json::from_str::<serde_json::Value>(&ran.stdout).expect("it answers JSON")
    };
    for line in ["system set-defaults -l rpm:100", "acquire user-1 gpt-4 rpm=1", "acquire user-1 gpt-4 rpm=2"]
    {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(sandbox.tollgate(&words).exit, 0, "{line}");
    }
    assert_eq!(aggregate(&[])["written"], 1);
    // It continues from there, and finds its own writes.
    let again = aggregate(&[]);
    assert_eq!((&again["written"], &again["failed"]), (&0.into(), &serde_json::json!([])));
    // All of it again changes nothing.
    assert!(aggregate(&["--from-start"])["records"].as_u64() > again["records"].as_u64());
    let usage = sandbox.tollgate(&["usage", "summary", "--entity", "user-1", "--json"]).stdout;
    let usage: serde_json::Value = serde_json::from_str(&usage).expect("it answers JSON");
    assert_eq!((&usage["calls"], &usage["limits"]["rpm"]["total"]), (&2.into(), &3.into()), "{usage}");
}

#[test]
fn what_expires_in_a_local_table_is_gone_soon_and_audit_events_are_archived() {
    let tables = Tables::up();
    let sandbox = Sandbox::new().with_store(&tables.store);
    assert_eq!(sandbox.tollgate(&["entity", "create", "user-1"]).exit, 0);
    let endpoint = tables.store.split("endpoint=http://").nth(1).expect("it names the endpoint");
    let item = r##"{"PK":{"S":"ns/AUDIT#user-1"},"SK":{"S":"#AUDIT#1"},"event_id":{"S":"1"},"ttl":{"N":"1700000000"}}"##;
    let body = format!(r#"{{"TableName":"limits","Item":{item}}}"#);
    let mut stream = TcpStream::connect(endpoint).expect("it is served");
    let head = format!(
        "POST / HTTP/1.1\r\nhost: {endpoint}\r\nx-amz-target: DynamoDB_20120810.PutItem\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(format!("{head}{body}").as_bytes()).expect("it listens");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let archived = |_| {
        let ran = sandbox.tollgate(&["aggregate", "--once", "--json", "--archive", "archive"]);
        let told: serde_json::Value = serde_json::from_str(&ran.stdout).expect("it answers JSON");
        told["archived"].as_u64().unwrap_or(0)
    };
    // As long as it takes: the service takes days.
    assert!((0..600).map(archived).any(|archived| archived > 0));
    assert!(sandbox.path().join("archive/audit/ns").exists());
}

#[test]
fn only_a_table_has_a_stream() {
    let ran = Sandbox::new().tollgate(&["aggregate", "--once"]);
    assert_eq!(ran.exit, 2, "{ran:?}");
    assert!(ran.stderr.contains("--store dynamodb:TABLE"), "{ran:?}");
}
