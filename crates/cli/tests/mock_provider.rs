//! The mock provider as a program: it prints its address, answers, and ends on a signal.
#![cfg(all(unix, feature = "mock-provider"))]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::Stdio;

use rustix::process::Signal;
use support::provider::Provider;
use support::sandbox::{Sandbox, TOLLGATE};

#[test]
fn it_answers_enforces_limits_and_ends_on_a_signal() {
    for signal in [Signal::TERM, Signal::INT] {
        let mut provider = Provider::up(&["--style", "anthropic", "--spend-cap", "2", "--outage", "529/4"]);
        let call = || provider.ask("POST /v1/messages", r#"{"messages":[]}"#);
        assert!(call().starts_with("HTTP/1.1 200"));
        assert!(call().starts_with("HTTP/1.1 200"));
        let exhausted = call();
        assert!(
            exhausted.starts_with("HTTP/1.1 429") && exhausted.contains("enforced_spend_limit_reached"),
            "{exhausted}"
        );
        assert!(call().starts_with("HTTP/1.1 529"));
        let stats = provider.ask("GET /stats", "");
        assert!(stats.contains(r#""calls":4,"ok":2"#), "{stats}");
        assert_eq!(provider.end(signal), Some(0));
    }
}

/// The lines that it prints for people to paste.
#[test]
fn the_lines_that_it_prints_are_answered() {
    for (style, path) in [("anthropic", "/v1/messages"), ("openai", "/v1/chat/completions")] {
        let sandbox = Sandbox::new();
        let mut up = sandbox.command(TOLLGATE);
        up.args(["mock-provider", "--style", style]).stdout(Stdio::piped());
        let mut provider = up.spawn().expect("the program is built");
        let answer = BufReader::new(provider.stdout.take().expect("it is piped"));
        let lines = answer.lines().map(|line| line.expect("it is text"));
        let lines: Vec<String> = lines.filter(|line| line.starts_with("curl ")).take(2).collect();
        assert!(lines[0].contains(path), "{style}: {lines:?}");
        let [called, stats] = [&lines[0], &lines[1]]
            .map(|line| sandbox.shell(&line.replace("curl ", "curl --silent --show-error --fail ")));
        provider.kill().expect("it is ours");
        provider.wait().expect("it ends");
        assert!(called.exit == 0 && called.stdout.contains("\"usage\""), "{style}: {called:?}");
        assert!(stats.exit == 0 && stats.stdout.contains("\"ok\":1"), "{style}: {stats:?}");
    }
}

#[test]
fn it_ends_though_a_call_is_being_answered() {
    let mut provider = Provider::up(&["--latency", "1h"]);
    let mut hanging = TcpStream::connect(&provider.address).expect("it is up");
    hanging
        .write_all(b"POST /v1/messages HTTP/1.1\r\nhost: x\r\ncontent-length: 15\r\n\r\n{\"messages\":[]}")
        .expect("it reads");
    while !provider.ask("GET /stats", "").contains(r#""concurrent":1"#) {}
    assert_eq!(provider.end(Signal::TERM), Some(0));
    assert_eq!(hanging.read(&mut [0; 1]).unwrap_or(0), 0, "there is no answer");
}
