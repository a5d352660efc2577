//! Formats and order of the results of `tollgate batch run`.
#![cfg(all(unix, feature = "batch", feature = "mock-provider"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use std::fmt::Write as _;

use serde_json::{Value, json};
use support::http_server::HttpServer;
use support::provider::Provider;
use support::sandbox::{Ran, Sandbox};

/// Requests as OpenAI has them in the files of its batches.
fn requests(folder: &Sandbox, count: usize) {
    let mut text = String::new();
    for number in 0..count {
        let body =
            json!({ "model": "m", "messages": [{ "role": "user", "content": "Hello" }], "max_tokens": 9 });
        let line = json!({
            "custom_id": format!("r{number}"), "method": "POST", "url": "/v1/chat/completions", "body": body,
        });
        writeln!(text, "{line}").unwrap();
    }
    std::fs::write(folder.path().join("requests.jsonl"), text).unwrap();
}

fn run(folder: &Sandbox, provider: &Provider, words: &[&str]) -> Ran {
    let url = format!("http://{}/v1", provider.address);
    let run = ["batch", "run", "requests.jsonl", "-o", "results.jsonl", "--base-url", &url];
    folder.tollgate(&[&run[..], words].concat())
}

fn results(folder: &Sandbox) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.path().join("results.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn openai_s_files_are_read_and_written_in_the_order_of_the_input() {
    let (folder, provider) = (Sandbox::new(), Provider::up(&["--latency", "1ms..60ms"]));
    requests(&folder, 60);
    let ran = run(&folder, &provider, &["--format", "openai", "--ordered"]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    let results = results(&folder);
    assert_eq!(results.len(), 60);
    for (number, line) in results.iter().enumerate() {
        assert_eq!(line["custom_id"], format!("r{number}"), "{line}");
        assert_eq!((&line["response"]["status_code"], &line["error"]), (&json!(200), &Value::Null));
        assert_eq!(line["response"]["body"]["object"], "chat.completion", "{line}");
    }
}

#[test]
fn a_run_that_is_resumed_writes_all_results_again_and_calls_only_what_is_missing() {
    let (folder, provider) = (Sandbox::new(), Provider::up(&[]));
    requests(&folder, 10);
    assert_eq!(run(&folder, &provider, &["--ordered"]).exit, 0);
    requests(&folder, 20);
    let refused = run(&folder, &provider, &["--ordered"]);
    assert_eq!(refused.exit, 2, "{refused:?}");
    let ran = run(&folder, &provider, &["--ordered", "--resume", "--json"]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    let summary: Value = serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap();
    assert_eq!((&summary["done"], &summary["earlier"]), (&json!(10), &json!(10)));
    let ids: Vec<String> =
        results(&folder).iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    assert_eq!(ids, (0..20).map(|number| format!("r{number}")).collect::<Vec<_>>());
}

#[test]
fn results_without_a_journal_are_never_replaced() {
    let (folder, provider) = (Sandbox::new(), Provider::up(&[]));
    requests(&folder, 3);
    let path = folder.path().join("results.jsonl");
    std::fs::write(&path, "notes of mine\n").unwrap();
    for words in [&["--ordered"][..], &["--ordered", "--resume"], &["--format", "openai", "--resume"]] {
        let ran = run(&folder, &provider, words);
        assert_eq!(ran.exit, 2, "{words:?}: {ran:?}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "notes of mine\n");
    }
}

#[test]
fn failed_lines_carry_the_status_and_the_body() {
    let (folder, provider) = (Sandbox::new(), Provider::up(&["--outage", "500@0s..60s"]));
    requests(&folder, 1);
    assert_eq!(run(&folder, &provider, &["--attempts", "1"]).exit, 1);
    let line = &results(&folder)[0];
    assert_eq!((&line["status"], &line["output"]["status_code"]), (&json!("failed"), &json!(500)), "{line}");
    assert!(line["output"]["body"]["error"]["message"].is_string(), "{line}");
    std::fs::remove_file(folder.path().join("results.jsonl")).unwrap();
    assert_eq!(run(&folder, &provider, &["--attempts", "1", "--format", "openai"]).exit, 1);
    let line = &results(&folder)[0];
    assert_eq!((&line["response"]["status_code"], &line["error"]), (&json!(500), &Value::Null), "{line}");
    assert!(line["response"]["body"]["error"]["message"].is_string(), "{line}");
}

#[test]
fn a_failed_line_has_the_last_reply_even_if_it_is_not_json_or_came_before_the_deadline() {
    let folder = Sandbox::new();
    requests(&folder, 1);
    let server = HttpServer::up(|_| "<html>welcome</html>".into());
    let words = ["--attempts", "1"];
    assert_eq!(support::batch::run(&folder, &server.url, &words).exit, 1);
    let line = &results(&folder)[0];
    assert_eq!((&line["class"], &line["output"]["status_code"]), (&json!("invalid"), &json!(200)), "{line}");
    assert_eq!(line["output"]["body"], "<html>welcome</html>", "{line}");

    std::fs::remove_file(folder.path().join("results.jsonl")).unwrap();
    let provider = Provider::up(&["--outage", "429@0s..600s", "--no-advice"]);
    let words = ["--cooldown-max", "50ms", "--request-deadline", "2s"];
    assert_eq!(run(&folder, &provider, &words).exit, 1);
    let line = &results(&folder)[0];
    assert_eq!((&line["class"], &line["output"]["status_code"]), (&json!("deadline"), &json!(429)), "{line}");
    assert!(line["output"]["body"]["error"]["message"].is_string(), "{line}");
}
