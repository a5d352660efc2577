//! `tollgate run` in many processes at once.
#![cfg(unix)]

mod support;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use support::sandbox::{Sandbox, TOLLGATE};
use support::terminal::Terminal;

const SHELLS: usize = 20;

fn sandbox_with(limits: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    let flags = limits.iter().flat_map(|limit| ["-l", limit]);
    let words: Vec<&str> = ["system", "set-defaults"].into_iter().chain(flags).collect();
    let ran = sandbox.tollgate(&words);
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    sandbox
}

/// A test may be started where signals are ignored, by `nohup` or in the background; here they are not.
fn run(sandbox: &Sandbox, words: &[&str], script: &str) -> Command {
    let mut command = sandbox.command("env");
    command.arg("--default-signal=HUP,INT,QUIT,TERM").arg(TOLLGATE);
    command.args(["run", "me", "jobs"]).args(words).args(["--", "sh", "-c", script]);
    command
}

/// The exit codes of as many of these at once as there are shells.
fn run_at_once(sandbox: &Sandbox, words: &[&str], script: &str) -> Vec<i32> {
    let spawn = |_| run(sandbox, words, script).stderr(Stdio::null()).spawn().expect("the program is built");
    let shells: Vec<Child> = (0..SHELLS).map(spawn).collect();
    let code = |mut shell: Child| shell.wait().expect("it ends").code().expect("it exits");
    shells.into_iter().map(code).collect()
}

/// Signs in, counts the commands that are there, stays a moment and signs out. The command that signs in last sees all
/// others, so that no overlap goes unseen; and a command that holds no permit is not counted.
const COUNT_IN: &str =
    "touch running/$$ && ls running | wc -l >> seen && sleep 0.05 && echo done >> done && rm running/$$";

fn most_at_once(sandbox: &Sandbox) -> u32 {
    let seen = std::fs::read_to_string(sandbox.path().join("seen")).expect("somebody ran");
    seen.lines().map(|line| line.trim().parse::<u32>().expect("a count")).max().expect("somebody ran")
}

fn runs(sandbox: &Sandbox) -> usize {
    std::fs::read_to_string(sandbox.path().join("done")).expect("somebody ran").lines().count()
}

#[test]
fn twenty_shells_keep_to_three_at_once() {
    let sandbox = sandbox_with(&["slots:3/at-once"]);
    std::fs::create_dir(sandbox.path().join("running")).expect("an empty folder");
    let codes = run_at_once(&sandbox, &["--wait"], COUNT_IN);
    assert_eq!(codes, [0; SHELLS]);
    assert_eq!(runs(&sandbox), SHELLS);
    assert!(most_at_once(&sandbox) <= 3, "{} ran at once", most_at_once(&sandbox));
}

#[test]
fn twenty_shells_keep_to_requests_and_to_three_at_once_together() {
    let sandbox = sandbox_with(&["rpm:7/day", "slots:3/at-once"]);
    std::fs::create_dir(sandbox.path().join("running")).expect("an empty folder");
    let codes = run_at_once(&sandbox, &["rpm=1", "--timeout", "1h"], COUNT_IN);
    let count = |code| codes.iter().filter(|it| **it == code).count();
    assert_eq!((count(0), count(3)), (7, SHELLS - 7), "{codes:?}");
    assert_eq!(runs(&sandbox), 7);
    assert!(most_at_once(&sandbox) <= 3, "{} ran at once", most_at_once(&sandbox));
}

#[test]
fn a_planted_overlap_is_seen() {
    let sandbox = sandbox_with(&["slots:20/at-once"]);
    std::fs::create_dir(sandbox.path().join("running")).expect("an empty folder");
    // Every command stays until all are there.
    let script = format!(
        "touch running/$$; until [ $(ls running | wc -l) -ge {SHELLS} ]; do :; done; ls running | wc -l >> seen"
    );
    assert_eq!(run_at_once(&sandbox, &[], &script), [0; SHELLS]);
    assert_eq!(most_at_once(&sandbox), 20);
}

/// Starts a command, and returns the first line of its output.
fn started(sandbox: &Sandbox, script: &str) -> (Child, BufReader<std::process::ChildStdout>, String) {
    let mut shell = run(sandbox, &[], script).stdout(Stdio::piped()).spawn().expect("the program is built");
    let mut stdout = BufReader::new(shell.stdout.take().expect("it is piped"));
    let mut line = String::new();
    stdout.read_line(&mut line).expect("it writes a line");
    (shell, stdout, line.trim().to_owned())
}

#[test]
fn the_slot_of_a_killed_process_is_released_at_once() {
    let sandbox = sandbox_with(&["slots:1/at-once"]);
    let (mut shell, _stdout, pid) = started(&sandbox, "echo $$; exec sleep 600");
    assert_eq!(sandbox.shell("tollgate run me jobs -- true").exit, 3);
    shell.kill().expect("it can be killed");
    shell.wait().expect("it is gone");
    let ran = sandbox.shell("tollgate run me jobs -- true");
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(sandbox.shell(&format!("kill {pid}")).exit, 0, "the command outlives the killed process");
}

#[test]
fn an_expired_lease_is_reported() {
    let sandbox = sandbox_with(&["slots:1/at-once"]);
    let ran = sandbox.shell("tollgate run me jobs -- tollgate entity reset me jobs");
    assert_eq!(ran.exit, 0, "{}", ran.stderr);
    assert_eq!(ran.stderr.matches("the lease of the command has expired").count(), 1, "{}", ran.stderr);
    let ran = sandbox.shell("tollgate run me jobs -- true");
    assert_eq!((ran.exit, ran.stderr.as_str()), (0, ""));
}

#[test]
fn signals_are_forwarded_and_the_slot_is_released() {
    let sandbox = sandbox_with(&["slots:1/at-once"]);
    for (signal, code) in [("TERM", 43), ("INT", 42), ("HUP", 41)] {
        let script = "trap 'echo caught; exit 43' TERM; trap 'echo caught; exit 42' INT; \
                      trap 'echo caught; exit 41' HUP; echo ready; while :; do sleep 0.01; done";
        let (mut shell, mut stdout, line) = started(&sandbox, script);
        assert_eq!(line, "ready");
        assert_eq!(sandbox.shell(&format!("kill -{signal} {}", shell.id())).exit, 0);
        assert_eq!(shell.wait().expect("it ends").code(), Some(code), "{signal}");
        let mut caught = String::new();
        stdout.read_line(&mut caught).expect("it writes a line");
        assert_eq!(caught, "caught\n", "{signal}");
        assert_eq!(sandbox.shell("tollgate run me jobs -- true").exit, 0);
    }
}

#[test]
fn an_ignored_signal_stays_ignored() {
    let sandbox = sandbox_with(&["slots:1/at-once"]);
    let script = "trap '' INT; tollgate run me jobs -- sh -c 'kill -INT $PPID; kill -INT $$; echo alive'";
    let ran = sandbox.shell(script);
    assert_eq!((ran.stdout.as_str(), ran.exit), ("alive\n", 0), "{}", ran.stderr);
}

#[test]
fn a_wait_on_a_terminal_names_the_limit_and_those_ahead() {
    let sandbox = sandbox_with(&["slots:1/at-once"]);
    let ticket = sandbox.tollgate(&["acquire", "me", "jobs", "slots=1"]).stdout;
    let mut first = run(&sandbox, &["--wait"], "true").spawn().expect("the program is built");
    let is_seen = || sandbox.tollgate(&["top", "--once"]).stdout.contains("1 waiting");
    while !is_seen() {}
    let mut terminal = Terminal::new(80, 24);
    let mut second = run(&sandbox, &["--wait"], "echo got it");
    second.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio());
    let mut second = second.spawn().expect("the program is built");
    terminal.expect("waiting 0s for slots (1 of 1 held), 1 ahead");
    terminal.expect("waiting 1s for slots (1 of 1 held), 1 ahead");
    assert_eq!(sandbox.tollgate(&["settle", ticket.trim(), "--cancel"]).exit, 0);
    // The line is cleared before the command writes.
    terminal.expect("\r\u{1b}[2K");
    terminal.expect("got it");
    assert!(first.wait().expect("it ends").success() && second.wait().expect("it ends").success());
}

#[test]
fn explain_behind_a_waiter_names_it_and_no_debt() {
    let sandbox = sandbox_with(&["tokens:3600/hour:100"]);
    assert_eq!(sandbox.tollgate(&["acquire", "me", "jobs", "tokens=100"]).exit, 0);
    let mut ahead = sandbox.command(TOLLGATE);
    ahead.args(["run", "me", "jobs", "tokens=90", "--wait", "--", "true"]);
    let mut ahead = ahead.spawn().expect("the program is built");
    let explain = || sandbox.tollgate(&["explain", "me", "jobs", "tokens=100"]);
    while !sandbox.tollgate(&["top", "--once"]).stdout.contains("1 waiting") {}
    let explained = explain();
    assert_eq!(explained.exit, 3, "{explained:?}");
    let head: Vec<&str> = explained.stdout.lines().take(2).collect();
    let when = "would be admitted after the waiters ahead, in 1m ";
    assert!(head[0].starts_with("would be denied: me on jobs: tokens has "), "{explained:?}");
    assert!(head[1].starts_with(when) && head[1].ends_with("at the earliest"), "{explained:?}");
    ahead.kill().expect("it waits");
    ahead.wait().expect("it ends");
}
