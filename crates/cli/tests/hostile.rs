//! Words, names and texts of others do nothing to a terminal, and secrets stay where they are.
#![cfg(unix)]

mod support;

use support::sandbox::{Ran, Sandbox};

/// A terminal title, a control character that clears the screen, and a change of the text direction.
const EVIL: &str = "x\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}y\u{7f}";

fn does_something(c: char) -> bool {
    c != '\n' && c.is_control() || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn assert_harmless(what: &str, ran: &Ran) {
    for text in [&ran.stdout, &ran.stderr] {
        assert!(!text.contains(does_something), "{what}: {ran:?}");
    }
}

#[test]
fn words_of_the_command_line_do_nothing_to_a_terminal() {
    let sandbox = Sandbox::new();
    for words in [
        &[EVIL][..],
        &["entity", EVIL],
        &["entity", "show", EVIL],
        &["entity", "create", "a", "-m", EVIL],
        &["acquire", "a", "b", EVIL],
        &["limits", "plan", EVIL],
        &["run", "a", "b", "--", EVIL],
        &["status", "--store", EVIL],
        &["status", "--config", EVIL],
        &["simulate", EVIL],
        &["set", "show", EVIL],
    ] {
        for format in [&[][..], &["--json"]] {
            let words: Vec<&str> = format.iter().chain(words).copied().collect();
            let ran = sandbox.tollgate(&words);
            assert_ne!(ran.exit, 0, "{ran:?}");
            assert!(!ran.stderr.is_empty(), "{words:?} says nothing");
            assert_harmless(&format!("{words:?}"), &ran);
        }
    }
}

#[test]
fn names_that_are_stored_do_nothing_to_a_terminal_and_are_exported_as_they_are() {
    let sandbox = Sandbox::new();
    let created = sandbox.tollgate(&["entity", "create", "acme", "--name", EVIL, "-m", &format!("k={EVIL}")]);
    assert_eq!(created.exit, 0, "{created:?}");
    for words in [
        &["entity", "show", "acme"][..],
        &["entity", "show", "acme", "--json"],
        &["entity", "list", "--json"],
        &["audit", "list"],
        &["audit", "list", "--json"],
        &["limits", "export"],
        &["limits", "export", "--json"],
        &["limits", "export", "all.toml"],
    ] {
        let ran = sandbox.tollgate(words);
        assert_eq!(ran.exit, 0, "{ran:?}");
        assert_harmless(&format!("{words:?}"), &ran);
    }
    let file = std::fs::read_to_string(sandbox.path().join("all.toml")).expect("it was written");
    assert!(!file.contains(does_something), "{file:?}");
    let diff = sandbox.tollgate(&["limits", "diff", "all.toml"]);
    assert_eq!(diff.exit, 0, "what was exported is what is stored: {diff:?}");
}

/// A server that answers every command with a hostile error.
#[cfg(feature = "redis")]
fn hostile_server() -> String {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("there is a port");
    let address = listener.local_addr().expect("it has an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { continue };
            std::thread::spawn(move || {
                let mut asked = [0; 4_096];
                while let Ok(1..) = stream.read(&mut asked) {
                    let answer = format!("-ERR {}\r\n", EVIL.replace('\n', ""));
                    if stream.write_all(answer.as_bytes()).is_err() {
                        return;
                    }
                }
            });
        }
    });
    address
}

#[test]
#[cfg(feature = "redis")]
fn texts_of_a_server_do_nothing_to_a_terminal() {
    let sandbox = Sandbox::new();
    let store = format!("redis://{}", hostile_server());
    for words in [&["status"][..], &["status", "--json"], &["entity", "list"], &["entity", "list", "--json"]]
    {
        let mut all = vec!["--store", &store, "--store-timeout", "2s"];
        all.extend(words);
        let ran = sandbox.tollgate(&all);
        assert_ne!(ran.exit, 0, "{ran:?}");
        assert!(format!("{ran:?}").contains("owned"), "the text is shown: {ran:?}");
        assert_harmless(&format!("{words:?}"), &ran);
    }
}

#[cfg(any(feature = "local", all(feature = "batch", feature = "mock-provider")))]
fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap_or_else(|why| panic!("{}: {why}", path.display())).permissions().mode()
        & 0o777
}

#[test]
#[cfg(feature = "local")]
fn tables_are_for_who_made_them() {
    let sandbox = Sandbox::new();
    let ran = sandbox.shell("umask 022; tollgate local up --port 0 --seconds 1 --tables tables.db");
    assert_eq!(ran.exit, 0, "{ran:?}");
    assert_eq!(mode(&sandbox.path().join("tables.db")), 0o600);
}

#[test]
#[cfg(all(feature = "batch", feature = "mock-provider"))]
fn results_are_for_who_asked() {
    let sandbox = Sandbox::new();
    let provider = support::provider::Provider::up(&[]);
    let request =
        r#"{"custom_id": "a", "body": {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}}"#;
    std::fs::write(sandbox.path().join("in.jsonl"), format!("{request}\nnonsense\n"))
        .expect("it can be written");
    let url = format!("http://{}/v1", provider.address);
    let ran = sandbox.shell(&format!("umask 022; tollgate batch run in.jsonl -o out.jsonl --base-url {url}"));
    for name in ["out.jsonl", "out.jsonl.errors.jsonl"] {
        assert_eq!(mode(&sandbox.path().join(name)), 0o600, "{name}: {ran:?}");
    }
}

#[test]
#[cfg(feature = "batch")]
fn a_key_that_does_not_end_is_not_read() {
    let sandbox = Sandbox::new();
    let account = "[[account]]\nname = \"a\"\nbase_url = \"https://x.example\"\nkey_file = \"/dev/zero\"\n";
    std::fs::write(sandbox.path().join("accounts.toml"), account).expect("it can be written");
    std::fs::write(sandbox.path().join("in.jsonl"), "").expect("it can be written");
    for accounts in ["accounts.toml", "/dev/zero"] {
        let ran = sandbox.shell(&format!("tollgate batch run in.jsonl -o out.jsonl --accounts {accounts}"));
        assert_eq!(ran.exit, 5, "{ran:?}");
    }
}
