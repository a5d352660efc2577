//! No command deletes without confirmation: it asks on a terminal, and requires `--yes` elsewhere.
#![cfg(unix)]

mod support;

use support::sandbox::{Sandbox, TOLLGATE};
use support::terminal::Terminal;

/// A command that deletes, and its question.
struct Deletion {
    command: &'static str,
    words: &'static str,
    asks: &'static [&'static str],
}

/// Every command that deletes.
const DELETIONS: [Deletion; 6] = [
    Deletion {
        command: "tollgate entity delete",
        words: "entity delete acme",
        asks: &["delete entity acme with 2 levels of limits, 1 bucket and 3 usage records? [y/N]"],
    },
    Deletion {
        command: "tollgate entity delete-limits",
        words: "entity delete-limits acme --resource gpt-4",
        asks: &["delete the limits for entity acme, resource gpt-4: rpm:5/minute? [y/N]"],
    },
    Deletion {
        command: "tollgate resource delete-defaults",
        words: "resource delete-defaults gpt-4",
        asks: &["delete the limits for resource gpt-4: rpm:7/minute? [y/N]"],
    },
    Deletion {
        command: "tollgate system delete-defaults",
        words: "system delete-defaults",
        asks: &["delete the limits for the system: rpm:9/minute? [y/N]"],
    },
    Deletion {
        command: "tollgate namespace delete",
        words: "namespace delete default",
        asks: &[
            "delete namespace default with 1 entity, 4 levels of limits, 1 bucket, 3 usage records and 5 audit events? [y/N]",
        ],
    },
    Deletion {
        command: "tollgate namespace purge",
        words: "namespace purge ORPHAN",
        asks: &[
            "delete namespace former (",
            ") with 1 level of limits and 1 audit event, permanently? [y/N]",
        ],
    },
];

fn furnished() -> Sandbox {
    let sandbox = Sandbox::new();
    for line in [
        "tollgate entity create acme",
        "tollgate entity set-limits acme -l rpm:3",
        "tollgate entity set-limits acme --resource gpt-4 -l rpm:5",
        "tollgate resource set-defaults gpt-4 -l rpm:7",
        "tollgate system set-defaults -l rpm:9",
        "tollgate acquire acme gpt-4 rpm=1",
        "tollgate -N former system set-defaults -l rpm:1",
        "tollgate namespace delete former --yes",
    ] {
        let ran = sandbox.shell(line);
        assert_eq!(ran.exit, 0, "{line}: {ran:?}");
    }
    sandbox
}

/// All that a deletion could change.
fn stored(sandbox: &Sandbox) -> String {
    let shown = ["namespace list", "namespace orphans", "limits export", "entity list", "audit list"];
    let line = shown.map(|words| format!("tollgate {words} -q --json")).join("; ");
    sandbox.shell(&line).stdout
}

impl Deletion {
    fn line(&self, sandbox: &Sandbox) -> String {
        let id = "tollgate namespace orphans --json | sed -n 's/.*\"id\": \"\\(.*\\)\",/\\1/p'";
        let orphan = sandbox.shell(id).stdout;
        format!("{TOLLGATE} {}", self.words.replace("ORPHAN", orphan.trim()))
    }
}

/// Runs a line on a terminal, waits for the question, and answers it.
fn answered(sandbox: &Sandbox, line: &str, asks: &[&str], answer: &str) -> (String, i32) {
    let mut terminal = Terminal::new(200, 24);
    let mut command = sandbox.command("sh");
    command.args(["-c", &format!("{line}; echo ended with $?.")]).env("TERM", "xterm");
    command.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio());
    let mut child = command.spawn().expect("there is a shell");
    for part in asks {
        terminal.expect(part);
    }
    terminal.press(answer);
    let said = terminal.expect("ended with ");
    let exit = terminal.expect(".").parse().expect("an exit code");
    child.wait().expect("it ends");
    (said, exit)
}

#[test]
fn every_command_that_deletes_is_among_these() {
    let path = format!("{}/../../docs/reference/cli.md", env!("CARGO_MANIFEST_DIR"));
    let page = std::fs::read_to_string(path).expect("the reference is there");
    let names = page.lines().filter_map(|line| line.strip_prefix("## `")?.strip_suffix('`'));
    let deletes = |name: &&str| {
        let last = name.rsplit(' ').next().unwrap_or_default();
        ["delete", "purge", "remove", "drop", "clear"].iter().any(|verb| last.starts_with(verb))
    };
    let mut there: Vec<&str> = names.filter(deletes).collect();
    let mut tested = DELETIONS.map(|deletion| deletion.command);
    there.sort_unstable();
    tested.sort_unstable();
    assert_eq!(there, tested);
}

#[test]
fn without_a_terminal_nothing_is_deleted_unless_yes_is_said() {
    for deletion in &DELETIONS {
        let sandbox = furnished();
        let (line, before) = (deletion.line(&sandbox), stored(&sandbox));
        let ran = sandbox.shell(&format!("{line} < /dev/null"));
        assert_eq!(ran.exit, 2, "{line}: {ran:?}");
        assert!(ran.stderr.starts_with("error: to delete ") && ran.stderr.contains("add --yes"), "{ran:?}");
        let dry_run = sandbox.shell(&format!("{line} --dry-run"));
        assert_eq!((dry_run.exit, dry_run.stdout.starts_with("would ")), (0, true), "{dry_run:?}");
        assert_eq!(stored(&sandbox), before, "{line}");
        let ran = sandbox.shell(&format!("{line} --yes"));
        assert_eq!(ran.exit, 0, "{line}: {ran:?}");
        assert_ne!(stored(&sandbox), before, "{line}");
    }
}

#[test]
fn on_a_terminal_it_says_what_goes_and_heeds_the_answer() {
    for deletion in &DELETIONS {
        let sandbox = furnished();
        let (line, before) = (deletion.line(&sandbox), stored(&sandbox));
        for no in ["n\n", "\n", "yesterday\n"] {
            let (said, exit) = answered(&sandbox, &line, deletion.asks, no);
            assert!(said.contains("cancelled; nothing was changed") && !said.contains("error"), "{said}");
            assert_eq!((exit, stored(&sandbox)), (1, before.clone()), "{line}");
        }
        let (said, exit) = answered(&sandbox, &line, deletion.asks, "y\n");
        assert_eq!(exit, 0, "{line}: {said}");
        assert_ne!(stored(&sandbox), before, "{line}");
    }
}

/// Checks that only "yes" confirms a command: its question, and a function that shows whether it was done.
fn heeds_the_answer(sandbox: &Sandbox, words: &str, question: &str, state: impl Fn(&Sandbox) -> String) {
    let (line, before) = (format!("{TOLLGATE} {words}"), state(sandbox));
    for no in ["n\n", "\n", "yesterday\n"] {
        let (said, exit) = answered(sandbox, &line, &[question], no);
        assert!(said.contains("cancelled; nothing was changed") && !said.contains("error"), "{said}");
        assert_eq!((exit, state(sandbox)), (1, before.clone()), "{words}");
    }
    let ran = sandbox.shell(&format!("{line} < /dev/null"));
    assert_eq!((ran.exit, state(sandbox)), (2, before.clone()), "{words}: {ran:?}");
    let (said, exit) = answered(sandbox, &line, &[question], "y\n");
    assert_eq!(exit, 0, "{words}: {said}");
    assert_ne!(state(sandbox), before, "{words}");
}

#[test]
fn limits_are_applied_if_the_answer_is_yes() {
    let sandbox = furnished();
    let file = "set = \"prod\"\n\n[system]\nlimits = [\"rpm:77\"]\n";
    std::fs::write(sandbox.path().join("limits.toml"), file).expect("it can be written");
    heeds_the_answer(&sandbox, "limits apply limits.toml", "apply this to namespace default? [y/N]", stored);
}

#[test]
fn an_export_writes_over_a_file_if_the_answer_is_yes() {
    let sandbox = furnished();
    std::fs::write(sandbox.path().join("there.toml"), "mine\n").expect("it can be written");
    let file = |sandbox: &Sandbox| {
        std::fs::read_to_string(sandbox.path().join("there.toml")).expect("it is still there")
    };
    heeds_the_answer(&sandbox, "limits export there.toml", "overwrite there.toml? [y/N]", file);
}

#[test]
fn records_are_migrated_if_the_answer_is_yes() {
    let sandbox = Sandbox::new();
    support::furnish::age(&sandbox.path().join("limits.db"));
    let status = |sandbox: &Sandbox| sandbox.shell("tollgate version; tollgate check").stdout;
    let question = "migrate from schema 0.9.0 to 1.0.0";
    heeds_the_answer(&sandbox, "upgrade", question, status);
}

#[test]
fn what_is_not_there_is_not_asked_about() {
    let sandbox = furnished();
    for (line, exit) in [
        ("tollgate entity delete unknown", 1),
        ("tollgate entity delete-limits unknown", 0),
        ("tollgate resource delete-defaults gpt-3", 0),
        ("tollgate namespace delete none-such", 1),
        ("tollgate namespace purge none-such", 1),
    ] {
        let ran = sandbox.shell(line);
        assert_eq!(ran.exit, exit, "{line}: {ran:?}");
        assert!(!ran.stderr.contains("--yes"), "{line}: {ran:?}");
    }
}
