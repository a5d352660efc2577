//! Completion as shells ask for it: names come from the store, and nothing else is printed or created.
#![cfg(unix)]

mod support;

use std::process::Command;

use support::sandbox::{Ran, STORE, Sandbox, TOLLGATE};

/// A store with two namespaces, entities, resources, limits and a used bucket.
fn used() -> Sandbox {
    let sandbox = Sandbox::new();
    for line in [
        "system set-defaults -l rpm:60 -l slots:3/at-once",
        "resource set-defaults gpt-4 -l rpm:60 -l tpm:90000",
        "resource set-defaults gpt-5 -l rps:5",
        "entity create acme",
        "entity set-limits key-1 -l rpm:5",
        "acquire key-2 embeddings rpm=1",
        "namespace register tenant-alpha",
        "entity create elsewhere -N tenant-alpha",
        "set cool-down openai/blue 1h",
    ] {
        let ran = sandbox.tollgate(&line.split(' ').collect::<Vec<_>>());
        assert_eq!(ran.exit, 0, "{line}: {ran:?}");
    }
    sandbox
}

/// Asks as the script of bash does, with the cursor behind the last word. Returns the candidates.
fn ask_in(command: &mut Command, line: &str) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();
    let index = (words.len() - 1).to_string();
    command.args(["--"]).args(&words).env("_TOLLGATE_COMPLETE", "bash");
    command.env("_CLAP_COMPLETE_INDEX", index).env("_CLAP_IFS", "\n");
    let ran = Ran::of(&command.output().expect("the program is built"));
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""), "{line}: {ran:?}");
    ran.stdout.lines().map(str::to_owned).collect()
}

fn ask(sandbox: &Sandbox, line: &str) -> Vec<String> {
    ask_in(&mut sandbox.command(TOLLGATE), line)
}

/// The candidates that are no options.
fn names(sandbox: &Sandbox, line: &str) -> Vec<String> {
    ask(sandbox, line).into_iter().filter(|name| !name.starts_with("--")).collect()
}

#[test]
fn names_come_from_the_store_that_the_command_line_names() {
    let sandbox = used();
    for (line, expected) in [
        ("tollgate run ", &["acme", "key-1", "key-2"][..]),
        ("tollgate run key", &["key-1", "key-2"]),
        ("tollgate entity create new --parent a", &["acme"]),
        ("tollgate -N tenant-alpha peek ", &["elsewhere"]),
        ("tollgate peek --namespace=tenant-alpha ", &["elsewhere"]),
        ("tollgate peek key-1 ", &["embeddings", "gpt-4", "gpt-5"]),
        ("tollgate peek key-1 gpt", &["gpt-4", "gpt-5"]),
        ("tollgate explain key-2 gpt-4 ", &["rpm=", "tpm="]),
        ("tollgate explain key-1 gpt-4 ", &["rpm="]),
        ("tollgate explain key-2 gpt-4 rpm=1 t", &["tpm="]),
        ("tollgate acquire key-2 gpt-4 rpm=1 --also e", &["embeddings"]),
        ("tollgate resource capacity gpt-5 r", &["rps"]),
        ("tollgate usage plot --limit ", &["rpm", "rps", "slots", "tpm"]),
        ("tollgate namespace delete ", &["default", "tenant-alpha"]),
        ("tollgate top -N t", &["tenant-alpha"]),
        ("tollgate set show o", &["openai/blue"]),
        ("tollgate run nobody", &[]),
    ] {
        let mut found = names(&sandbox, line);
        found.sort();
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn commands_and_options_are_completed_and_options_stay_out_of_the_way() {
    let sandbox = used();
    assert_eq!(ask(&sandbox, "tollgate expl"), ["explain"]);
    assert_eq!(ask(&sandbox, "tollgate run key-1 jobs --w"), ["--wait"]);
    assert_eq!(ask(&sandbox, "tollgate peek --js"), ["--json"]);
    assert_eq!(ask(&sandbox, "tollgate run --priority b"), ["batch"]);
    let empty = ask(&sandbox, "tollgate run ");
    assert!(empty.contains(&"acme".into()) && !empty.contains(&"--store".into()), "{empty:?}");
}

#[test]
fn what_cannot_be_read_completes_nothing_says_nothing_and_creates_nothing() {
    let missing = Sandbox::new();
    assert_eq!(names(&missing, "tollgate run "), [""; 0]);
    assert_eq!(std::fs::read_dir(missing.path()).expect("it is there").count(), 0, "nothing was created");
    std::fs::write(missing.path().join("limits.db"), "this is no store").expect("it can be written");
    assert_eq!(names(&missing, "tollgate run "), [""; 0]);
    for store in ["redis://127.0.0.1:1", "nonsense:x", "file:/nowhere/limits.db"] {
        let mut command = missing.command(TOLLGATE);
        command.env("TOLLGATE_STORE", store);
        let found = ask_in(&mut command, "tollgate run ");
        assert!(found.iter().all(|name| name.starts_with("--")), "{store}: {found:?}");
    }
    let used = used();
    assert_eq!(names(&used, "tollgate -N nowhere run "), [""; 0]);
    assert_eq!(STORE, "file:limits.db");
}

/// Whether a shell is installed.
fn is_there(shell: &str) -> bool {
    Command::new(shell).arg("-c").arg("exit 0").status().is_ok_and(|status| status.success())
}

#[test]
fn the_scripts_of_shells_ask_this_program() {
    let sandbox = used();
    let bash = "source <(tollgate completions bash); COMP_WORDS=(tollgate run key); COMP_CWORD=2; COMP_TYPE=9; \
                _clap_complete_tollgate tollgate key run; printf '%s\\n' \"${COMPREPLY[@]}\"";
    let fish = "tollgate completions fish | source; complete -C 'tollgate run key'";
    let zsh = "autoload -Uz compinit; compinit -D; source <(tollgate completions zsh); whence -w _clap_dynamic_completer_tollgate";
    for (shell, script, expected) in [
        ("bash", bash, "key-1\nkey-2\n"),
        ("fish", fish, "key-1\nkey-2\n"),
        ("zsh", zsh, "_clap_dynamic_completer_tollgate: function\n"),
    ] {
        if !is_there(shell) {
            println!("{shell} is not installed: its script is not tried");
            continue;
        }
        let output = sandbox.command(shell).args(["-c", script]).output().expect("it is there");
        let ran = Ran::of(&output);
        assert_eq!((ran.stdout.as_str(), ran.exit), (expected, 0), "{shell}: {ran:?}");
    }
}
