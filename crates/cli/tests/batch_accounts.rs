//! Batches with a file of accounts: which are closed, which get a key, and how many there may be.
#![cfg(all(unix, feature = "batch", feature = "mock-provider"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use std::process::Command;

use serde_json::json;
use support::batch::{ran, request, summary, write};
use support::http_server::HttpServer;
use support::provider::Provider;
use support::sandbox::{Sandbox, TOLLGATE};

/// Formats an account of a file, with additional fields.
fn account(name: &str, base_url: &str, rest: &str) -> String {
    format!("[[account]]\nname = \"{name}\"\nbase_url = \"{base_url}\"\n{rest}\n")
}

/// Writes accounts and requests, and runs them.
fn command(folder: &Sandbox, accounts: &str, requests: usize, words: &[&str]) -> Command {
    let requests: String = (0..requests).map(|number| request(&format!("r{number}")) + "\n").collect();
    write(folder, "requests.jsonl", requests);
    write(folder, "accounts.toml", accounts);
    let mut run = folder.command(TOLLGATE);
    run.args(["batch", "run", "requests.jsonl", "-o", "results.jsonl", "--accounts", "accounts.toml"]);
    run.args(words);
    run
}

#[test]
fn an_account_that_is_closed_is_counted_and_changes_the_exit_code_though_another_does_the_work() {
    let (wrong, right) = (Provider::up(&["--key", "right"]), Provider::up(&[]));
    let url = |provider: &Provider| format!("http://{}/v1", provider.address);
    let accounts =
        [account("wrong", &url(&wrong), "key_env = \"KEY\""), account("right", &url(&right), "")].concat();
    let run = |key: &str, words: &[&str]| ran(command(&Sandbox::new(), &accounts, 40, words).env("KEY", key));
    let closed = run("canary", &["--json"]);
    let said = summary(&closed);
    assert_eq!((&said["done"], &said["closed_accounts"]), (&json!(40), &json!(1)), "{said}");
    assert_eq!(closed.exit, 1, "{closed:?}");
    assert!(said["accounts"][0]["closed"].is_string() && said["accounts"][1]["closed"].is_null(), "{said}");
    assert!(closed.stderr.contains("account wrong is closed"), "{closed:?}");
    let text = run("canary", &[]);
    assert_eq!(text.exit, 1, "{text:?}");
    assert!(text.stdout.contains("closed accounts  1 of 2"), "{text:?}");
    let open = run("right", &["--json"]);
    assert_eq!((open.exit, &summary(&open)["closed_accounts"]), (0, &json!(0)), "{open:?}");
}

#[test]
fn accounts_may_have_limits_of_different_names() {
    let provider = Provider::up(&[]);
    let url = format!("http://{}/v1", provider.address);
    let accounts = [
        account("requests", &url, "limits = [\"rpm:6000\"]"),
        account("tokens", &url, "limits = [\"rpm:6000\", \"tpm:6000000\"]"),
    ];
    let done = ran(&mut command(&Sandbox::new(), &accounts.concat(), 40, &["--json"]));
    let said = summary(&done);
    assert_eq!((done.exit, &said["done"], &said["failed"]), (0, &json!(40), &json!(0)), "{done:?}");
}

#[test]
fn each_account_without_a_key_of_its_own_gets_that_of_its_provider_or_a_notice() {
    let (folder, server) = (Sandbox::new(), HttpServer::up(|_| "{}".into()));
    let own = account("own", "https://api.openai.com/v1", "");
    let claude = account("claude", "https://api.anthropic.com", "api = \"anthropic\"");
    let near = account("near", &server.url, "");
    let dry = |variables: &[(&str, &str)]| {
        let accounts = [&*own, &claude, &near].concat();
        let mut run = command(&folder, &accounts, 1, &["--dry-run", "--json"]);
        ran(run.envs(variables.iter().copied()))
    };
    let with = dry(&[("OPENAI_API_KEY", "canary"), ("ANTHROPIC_API_KEY", "canary")]);
    let keys = [0, 1, 2].map(|at| summary(&with)["accounts"][at]["has_key"].clone());
    assert_eq!(keys, [json!(true), json!(true), json!(false)], "{with:?}");
    assert!(!format!("{with:?}").contains("canary"), "{with:?}");
    assert!(with.stderr.contains("account \"near\": no key is sent to 127.0.0.1"), "{with:?}");
    assert!(with.stderr.contains("key_env = \"OPENAI_API_KEY\" sends it"), "{with:?}");
    let without = dry(&[("ANTHROPIC_API_KEY", "canary")]);
    let keys = [0, 1, 2].map(|at| summary(&without)["accounts"][at]["has_key"].clone());
    assert_eq!(keys, [json!(false), json!(true), json!(false)], "{without:?}");
    let notice = "account \"own\": no key is sent to api.openai.com: OPENAI_API_KEY is not set";
    assert!(without.stderr.contains(notice), "{without:?}");
    assert!(without.stderr.contains("key_env or key_file sends one"), "{without:?}");

    let sent = ran(command(&folder, &near, 1, &[]).env("OPENAI_API_KEY", "canary"));
    assert!(sent.exit == 0 && sent.stderr.contains("no key is sent"), "{sent:?}");
    assert!(server.requests().iter().all(|request| !request.head.contains("canary")));
    let told = account("near", &server.url, "key_env = \"OPENAI_API_KEY\"");
    let told = ran(command(&folder, &told, 2, &["--resume"]).env("OPENAI_API_KEY", "canary"));
    assert!(told.exit == 0 && !told.stderr.contains("no key"), "{told:?}");
    assert!(server.requests().last().unwrap().head.contains("Bearer canary"));
}

#[test]
fn more_accounts_than_a_batch_can_use_are_refused_with_the_number() {
    let folder = Sandbox::new();
    let run = |count: usize| {
        let accounts: String =
            (0..count).map(|number| account(&format!("a{number}"), "http://127.0.0.1:1", "")).collect();
        ran(&mut command(&folder, &accounts, 1, &["--dry-run", "--json"]))
    };
    let most = run(64);
    assert_eq!((most.exit, summary(&most)["accounts"].as_array().unwrap().len()), (0, 64), "{most:?}");
    let more = run(65);
    assert_eq!(more.exit, 5, "{more:?}");
    assert!(more.stderr.contains("it has 65 accounts, but may have 64"), "{more:?}");
}
