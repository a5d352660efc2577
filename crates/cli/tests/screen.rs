//! The output of commands on a terminal of 80 columns, dark or light.
#![cfg(unix)]

mod support;

use support::furnish;
use support::sandbox::Sandbox;
use support::terminal;

/// Yellow and white, bright or not, as text: none of them can be read on every terminal.
const UNREADABLE: [&str; 4] = ["33m", "37m", "93m", "97m"];

/// Text that is faint.
const FAINT: &str = "\u{1b}[2m";

const COLUMNS: u16 = 80;

/// What a command writes to a terminal, on both streams.
fn shown(words: &[&str]) -> String {
    let sandbox = Sandbox::new();
    furnish::used_now(&sandbox.path().join("limits.db"));
    shown_in(&sandbox, words)
}

fn shown_in(sandbox: &Sandbox, words: &[&str]) -> String {
    terminal::shown(sandbox, COLUMNS, words, &[])
}

#[test]
fn everything_fits_and_can_be_read() {
    let commands: [&[&str]; 10] = [
        &["top", "--once"],
        &["explain", "user-1", "gpt-4", "rpm=1", "tpm=900000", "--also", "jobs", "rpm=1", "tpm=1"],
        &["peek", "user-1", "gpt-4"],
        &["usage", "plot", "--entity", "user-1"],
        &["usage", "list"],
        &["audit", "list"],
        &["status"],
        &["entity", "set-limits", "acme", "-l", "rpm:lots"],
        &["acquire", "user-1", "gpt-4", "rpm=1", "tpm=900000", "--timeout", "1s"],
        &["entity", "sho", "--limits-of-its-own"],
    ];
    for command in commands {
        let text = shown(command);
        assert!(text.contains("\u{1b}["), "{command:?} has no colours:\n{text}");
        for code in UNREADABLE {
            assert!(!text.contains(&format!("[{code}")) && !text.contains(&format!(";{code}")), "{text}");
        }
        for faint in text.split(FAINT).skip(1) {
            let faint = faint.split('\u{1b}').next().unwrap_or_default();
            assert!(!faint.contains(char::is_alphanumeric), "{command:?}: {faint:?} is to be read");
        }
        // Overwritten text starts a new frame.
        let widest = text.split(['\n', '\r']).map(|line| {
            let line = anstream::adapter::strip_str(line).to_string();
            line.trim_end().chars().count()
        });
        assert!(widest.max().unwrap_or(0) <= COLUMNS.into(), "{command:?}:\n{text}");
    }
}

#[test]
fn long_names_leave_room_for_what_stands_behind_them() {
    let sandbox = Sandbox::new();
    furnish::used_now(&sandbox.path().join("limits.db"));
    let (entity, resource) =
        ("customer-0123456789-project-blue-key-0042", "gpt-4-turbo-2026-11-15-preview-europe-1");
    let taken = sandbox.tollgate(&["acquire", entity, resource, "rpm=1", "tpm=900000", "slots=1"]);
    assert_eq!(taken.exit, 0, "{taken:?}");
    for words in [&["top", "--once"][..], &["explain", entity, resource, "rpm=1", "tpm=1200000", "slots=4"]] {
        let text = anstream::adapter::strip_str(&shown_in(&sandbox, words)).to_string();
        let widest = text.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
        let table: Vec<&str> = text.lines().skip_while(|line| !line.contains("ENTITY")).collect();
        assert!(!table.is_empty(), "{text}");
        assert!(widest <= COLUMNS.into(), "{text}");
        assert!(table[1..].iter().any(|line| line.contains("cust") && line.contains('…')), "{text}");
    }
    let top = anstream::adapter::strip_str(&shown_in(&sandbox, &["top", "--once"])).to_string();
    for heading in ["LEFT", "USED", "HELD", "slots 1/4"] {
        assert!(top.contains(heading), "{heading}: {top}");
    }
}

const LONG: &str = "customer-0123456789-project-blue-key-000000042";
const MODEL: &str = "gpt-4-turbo-2026-11-15-preview-europe-west-one";

/// A sandbox with a file of limits, in which everything has a long name and was used.
fn with_long_names() -> Sandbox {
    let sandbox = Sandbox::new();
    let parent = LONG.replace("key", "org");
    let toml = format!(
        "set = \"{LONG}\"\n[entity.\"{LONG}\"]\nname = \"{LONG} of {LONG}\"\n\
         [entity.\"{LONG}\".resource.\"{MODEL}\"]\nlimits = [\"{MODEL}:9\"]\n"
    );
    std::fs::write(sandbox.path().join("limits.toml"), toml).expect("it can be written");
    for line in [
        "tollgate system set-defaults -l rpm:1000 -l spend:500/day,unit=USD:6".to_owned(),
        format!("tollgate entity create {parent} -m note='{LONG} and {MODEL} are long'"),
        format!("tollgate entity create {LONG} --name '{LONG} and {MODEL}' --parent {parent} --cascade"),
        format!("tollgate entity set-limits {LONG} --resource {MODEL} -l {MODEL}:9 -l rpm:10 -q"),
        format!("tollgate acquire {LONG} {MODEL} rpm=1 {MODEL}=2"),
    ] {
        let ran = sandbox.shell(&line);
        assert_eq!(ran.exit, 0, "{line}: {}", ran.stderr);
    }
    sandbox
}

/// Commands that show names.
fn showing_names() -> Vec<Vec<&'static str>> {
    let words: [&str; 18] = [
        "top --once",
        "peek LONG MODEL",
        "explain LONG MODEL rpm=1",
        "acquire LONG MODEL rpm=1000",
        "entity list",
        "entity list --with-custom-limits MODEL",
        "entity show LONG",
        "entity children ORG",
        "entity list-resources",
        "resource capacity MODEL rpm",
        "usage list",
        "usage summary --entity LONG",
        "usage plot --entity LONG --resource MODEL",
        "usage plot --entity LONG --resource MODEL --limit MODEL",
        "usage plot --entity NOBODY-LONG --resource MODEL",
        "limits plan limits.toml",
        "audit list",
        "config show",
    ];
    let org: &'static str = LONG.replace("key", "org").leak();
    let nobody: &'static str = format!("nobody-{LONG}").leak();
    let word = |word: &'static str| match word {
        "LONG" => LONG,
        "MODEL" => MODEL,
        "ORG" => org,
        "NOBODY-LONG" => nobody,
        other => other,
    };
    words.map(|words| words.split(' ').map(word).collect()).into()
}

#[test]
fn nothing_is_wider_than_the_terminal_however_long_names_are() {
    let sandbox = with_long_names();
    for columns in [60, COLUMNS] {
        for words in showing_names() {
            let text = terminal::shown(&sandbox, columns, &words, &[]);
            let text = anstream::adapter::strip_str(&text).to_string();
            let widest = text.lines().map(|line| line.trim_end().chars().count()).max().unwrap_or(0);
            assert!(widest <= columns.into(), "{words:?} takes {widest} of {columns} columns:\n{text}");
            assert!(widest > 0, "{words:?} shows nothing");
        }
    }
}

/// A program that reads a list finds a name as it is.
#[test]
fn output_that_is_no_terminal_has_names_as_they_are() {
    let sandbox = with_long_names();
    for words in showing_names().iter().filter(|words| words.contains(&LONG) || words.contains(&"list")) {
        let ran = sandbox.tollgate(words);
        let shown = ran.stdout + &ran.stderr;
        assert!(shown.contains(LONG) && !shown.contains('…'), "{words:?}:\n{shown}");
    }
    let narrow = sandbox.shell("COLUMNS=60 tollgate entity list").stdout;
    assert!(narrow.contains('…') && !narrow.contains(LONG), "COLUMNS is the width of any output: {narrow}");
}

#[test]
fn a_plan_wraps_long_levels_between_words() {
    let sandbox = with_long_names();
    let text = shown_in(&sandbox, &["limits", "plan", "limits.toml"]);
    let text = anstream::adapter::strip_str(&text).to_string();
    let level = format!("~ limits of entity {LONG}, resource\n  {MODEL} (set by hand so far)\n");
    assert!(text.replace('\r', "").contains(&level), "{text}");
}

#[test]
fn the_manual_is_shown_by_man_on_a_terminal_and_printed_elsewhere() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let sandbox = Sandbox::new();
    let [bin, tmp] = ["bin", "tmp"].map(|name| sandbox.path().join(name));
    for folder in [&bin, &tmp] {
        std::fs::create_dir(folder).expect("it can be made");
    }
    symlink("/bin/sh", bin.join("sh")).expect("there is a shell");
    let show = || {
        let variables =
            [("PATH", bin.to_str().expect("it is text")), ("TMPDIR", tmp.to_str().expect("it is text"))];
        let text = terminal::shown(&sandbox, COLUMNS, &["man", "entity", "create"], &variables);
        anstream::adapter::strip_str(&text).to_string().split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let without = show();
    assert!(
        without.contains("there is no man(1)") && without.contains("> tollgate-entity-create.1"),
        "{without}"
    );
    let man =
        "#!/bin/sh\nwhile read -r line; do case $line in .TH*) echo \"shown: $line\";; esac; done < \"$1\"\n";
    std::fs::write(bin.join("man"), man).expect("it can be written");
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(bin.join("man"), executable).expect("it is ours");
    let with = show();
    let version = env!("CARGO_PKG_VERSION");
    assert!(with.contains(&format!("shown: .TH tollgate-entity-create 1 \"tollgate {version}\"")), "{with}");
    assert_eq!(std::fs::read_dir(&tmp).expect("it is there").count(), 0, "a page was left behind");
    let printed = sandbox.tollgate(&["man", "entity", "create"]).stdout;
    assert!(printed.contains(".TH tollgate-entity-create 1"), "{printed}");
}
