//! What commands answer: one value, written for programs as JSON and for people as text.
//!
//! Tables keep to the width of the terminal, or to 80 columns. Colours are only where [`anstream`] finds that they can
//! be seen; what is rendered here always has them, and they are stripped on the way out.

mod chart;
mod harmless;
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

pub(crate) use chart::{Chart, line_of};
pub(crate) use harmless::{does_something, harmless, harmless_json, harmless_lines, harmless_page};
pub(crate) use number::{counted, grouped};
pub(crate) use page::TextPage;
pub(crate) use progress::ProgressLine;
pub(crate) use table::{TableCell, TextTable};
pub(crate) use terminal::Terminal;
pub(crate) use wrap::told;

use crate::exit::Exit;

/// What a command answers. Its fields are a schema that others rely on: see docs/reference/json.md.
pub(crate) trait Answer: Serialize {
    /// The same for people.
    fn text(&self, page: &mut TextPage);

    /// Whether it only says that what was asked for is done: with `--quiet` people do not get that.
    fn is_echo(&self) -> bool {
        false
    }

    /// Whether its JSON is one line, because it ends a stream of events in which each line is an object.
    fn is_line(&self) -> bool {
        false
    }
}

/// An answer that was given, and the exit code that goes with it.
pub(crate) struct Output {
    answer: Option<Box<dyn ErasedAnswer>>,
    undo: Option<Undo>,
    /// What the command says by its exit code.
    pub(crate) exit: Exit,
}

/// What is to be done if an answer cannot be written, and the error that is reported then.
type Undo = Box<dyn FnOnce(anyhow::Error) -> anyhow::Error>;

/// An answer whose type is forgotten.
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
        json.map(harmless_json)
    }

    fn text(&self, page: &mut TextPage) {
        Answer::text(self, page);
    }
}

impl Output {
    /// An answer, all well.
    pub(crate) fn new(answer: impl Answer + 'static) -> Output {
        Output { answer: Some(Box::new(answer)), undo: None, exit: Exit::OK }
    }

    /// Nothing more to say: for commands that wrote to stdout as they went, and end with a code of their own.
    #[allow(dead_code, reason = "for commands that show something live, or run others")]
    pub(crate) fn silent(exit: Exit) -> Output {
        Output { answer: None, undo: None, exit }
    }

    /// The same answer with another exit code.
    pub(crate) fn with_exit(self, exit: Exit) -> Output {
        Output { exit, ..self }
    }

    /// The same answer, and what is to be done if it cannot be written: for one that is of no use unread.
    pub(crate) fn or_undo(self, undo: impl FnOnce(anyhow::Error) -> anyhow::Error + 'static) -> Output {
        Output { undo: Some(Box::new(undo)), ..self }
    }

    /// The same, with no answer if that only says that what was asked for is done and people want errors only.
    pub(crate) fn quietly(self, format: Format) -> Output {
        let answer = self.answer.filter(|answer| format == Format::Json || !answer.is_echo());
        Output { answer, ..self }
    }

    /// Writes the answer to stdout, and answers what is to be said beside it.
    pub(crate) fn write(&mut self, terminal: &Terminal, format: Format) -> Result<Option<String>> {
        self.try_write(terminal, format).map_err(|why| match self.undo.take() {
            Some(undo) => undo(why),
            None => why,
        })
    }

    fn try_write(&self, terminal: &Terminal, format: Format) -> Result<Option<String>> {
        let Some(answer) = &self.answer else { return Ok(None) };
        let (text, remark) = match format {
            Format::Json => (answer.json().context("the answer cannot be written as JSON")? + "\n", None),
            Format::Text => {
                let mut page = TextPage::new(terminal.width);
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

/// Who reads the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    /// A program.
    Json,
    /// A person.
    Text,
}
