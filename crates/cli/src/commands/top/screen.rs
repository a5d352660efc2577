//! The alternate screen with raw keys, restored however the command ends.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::time::Duration;

use anyhow::{Context as _, Result};
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr};
use terminal_size::{Height, Width};

use super::signals::{Signalled, TopSignals};
use crate::output::frame;

/// The timeout of reading a key: the unit of the terminal's own timeout.
const KEY_TIMEOUT: Duration = Duration::from_millis(100);

/// The most bytes that are read at once: keys that were pressed meanwhile, or the sequence of one.
const KEYS_MAX: usize = 64;

/// The size of a terminal that does not report it.
const SIZE: Size = Size { columns: 80, lines: 24 };

/// Enters the alternate screen, hides the cursor and truncates long lines.
const ENTER: &str = "\u{1b}[?1049h\u{1b}[?25l\u{1b}[?7l";

/// Undoes [`ENTER`].
const LEAVE: &str = "\u{1b}[?7h\u{1b}[?25h\u{1b}[?1049l";

/// The alternate screen. Dropping it restores the terminal.
pub(super) struct TopScreen {
    tty: File,
    before: Termios,
    signals: TopSignals,
    /// The size that the last text was shown for.
    shown: Option<Size>,
}

/// The size of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Size {
    pub(super) columns: usize,
    pub(super) lines: usize,
}

/// What ends a pause.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Pause {
    /// Its time is over, or the size has changed: refresh.
    Over,
    /// The user pressed these keys.
    Keys(String),
    /// A signal ends the process.
    Signalled(Signalled),
}

impl TopScreen {
    /// Enters the alternate screen.
    ///
    /// # Errors
    ///
    /// There is no terminal, or it cannot be configured.
    pub(super) fn open() -> Result<TopScreen> {
        // Before anything is changed, so that no signal leaves the terminal changed.
        let signals = TopSignals::listen().context("signals cannot be handled")?;
        let tty = File::from(io::stdin().as_fd().try_clone_to_owned().context("no terminal")?);
        let before = tcgetattr(&tty).context("the terminal attributes cannot be read")?;
        let mut keys = before.clone();
        // Keys are read at once and not echoed, and Ctrl-C is one of them.
        keys.local_modes -= LocalModes::ICANON | LocalModes::ECHO | LocalModes::ISIG;
        keys.special_codes[SpecialCodeIndex::VMIN] = 0;
        keys.special_codes[SpecialCodeIndex::VTIME] = 1;
        tcsetattr(&tty, OptionalActions::Now, &keys).context("the terminal attributes cannot be set")?;
        let screen = TopScreen { tty, before, signals, shown: None };
        io::stdout().write_all(ENTER.as_bytes())?;
        Ok(screen)
    }

    /// Returns the current size.
    pub(super) fn size(&self) -> Size {
        terminal_size::terminal_size_of(&self.tty).map_or(SIZE, |(Width(columns), Height(lines))| Size {
            columns: columns.into(),
            lines: lines.into(),
        })
    }

    /// Replaces the text on the screen, which was made for this size.
    ///
    /// # Errors
    ///
    /// The reader of stdout is gone.
    pub(super) fn show(&mut self, text: &str, size: Size) -> Result<()> {
        self.shown = Some(size);
        let lines: Vec<&str> = text.split('\n').collect();
        let frame = frame("\u{1b}[H", &lines);
        let mut stdout = io::stdout().lock();
        stdout.write_all(frame.as_bytes())?;
        stdout.flush()?;
        Ok(())
    }

    /// Waits, and returns what ended the wait. The terminal keeps the time: reading a key times out without one.
    ///
    /// # Errors
    ///
    /// The terminal is gone.
    pub(super) fn pause(&mut self, time: Duration) -> Result<Pause> {
        for _ in 0..(time.as_millis() / KEY_TIMEOUT.as_millis()).max(1) {
            let keys = self.keys().context("the terminal cannot be read")?;
            if let Some(signalled) = self.signals.received() {
                return Ok(Pause::Signalled(signalled));
            }
            if !keys.is_empty() {
                return Ok(Pause::Keys(keys));
            }
            if self.shown.is_some_and(|shown| shown != self.size()) {
                break;
            }
        }
        Ok(Pause::Over)
    }

    /// Returns the keys that were pressed; none if there were none within the timeout.
    fn keys(&mut self) -> io::Result<String> {
        let mut keys = [0; KEYS_MAX];
        match self.tty.read(&mut keys) {
            Ok(read) => Ok(String::from_utf8_lossy(&keys[..read]).into_owned()),
            Err(why) if why.kind() == io::ErrorKind::Interrupted => Ok(String::new()),
            Err(why) => Err(why),
        }
    }
}

impl Drop for TopScreen {
    fn drop(&mut self) {
        // Errors are ignored: the terminal may be gone.
        let _ = io::stdout().write_all(LEAVE.as_bytes());
        let _ = io::stdout().flush();
        let _ = tcsetattr(&self.tty, OptionalActions::Now, &self.before);
    }
}
