//! A terminal for tests, with input and a screen.

use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStringExt;
use std::process::Stdio;
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Termios, Winsize, tcgetattr, tcsetwinsize};

use super::sandbox::{Sandbox, TOLLGATE};

/// The timeout of a test, long enough for a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns what the program writes with these arguments and variables to a terminal of `columns` columns, on both streams.
pub fn shown(sandbox: &Sandbox, columns: u16, words: &[&str], variables: &[(&str, &str)]) -> String {
    let mut terminal = Terminal::new(columns, 24);
    let mut command = sandbox.command("sh");
    let script = "\"$@\"; echo end-of-output";
    command.args(["-c", script, "sh", TOLLGATE]).args(words);
    command.env("TERM", "xterm-256color").envs(variables.iter().copied());
    command.stdin(terminal.stdio()).stdout(terminal.stdio()).stderr(terminal.stdio());
    let mut child = command.spawn().expect("there is a shell");
    let text = terminal.expect("end-of-output");
    child.wait().expect("it ends");
    text
}

/// Both ends of a terminal.
pub struct Terminal {
    keyboard: File,
    /// What a program has for its stdin and stdout. Held open, so that the terminal outlives the program.
    program: File,
    written: Receiver<Vec<u8>>,
    /// All that was written so far.
    seen: String,
    /// How much of that was expected already.
    read: usize,
}

impl Terminal {
    pub fn new(columns: u16, lines: u16) -> Terminal {
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("there are terminals");
        grantpt(&keyboard).expect("it can be used");
        unlockpt(&keyboard).expect("it can be used");
        let name = ptsname(&keyboard, Vec::new()).expect("it has a name");
        let path = std::ffi::OsString::from_vec(name.into_bytes());
        let program = OpenOptions::new().read(true).write(true).open(path).expect("it can be opened");
        let keyboard = File::from(keyboard);
        let written = listen(keyboard.try_clone().expect("it can be shared"));
        let terminal = Terminal { keyboard, program, written, seen: String::new(), read: 0 };
        terminal.resize(columns, lines);
        terminal
    }

    /// One end of it, for a program.
    pub fn stdio(&self) -> Stdio {
        self.program.try_clone().expect("it can be shared").into()
    }

    pub fn resize(&self, columns: u16, lines: u16) {
        let size = Winsize { ws_row: lines, ws_col: columns, ws_xpixel: 0, ws_ypixel: 0 };
        tcsetwinsize(&self.keyboard, size).expect("it has a size");
    }

    pub fn press(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).expect("it can be written to");
    }

    /// Reads until a text is seen, and returns what came before it.
    pub fn expect(&mut self, text: &str) -> String {
        loop {
            if let Some(at) = self.seen[self.read..].find(text) {
                let before = self.seen[self.read..][..at].to_owned();
                self.read += at + text.len();
                return before;
            }
            let more = self.written.recv_timeout(PATIENCE);
            let more = more.unwrap_or_else(|_| panic!("{text:?} is not in {:?}", &self.seen[self.read..]));
            self.seen.push_str(&String::from_utf8_lossy(&more));
        }
    }

    /// How the terminal treats keys.
    pub fn modes(&self) -> Modes {
        let Termios { input_modes, output_modes, control_modes, local_modes, .. } =
            tcgetattr(&self.program).expect("it can be asked");
        Modes([input_modes.bits(), output_modes.bits(), control_modes.bits(), local_modes.bits()])
    }
}

/// How a terminal treats keys.
#[derive(Debug, PartialEq)]
pub struct Modes([u32; 4]);

/// A thread that ends with the terminal.
fn listen(mut screen: File) -> Receiver<Vec<u8>> {
    let (tell, written) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(read @ 1..) = screen.read(&mut buffer) {
            if tell.send(buffer[..read].to_vec()).is_err() {
                break;
            }
        }
    });
    written
}
