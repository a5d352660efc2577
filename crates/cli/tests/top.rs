//! `tollgate top` on a terminal: its view, and that the terminal is restored.
#![cfg(unix)]

mod support;

use std::process::{Child, Command};

use support::furnish;
use support::grid::Grid;
use support::json_page::JsonPage;
use support::sandbox::{Sandbox, TOLLGATE};
use support::terminal::Terminal;

const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";
const LEAVE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

/// Where a picture begins.
const HOME: &str = "\u{1b}[H";

/// Where a picture ends.
const END: &str = "\u{1b}[?2026l";

struct Watched {
    sandbox: Sandbox,
    terminal: Terminal,
    top: Child,
}

/// A test may be started where signals are ignored, by `nohup` or in the background; here they are not.
fn tollgate(sandbox: &Sandbox) -> Command {
    let mut command = sandbox.command("env");
    command.arg("--default-signal=HUP,INT,QUIT,TERM").arg(TOLLGATE);
    command
}

fn watch(words: &[&str]) -> Watched {
    let sandbox = Sandbox::new();
    furnish::used_now(&sandbox.path().join("limits.db"));
    let terminal = Terminal::new(80, 24);
    let mut command = tollgate(&sandbox);
    command.arg("top").args(words).env("TERM", "xterm");
    let streams = [terminal.stdio(), terminal.stdio(), terminal.stdio()];
    let [stdin, stdout, stderr] = streams;
    let top = command.stdin(stdin).stdout(stdout).stderr(stderr).spawn().expect("the program is built");
    Watched { sandbox, terminal, top }
}

impl Watched {
    /// The next picture.
    fn picture(&mut self) -> String {
        self.terminal.expect(HOME);
        self.terminal.expect(END)
    }

    /// The first picture that shows something.
    fn picture_with(&mut self, text: &str) -> String {
        loop {
            let picture = self.picture();
            if picture.contains(text) {
                return picture;
            }
        }
    }

    fn end(mut self) -> (Terminal, Option<i32>) {
        self.terminal.expect(LEAVE);
        let code = self.top.wait().expect("it ends").code();
        (self.terminal, code)
    }
}

#[test]
fn q_ends_it_and_the_terminal_is_as_it_was() {
    for key in ["q", "\u{3}", "\u{4}"] {
        let mut watched = watch(&[]);
        let before = Terminal::new(80, 24).modes();
        watched.terminal.expect(ENTER);
        let picture = watched.picture();
        assert!(picture.contains("user-1") && picture.contains("500,"), "{picture}");
        assert_ne!(watched.terminal.modes(), before, "keys are read as they are pressed");
        watched.terminal.press("x");
        watched.terminal.press(key);
        let (terminal, code) = watched.end();
        assert_eq!((terminal.modes(), code), (before, Some(0)), "{key:?}");
    }
}

/// The next picture without colours, in which no line is wider than the terminal.
fn plain(picture: &str) -> String {
    let text = anstream::adapter::strip_str(picture).to_string();
    assert!(text.lines().all(|line| line.trim_end().chars().count() <= 80), "{text}");
    text
}

#[test]
fn the_last_line_names_the_keys_and_they_do_what_it_says() {
    let mut watched = watch(&["--interval", "1h"]);
    // The order is by calls at first: the tightest limit has another entity.
    for (entity, amount) in [("other", "tpm=1"), ("other", "tpm=1"), ("tight", "tpm=1999999")] {
        let taken = watched.sandbox.tollgate(&["acquire", entity, "gpt-4", "rpm=1", amount, "slots=0"]);
        assert_eq!(taken.exit, 0, "{taken:?}");
    }
    watched.picture();
    let press = |watched: &mut Watched, key: &str| {
        watched.terminal.press(key);
        plain(&watched.picture())
    };
    let row = |picture: &str, place: usize| -> String {
        let rows = picture.lines().skip_while(|line| !line.starts_with("ENTITY"));
        rows.skip(1).nth(place).unwrap_or_default().to_owned()
    };
    let calls = press(&mut watched, "c");
    assert!(row(&calls, 0).starts_with("other"), "{calls}");
    let last = calls.lines().last().expect("it has lines");
    for hint in ["q quit", "? help", "/ filter", "p pause", "c calls", "u used", "l left", "h held"] {
        assert!(last.contains(hint), "{hint}: {calls}");
    }
    assert_eq!(calls.lines().count(), 24, "{calls}");
    let left = press(&mut watched, "l");
    assert!(row(&left, 0).starts_with("tight"), "{left}");
    let paused = press(&mut watched, "p");
    assert!(paused.lines().next().is_some_and(|line| line.ends_with("paused")), "{paused}");
    let help = press(&mut watched, "?");
    assert!(help.contains("Columns") && help.contains("since the last full hour"), "{help}");
    assert!(!press(&mut watched, "x").contains("Columns"), "any key closes the help");
    for key in ["/", "u", "s", "e"] {
        press(&mut watched, key);
    }
    let filtered = press(&mut watched, "\r");
    assert!(row(&filtered, 0).starts_with("user-1") && row(&filtered, 1).is_empty(), "{filtered}");
    assert!(filtered.contains("filter \"use\"") && !filtered.contains("paused"), "{filtered}");
    let all = press(&mut watched, "\u{1b}");
    assert!(!row(&all, 2).is_empty(), "Esc removes the filter: {all}");
    watched.terminal.press("q");
    assert_eq!(watched.end().1, Some(0));
}

#[test]
fn rates_are_shown_from_the_second_snapshot_on() {
    let mut watched = watch(&["--interval", "200ms"]);
    assert!(!plain(&watched.picture()).contains("PER S"), "nothing is known of a rate yet");
    for _ in 0..3 {
        watched.sandbox.tollgate(&["acquire", "user-1", "gpt-4", "rpm=1", "tpm=1"]);
    }
    watched.picture_with("PER S");
    watched.terminal.press("q");
    assert_eq!(watched.end().1, Some(0));
}

#[test]
fn a_narrow_terminal_cuts_lines_with_a_sign() {
    let mut watched = watch(&["--interval", "1h"]);
    watched.picture();
    watched.terminal.resize(30, 24);
    let picture = watched.picture();
    let screen = Grid::of(30, &picture).lines();
    assert!(screen.last().is_some_and(|line| line.ends_with('…')), "{screen:#?}");
    let picture = plain(&picture);
    assert!(picture.lines().all(|line| line.chars().count() <= 30), "{picture}");
    watched.terminal.press("q");
    assert_eq!(watched.end().1, Some(0));
}

#[test]
fn a_signal_ends_it_and_the_terminal_is_as_it_was() {
    for (signal, code) in [("TERM", 143), ("HUP", 129), ("INT", 130), ("QUIT", 131)] {
        let mut watched = watch(&["--interval", "1h"]);
        let before = Terminal::new(80, 24).modes();
        watched.picture();
        assert_ne!(watched.terminal.modes(), before);
        assert_eq!(watched.sandbox.shell(&format!("kill -{signal} {}", watched.top.id())).exit, 0);
        let (terminal, ended) = watched.end();
        assert_eq!((terminal.modes(), ended), (before, Some(code)), "{signal}");
    }
}

#[test]
fn another_size_is_heeded_at_once() {
    let mut watched = watch(&["--interval", "1h"]);
    assert!(watched.picture().contains("user-1"));
    watched.terminal.resize(80, 2);
    let small = watched.picture();
    assert_eq!(small.lines().count(), 2, "{small}");
    assert!(small.contains("namespace") && !small.contains("user-1"), "{small}");
    watched.terminal.resize(60, 24);
    assert!(watched.picture().contains("user-1"));
    watched.terminal.press("q");
    assert_eq!(watched.end().1, Some(0));
}

#[test]
fn without_colours_it_is_written_over_all_the_same() {
    let mut watched = watch(&["--color", "never", "--interval", "100ms"]);
    for _ in 0..2 {
        let picture = watched.picture().replace("\u{1b}[K", "").replace("\u{1b}[J", "");
        assert!(picture.contains("user-1") && !picture.contains('\u{1b}'), "{picture:?}");
    }
    watched.terminal.press("q");
    assert_eq!(watched.end().1, Some(0));
}

#[test]
fn a_waiter_is_shown_until_its_wait_ends() {
    let mut watched = watch(&["--interval", "100ms"]);
    assert!(watched.picture().contains("0 waiting"));
    // All four slots, until the ticket is settled.
    let ticket = watched.sandbox.tollgate(&["acquire", "you", "jobs", "rpm=1", "tpm=1", "slots=4"]).stdout;
    let waits = ["run", "--wait", "you", "jobs", "rpm=1", "tpm=1500", "slots=2", "--", "true"];
    let mut waiter = tollgate(&watched.sandbox).args(waits).spawn().expect("the program is built");
    let picture = watched.picture_with("1 waiting");
    let shown = anstream::adapter::strip_str(&picture).to_string();
    let line = shown.lines().find(|line| line.contains(&format!(" {}@", waiter.id()))).expect(&shown);
    assert!(line.starts_with("you      jobs") && line.contains("rpm 1, slots 2, tpm 1,500"), "{shown}");
    let json = watched.sandbox.tollgate(&["top", "--json"]).stdout;
    let json: serde_json::Value = serde_json::from_str(&json).expect("it is JSON");
    let page = include_str!("../../../docs/reference/json.md");
    assert_eq!(JsonPage::read(page).check("tollgate top", &json), Ok(()));
    let told = &json["waiting"][0];
    assert_eq!((&told["entity"], &told["resource"]), (&"you".into(), &"jobs".into()), "{json}");
    assert_eq!((&told["demand"]["tpm"], &told["pid"]), (&1_500.into(), &waiter.id().into()), "{json}");
    let settled = watched.sandbox.tollgate(&["settle", ticket.trim(), "--cancel"]);
    assert_eq!(settled.exit, 0, "{}", settled.stderr);
    assert!(waiter.wait().expect("it ends").success());
    watched.picture_with("0 waiting");
    watched.terminal.press("q");
    assert_eq!(watched.end().1, Some(0));
}
