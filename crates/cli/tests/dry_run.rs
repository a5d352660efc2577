//! `--dry-run` is dry for every command there is: no file changes, and no connection is opened.
#![cfg(all(unix, feature = "batch", feature = "local", feature = "mock-provider", feature = "redis"))]

mod support;

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use support::furnish;
use support::sandbox::{Ran, Sandbox, TOLLGATE};

/// Command lines in addition to those of `json_lines.txt`: a child that would write, and a provider.
const MORE: &str = "\
tollgate run user-2 gpt-4 rpm=1 -- touch made-by-the-child
tollgate run user-2 gpt-4 rpm=1 --wait -- touch made-by-the-child
tollgate demo --seconds 1
tollgate top --once
tollgate batch run requests.jsonl -o out.jsonl --base-url http://LISTENER/v1
tollgate batch run requests.jsonl -o out.jsonl --base-url http://LISTENER/v1 --json
tollgate batch run requests.jsonl -o old.jsonl --base-url http://LISTENER/v1 --resume --retry-failed
tollgate batch run requests.jsonl -o out.jsonl --base-url http://LISTENER/v1 --store redis://LISTENER --share all
tollgate batch run requests.jsonl -o out.jsonl --accounts accounts.toml --max-cost 1 --errors errors.jsonl
tollgate batch run requests.jsonl -o out.jsonl --base-url http://LISTENER/v1 --format openai --ordered --prices prices.toml
tollgate batch run requests.jsonl -o exported.jsonl --base-url http://LISTENER/v1 --format openai --resume --retry-failed
tollgate batch run requests.jsonl -o out.jsonl --base-url http://LISTENER --api azure --header 'X-Team: blue' --ordered
tollgate batch run requests.jsonl -o out.jsonl --base-url http://LISTENER --api gemini --proxy http://LISTENER --slow-start 1s
tollgate mock-provider --seconds 1 --store redis://LISTENER
tollgate local up --port 0 --seconds 1 --tables tables.db
tollgate demo --seconds 1 --store redis://LISTENER
tollgate completions bash --store redis://LISTENER
tollgate man --folder man --store redis://LISTENER
tollgate config show --store redis://LISTENER
tollgate simulate calls.jsonl -l rpm:1 --store redis://LISTENER
";

/// Counts connections, each of which is closed at once.
struct Listener {
    address: String,
    connections: Arc<AtomicUsize>,
}

impl Listener {
    fn up() -> Listener {
        let listener = TcpListener::bind("127.0.0.1:0").expect("there is a port");
        let address = listener.local_addr().expect("it has an address").to_string();
        let connections = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&connections);
        std::thread::spawn(move || {
            for _ in listener.incoming() {
                counter.fetch_add(1, Ordering::SeqCst);
            }
        });
        Listener { address, connections }
    }
}

/// Returns all files below a directory with their contents; directories have none.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut all = BTreeMap::new();
    for entry in std::fs::read_dir(folder).expect("it is there") {
        let path = entry.expect("it can be read").path();
        if path.is_dir() {
            all.extend(contents(&path));
        }
        all.insert(path.clone(), std::fs::read(path).unwrap_or_default());
    }
    all
}

/// The names of the files that are new, gone or changed.
fn changes(before: &BTreeMap<PathBuf, Vec<u8>>, after: &BTreeMap<PathBuf, Vec<u8>>) -> Vec<PathBuf> {
    let names = before.keys().chain(after.keys());
    let mut changed: Vec<PathBuf> =
        names.filter(|name| before.get(*name) != after.get(*name)).cloned().collect();
    changed.dedup();
    changed
}

/// Splits a command line as a shell does. Command substitutions are run now.
fn words(sandbox: &Sandbox, line: &str) -> Vec<String> {
    let arguments = line.strip_prefix("tollgate ").unwrap_or_else(|| panic!("{line}"));
    let ran = sandbox.shell(&format!("words() {{ printf '%s\\n' \"$@\"; }}; words {arguments}"));
    ran.stdout.lines().map(str::to_owned).collect()
}

/// Runs the program with `--dry-run` before these words. Its folder for temporary files is in the sandbox, too.
fn dry(sandbox: &Sandbox, words: &[String]) -> Ran {
    let mut command = sandbox.command(TOLLGATE);
    command.env("TMPDIR", sandbox.path().join("tmp")).arg("--dry-run").args(words);
    Ran::of(&command.output().expect("the program is built"))
}

/// Commands that only serve or write: they refuse to be tried.
const REFUSING: [&str; 4] =
    ["tollgate demo", "tollgate aggregate", "tollgate local up", "tollgate mock-provider"];

/// A sandbox that was used for a while.
fn used() -> Sandbox {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path().join("tmp")).expect("a folder can be made");
    let store = sandbox.path().join("limits.db");
    furnish::used_for_half_a_year(&store);
    furnish::used_now(&store);
    furnish::used_sets(&store);
    sandbox
}

fn write(sandbox: &Sandbox, name: &str, text: &str) {
    std::fs::write(sandbox.path().join(name), text).expect("a file can be written");
}

/// Returns the commands of the program, such as `tollgate entity create`.
fn commands(sandbox: &Sandbox) -> Vec<String> {
    let page = sandbox.tollgate(&["reference"]).stdout;
    let names: Vec<&str> =
        page.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`')).collect();
    let has_below = |name: &str| names.iter().any(|other| other.starts_with(&format!("{name} ")));
    names.iter().filter(|name| !has_below(name)).map(|name| (*name).to_owned()).collect()
}

#[test]
fn no_command_writes_or_connects_in_a_dry_run() {
    let (sandbox, listener) = (used(), Listener::up());
    let tables = support::tables::Tables::up();
    write(&sandbox, "tables.txt", &tables.store);
    let call = r#"{"time": 1794744000, "entity": "e", "resource": "r", "demand": {"rpm": 1}}"#;
    write(&sandbox, "calls.jsonl", &format!("{call}\n"));
    write(&sandbox, "requests.jsonl", "{\"custom_id\":\"a\",\"body\":{\"model\":\"m\"}}\nnonsense\n");
    let failed = "{\"id\":\"a\",\"status\":\"failed\",\"class\":\"fatal\",\"reason\":\"no\",\"index\":0,\"attempts\":1,\
                  \"throttles\":0,\"tokens\":0,\"cost_micros\":0}";
    write(&sandbox, "old.jsonl", &format!("{failed}\n{{\"id\":\"b\",\"sta"));
    write(&sandbox, "exported.jsonl.journal", &format!("{failed}\n{{\"id\":\"b\",\"sta"));
    write(&sandbox, "prices.toml", "[price.\"m\"]\ninput = \"1\"\noutput = \"1\"\n");
    let account = format!("[[account]]\nname = \"a\"\nbase_url = \"http://{}\"\n", listener.address);
    write(&sandbox, "accounts.toml", &format!("{account}[price.\"*\"]\ninput = \"1\"\noutput = \"1\"\n"));
    let more = MORE.replace("LISTENER", &listener.address);
    let (mut wet, mut seen) = (Vec::new(), String::new());
    for line in include_str!("json_lines.txt").lines().chain(more.lines()).filter(|line| !line.is_empty()) {
        let words = words(&sandbox, line);
        let before = contents(sandbox.path());
        let ran = dry(&sandbox, &words);
        let changed = changes(&before, &contents(sandbox.path()));
        let connections = listener.connections.swap(0, Ordering::SeqCst);
        let is_refused = REFUSING.iter().any(|name| line.starts_with(name));
        if !changed.is_empty() || connections > 0 || is_refused != (ran.exit == 2) {
            wet.push(format!("{line}: {changed:?}, {connections} connections: {ran:?}"));
        }
        if !more.contains(line) {
            // What follows needs what this does.
            sandbox.shell(line);
        }
        seen.push_str(&format!("{line} \n"));
    }
    assert!(wet.is_empty(), "{}", wet.join("\n"));
    // Connections are counted in the order they come, so ours is the last one.
    std::net::TcpStream::connect(&listener.address).expect("it listens");
    while listener.connections.load(Ordering::SeqCst) == 0 {}
    assert_eq!(listener.connections.load(Ordering::SeqCst), 1);
    let unseen: Vec<String> =
        commands(&sandbox).into_iter().filter(|name| !seen.contains(&format!("{name} "))).collect();
    assert!(unseen.is_empty(), "no line is about {unseen:?}");
}

#[test]
fn a_planted_change_is_found() {
    let sandbox = Sandbox::new();
    write(&sandbox, "a", "one");
    let before = contents(sandbox.path());
    assert_eq!(changes(&before, &contents(sandbox.path())), Vec::<PathBuf>::new());
    write(&sandbox, "a", "two");
    std::fs::create_dir(sandbox.path().join("b")).expect("it can be made");
    assert_eq!(changes(&before, &contents(sandbox.path())).len(), 2);
    let listener = Listener::up();
    std::net::TcpStream::connect(&listener.address).expect("it listens");
    while listener.connections.load(Ordering::SeqCst) == 0 {}
}
