//! The command on memory that processes share: one command takes, the next sees it.

#![cfg(all(feature = "shm", target_os = "linux"))]

use std::process::{Command, Output};

/// A store that is deleted on drop.
struct Store(String);

impl Store {
    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tollgate"));
        command.args(["--store", &format!("shm:{}", self.0)]).args(arguments);
        command.output().expect("it can be run")
    }

    fn says(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("it is text")
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        let ours = format!("-{}", self.0);
        for file in files.filter(|file| file.file_name().to_string_lossy().ends_with(&ours)) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

#[test]
fn one_command_takes_and_the_next_sees_it() {
    let store = Store(format!("cli-test-{}", std::process::id()));
    let missing = store.run(&["entity", "list"]);
    let why = String::from_utf8_lossy(&missing.stderr).into_owned();
    assert!(why.contains("does not exist yet"), "{why}");
    store.says(&["system", "set-defaults", "-l", "rpm:60"]);
    let ticket = store.says(&["acquire", "user-1", "gpt-4", "rpm=7"]);
    assert!(store.says(&["peek", "user-1", "gpt-4"]).contains("53"));
    store.says(&["settle", ticket.trim(), "rpm=0"]);
    assert!(store.says(&["check"]).contains("result   ok"));
}

#[test]
fn an_invalid_name_is_refused() {
    let refused = Store("a/b".into()).run(&["check"]);
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("is no name of a store"));
}
