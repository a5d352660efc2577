//! The reference is generated from the commands, or compared with their output. It is that of a build with all features.
#![cfg(all(
    feature = "batch",
    feature = "local",
    feature = "mock-provider",
    feature = "redis",
    feature = "shm"
))]

mod support;

use serde_json::Value;
use support::json_page::JsonPage;
use support::sandbox::Sandbox;

fn page(name: &str) -> String {
    let path = format!("{}/../../docs/reference/{name}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|why| panic!("{path}: {why}"))
}

/// Returns the commands of the reference without subcommands, such as `tollgate entity create`.
fn commands() -> Vec<String> {
    let page = page("cli.md");
    let names = page.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'));
    let names: Vec<&str> = names.collect();
    let has_below = |name: &str| names.iter().any(|other| other.starts_with(&format!("{name} ")));
    names.iter().filter(|name| !has_below(name)).map(|name| (*name).into()).collect()
}

#[test]
fn the_reference_is_what_the_program_prints() {
    let printed = Sandbox::new().tollgate(&["reference"]).stdout;
    assert!(
        printed == page("cli.md"),
        "docs/reference/cli.md is outdated; generate it: cargo run --all-features -- reference > docs/reference/cli.md"
    );
}

#[test]
fn every_command_has_an_example() {
    let page = page("cli.md");
    for name in commands() {
        let section = page.split(&format!("## `{name}`\n")).nth(1).unwrap();
        let section = section.split("\n## ").next().unwrap();
        assert!(section.contains("Example"), "{name} has no example");
        assert!(section.contains(&format!("  {name}")), "the example of {name} is about something else");
    }
}

/// Returns lines of examples that were wrapped where a shell would not continue.
fn broken_examples(page: &str) -> Vec<&str> {
    let mut is_example = false;
    let mut continues = false;
    let mut broken = Vec::new();
    for line in page.lines() {
        if !is_example || !line.starts_with("  ") {
            is_example = matches!(line, "Example:" | "Examples:");
            continues = false;
            continue;
        }
        let is_whole = continues || ["  tollgate ", "  ticket="].iter().any(|start| line.starts_with(start));
        broken.extend((!is_whole && line != "  tollgate").then_some(line));
        continues = line.ends_with('\\');
    }
    broken
}

#[test]
fn examples_can_be_pasted() {
    assert_eq!(broken_examples(&page("cli.md")), Vec::<&str>::new());
    let planted = "Examples:\n  tollgate a > \\\n    b\n  tollgate a >\n  b\n\nElse:\n  c\n";
    assert_eq!(broken_examples(planted), ["  b"]);
}

#[test]
fn every_command_has_a_section_about_its_json() {
    let json = JsonPage::read(&page("json.md"));
    let missing: Vec<String> = commands().into_iter().filter(|name| !json.has(name)).collect();
    assert!(missing.is_empty(), "docs/reference/json.md has no section for {missing:#?}");
}

#[test]
#[cfg(unix)]
fn commands_write_the_documented_json() {
    let json = JsonPage::read(&page("json.md"));
    let sandbox = Sandbox::new();
    support::furnish::used_for_half_a_year(&sandbox.path().join("limits.db"));
    support::furnish::used_now(&sandbox.path().join("limits.db"));
    support::furnish::used_sets(&sandbox.path().join("limits.db"));
    let call = r#"{"time": 1794744000, "entity": "e", "resource": "r", "demand": {"rpm": 1}}"#;
    let log = format!("{call}\n{call}\nwhat?\n{}\n", call.replace("\"e\"", "\"#\""));
    std::fs::write(sandbox.path().join("calls.jsonl"), log).expect("a log can be written");
    let tables = support::tables::Tables::up();
    std::fs::write(sandbox.path().join("tables.txt"), &tables.store).expect("a file can be written");
    let lines = include_str!("json_lines.txt").lines().filter(|line| !line.is_empty());
    let mut seen = Vec::new();
    for line in lines {
        let ran = sandbox.shell(&format!("{line} --json"));
        let value: Value = serde_json::from_str(&ran.stdout)
            .unwrap_or_else(|why| panic!("{line}: {why}\n{}\n{}", ran.stdout, ran.stderr));
        let name = json.command_of(line).unwrap_or_else(|| panic!("{line} has no section"));
        if let Err(why) = json.check(name, &value) {
            panic!("{line}: {why}\n{}", ran.stdout);
        }
        seen.push(name.to_owned());
    }
    let unseen: Vec<String> = commands().into_iter().filter(|name| !seen.contains(name)).collect();
    assert!(unseen.is_empty(), "json_lines.txt runs none of {unseen:#?}");
}

#[test]
fn a_planted_difference_between_page_and_command_is_found() {
    let page = "## Objects\n\n### part\n\n| field | type | meaning |\n|---|---|---|\n| `n` | number? | a number |\n\n\
                ## `tollgate x`\n\n| field | type | meaning |\n|---|---|---|\n| `parts` | part[] | parts |\n\
                | `more` | {text} | optional: more |\n";
    let page = JsonPage::read(page);
    let check = |text: &str| page.check("tollgate x", &serde_json::from_str(text).unwrap());
    assert_eq!(check(r#"{"parts": [{"n": 1}, {"n": null}], "more": {"a": "b"}}"#), Ok(()));
    assert_eq!(check(r#"{"parts": []}"#), Ok(()));
    for wrong in [
        r#"{}"#,
        r#"{"parts": {}}"#,
        r#"{"parts": [{"n": "1"}]}"#,
        r#"{"parts": [{}]}"#,
        r#"{"parts": [], "less": 1}"#,
        r#"{"parts": [], "more": {"a": 1}}"#,
    ] {
        assert!(check(wrong).is_err(), "{wrong}");
    }
}
