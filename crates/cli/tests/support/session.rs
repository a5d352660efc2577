//! Sessions: files with commands and their expected output.
//!
//! ```text
//! // prose
//! $ a command
//! its stdout
//! ! its stderr
//! = 2
//! ```
//!
//! The last line is the exit code, left out if it is 0. `[..]` stands for anything within a line. Times are shown as
//! `YYYY-MM-DDThh:mm:ssZ`, the ids of namespaces as `<id______1>` once they were seen, those of events as
//! `<event___________________>`, and the folder of the session as `/sandbox`.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use super::sandbox::{Ran, Sandbox};

/// How long the id of a namespace is.
const ID_LENGTH: usize = 11;

const EVENT: &str = "<event___________________>";

const TIME: &str = "YYYY-MM-DDThh:mm:ssZ";

/// Something that is typed, and what comes out.
struct Step {
    prose: String,
    line: String,
    expected: String,
}

/// Where the sessions are.
pub fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/sessions")
}

/// Replays the session of a file, and panics if anything is different.
pub fn replay(name: &str) {
    replay_after(name, |_| {});
}

/// Replays the session of a file on another store than it was written on, and panics if anything is different.
pub fn replay_on(name: &str, store: &str) {
    let text = read(&folder().join(format!("{name}.txt")));
    let (_, differences) = run_in(Sandbox::new().with_store(store), &text, without_store);
    assert!(differences.is_empty(), "{name} on {store}:\n{}", differences.join("\n"));
}

/// Returns the output without cursors and the note that a file does not exist yet: both depend on the
/// store.
fn without_store(text: &str) -> String {
    let marks = ["there is more: --after", "\"next\": ", "the store file:limits.db does not exist yet"];
    let is_of_store = |line: &str| marks.iter().any(|mark| line.contains(mark));
    text.lines().filter(|line| !is_of_store(line)).map(|line| format!("{line}\n")).collect()
}

/// The same as [`replay`], in a sandbox that was prepared.
pub fn replay_after(name: &str, prepare: impl FnOnce(&Path)) {
    let path = folder().join(format!("{name}.txt"));
    let (became, differences) = run(&read(&path), prepare);
    if std::env::var_os("TOLLGATE_BLESS").is_some() {
        std::fs::write(&path, became).expect("the session can be written");
    } else {
        assert!(differences.is_empty(), "{name}:\n{}", differences.join("\n"));
    }
}

/// Replays the session in a page: the blocks of `console`, with the files of blocks whose first line is
/// `# NAME.toml`. Times, ids and the home folder are examples.
pub fn replay_page(path: &str) {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    let page = read(&path);
    // Every second part is inside fences.
    let session: String = page.split("```").skip(1).step_by(2).filter_map(typed).collect();
    // The page is about the default store, which no setting names.
    let session = replaced(&session, TIME, is_time).replace("$ tollgate", "$ unset TOLLGATE_STORE; tollgate");
    let session = session.replace("/srv/alice", "/sandbox");
    let mut ids = Vec::new();
    learn_ids(&session, &mut ids);
    let session = without_ids(&session, &ids);
    let (_, differences) = run(&session, |_| {});
    assert!(differences.is_empty(), "{}:\n{}", path.display(), differences.join("\n"));
}

/// The first block of a page that is for a shell.
pub fn shell_block(path: &str) -> String {
    let page = read(&PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..").join(path));
    let block = page.split("```sh\n").nth(1).and_then(|rest| rest.split("```").next());
    block.unwrap_or_else(|| panic!("{path} has no block for a shell")).to_owned()
}

/// A block of a page as part of a session.
fn typed(block: &str) -> Option<String> {
    if let Some(file) = block.strip_prefix("toml\n# ") {
        let (name, _) = file.split_once('\n').filter(|(name, _)| name.ends_with(".toml"))?;
        let lines: Vec<String> = file.lines().skip(1).map(|line| format!("'{line}'")).collect();
        return Some(format!("$ printf '%s\\n' {} > {name}\n", lines.join(" ")));
    }
    block.strip_prefix("console\n").map(str::to_owned)
}

/// Replays a session, and returns the differences.
pub fn outcome(text: &str) -> Result<(), String> {
    let (_, differences) = run(text, |_| {});
    if differences.is_empty() { Ok(()) } else { Err(differences.join("\n")) }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

fn run(text: &str, prepare: impl FnOnce(&Path)) -> (String, Vec<String>) {
    let sandbox = Sandbox::new();
    prepare(sandbox.path());
    run_in(sandbox, text, str::to_owned)
}

fn run_in(sandbox: Sandbox, text: &str, compared: impl Fn(&str) -> String) -> (String, Vec<String>) {
    let (mut became, mut differences, mut ids) = (String::new(), Vec::new(), Vec::new());
    for Step { prose, line, expected } in steps(text) {
        let ran = sandbox.shell(&line);
        learn_ids(&format!("{}{}", ran.stdout, ran.stderr), &mut ids);
        let actual = without_ids(&shown(&sandbox, &ran), &ids);
        let fits = matches(&compared(&expected), &compared(&actual));
        let _ = write!(became, "{prose}$ {line}\n{}", if fits { &expected } else { &actual });
        became.push('\n');
        if !fits {
            differences.push(format!("$ {line}\nexpected:\n{expected}\nactual:\n{actual}"));
        }
    }
    (became.trim_end().to_owned() + "\n", differences)
}

fn steps(text: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut prose = String::new();
    for line in text.lines() {
        if line.starts_with("//") {
            prose.push_str(line);
            prose.push('\n');
        } else if let Some(typed) = line.strip_prefix("$ ") {
            steps.push(Step {
                prose: std::mem::take(&mut prose),
                line: typed.into(),
                expected: String::new(),
            });
        } else if let Some(step) = steps.last_mut() {
            step.expected.push_str(line);
            step.expected.push('\n');
        }
    }
    for step in &mut steps {
        let kept = step.expected.trim_end_matches('\n');
        step.expected = if kept.is_empty() { String::new() } else { format!("{kept}\n") };
    }
    steps
}

fn shown(sandbox: &Sandbox, ran: &Ran) -> String {
    let mut text = ran.stdout.trim_end_matches('\n').to_owned();
    if !text.is_empty() {
        text.push('\n');
    }
    for line in ran.stderr.lines() {
        let _ = writeln!(text, "{}", format!("! {line}").trim_end());
    }
    if ran.exit != 0 {
        let _ = writeln!(text, "= {}", ran.exit);
    }
    let text = sandbox.as_if_here(&text).replace(&sandbox.path().display().to_string(), "/sandbox");
    replaced(&replaced(&text, TIME, is_time), EVENT, is_event)
}

/// Ids are random. They follow these words wherever a namespace is shown for the first time, and precede these in
/// cursors and keys.
fn learn_ids(text: &str, ids: &mut Vec<String>) {
    let is_part = |c: &char| c.is_ascii_alphanumeric() || "-_".contains(*c);
    let after = ["with id ", "\"id\": \""].into_iter().flat_map(|mark| text.split(mark).skip(1));
    let after = after.map(|rest| rest.chars().take_while(is_part).collect::<String>());
    let before = ["/ENTITY#", "/SYSTEM#", "/USAGE#"].into_iter().flat_map(|mark| text.match_indices(mark));
    let before = before.filter_map(|(at, _)| text.get(at.checked_sub(ID_LENGTH)?..at));
    for id in after.chain(before.map(str::to_owned)) {
        let is_new = id.len() == ID_LENGTH && !ids.contains(&id);
        ids.extend(is_new.then_some(id));
    }
}

fn without_ids(text: &str, ids: &[String]) -> String {
    let name = |index: usize| format!("<id{:_>7}>", index + 1);
    ids.iter().enumerate().fold(text.to_owned(), |text, (index, id)| text.replace(id, &name(index)))
}

/// The text with everything of a shape replaced by a name of the same length.
fn replaced(text: &str, name: &str, has_shape: impl Fn(&str) -> bool) -> String {
    let mut shown = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let candidate = rest.get(..name.len()).filter(|it| has_shape(it));
        let taken = candidate.map_or(first.len_utf8(), str::len);
        shown.push_str(if candidate.is_some() { name } else { &rest[..taken] });
        rest = &rest[taken..];
    }
    shown
}

fn is_event(text: &str) -> bool {
    text.starts_with("01") && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

fn is_time(text: &str) -> bool {
    text.chars().zip(TIME.chars()).all(|(is, shape)| match shape {
        '-' | ':' | 'T' | 'Z' => is == shape,
        _ => is.is_ascii_digit(),
    })
}

fn matches(expected: &str, actual: &str) -> bool {
    let (expected, actual): (Vec<&str>, Vec<&str>) = (expected.lines().collect(), actual.lines().collect());
    expected.len() == actual.len() && expected.iter().zip(&actual).all(|(one, two)| line_matches(one, two))
}

/// Whether the line fits, where `[..]` fits anything.
fn line_matches(expected: &str, actual: &str) -> bool {
    let mut parts = expected.split("[..]");
    let Some(mut rest) = parts.next().and_then(|start| actual.strip_prefix(start)) else { return false };
    let parts: Vec<&str> = parts.collect();
    let Some((last, middle)) = parts.split_last() else { return rest.is_empty() };
    for part in middle {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}
