//! Batches against a provider that throttles: no request is lost or doubled, and a killed batch can be resumed.
#![cfg(all(unix, feature = "batch", feature = "mock-provider"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

use serde_json::{Value, json};
use support::provider::Provider;
use support::sandbox::{Sandbox, TOLLGATE};

/// Writes `count` requests.
fn requests(folder: &Sandbox, count: usize) {
    let mut text = String::new();
    for number in 0..count {
        let body =
            json!({ "model": "m", "messages": [{ "role": "user", "content": "Hello" }], "max_tokens": 9 });
        writeln!(text, "{}", json!({ "custom_id": format!("r{number}"), "body": body })).unwrap();
    }
    std::fs::write(folder.path().join("requests.jsonl"), text).unwrap();
}

fn run(folder: &Sandbox, provider: &Provider, words: &[&str]) -> Command {
    let mut run = folder.command(TOLLGATE);
    run.args(["batch", "run", "requests.jsonl", "-o", "results.jsonl", "--base-url"]);
    run.arg(format!("http://{}/v1", provider.address)).args(words);
    run
}

fn results(folder: &Sandbox) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.path().join("results.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn ids(results: &[Value]) -> BTreeSet<String> {
    results.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
}

fn stats(provider: &Provider) -> Value {
    let answer = provider.ask("GET /stats", "");
    serde_json::from_str(&answer[answer.find('{').unwrap()..]).unwrap()
}

/// The last line of a run with `--json`.
fn summary(stdout: &[u8]) -> Value {
    let text = String::from_utf8_lossy(stdout);
    let line = text.lines().last().unwrap_or_default();
    serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {text}"))
}

#[test]
fn every_request_has_one_result_though_the_provider_refuses_some() {
    let (folder, provider) = (Sandbox::new(), Provider::up(&["--rps", "100", "--latency", "20ms"]));
    requests(&folder, 250);
    let output = run(&folder, &provider, &["--json"]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let results = results(&folder);
    assert_eq!((results.len(), ids(&results).len()), (250, 250));
    assert_eq!(results[0]["output"]["status_code"], 200);
    let (summary, stats) = (summary(&output.stdout), stats(&provider));
    assert_eq!(summary["done"], 250);
    assert_eq!((&summary["calls"], &summary["rejected"]), (&stats["calls"], &stats["rejected"]));
    assert_eq!(stats["ok"], 250, "nothing was called twice");
}

#[test]
fn a_batch_that_was_killed_goes_on_where_it_was() {
    let (folder, provider) = (Sandbox::new(), Provider::up(&["--rps", "50", "--latency", "10ms"]));
    requests(&folder, 150);
    let mut first = run(&folder, &provider, &["--json"]).stdout(Stdio::piped()).spawn().unwrap();
    let events = std::io::BufRead::lines(std::io::BufReader::new(first.stdout.take().unwrap()));
    let finished = events.map_while(Result::ok).filter(|line| line.contains("\"finished\""));
    assert_eq!(finished.take(40).count(), 40);
    first.kill().unwrap();
    first.wait().unwrap();
    let before = ids(&results(&folder));
    assert!((40..150).contains(&before.len()), "{}", before.len());

    let there = run(&folder, &provider, &[]).output().unwrap();
    assert_eq!(there.status.code(), Some(2), "without --resume nothing is written over");

    let second = run(&folder, &provider, &["--resume", "--json"]).output().unwrap();
    assert!(second.status.success(), "{}", String::from_utf8_lossy(&second.stderr));
    let after = results(&folder);
    assert_eq!((after.len(), ids(&after).len()), (150, 150));
    assert_eq!(summary(&second.stdout)["earlier"], before.len());
    assert_eq!(summary(&second.stdout)["done"], 150 - before.len());
}

#[test]
fn a_wrong_key_ends_it_after_one_call_and_is_never_shown() {
    let (folder, provider) = (Sandbox::new(), Provider::up(&["--key", "right"]));
    requests(&folder, 200);
    let run = |key: &str| run(&folder, &provider, &["--key-env", "KEY"]).env("KEY", key).output().unwrap();
    let output = run("canary-key");
    let said = [&output.stdout[..], &output.stderr[..]].concat();
    let said = String::from_utf8_lossy(&said);
    assert_eq!(output.status.code(), Some(1));
    assert!(said.contains("the provider refuses for good"), "{said}");
    assert!(!said.contains("canary"), "{said}");
    assert_eq!(stats(&provider)["calls"], 1);
    assert_eq!(results(&folder), [] as [Value; 0], "all of them can be resumed");
    assert!(run("right").status.success());
}

#[test]
fn invalid_lines_are_reported_and_the_rest_is_sent() {
    let (folder, provider) = (Sandbox::new(), Provider::up(&[]));
    requests(&folder, 3);
    let path = folder.path().join("requests.jsonl");
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, format!("nonsense\n{text}{{\"custom_id\": 1")).unwrap();
    let output = run(&folder, &provider, &[]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(results(&folder).len(), 3);
    let errors = std::fs::read_to_string(folder.path().join("results.jsonl.errors.jsonl")).unwrap();
    let lines: Vec<Value> = errors.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((&lines[0]["line"], &lines[1]["line"]), (&json!(1), &json!(5)));
    assert_eq!(lines[0]["file"], "requests.jsonl");
}

#[test]
fn a_torn_result_is_made_again() {
    let (folder, provider) = (Sandbox::new(), Provider::up(&[]));
    requests(&folder, 20);
    assert!(run(&folder, &provider, &[]).output().unwrap().status.success());
    let path = folder.path().join("results.jsonl");
    let text = std::fs::read(&path).unwrap();
    std::fs::write(&path, &text[..text.len() - 7]).unwrap();
    assert!(run(&folder, &provider, &["--resume"]).output().unwrap().status.success());
    assert_eq!(ids(&results(&folder)).len(), 20);
    assert_eq!(stats(&provider)["ok"], 21);
}

#[test]
fn accounts_share_the_work_and_money_is_bounded() {
    let folder = Sandbox::new();
    let providers = [Provider::up(&["--rps", "40"]), Provider::up(&["--rps", "40"])];
    requests(&folder, 100);
    let [one, two] = providers.each_ref().map(|provider| &provider.address);
    let accounts = format!(
        "[[account]]\nname = \"one\"\nbase_url = \"http://{one}/v1\"\nlimits = [\"rps:30/second\"]\n\
         [[account]]\nname = \"two\"\nbase_url = \"http://{two}/v1\"\n\
         [price.\"*\"]\ninput = \"1\"\noutput = \"1000\"\n"
    );
    std::fs::write(folder.path().join("accounts.toml"), accounts).unwrap();
    let run = |results: &str, words: &[&str]| {
        let mut run = folder.command(TOLLGATE);
        run.args(["batch", "run", "requests.jsonl", "-o", results, "--accounts", "accounts.toml", "--json"]);
        run.args(words).output().unwrap()
    };
    let output = run("results.jsonl", &[]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(ids(&results(&folder)).len(), 100);
    for provider in &providers {
        assert!(stats(provider)["ok"].as_u64().unwrap() >= 20, "{}", stats(provider));
    }
    let poor = run("poor.jsonl", &["--max-cost", "0.20"]);
    assert_eq!(poor.status.code(), Some(1));
    let summary = summary(&poor.stdout);
    assert!(summary["cost_micros"].as_u64().unwrap() <= 200_000, "{summary}");
    assert!(summary["done"].as_u64().unwrap() > 0, "{summary}");
}

#[test]
fn a_slow_start_holds_back_calls_that_would_be_made_at_once() {
    let concurrent_max = |words: &[&str]| {
        let (folder, provider) = (Sandbox::new(), Provider::up(&["--latency", "100ms"]));
        requests(&folder, 8);
        let output = run(&folder, &provider, words).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        stats(&provider)["concurrent_max"].as_u64().unwrap()
    };
    assert!(concurrent_max(&["--workers", "8"]) > 1);
    assert_eq!(concurrent_max(&["--workers", "8", "--slow-start", "10h"]), 1);
}

#[test]
fn an_outage_that_lasts_longer_than_the_bound_closes_the_account_and_fails_no_request() {
    let (folder, provider) = (Sandbox::new(), Provider::up(&["--outage", "500@0s..3600s"]));
    requests(&folder, 20);
    // Without an effect of the bound, the deadline ends the batch.
    let output =
        run(&folder, &provider, &["--json", "--outage-max", "1s", "--deadline", "5m"]).output().unwrap();
    let said = summary(&output.stdout);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert_eq!((&said["failed"], &said["unfinished"]), (&json!(0), &json!(20)), "{said}");
    let closed = said["accounts"][0]["closed"].as_str().unwrap_or_default();
    assert!(closed.contains("no call has passed for"), "{said}");
}
