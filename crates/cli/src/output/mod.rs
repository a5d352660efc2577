//! Output of commands: one value, written as JSON or as text.
//!
//! Nothing is wider than the terminal. Text that goes elsewhere is wrapped to 80 columns, and has names as they are. Text is always rendered with colours; [`anstream`] strips them
//! where the output is not a terminal.

mod bar;
mod chart;
mod columns;
mod cut;
mod escape;
mod fit;
mod frame;
mod number;
mod page;
mod progress;
pub(crate) mod style;
mod table;
mod terminal;
mod wrap;

use std::io::Write;

use anyhow::{Context as _, Result};
use serde::Serialize;

pub(crate) use bar::shown_bar;
pub(crate) use chart::{Chart, line_of};
pub(crate) use cut::cut_line;
pub(crate) use escape::{escape, escape_json, escape_lines, escape_page, is_unsafe_char};
pub(crate) use frame::frame;
pub(crate) use number::{compact, counted, grouped};
pub(crate) use page::TextPage;
pub(crate) use progress::ProgressLine;
pub(crate) use table::{TableCell, TextTable};
pub(crate) use terminal::Terminal;
pub(crate) use wrap::wrap_message;

use crate::exit::Exit;

/// The output of a command. Its fields are a documented schema: see docs/reference/json.md.
pub(crate) trait Answer: Serialize {
    /// Writes the output as text.
    fn text(&self, page: &mut TextPage);

    /// Returns whether the text only confirms that the command was done: `--quiet` suppresses it.
    fn is_echo(&self) -> bool {
        false
    }

    /// Returns whether the JSON is one line, because it ends a stream of events in which each line is an object.
    fn is_line(&self) -> bool {
        false
    }
}

/// The output of a command and its exit code.
pub(crate) struct Output {
    answer: Option<Box<dyn ErasedAnswer>>,
    undo: Option<Undo>,
    /// The exit code.
    pub(crate) exit: Exit,
}

/// Called if the output cannot be written; returns the error to report.
type Undo = Box<dyn FnOnce(anyhow::Error) -> anyhow::Error>;

/// A type-erased answer.
trait ErasedAnswer {
    fn json(&self) -> serde_json::Result<String>;
    fn text(&self, page: &mut TextPage);
    fn is_echo(&self) -> bool;
}

impl<A: Answer> ErasedAnswer for A {
    fn is_echo(&self) -> bool {
        Answer::is_echo(self)
    }

    fn json(&self) -> serde_json::Result<String> {
        let json =
            if self.is_line() { serde_json::to_string(self) } else { serde_json::to_string_pretty(self) };
        json.map(escape_json)
    }

    fn text(&self, page: &mut TextPage) {
        Answer::text(self, page);
    }
}

impl Output {
    /// Returns an output with exit code 0.
    pub(crate) fn new(answer: impl Answer + 'static) -> Output {
        Output { answer: Some(Box::new(answer)), undo: None, exit: Exit::OK }
    }

    /// Returns an empty output: for commands that write to stdout themselves.
    #[allow(dead_code, reason = "for commands that show something live, or run others")]
    pub(crate) fn silent(exit: Exit) -> Output {
        Output { answer: None, undo: None, exit }
    }

    /// Sets the exit code.
    pub(crate) fn with_exit(self, exit: Exit) -> Output {
        Output { exit, ..self }
    }

    /// Sets what is called if the output cannot be written: for output that is useless unless it is read.
    pub(crate) fn or_undo(self, undo: impl FnOnce(anyhow::Error) -> anyhow::Error + 'static) -> Output {
        Output { undo: Some(Box::new(undo)), ..self }
    }

    /// Drops text that only confirms that the command was done.
    pub(crate) fn quietly(self, format: Format) -> Output {
        let answer = self.answer.filter(|answer| format == Format::Json || !answer.is_echo());
        Output { answer, ..self }
    }

    /// Writes the output to stdout, and returns the notice for stderr.
    pub(crate) fn write(&mut self, terminal: &Terminal, format: Format) -> Result<Option<String>> {
        self.try_write(terminal, format).map_err(|why| match self.undo.take() {
            Some(undo) => undo(why),
            None => why,
        })
    }

    fn try_write(&self, terminal: &Terminal, format: Format) -> Result<Option<String>> {
        let Some(answer) = &self.answer else { return Ok(None) };
        let (text, remark) = match format {
            Format::Json => (answer.json().context("the output cannot be written as JSON")? + "\n", None),
            Format::Text => {
                let mut page = TextPage::on(terminal);
                answer.text(&mut page);
                page.finish()
            }
        };
        let mut stdout = anstream::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        stdout.flush()?;
        Ok(remark)
    }
}

/// The output format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// JSON, for programs.
    Json,
    /// Text, for people.
    Text,
}
