//! Accounting of a batch: every line of the input is in a count, a file and the exit code.
#![cfg(all(unix, feature = "batch", feature = "mock-provider"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::batch::{command, lines, ran, read, request, run, summary, write};
use support::http_server::HttpServer;
use support::provider::Provider;
use support::sandbox::{Ran, Sandbox, TOLLGATE};

const GOOD: &str = r#"{"usage": {"prompt_tokens": 1, "completion_tokens": 1}}"#;
const ERRORS: &str = "results.jsonl.errors.jsonl";

fn good() -> HttpServer {
    HttpServer::up(|_| GOOD.into())
}

fn statuses(folder: &Sandbox) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    lines(folder, "results.jsonl").iter().map(|line| (text(&line["id"]), text(&line["status"]))).collect()
}

#[test]
fn a_duplicate_id_is_reported_with_its_line_and_changes_the_exit_code() {
    let (folder, server) = (Sandbox::new(), good());
    write(&folder, "requests.jsonl", ["a", "b", "a"].map(request).join("\n"));
    for resume in [&["--json"][..], &["--json", "--resume"]] {
        let ran = run(&folder, &server.url, resume);
        assert_eq!((ran.exit, &summary(&ran)["duplicates"]), (1, &json!(1)), "{ran:?}");
        assert!(ran.stderr.contains("line 3") && ran.stderr.contains(ERRORS), "{ran:?}");
        let errors = lines(&folder, ERRORS);
        assert_eq!((&errors[0]["line"], &errors[0]["custom_id"]), (&json!(3), &json!("a")));
    }
    assert_eq!((statuses(&folder).len(), server.requests().len()), (2, 2));
}

#[test]
fn what_failed_before_is_not_done_before_and_a_retry_leaves_one_line() {
    let folder = Sandbox::new();
    write(&folder, "requests.jsonl", ["a", "b"].map(request).join("\n"));
    let refusing = HttpServer::up(|_| "no JSON".into());
    let first = run(&folder, &refusing.url, &["--json", "--attempts", "1"]);
    assert_eq!((first.exit, &summary(&first)["failed"]), (1, &json!(2)), "{first:?}");
    let server = good();
    let resumed = run(&folder, &server.url, &["--json", "--resume"]);
    let said = summary(&resumed);
    assert_eq!(resumed.exit, 1, "{resumed:?}");
    assert_eq!((&said["earlier"], &said["failed_before"], &said["done"]), (&json!(0), &json!(2), &json!(0)));
    let retried = run(&folder, &server.url, &["--json", "--resume", "--retry-failed"]);
    assert_eq!(retried.exit, 0, "{retried:?}");
    let mut statuses = statuses(&folder);
    statuses.sort();
    assert_eq!(statuses, [("a".into(), "done".into()), ("b".into(), "done".to_string())]);
}

#[test]
fn a_reply_that_cannot_be_stored_is_a_failure_with_a_reason() {
    let folder = Sandbox::new();
    let server = HttpServer::up(|request| match &request.body {
        body if body.contains("endless") => format!("{{\"text\": \"{}\"}}", "x".repeat(65 << 20)),
        body if body.contains("huge") => format!("{{\"text\": \"{}\"}}", "x".repeat(33 << 20)),
        body if body.contains("number") => "{\"value\": 1e400}".into(),
        _ => GOOD.into(),
    });
    let bodies = ["small", "huge", "endless", "number"]
        .map(|id| json!({ "custom_id": id, "body": { "model": id } }).to_string());
    write(&folder, "requests.jsonl", bodies.join("\n"));
    let ran = run(&folder, &server.url, &["--json"]);
    let said = summary(&ran);
    assert_eq!((ran.exit, &said["done"], &said["failed"]), (1, &json!(2), &json!(2)), "{said}");
    let text = read(&folder, "results.jsonl");
    assert!(text.contains("{\"value\": 1e400}"), "it is stored as it came");
    let huge = text.lines().find(|line| line.contains("\"huge\"")).unwrap();
    assert!(huge.contains("\"failed\"") && huge.contains("can be stored"), "{huge}");
    assert_eq!(run(&folder, &server.url, &["--resume"]).exit, 1, "it stays a failure");
    assert_eq!(server.requests().len(), 4, "and is not paid for again");
    for name in ["results.jsonl", "results.jsonl.journal"] {
        let _ = std::fs::remove_file(folder.path().join(name));
    }
    assert_eq!(run(&folder, &server.url, &["--format", "openai", "--ordered"]).exit, 1);
    let text = read(&folder, "results.jsonl");
    assert!(text.contains("{\"value\": 1e400}"), "it is written as it came");
    let errors: Vec<bool> = text.lines().map(|line| !line.contains("\"error\":null")).collect();
    assert_eq!(errors, [false, true, true, false], "no failure looks like a reply");
}

#[test]
fn invalid_lines_are_counted_one_by_one() {
    let (folder, server) = (Sandbox::new(), good());
    let mut text = b"\xef\xbb\xbf".to_vec();
    text.extend(request("first").bytes());
    text.extend(b"\n{\"custom_id\": \"latin\", \"body\": {\"model\": \"\xe9\"}}\n");
    text.extend(b"{\"body\": {\"text\": \"");
    text.resize(text.len() + (65 << 20), b'x');
    text.extend(b"\"}}\n");
    text.extend(request("last").bytes());
    write(&folder, "requests.jsonl", text);
    let ran = run(&folder, &server.url, &["--json"]);
    let said = summary(&ran);
    assert_eq!((ran.exit, &said["done"], &said["bad_lines"]), (1, &json!(2), &json!(2)), "{said}");
    let errors = lines(&folder, ERRORS);
    assert_eq!((&errors[0]["line"], &errors[1]["line"]), (&json!(2), &json!(3)));
    assert!(errors[0]["error"].as_str().unwrap().contains("UTF-8"));
    assert!(errors[1]["error"].as_str().unwrap().contains("bytes"));
    assert!(ran.stderr.contains("line 2: it is not valid UTF-8"), "{}", ran.stderr);
}

#[test]
fn a_stream_is_refused_before_the_start_with_its_line() {
    let (folder, server) = (Sandbox::new(), good());
    let streaming = r#"{"custom_id": "b", "body": {"model": "m", "stream": true}}"#;
    write(&folder, "requests.jsonl", format!("{}\n{streaming}\n", request("a")));
    let refused = run(&folder, &server.url, &[]);
    assert_eq!((refused.exit, server.requests().len()), (2, 0), "{refused:?}");
    assert!(
        refused.stderr.contains("line 2 of requests.jsonl") && refused.stderr.contains("stream"),
        "{refused:?}"
    );
    assert!(!folder.path().join("results.jsonl").exists());
}

#[test]
fn a_bound_on_money_needs_prices_before_the_start() {
    let (folder, server) = (Sandbox::new(), good());
    write(&folder, "requests.jsonl", request("a"));
    let account = format!("[[account]]\nname = \"a\"\nbase_url = \"{}\"\n", server.url);
    let run = |accounts: &str| {
        write(&folder, "accounts.toml", accounts);
        let mut run = folder.command(TOLLGATE);
        let words =
            ["requests.jsonl", "-o", "results.jsonl", "--accounts", "accounts.toml", "--max-cost", "1"];
        ran(run.args(["batch", "run"]).args(words))
    };
    let none = run(&account);
    assert!(none.exit == 2 && none.stderr.contains("line 1") && none.stderr.contains("\"m\""), "{none:?}");
    let alone = support::batch::run(&folder, &server.url, &["--max-cost", "1"]);
    assert!(alone.exit == 2 && alone.stderr.contains("the model \"m\" has no price"), "{alone:?}");
    assert!(!folder.path().join("results.jsonl").exists());
    let other = run(&format!("{account}[price.\"gpt*\"]\ninput = \"1\"\noutput = \"1\"\n"));
    assert!(
        other.exit == 2 && other.stderr.contains("line 1") && other.stderr.contains("\"m\""),
        "{other:?}"
    );
    assert_eq!(server.requests().len(), 0);
    let priced = run(&format!("{account}[price.\"*\"]\ninput = \"1\"\noutput = \"1\"\n"));
    assert_eq!(priced.exit, 0, "{priced:?}");
    write(&folder, "requests.jsonl", request("b").replace("\"m\"", "\"gpt-4o-mini\""));
    let built_in = support::batch::run(&folder, &server.url, &["--max-cost", "1", "--resume"]);
    assert_eq!(built_in.exit, 0, "a common model has a price: {built_in:?}");
}

#[test]
fn a_body_goes_out_byte_for_byte_and_its_result_has_its_custom_id() {
    let (folder, server) = (Sandbox::new(), good());
    let body = r#"{"z": 12345678901234567890123,  "a":1.50, "s":"\u00e9"}"#;
    let bare = r#"{"z": 1e400, "custom_id": "bare", "a":2}"#;
    write(&folder, "requests.jsonl", format!("{{\"custom_id\": \"a\", \"body\": {body}}}\n{bare}\n{body}\n"));
    assert_eq!(run(&folder, &server.url, &["--workers", "1"]).exit, 0);
    let sent: Vec<String> = server.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(sent, [body, r#"{"z": 1e400, "a":2}"#, body]);
    let results = lines(&folder, "results.jsonl");
    let ids: Vec<_> = results.iter().map(|line| (&line["id"], &line["custom_id"])).collect();
    assert_eq!(ids[0], (&json!("a"), &json!("a")));
    assert_eq!(ids[1], (&json!("bare"), &json!("bare")));
    assert_eq!(ids[2], (&json!("line-3"), &Value::Null));
}

#[test]
fn a_request_that_changed_is_reported_and_its_result_stays() {
    let (folder, server) = (Sandbox::new(), good());
    write(&folder, "requests.jsonl", ["a", "b"].map(request).join("\n"));
    assert_eq!(run(&folder, &server.url, &[]).exit, 0);
    let before = read(&folder, "results.jsonl");
    write(&folder, "requests.jsonl", ["a", "b"].map(request).join("\n").replacen("Hello", "Goodbye", 1));
    let ran = run(&folder, &server.url, &["--resume", "--json"]);
    let said = summary(&ran);
    assert_eq!((ran.exit, &said["changed"], &said["earlier"]), (1, &json!(1), &json!(1)), "{ran:?}");
    assert_eq!(lines(&folder, ERRORS)[0]["custom_id"], "a");
    assert_eq!((read(&folder, "results.jsonl"), server.requests().len()), (before, 2));
}

#[test]
fn a_call_that_was_not_made_is_not_counted_and_a_closed_account_is_named() {
    let (folder, provider) = (Sandbox::new(), Provider::up(&["--key", "right"]));
    let requests: String = (0..50).map(|number| request(&format!("r{number}")) + "\n").collect();
    write(&folder, "requests.jsonl", requests);
    let url = format!("http://{}/v1", provider.address);
    let ran = ran(command(&folder, &url, &["--json", "--key-env", "KEY"]).env("KEY", "wrong"));
    let said = summary(&ran);
    assert_eq!((ran.exit, &said["calls"], &said["unfinished"]), (1, &json!(1), &json!(50)), "{said}");
    assert!(ran.stderr.contains("account default is closed"), "{ran:?}");
    assert!(said["accounts"][0]["closed"].as_str().unwrap().contains("key"), "{said}");
}

#[test]
fn a_batch_that_reaches_no_server_ends_with_the_reason_and_can_be_resumed() {
    let folder = Sandbox::new();
    let requests: String = (0..100).map(|number| request(&format!("r{number}")) + "\n").collect();
    // No server gets this port when it asks for a free one.
    let port = "127.0.0.1:1";
    for (requests, attempts) in [(requests, "5"), (request("r0"), "1")] {
        write(&folder, "requests.jsonl", &requests);
        let words = ["--json", "--resume", "--attempts", attempts, "--deadline", "2m"];
        let ran = run(&folder, &format!("http://{port}/v1"), &words);
        let said = summary(&ran);
        assert_eq!((ran.exit, &said["failed"], &said["tokens"]), (4, &json!(0), &json!(0)), "{said}");
        assert_eq!(said["unfinished"], requests.lines().count(), "{said}");
        assert!(said["stopped"].as_str().unwrap().contains("no call has reached 127.0.0.1"), "{said}");
        assert!(ran.stderr.contains("no call has reached 127.0.0.1"), "{ran:?}");
        assert_eq!(read(&folder, "results.jsonl"), "", "nothing is finished");
    }
    let text = run(&folder, &format!("http://{port}/v1"), &["--resume", "--attempts", "1"]);
    assert!(text.stderr.contains("no call has reached 127.0.0.1"), "{text:?}");
    let server = good();
    assert_eq!(run(&folder, &server.url, &["--resume"]).exit, 0);
}

#[test]
fn every_line_of_json_is_an_object_and_so_is_an_error() {
    let (folder, server) = (Sandbox::new(), good());
    write(&folder, "requests.jsonl", ["a", "b"].map(request).join("\n"));
    let ran = run(&folder, &server.url, &["--json"]);
    assert_eq!(summary(&ran)["event"], "summary");
    let refused = run(&folder, &server.url, &["--json"]);
    assert_eq!((refused.exit, &summary(&refused)["error"]["kind"]), (2, &json!("usage")));
}

/// Sends a signal to a batch as soon as it waits for a reply.
fn signalled(child: Child, provider: &Provider, signal: Signal) -> Ran {
    while !provider.ask("GET /stats", "").contains(r#""concurrent":1"#) {}
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, signal).unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Ran {
        stdout: text(&output.stdout),
        stderr: text(&output.stderr),
        exit: output.status.code().unwrap_or(-1),
    }
}

#[test]
fn a_batch_under_nohup_goes_on_when_its_terminal_is_gone() {
    let (folder, provider) = (Sandbox::new(), Provider::up(&["--latency", "2s"]));
    write(&folder, "requests.jsonl", request("a"));
    let line = format!(
        "trap '' HUP; exec tollgate batch run requests.jsonl -o results.jsonl --json --base-url http://{}/v1",
        provider.address
    );
    let mut shell = folder.command("sh");
    let child = shell.args(["-c", &line]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let ran = signalled(child, &provider, Signal::HUP);
    assert_eq!((ran.exit, &summary(&ran)["done"]), (0, &json!(1)), "{ran:?}");
}

#[test]
fn each_signal_that_ends_a_process_ends_a_batch_with_a_summary() {
    for signal in [Signal::HUP, Signal::TERM, Signal::INT] {
        let (folder, provider) = (Sandbox::new(), Provider::up(&["--latency", "1h"]));
        write(&folder, "requests.jsonl", request("a"));
        let url = format!("http://{}/v1", provider.address);
        let mut run = command(&folder, &url, &["--json"]);
        let child = run.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let ran = signalled(child, &provider, signal);
        assert_eq!((ran.exit, &summary(&ran)["unfinished"]), (1, &json!(1)), "{signal:?}: {ran:?}");
    }
}

#[test]
fn a_dry_run_says_what_would_be_sent_and_at_what_cost() {
    let (folder, server) = (Sandbox::new(), good());
    let account = format!("[[account]]\nname = \"a\"\nbase_url = \"{}\"\n", server.url);
    let prices = "[price.\"*\"]\ninput = \"1\"\noutput = \"1000\"\n";
    write(&folder, "accounts.toml", format!("{account}{prices}"));
    write(&folder, "requests.jsonl", format!("{}\nnonsense", ["a", "b", "a", "c"].map(request).join("\n")));
    let numbers = "\"index\":0,\"attempts\":1,\"throttles\":0,\"tokens\":0,\"cost_micros\":0";
    let done = format!("{{\"id\":\"c\",\"status\":\"done\",\"output\":{{}},{numbers}}}\n");
    write(&folder, "results.jsonl", done);
    let dry = |words: &[&str]| {
        let mut run = folder.command(TOLLGATE);
        run.args(["batch", "run", "requests.jsonl", "-o", "results.jsonl", "--accounts", "accounts.toml"]);
        ran(run.args(["--dry-run", "--resume", "--max-cost", "1"]).args(words))
    };
    let ran = dry(&["--json"]);
    let said = summary(&ran);
    assert_eq!(ran.exit, 1, "a run would end so, too: {ran:?}");
    let counts = ["requests", "earlier", "duplicates", "bad_lines"].map(|name| said[name].as_u64().unwrap());
    assert_eq!(counts, [2, 1, 1, 1], "{said}");
    let cost = said["cost_micros_max"].as_u64().unwrap();
    assert!((18_000..19_000).contains(&cost), "9 tokens of each reply at a thousandth: {said}");
    assert!(said["tokens_max"].as_u64().unwrap() > 18, "{said}");
    let text = dry(&[]);
    assert!(text.stdout.contains("2 requests") && text.stdout.contains("at most"), "{text:?}");
    assert!(text.stderr.contains("nothing was sent or written"), "{text:?}");
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn a_key_goes_to_its_own_provider_only_and_the_rest_is_said() {
    let (folder, server) = (Sandbox::new(), good());
    write(&folder, "requests.jsonl", request("a"));
    let silent = ran(command(&folder, &server.url, &[]).env("OPENAI_API_KEY", "canary"));
    assert!(silent.stderr.contains("no key is sent to 127.0.0.1"), "{silent:?}");
    assert!(silent.stderr.contains("--key-env OPENAI_API_KEY"), "{silent:?}");
    let refused = run(&folder, &server.url, &[]);
    assert!(
        refused.exit == 2 && !refused.stderr.contains("no key"),
        "what is refused needs none: {refused:?}"
    );
    assert!(!server.requests()[0].head.contains("canary"));
    std::fs::remove_file(folder.path().join("results.jsonl")).unwrap();
    let sent =
        ran(command(&folder, &server.url, &["--key-env", "OPENAI_API_KEY"]).env("OPENAI_API_KEY", "canary"));
    assert!(!sent.stderr.contains("no key"), "{sent:?}");
    assert!(server.requests()[1].head.contains("Bearer canary"));
    let quiet = run(&folder, &server.url, &["-q", "--resume"]);
    assert_eq!((quiet.exit, quiet.stderr.as_str()), (0, ""));
    for (url, api, variable) in [
        ("https://api.openai.com/v1", "openai", "OPENAI_API_KEY"),
        ("https://api.anthropic.com", "anthropic", "ANTHROPIC_API_KEY"),
        ("https://me.openai.azure.com", "azure", "AZURE_OPENAI_API_KEY"),
        ("https://generativelanguage.googleapis.com/v1beta", "gemini", "GEMINI_API_KEY"),
    ] {
        let dry = |key: Option<&str>| {
            let mut run = command(&folder, url, &["--api", api, "--dry-run", "--json", "--resume"]);
            run.envs(key.map(|key| (variable, key)));
            ran(&mut run)
        };
        let with = dry(Some("canary"));
        assert_eq!(summary(&with)["accounts"][0]["has_key"], true, "{with:?}");
        assert!(!format!("{with:?}").contains("canary"));
        assert!(dry(None).stderr.contains(&format!("{variable} is not set")));
    }
}
