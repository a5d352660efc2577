//! A busy process ends with the process that started it.

use std::process::{Command, Stdio};

#[test]
fn a_busy_process_ends_when_its_parent_is_gone() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    let mut busy = command.arg("soak-busy").stdin(Stdio::piped()).spawn().unwrap();
    assert!(busy.try_wait().unwrap().is_none(), "it works until it is ended");
    // The pipe closes, as it does when the parent dies of whatever.
    drop(busy.stdin.take());
    assert!(busy.wait().unwrap().success());
}

#[test]
fn what_soak_does_not_understand_is_told() {
    let output = Command::new(env!("CARGO_BIN_EXE_xtask")).args(["soak", "--time", "3"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--times N"));
}
