//! `tollgate demo` leaves no files behind, also if a signal ends it.
#![cfg(unix)]

mod support;

use std::io::{BufRead, BufReader};
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use support::sandbox::{Sandbox, TOLLGATE};

#[test]
fn a_demo_that_is_ended_by_a_signal_leaves_no_directory() {
    for (name, number) in [("TERM", 15), ("HUP", 1)] {
        let sandbox = Sandbox::new();
        // A test may be started where signals are ignored; here they are not.
        let mut command = sandbox.command("env");
        command.arg("--default-signal=HUP,INT,TERM").args([TOLLGATE, "demo", "--seconds", "600"]);
        command.env("TMPDIR", sandbox.path()).stdout(Stdio::piped());
        let mut demo = command.spawn().expect("the program is built");
        let mut stdout = BufReader::new(demo.stdout.take().expect("it is piped"));
        stdout.read_line(&mut String::new()).expect("it writes a line");
        let folders = || std::fs::read_dir(sandbox.path()).expect("it is there").count();
        assert_eq!(folders(), 1);
        assert_eq!(sandbox.shell(&format!("kill -{name} {}", demo.id())).exit, 0);
        let ended = demo.wait().expect("it ends");
        assert_eq!((folders(), ended.signal()), (0, Some(number)), "{name}");
    }
}
