//! The terminal, with keys that are read as they are pressed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use terminal_size::Height;

/// How long one look for a key takes: the unit of the terminal's own timeout.
const LOOK: Duration = Duration::from_millis(100);

/// Ctrl-C and Ctrl-D, where the terminal makes no signals of them.
const ENDS: [u8; 3] = [b'q', 0x03, 0x04];

/// The lines of a terminal that does not tell.
const LINES: usize = 24;

/// A screen of our own. The one that was there is back when this is gone.
pub(super) struct Screen {
    tty: File,
    before: Termios,
}

impl Screen {
    /// Takes the terminal.
    pub(super) fn open() -> Result<Screen> {
        let tty = File::from(io::stdin().as_fd().try_clone_to_owned().context("no terminal")?);
        let before = tcgetattr(&tty).context("the terminal cannot be asked")?;
        let mut keys = before.clone();
        // Keys come at once, are not shown, and Ctrl-C is one of them, so that the screen is given back.
        keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        keys.special_codes[SpecialCodeIndex::VMIN] = 0;
        keys.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(&tty, OptionalActions::Now, &keys).context("the terminal cannot be set")?;
        let screen = Screen { tty, before };
        write!(io::stdout(), "\u{1b}[?1049h\u{1b}[?25l")?;
        Ok(screen)
    }

    /// How many lines there are.
    pub(super) fn lines(&self) -> usize {
        terminal_size::terminal_size_of(&self.tty).map_or(LINES, |(_, Height(lines))| usize::from(lines))
    }

    /// Waits, and says whether somebody wants to end meanwhile. The terminal keeps the time: a look for a key takes
    /// that long if there is none.
    pub(super) fn is_quit_within(&mut self, time: Duration) -> Result<bool> {
        let looks = (time.as_millis() / LOOK.as_millis()).max(1);
        for _ in 0..looks {
            let mut key = [0];
            let read = self.tty.read(&mut key).context("the terminal cannot be read")?;
            if read > 0 && ENDS.contains(&key[0]) {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // Whoever has gone needs no terminal.
        let _ = write!(io::stdout(), "\u{1b}[?25h\u{1b}[?1049l");
        let _ = io::stdout().flush();
        let _ = tcsetattr(&self.tty, OptionalActions::Now, &self.before);
    }
}
