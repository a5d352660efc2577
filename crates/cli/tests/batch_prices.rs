//! The cost that `tollgate batch run` reports, and the prices that it uses.
#![cfg(all(unix, feature = "batch"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use serde_json::{Value, json};
use support::recorder::Recorder;
use support::sandbox::{Ran, Sandbox};

/// Sends one request of a model. The reply reports 1,000 tokens of input and as many of output.
fn run(model: &str, words: &[&str]) -> Ran {
    let (folder, recorder) = (Sandbox::new(), Recorder::up());
    let line = json!({ "custom_id": "a", "body": { "model": model, "messages": [], "max_tokens": 1000 } });
    std::fs::write(folder.path().join("requests.jsonl"), line.to_string()).unwrap();
    let prices = "date = \"2026-11-02\"\n[price.\"gpt-4o*\"]\ninput = \"1\"\noutput = \"1\"\n";
    std::fs::write(folder.path().join("prices.toml"), prices).unwrap();
    std::fs::write(folder.path().join("bad.toml"), "date = \"yesterday\"").unwrap();
    let url = format!("http://{}", recorder.address);
    let run = ["batch", "run", "requests.jsonl", "-o", "results.jsonl", "--base-url", &url];
    folder.tollgate(&[&run[..], words].concat())
}

fn summary(ran: &Ran) -> Value {
    serde_json::from_str(ran.stdout.lines().last().unwrap()).unwrap()
}

#[test]
fn common_models_have_a_price_with_a_date_and_others_none() {
    let known = summary(&run("gpt-4o-mini", &["--json"]));
    assert_eq!(known["cost_micros"], 750);
    assert_eq!(known["prices"][0]["source"], "built in");
    let date = known["prices"][0]["date"].as_str().unwrap();
    assert!(date.starts_with("20") && date.len() >= "2026-04".len(), "{date}");
    let text = run("gpt-4o-mini", &[]);
    assert!(text.stdout.contains(&format!("by prices built in, of {date}")), "{text:?}");
    let unknown = summary(&run("my-own", &["--json"]));
    assert_eq!((&unknown["cost_micros"], &unknown["prices"]), (&json!(0), &Value::Null));
}

#[test]
fn a_file_of_prices_comes_before_those_built_in() {
    let own = summary(&run("gpt-4o-mini", &["--json", "--prices", "prices.toml"]));
    assert_eq!(own["cost_micros"], 2_000);
    assert_eq!(own["prices"], json!([{ "source": "prices.toml", "date": "2026-11-02" }]));
    let other = summary(&run("gpt-4.1", &["--json", "--prices", "prices.toml"]));
    assert_eq!((&other["cost_micros"], &other["prices"][0]["source"]), (&json!(10_000), &json!("built in")));
    let bad = run("gpt-4o", &["--prices", "bad.toml"]);
    assert!(bad.exit == 5 && bad.stderr.contains("must be a day"), "{bad:?}");
}

#[test]
fn money_is_bounded_without_a_file_of_accounts() {
    let poor = summary(&run("gpt-4o", &["--json", "--max-cost", "0.000001"]));
    assert_eq!((&poor["done"], &poor["calls"]), (&json!(0), &json!(0)), "{poor}");
    let rich = summary(&run("gpt-4o", &["--json", "--max-cost", "1"]));
    assert_eq!(rich["done"], 1);
}
