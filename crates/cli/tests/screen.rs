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
