//! Batches in a sandbox: files of requests, runs, and their results.

use std::process::Command;

use serde_json::{Value, json};

use super::sandbox::{Ran, Sandbox, TOLLGATE};

/// The line of a request with this id.
pub fn request(id: &str) -> String {
    let body = json!({ "model": "m", "messages": [{ "role": "user", "content": "Hello" }], "max_tokens": 9 });
    json!({ "custom_id": id, "body": body }).to_string()
}

/// Writes a file of the sandbox.
pub fn write(folder: &Sandbox, name: &str, text: impl AsRef<[u8]>) {
    std::fs::write(folder.path().join(name), text).expect("a file can be written");
}

/// Reads a file of the sandbox.
pub fn read(folder: &Sandbox, name: &str) -> String {
    std::fs::read_to_string(folder.path().join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

/// Reads the lines of a file of the sandbox.
pub fn lines(folder: &Sandbox, name: &str) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|why| panic!("{why}: {line}"));
    read(folder, name).lines().map(line).collect()
}

/// Runs `requests.jsonl` to `results.jsonl` against this address.
pub fn command(folder: &Sandbox, url: &str, words: &[&str]) -> Command {
    let mut run = folder.command(TOLLGATE);
    run.args(["batch", "run", "requests.jsonl", "-o", "results.jsonl", "--base-url", url]).args(words);
    run
}

pub fn run(folder: &Sandbox, url: &str, words: &[&str]) -> Ran {
    ran(&mut command(folder, url, words))
}

pub fn ran(command: &mut Command) -> Ran {
    Ran::of(&command.output().expect("the program is built"))
}

/// The last line of a run with `--json`, each line of which is an object.
pub fn summary(ran: &Ran) -> Value {
    let lines = ran.stdout.lines().map(serde_json::from_str::<Value>);
    let lines: Vec<Value> = lines.collect::<Result<_, _>>().unwrap_or_else(|why| panic!("{why}: {ran:?}"));
    lines.last().unwrap_or_else(|| panic!("{ran:?}")).clone()
}
