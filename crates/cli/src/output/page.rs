use std::fmt::{Display, Write};

use super::style::{self, paint};
use super::wrap::wrapped;
use super::{TableCell, Terminal, TextTable, escape_page};

/// A page of text output: lines, fields and tables of a given width.
pub(crate) struct TextPage {
    text: String,
    remark: Option<String>,
    width: PageWidth,
    /// Whether lines of text are wrapped to the width.
    wraps: bool,
}

/// The width of a page.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageWidth {
    /// The columns.
    pub(super) columns: usize,
    /// Whether no table is wider. Otherwise the lines are for a file or a program, which finds names as they are.
    pub(super) is_bounded: bool,
}

impl TextPage {
    /// Creates an empty page of a screen, which truncates lines.
    pub(crate) fn new(columns: usize) -> TextPage {
        let width = PageWidth { columns, is_bounded: true };
        TextPage { text: String::new(), remark: None, width, wraps: false }
    }

    /// Creates an empty page for the streams of a process.
    pub(crate) fn on(terminal: &Terminal) -> TextPage {
        let width = PageWidth { columns: terminal.width, is_bounded: terminal.is_bounded };
        TextPage { width, wraps: terminal.is_bounded, ..TextPage::new(terminal.width) }
    }

    /// Returns the width in columns.
    pub(crate) fn width(&self) -> usize {
        self.width.columns
    }

    /// Adds a line, which a terminal shows wrapped between words.
    pub(crate) fn line(&mut self, line: impl Display) {
        match self.wraps {
            true => self.verbatim(wrapped(&line.to_string(), self.width.columns)),
            false => self.verbatim(line),
        }
    }

    /// Adds lines as they are: to be copied into a shell or a file.
    pub(crate) fn verbatim(&mut self, lines: impl Display) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.text, "{lines}");
    }

    /// Adds a sentence, wrapped to the width.
    pub(crate) fn sentence(&mut self, sentence: impl Display) {
        self.verbatim(wrapped(&sentence.to_string(), self.width.columns));
    }

    /// Adds an empty line, unless the page is empty.
    pub(crate) fn gap(&mut self) {
        if !self.text.is_empty() {
            self.text.push('\n');
        }
    }

    /// Adds a heading, with an empty line above it.
    pub(crate) fn heading(&mut self, heading: impl Display) {
        self.gap();
        self.line(paint(style::HEADING, heading));
    }

    /// Adds names with their values, one on each line.
    pub(crate) fn fields<'a>(&mut self, fields: impl IntoIterator<Item = (&'a str, TableCell)>) {
        let mut table = TextTable::bare().wrap(1);
        for (name, value) in fields {
            table.row([TableCell::styled(name, style::HEADING), value]);
        }
        self.table(&table);
    }

    /// Adds a table.
    pub(crate) fn table(&mut self, table: &TextTable) {
        table.render(&mut self.text, self.width);
    }

    /// Adds a table, or a line if the table is empty.
    pub(crate) fn table_or_line(&mut self, table: &TextTable, nothing: impl Display) {
        if table.is_empty() { self.line(nothing) } else { self.table(table) }
    }

    /// Adds a table that is the whole output. If it is empty, a notice goes to stderr, because it is not data.
    pub(crate) fn table_or(&mut self, table: &TextTable, nothing: impl Display) {
        if table.is_empty() { self.remark(nothing) } else { self.table(table) }
    }

    /// Sets the notice for stderr.
    pub(crate) fn remark(&mut self, remark: impl Display) {
        self.remark = Some(remark.to_string());
    }

    /// Returns the page and the notice for stderr.
    pub(crate) fn finish(self) -> (String, Option<String>) {
        (escape_page(&self.text), self.remark)
    }
}
