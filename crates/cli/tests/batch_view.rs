//! The view of `tollgate batch run`: on terminals of several widths, with and without colours, quiet, and as JSON.
#![cfg(all(unix, feature = "batch", feature = "mock-provider"))]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by a panic")]

mod support;

use std::fmt::Write as _;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use support::grid::Grid;
use support::provider::Provider;
use support::sandbox::{Sandbox, TOLLGATE};
use support::terminal::{Terminal, shown};

/// Yellow and white, bright or not, as text: none of them can be read on every terminal.
const UNREADABLE: [&str; 4] = ["33m", "37m", "93m", "97m"];

/// Two providers, one that fails now and then and one that throttles, and requests for them.
struct Scene {
    folder: Sandbox,
    _providers: [Provider; 2],
}

impl Scene {
    fn new(requests: usize) -> Scene {
        let folder = Sandbox::new();
        let steady = Provider::up(&["--rps", "60", "--latency", "20ms", "--outage", "503/30"]);
        let busy = Provider::up(&["--rps", "20", "--latency", "20ms", "--outage", "429@0s..4s"]);
        let (one, two) = (&steady.address, &busy.address);
        let accounts = format!(
            "[[account]]\nname = \"steady\"\nbase_url = \"http://{one}/v1\"\nkey_file = \"key\"\n\
             [[account]]\nname = \"busy-account\"\nbase_url = \"http://{two}/v1\"\nkey_file = \"key\"\n\
             [price.\"*\"]\ninput = \"1\"\noutput = \"1000\"\n"
        );
        std::fs::write(folder.path().join("accounts.toml"), accounts).unwrap();
        // Without a key there would be a notice for each account above the view.
        std::fs::write(folder.path().join("key"), "word").unwrap();
        let mut text = String::new();
        for number in 0..requests {
            let body =
                json!({ "model": "m", "messages": [{ "role": "user", "content": "Hi" }], "max_tokens": 9 });
            writeln!(text, "{}", json!({ "custom_id": format!("r{number}"), "body": body })).unwrap();
        }
        std::fs::write(folder.path().join("requests.jsonl"), text).unwrap();
        Scene { folder, _providers: [steady, busy] }
    }

    /// Returns what a run writes to a terminal of `columns` columns, on both streams.
    fn on_a_terminal(&self, columns: u16, words: &[&str], variables: &[(&str, &str)]) -> String {
        let run = ["batch", "run", "requests.jsonl", "-o", "results.jsonl", "--accounts", "accounts.toml"];
        shown(&self.folder, columns, &[&run, words].concat(), variables)
    }
}

#[test]
fn a_notice_stays_above_the_bar_and_breaks_no_frame() {
    let scene = Scene::new(120);
    let wrong = Provider::up(&["--key", "right"]);
    let path = scene.folder.path().join("accounts.toml");
    let accounts = std::fs::read_to_string(&path).unwrap();
    let account = format!("[[account]]\nname = \"wrong\"\nbase_url = \"http://{}/v1\"\n", wrong.address);
    std::fs::write(&path, format!("{account}{accounts}")).unwrap();
    let text = scene.on_a_terminal(100, &["--workers", "8"], &[]);
    let grid = Grid::of(100, &text);
    let notice = "account wrong is closed: ";
    let screen = grid.lines();
    assert_eq!(screen.iter().filter(|line| line.starts_with(notice)).count(), 1, "{screen:#?}");
    assert!(screen.iter().all(|line| !line.contains('░')), "the bar is gone in the end: {screen:#?}");
    let count = |frame: &[String], what: &str| frame.iter().filter(|line| line.contains(what)).count();
    let below: Vec<&Vec<String>> = grid.frames.iter().filter(|frame| count(frame, notice) > 0).collect();
    assert!(below.iter().any(|frame| count(frame, " of 120") == 1), "{below:#?}");
    for frame in below {
        // Each account has one line, and nothing remains of the frame before the notice.
        assert!(count(frame, " of 120") <= 1 && count(frame, "wrong  ") <= 1, "{frame:#?}");
    }
}

#[test]
fn a_terminal_of_any_width_shows_all_of_it_and_no_line_wraps() {
    for columns in [50, 80, 140] {
        let text = Scene::new(300).on_a_terminal(columns, &[], &[]);
        let grid = Grid::of(columns.into(), &text);
        let whole: Vec<&Vec<String>> =
            grid.frames.iter().filter(|frame| frame.iter().any(|line| line.contains("last error"))).collect();
        assert!(whole.len() > 2, "{text}");
        for frame in &whole {
            let count = |what: &str| frame.iter().filter(|line| line.starts_with(what)).count();
            assert!(frame[0].contains(" % ") && frame[0].contains(" of 300"), "{frame:#?}");
            assert!(frame[0].contains('░') || frame[0].starts_with("100 %"), "{frame:#?}");
            assert_eq!(
                (count("steady "), count("busy-account "), count("last error")),
                (1, 1, 1),
                "{frame:#?}"
            );
            // The bar, the counts in one line or two, a line for each account, the last error.
            let rows = frame.iter().filter(|line| !line.is_empty()).count();
            assert!((5..=6).contains(&rows), "{columns}: {frame:#?}");
        }
        let shown: String = whole.iter().map(|frame| frame.join("\n")).collect();
        for fact in
            ["/s, ETA ", " done, ", " % throttled", " tokens", "$", "limit ", "last error: Overloaded"]
        {
            assert!(shown.contains(fact), "{columns}: {fact} in {shown}");
        }
        assert!(shown.contains("cooling down 1s: "), "{shown}");
        let left = grid.lines().join("\n");
        assert!(
            !left.contains('░') && left.contains("done             300"),
            "the bar is gone at the end: {left}"
        );
        for code in UNREADABLE {
            assert!(!text.contains(&format!("[{code}")) && !text.contains(&format!(";{code}")), "{text}");
        }
        assert!(text.contains("\u{1b}[36m"), "{text}");
    }
}

#[test]
fn no_color_leaves_the_text_and_no_colours() {
    for (words, variables) in [(&[][..], &[("NO_COLOR", "1")][..]), (&["--color", "never"], &[])] {
        let text = Scene::new(120).on_a_terminal(80, words, variables);
        assert!(text.contains('█') && text.contains("busy-account"), "{text}");
        let codes = text
            .split("\u{1b}[")
            .skip(1)
            .filter_map(|rest| rest.find(|c: char| c.is_ascii_alphabetic()).map(|at| &rest[at..=at]));
        assert!(codes.clone().all(|code| code != "m"), "{text}");
    }
}

#[test]
fn quiet_shows_the_summary_without_progress() {
    let text = Scene::new(120).on_a_terminal(80, &["-q"], &[]);
    assert!(!text.contains('░') && !text.contains("ETA") && !text.contains("\u{1b}[2K"), "{text}");
    assert!(text.contains("results.jsonl"), "{text}");
}

#[test]
fn quiet_says_why_a_batch_ended_early() {
    let folder = Sandbox::new();
    std::fs::write(folder.path().join("requests.jsonl"), json!({ "body": { "model": "m" } }).to_string())
        .unwrap();
    // Nothing listens on port 1.
    let run =
        "tollgate batch run requests.jsonl -o results.jsonl --base-url http://127.0.0.1:1/v1 --attempts 1";
    for words in ["", " -q", " -q --json"] {
        let ran = folder.shell(&format!("rm -f results.jsonl; {run}{words}"));
        assert_eq!(ran.exit, 4, "{words}: {ran:?}");
        assert!(ran.stderr.contains("no call has reached 127.0.0.1"), "{words} gives no reason: {ran:?}");
    }
}

#[test]
fn the_summary_has_one_word_for_requests_that_failed_and_one_for_the_rest() {
    let folder = Sandbox::new();
    let provider = Provider::up(&["--key", "right"]);
    let request = |model: &str| json!({ "body": { "model": model, "messages": [] } }).to_string();
    let requests = format!("{}\n{}\n", request("a"), request("b"));
    std::fs::write(folder.path().join("requests.jsonl"), requests).unwrap();
    let url = format!("http://{}/v1", provider.address);
    let run = format!("tollgate batch run requests.jsonl -o results.jsonl --base-url {url}");
    let ran = folder.shell(&run);
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let lines: Vec<Vec<String>> = ran.stdout.lines().map(words).collect();
    let has = |line: &[&str]| {
        lines.iter().any(|words| words.iter().map(String::as_str).take(line.len()).eq(line.iter().copied()))
    };
    assert!(has(&["failed", "0"]) && has(&["unfinished", "2;"]), "{}", ran.stdout);
    assert!(!ran.stdout.contains("FAILED"), "{}", ran.stdout);
    let json = folder.shell(&format!("rm results.jsonl; {run} --json"));
    let summary: Value = serde_json::from_str(json.stdout.lines().last().unwrap()).unwrap();
    let reasons = summary["reasons"].as_array().unwrap();
    let of = |status: &str| {
        let same = reasons.iter().filter(|reason| reason["status"] == status);
        same.map(|reason| reason["requests"].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((of("failed"), of("unfinished")), (0, 2), "{summary}");
    assert_eq!((&summary["failed"], &summary["unfinished"]), (&json!(0), &json!(2)), "{summary}");
}

#[test]
fn json_is_one_object_a_line_to_the_end() {
    let scene = Scene::new(150);
    let run = "batch run requests.jsonl -o results.jsonl --accounts accounts.toml --json";
    let ran = scene.folder.tollgate(&run.split(' ').collect::<Vec<_>>());
    assert_eq!((ran.exit, &*ran.stderr), (0, ""), "{ran:?}");
    let lines: Vec<Value> = ran.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(lines.iter().all(|line| line["event"].is_string()), "{}", ran.stdout);
    let summary = lines.last().unwrap();
    assert_eq!((&summary["event"], &summary["done"]), (&json!("summary"), &json!(150)));
    let of = |event: &str| lines.iter().filter(|line| line["event"] == event).collect::<Vec<_>>();
    assert_eq!(summary["parked"], of("parked").len());
    assert_eq!(summary["redistributed"], of("redistributed").len());
    assert_eq!(summary["cooldowns"], of("cooled_down").len());
    let sum = |field: &str| of("cooled_down").iter().map(|line| line[field].as_u64().unwrap()).sum::<u64>();
    assert_eq!(summary["participants"], sum("participants"));
    assert!(sum("participants") >= summary["cooldowns"].as_u64().unwrap(), "{summary}");
    assert!(summary["paused_ms"].as_u64().unwrap() >= sum("paused_ms"), "{summary}");
    assert!(of("cooling_down").iter().all(|line| line["reason"].is_string()), "{}", ran.stdout);
    let busy = &summary["accounts"][1];
    assert_eq!(busy["name"], "busy-account");
    assert!(busy["participants"].is_array() && busy["paused_ms"].is_u64(), "{busy}");

    let on_a_terminal = Scene::new(60).on_a_terminal(80, &["--json"], &[]);
    for line in on_a_terminal.lines() {
        let line: Result<Value, _> = serde_json::from_str(line.trim_end());
        assert!(line.is_ok(), "events and a bar do not mix: {on_a_terminal}");
    }
}

#[test]
fn a_request_that_is_throttled_for_longer_than_its_budget_fails() {
    let folder = Sandbox::new();
    let provider = Provider::up(&["--outage", "429@0s..60s", "--no-advice"]);
    let body = json!({ "model": "m", "messages": [] });
    std::fs::write(folder.path().join("requests.jsonl"), json!({ "body": body }).to_string()).unwrap();
    let url = format!("http://{}/v1", provider.address);
    let run = |results: &str, words: &[&str]| {
        let run = ["batch", "run", "requests.jsonl", "-o", results, "--base-url", &url, "--json"];
        let ran = folder.tollgate(&[&run[..], words].concat());
        assert_eq!(ran.exit, 1, "{ran:?}");
        serde_json::from_str::<Value>(ran.stdout.lines().last().unwrap()).unwrap()
    };
    let summary = run("budget.jsonl", &["--cooldown", "50ms", "--throttle-budget", "200ms"]);
    assert_eq!((&summary["failed"], &summary["done"]), (&json!(1), &json!(0)));
    assert!(summary["reasons"][0]["reason"].as_str().unwrap().starts_with("throttled"), "{summary}");
    let summary = run("late.jsonl", &["--cooldown-max", "50ms", "--request-deadline", "300ms"]);
    assert!(summary["reasons"][0]["reason"].as_str().unwrap().starts_with("deadline"), "{summary}");
    assert!(summary["cooldowns"].as_u64().unwrap() > 2, "pauses are short: {summary}");
}

#[test]
fn a_batch_that_is_interrupted_leaves_its_view_above_the_summary() {
    let scene = Scene::new(5_000);
    let mut terminal = Terminal::new(80, 24);
    let mut command = scene.folder.command(TOLLGATE);
    command.args(["batch", "run", "requests.jsonl", "-o", "results.jsonl", "--accounts", "accounts.toml"]);
    command.env("TERM", "xterm-256color");
    command.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio());
    let mut child = command.spawn().unwrap();
    let before = terminal.expect("last error");
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw).unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let after = terminal.expect("ended early");
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let lines = Grid::of(80, &format!("{before}last error{after}")).lines();
    let at = |what: &str| lines.iter().position(|line| line.starts_with(what));
    let (view, summary) = (at("last error"), at("done"));
    assert!(view.is_some() && view < summary, "{lines:#?}");
    assert!(
        lines[0].contains('░') && lines.iter().filter(|line| line.contains('░')).count() == 1,
        "{lines:#?}"
    );
}
