//! A slot whose holder was killed: every view shows what the next acquire would find.
#![cfg(target_os = "linux")]

mod support;

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use support::sandbox::{Sandbox, TOLLGATE};

#[cfg(feature = "shm")]
/// A store in shared memory that is deleted on drop.
struct Shm(String);

#[cfg(feature = "shm")]
impl Drop for Shm {
    fn drop(&mut self) {
        let ours = format!("-{}", self.0);
        let files = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        for file in files.filter(|file| file.file_name().to_string_lossy().ends_with(&ours)) {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

/// Returns whether each view shows the slot as held.
fn views(sandbox: &Sandbox) -> [bool; 4] {
    let held = |line: &str, sign: &str| {
        let ran = sandbox.shell(line);
        assert!(ran.exit == 0 || ran.exit == 3, "{line}: {}", ran.stderr);
        ran.stdout.contains(sign)
    };
    [
        held("tollgate peek me jobs --json", "\"available\": 0"),
        held("tollgate explain me jobs slots=1 --json", "\"passes\": false"),
        held("tollgate top --once --json", "\"slots\": 1"),
        held("tollgate entity show me --json", "\"available\": 0"),
    ]
}

/// Takes the only slot in another process and kills that.
fn every_view_sees_it(sandbox: &Sandbox) {
    let ran = sandbox.tollgate(&["system", "set-defaults", "-l", "slots:1/at-once"]);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(sandbox.tollgate(&["entity", "create", "me"]).exit, 0);
    let mut command = sandbox.command(TOLLGATE);
    command.args(["run", "me", "jobs", "--", "sh", "-c", "echo $$; exec sleep 600"]);
    let mut holder = command.stdout(Stdio::piped()).spawn().expect("the program is built");
    let mut pid = String::new();
    let mut stdout = BufReader::new(holder.stdout.take().expect("it is piped"));
    stdout.read_line(&mut pid).expect("it writes a line");
    assert_eq!(views(sandbox), [true; 4], "it lives, and holds the slot");
    holder.kill().expect("it can be killed");
    holder.wait().expect("it is gone");
    let seen = views(sandbox);
    let taken = sandbox.shell("tollgate run me jobs -- true").exit;
    assert_eq!(sandbox.shell(&format!("kill {pid}")).exit, 0, "the command outlives its holder");
    assert_eq!(seen, [false; 4], "peek, explain, top and entity show");
    assert_eq!(taken, 0);
}

#[test]
fn every_view_sees_the_slot_of_a_killed_process_free_on_a_file() {
    every_view_sees_it(&Sandbox::new());
}

#[cfg(feature = "shm")]
#[test]
fn every_view_sees_the_slot_of_a_killed_process_free_in_shared_memory() {
    let shm = Shm(format!("killed-holder-{}", std::process::id()));
    every_view_sees_it(&Sandbox::new().with_store(&format!("shm:{}", shm.0)));
}
