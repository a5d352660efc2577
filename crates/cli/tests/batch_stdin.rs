//! Requests that come from stdin or a pipe, which can be read only once and may stay open.
#![cfg(all(unix, feature = "batch", feature = "mock-provider"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::batch::{lines, read, request, summary, write};
use support::http_server::HttpServer;
use support::sandbox::{Ran, Sandbox, TOLLGATE};

fn good() -> HttpServer {
    HttpServer::up(|_| r#"{"usage": {"prompt_tokens": 1, "completion_tokens": 1}}"#.into())
}

/// A run that reads stdin.
fn command(folder: &Sandbox, server: &HttpServer, words: &[&str]) -> Command {
    let mut run = folder.command(TOLLGATE);
    run.args(["batch", "run", "-", "-o", "results.jsonl", "--json", "--base-url", &server.url]).args(words);
    run.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    run
}

/// Runs with this text on stdin.
fn piped(folder: &Sandbox, server: &HttpServer, words: &[&str], text: &str) -> Ran {
    let mut child = command(folder, server, words).spawn().unwrap();
    // A run that refuses its input does not read it.
    let _ = child.stdin.take().unwrap().write_all(text.as_bytes());
    Ran::of(&child.wait_with_output().unwrap())
}

#[test]
fn lines_of_stdin_that_cannot_be_sent_are_put_aside_one_by_one_and_the_rest_is_sent() {
    let (folder, server) = (Sandbox::new(), good());
    let priced = |id: &str| request(id).replace("\"m\"", "\"gpt-4o-mini\"");
    let streaming = r#"{"custom_id": "b", "body": {"model": "gpt-4o-mini", "stream": true}}"#;
    let text = format!("{}\n{streaming}\n{}\n{}\n", priced("a"), request("c"), priced("d"));
    let ran = piped(&folder, &server, &["--max-cost", "1"], &text);
    let said = summary(&ran);
    assert_eq!((ran.exit, &said["done"], &said["bad_lines"]), (1, &json!(2), &json!(2)), "{ran:?}");
    assert_eq!(server.requests().len(), 2);
    let errors = lines(&folder, "results.jsonl.errors.jsonl");
    let error = |at: usize| errors[at]["error"].as_str().unwrap();
    assert_eq!((&errors[0]["file"], &errors[0]["line"]), (&json!("stdin"), &json!(2)), "{errors:?}");
    assert!(error(0).contains("\"stream\": true"), "{errors:?}");
    assert_eq!(errors[1]["line"], 3, "{errors:?}");
    assert!(error(1).contains("has no price"), "{errors:?}");
}

#[test]
fn a_file_that_is_called_as_stdin_is_not_read_and_stdin_is() {
    let (folder, server) = (Sandbox::new(), good());
    write(&folder, "-", "nonsense\n");
    let ran = piped(&folder, &server, &[], &format!("{}\n{}\n", request("a"), request("b")));
    assert_eq!((ran.exit, &summary(&ran)["done"]), (0, &json!(2)), "{ran:?}");
    assert_eq!(read(&folder, "-"), "nonsense\n");
    let mut named = folder.command(TOLLGATE);
    named.args(["batch", "run", "./-", "-o", "other.jsonl", "--json", "--base-url", &server.url]);
    let named = Ran::of(&named.stdin(Stdio::null()).output().unwrap());
    assert_eq!(summary(&named)["bad_lines"], 1, "the file itself has a path: {named:?}");
}

/// Reads events until one of them is of this kind.
fn wait_for(events: &mut impl BufRead, kind: &str) {
    let mut line = String::new();
    loop {
        line.clear();
        assert!(events.read_line(&mut line).unwrap() > 0, "it ended before {kind}");
        let event: Value = serde_json::from_str(&line).unwrap();
        if event["event"] == kind {
            return;
        }
    }
}

#[test]
fn stdin_that_stays_open_holds_up_neither_results_nor_the_end() {
    let (folder, server) = (Sandbox::new(), good());
    let mut child: Child = command(&folder, &server, &[]).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut events = BufReader::new(child.stdout.take().unwrap());
    for id in ["a", "b"] {
        writeln!(stdin, "{}", request(id)).unwrap();
        wait_for(&mut events, "finished");
        assert_eq!(lines(&folder, "results.jsonl").last().unwrap()["id"], id, "it is on disk by then");
    }
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let mut rest = String::new();
    events.read_to_string(&mut rest).unwrap();
    let exit = child.wait().unwrap().code();
    drop(stdin);
    let said: Value = serde_json::from_str(rest.lines().last().unwrap()).unwrap();
    assert_eq!((exit, &said["done"], &said["unfinished"]), (Some(1), &json!(2), &json!(0)), "{said}");
    assert!(said["stopped"].is_string(), "{said}");
}
