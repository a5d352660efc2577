//! Every command line in a `sh` block of the readme and of the book is valid.
//!
//! The blocks of `console` are replayed by `sessions.rs`. Those of `sh` wait, serve or need a network, so their words are parsed
//! and nothing else: an invalid setting ends every command behind its parser, with an exit code of its own.
#![cfg(all(unix, feature = "batch", feature = "local", feature = "mock-provider"))]

mod support;

use support::{pages, sandbox::Sandbox};

/// The exit code of a command line that is valid, with a setting that is not.
const CONFIG: i32 = 5;

/// Returns the lines of the `sh` blocks of a page that start a command of ours, without what a shell does around it.
fn command_lines(page: &str) -> Vec<String> {
    let blocks = page.split("```sh\n").skip(1).filter_map(|rest| rest.split("\n```").next());
    let joined: Vec<String> = blocks.map(|block| block.replace("\\\n", " ")).collect();
    let lines = joined.iter().flat_map(|block| block.lines());
    let commands =
        lines.filter_map(|line| line.trim().strip_prefix("timeout -s KILL 10 ").or(Some(line.trim())));
    let ours = commands.filter(|line| line.starts_with("tollgate "));
    ours.map(|line| line.split([';', '|', '>', '&', '#']).next().unwrap_or_default().trim().to_owned())
        .collect()
}

/// Returns the exit code of a line whose command ends as soon as it is parsed.
fn parse(sandbox: &Sandbox, line: &str) -> i32 {
    sandbox.shell(&format!("TOLLGATE_COLOR=none-of-these {line} < /dev/null")).exit
}

#[test]
fn every_command_line_of_the_pages_is_valid() {
    let sandbox = Sandbox::new();
    let mut found = 0;
    for (path, page) in pages::all() {
        for line in command_lines(&page) {
            assert_eq!(parse(&sandbox, &line), CONFIG, "{path}: {line}");
            found += 1;
        }
    }
    assert!(found > 30, "there are only {found} command lines");
}

#[test]
fn a_planted_error_is_found() {
    let page = "```sh\ntollgate status   # fine\ntimeout -s KILL 10 tollgate batch run a -o b --bogus\n  tollgate peek > x\n```\n";
    let lines = command_lines(page);
    assert_eq!(lines, ["tollgate status", "tollgate batch run a -o b --bogus", "tollgate peek"]);
    let codes: Vec<i32> = lines.iter().map(|line| parse(&Sandbox::new(), line)).collect();
    assert_eq!(codes, [CONFIG, 2, 2]);
}
