//! What `tollgate batch run` sends to which provider: addresses, headers, proxies.
#![cfg(all(unix, feature = "batch"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use serde_json::json;
use support::recorder::Recorder;
use support::sandbox::{Ran, Sandbox, TOLLGATE};

/// One request, and how it was sent.
fn sent(
    recorder: &Recorder,
    line: &serde_json::Value,
    words: &[&str],
    variables: &[(&str, &str)],
) -> (Ran, Vec<String>) {
    let folder = Sandbox::new();
    std::fs::write(folder.path().join("requests.jsonl"), line.to_string()).unwrap();
    let mut run = folder.command(TOLLGATE);
    run.args(["batch", "run", "requests.jsonl", "-o", "results.jsonl", "--json"]);
    run.args(words).envs(variables.iter().copied());
    let output = run.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let exit = output.status.code().unwrap_or(-1);
    let ran = Ran { stdout: text(&output.stdout), stderr: text(&output.stderr), exit };
    let requests = recorder.requests();
    let head = requests.last().map(|head| head.lines().map(str::to_owned).collect()).unwrap_or_default();
    (ran, head)
}

fn chat() -> serde_json::Value {
    json!({ "custom_id": "a", "body": { "model": "gpt-4o", "messages": [] } })
}

#[test]
fn azure_gets_the_deployment_the_version_and_its_own_header() {
    let recorder = Recorder::up();
    let url = format!("http://{}", recorder.address);
    let words = ["--api", "azure", "--base-url", &url, "--key-env", "KEY", "--api-version", "2025-01-01"];
    let (ran, head) = sent(&recorder, &chat(), &words, &[("KEY", "canary")]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert_eq!(head[0], "POST /openai/deployments/gpt-4o/chat/completions?api-version=2025-01-01 HTTP/1.1");
    assert!(head.contains(&"api-key: canary".to_owned()), "{head:?}");
    assert!(!head.iter().any(|line| line.starts_with("authorization")), "{head:?}");
    let (ran, _) = sent(&recorder, &chat(), &["--api", "azure"], &[]);
    assert!(ran.exit == 2 && ran.stderr.contains("--base-url"), "{ran:?}");
    let (ran, _) = sent(&recorder, &chat(), &["--base-url", &url, "--api-version", "1"], &[]);
    assert!(ran.exit == 2 && ran.stderr.contains("azure only"), "{ran:?}");
}

#[test]
fn gemini_gets_its_own_header_on_its_own_paths() {
    let recorder = Recorder::up();
    let url = format!("http://{}/v1beta", recorder.address);
    let words = ["--api", "gemini", "--base-url", &url, "--key-env", "KEY"];
    let path = "/v1beta/models/gemini-2.5-flash:generateContent";
    let own = json!({ "custom_id": "a", "url": path, "body": { "contents": [] } });
    let (ran, head) = sent(&recorder, &own, &words, &[("KEY", "canary")]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert_eq!(head[0], format!("POST {path} HTTP/1.1"));
    assert!(head.contains(&"x-goog-api-key: canary".to_owned()), "{head:?}");
    let (_, head) = sent(&recorder, &chat(), &words, &[("KEY", "canary")]);
    assert_eq!(head[0], "POST /v1beta/openai/chat/completions HTTP/1.1");
    assert!(head.contains(&"authorization: Bearer canary".to_owned()), "{head:?}");
}

#[test]
fn headers_are_sent_and_never_shown() {
    let recorder = Recorder::up();
    let url = format!("http://{}", recorder.address);
    let words = ["--base-url", &url, "--header", "X-Team: canary blue", "--header", "user-agent: mine"];
    let (ran, head) = sent(&recorder, &chat(), &words, &[]);
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert!(head.contains(&"x-team: canary blue".to_owned()), "{head:?}");
    assert!(head.contains(&"user-agent: mine".to_owned()), "{head:?}");
    assert!(!format!("{ran:?}").contains("canary"), "{ran:?}");
    for bad in ["canary", "not valid: canary", "x: canary\u{7}"] {
        let (ran, _) = sent(&recorder, &chat(), &["--base-url", &url, "--header", bad], &[]);
        assert_eq!(ran.exit, 2, "{ran:?}");
        assert!(!format!("{ran:?}").contains("canary"), "{ran:?}");
    }
}

#[test]
fn proxies_of_the_command_and_of_the_environment_are_called_through() {
    let proxy = Recorder::up();
    let url = ["--base-url", "http://provider.example/v1"];
    let address = format!("http://user:canary@{}", proxy.address);
    let through = "POST http://provider.example/v1/chat/completions HTTP/1.1";
    let (ran, head) = sent(&proxy, &chat(), &[&url[..], &["--proxy", &address]].concat(), &[]);
    assert_eq!((ran.exit, &*head[0]), (0, through), "{ran:?}");
    assert!(head.iter().any(|line| line.starts_with("proxy-authorization: Basic ")), "{head:?}");
    let variables = [("HTTP_PROXY", &*address), ("http_proxy", &*address)];
    let (ran, head) = sent(&proxy, &chat(), &url, &variables);
    assert_eq!((ran.exit, &*head[0]), (0, through), "{ran:?}");

    // A host of NO_PROXY is called directly, also with a proxy.
    let direct = Recorder::up();
    let here = format!("http://{}", direct.address);
    let words = ["--base-url", &here, "--proxy", &address];
    let (ran, head) = sent(&direct, &chat(), &words, &[("NO_PROXY", "127.0.0.1")]);
    assert_eq!((ran.exit, &*head[0]), (0, "POST /v1/chat/completions HTTP/1.1"), "{ran:?}");
    assert_eq!(proxy.requests().len(), 2);

    let (ran, _) = sent(&proxy, &chat(), &[&url[..], &["--proxy", "canary canary"]].concat(), &[]);
    assert!(ran.exit == 2 && !format!("{ran:?}").contains("canary"), "{ran:?}");
}
