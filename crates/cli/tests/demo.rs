//! `tollgate demo`: what it shows happens, and it leaves no files behind, also if a signal ends it.
#![cfg(all(unix, feature = "mock-provider"))]

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use serde_json::Value;
use support::grid::Grid;
use support::sandbox::{Sandbox, TOLLGATE};
use support::terminal;

#[test]
fn a_demo_that_is_ended_by_a_signal_leaves_no_directory() {
    for (name, number) in [("TERM", 15), ("HUP", 1)] {
        let sandbox = Sandbox::new();
        // A test may be started where signals are ignored; here they are not.
        let mut command = sandbox.command("env");
        command.arg("--default-signal=HUP,INT,TERM").args([TOLLGATE, "demo", "--seconds", "600"]);
        command.env("TMPDIR", sandbox.path()).stdout(Stdio::piped());
        let mut demo = command.spawn().expect("the program is built");
        let mut stdout = BufReader::new(demo.stdout.take().expect("it is piped"));
        stdout.read_line(&mut String::new()).expect("it writes a line");
        let folders = || std::fs::read_dir(sandbox.path()).expect("it is there").count();
        assert_eq!(folders(), 1);
        assert_eq!(sandbox.shell(&format!("kill -{name} {}", demo.id())).exit, 0);
        let ended = demo.wait().expect("it ends");
        assert_eq!((folders(), ended.signal()), (0, Some(number)), "{name}");
    }
}

#[test]
fn a_line_that_is_cut_ends_in_a_sign_at_the_last_column() {
    let text = terminal::shown(&Sandbox::new(), 50, &["demo", "--seconds", "1", "--seed", "7"], &[]);
    let grid = Grid::of(50, &text);
    let frame = grid.frames.last().expect("there are several frames");
    let title = frame.iter().find(|line| line.starts_with("12 workers")).expect("it has a title");
    assert!(title.chars().count() == 50 && title.ends_with('…'), "{frame:#?}");
}

/// How long a demo lasts until a provider refuses a call: on a busy machine its workers are slow.
const SECONDS: [&str; 3] = ["4", "15", "60"];

#[test]
fn it_shows_two_accounts_a_429_a_cooldown_and_a_budget() {
    let sandbox = Sandbox::new();
    let sum = |json: &Value, list: &str, field: &str| -> u64 {
        json[list].as_array().expect("a list").iter().filter_map(|entry| entry[field].as_u64()).sum()
    };
    let run = |seconds: &&str| -> Value {
        let ran = sandbox.tollgate(&["demo", "--seconds", seconds, "--seed", "7", "--json"]);
        serde_json::from_str(&ran.stdout).expect("it is JSON")
    };
    let json = SECONDS.iter().map(run).find(|json| sum(json, "accounts", "throttled") > 0);
    let json = json.expect("blue allows less than its limits say");
    assert!(json["accounts"][1]["answered"].as_u64() > Some(0), "{json}");
    assert_eq!(
        sum(&json, "accounts", "throttled"),
        json["throttled"],
        "the workers count what the providers do"
    );
    // What was settled is what the answers have used. A project has what its keys have.
    assert_eq!(sum(&json, "entities", "tokens"), 2 * sum(&json, "accounts", "tokens"), "{json}");
    assert_eq!(sum(&json, "entities", "spent_micros"), 30 * sum(&json, "entities", "tokens"), "{json}");
    let signs =
        ["blue: 429 from the provider, so no calls for 1s", "cooling down, ", "USD LEFT", "$1.50 per day"];
    let shows = |seconds: &&str| {
        let words = ["demo", "--seconds", seconds, "--seed", "7"];
        let screen = terminal::shown(&sandbox, 80, &words, &[]);
        signs.iter().all(|sign| anstream::adapter::strip_str(&screen).to_string().contains(sign))
    };
    assert!(SECONDS.iter().any(shows), "{signs:?}");
}
