//! Every command line in a `sh` block of the readme and of the book is valid.
//!
//! The blocks of `console` are replayed by `sessions.rs`. Those of `sh` wait, serve or need a network, so their words are parsed
//! and nothing else: an invalid setting ends every command behind its parser, with an exit code of its own.
#![cfg(all(feature = "batch", feature = "local", feature = "mock-provider"))]

mod support;

use std::path::{Path, PathBuf};

use support::sandbox::Sandbox;

/// The exit code of a command line that is valid, with a setting that is not.
const CONFIG: i32 = 5;

/// Returns all pages, with their paths.
fn pages() -> Vec<(PathBuf, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut paths = vec![root.join("README.md")];
    let mut folders = vec![root.join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                paths.push(path);
            }
        }
    }
    paths.into_iter().map(|path| (path.clone(), std::fs::read_to_string(path).unwrap())).collect()
}

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
    for (path, page) in pages() {
        for line in command_lines(&page) {
            assert_eq!(parse(&sandbox, &line), CONFIG, "{}: {line}", path.display());
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
